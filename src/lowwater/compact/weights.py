"""What the parts of a message weigh: about how many of its tokens each takes, without counting again."""

from collections.abc import Sequence

from lowwater.values.parts import AnyPart, Document, Image, Opaque, Text, Thinking, ToolCall, ToolResult

_PICTURE = 5_000
"""What a picture weighs in characters: about its tokens, times four."""
_SIGNED = 0.7
"""What a character of a signature weighs: it grows with thinking that is not shown (`count.message`)."""
_ENVELOPE = 200


def share_of_tokens(tokens: int, parts: Sequence[AnyPart], wanted: Sequence[AnyPart]) -> int:
    """Return how many of a message's `tokens` the `wanted` of its `parts` take, by their share of the characters.

    What is wanted may also stand inside one of the parts.
    """
    return share_of(tokens, weight_of(parts), wanted)


def weight_of(parts: Sequence[AnyPart]) -> int:
    """Return what parts weigh together; whoever asks for the share of each asks for this once."""
    return sum([weight(part) for part in parts])


def share_of(tokens: int, whole: int, wanted: Sequence[AnyPart]) -> int:
    """Return how many of a message's `tokens` the `wanted` of its parts take, which weigh `whole` together."""
    return round(tokens * weight_of(wanted) / whole) if whole else 0


def weight(part: AnyPart) -> int:
    """Return about how many characters of text a part is worth."""
    match part:
        case Text():
            return len(part.text)
        case ToolResult():
            return sum(weight(inner) for inner in part.parts)
        case ToolCall():
            return len(part.name) + len(part.arguments)
        case Thinking():
            return max(len(part.text), int((len(part.signature) - _ENVELOPE) * _SIGNED))
        case Image() | Document():
            return _PICTURE if is_picture(part) else len(part.data)
        case Opaque():
            return len(part.body)


def is_picture(part: AnyPart) -> bool:
    """Return whether a part is shown to the model as a picture: an image, or a document that is not plain text."""
    return isinstance(part, Image) or (isinstance(part, Document) and part.source != "text")
