"""The transcript that a model is shown to summarise: bounded in size and without repetitions."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from lowwater.core.messages import Document, Image, Message, Text, ToolCall, ToolResult
from lowwater.core.summary.activity import plain_text, spoken_text
from lowwater.core.summary.request import SummaryRequest
from lowwater.core.summary.template import Section, parse
from lowwater.core.summary.text import NearDuplicates, flat, lines_of, words
from lowwater.protocols import Tokenizer

_RESULT_CHARS = 3_000
_ARGUMENT_CHARS = 400
_TEXT_CHARS = 3_000
_SHRINKS = (1.0, 0.5, 0.25, 0.1)
"""Factors for the length limits, tried in turn before messages are left out."""
_CONTAINED = 0.8
"""A text is known if one item of the previous summary has this share of its words."""
_FEWEST_WORDS = 4


class _Block(Struct, frozen=True, kw_only=True):
    """One piece of the transcript; `limit` is its greatest length in characters."""

    label: str
    text: str
    limit: int


def transcript_for(request: SummaryRequest, tokenizer: Tokenizer, *, max_tokens: int) -> str:
    """Return the request's messages as text of at most `max_tokens`.

    Long tool results are cut to head and tail; what the previous summary says already and what repeats an earlier result
    is left out. If the rest does not fit, limits shrink; then messages after the first are left out, oldest first.
    """
    blocks = list(_new_blocks(request))
    for shrink in _SHRINKS:
        written = [_render(block, shrink) for block in blocks]
        text = "\n\n".join(written)
        if tokenizer.count(text) <= max_tokens:
            return text
    return _first_and_newest(written, tokenizer, max_tokens)


def head_and_tail(text: str, limit: int) -> str:
    """Return `text` if it is short enough, else its beginning and end with a note of how much was left out."""
    if len(text) <= limit:
        return text
    note = f"\n… {len(text) - limit:,} characters left out …\n"
    room = max(0, limit - len(note))
    head, tail = text[: room * 2 // 3], text[len(text) - room // 3 :]
    return _whole_words(head) + note + _whole_words(tail[::-1])[::-1]


def _whole_words(text: str) -> str:
    cut = max(text.rfind(" "), text.rfind("\n"))
    return text[:cut] if cut > len(text) // 2 else text


def _new_blocks(request: SummaryRequest) -> Iterator[_Block]:
    """Yield the blocks with something new; a near duplicate is replaced by a reference to the earlier block."""
    known = [words(item) for section in Section for item in parse(request.previous).of(section)]
    numbers = request.numbers or tuple(range(1, len(request.messages) + 1))
    names: dict[str, str] = {}
    seen = NearDuplicates(near=0.9)
    for number, message in zip(numbers, request.messages, strict=True):
        names.update({call.id: call.name for call in message.calls})
        for block in _blocks(message, number, names):
            if block.label.endswith("said") and _is_known(block.text, known):
                continue
            lines = lines_of(block.text)
            if len(lines) > 3 and (earlier := seen.nearest(lines)):
                yield _Block(label=block.label, text=f"(nearly the same as {earlier})", limit=_TEXT_CHARS)
                continue
            if len(lines) > 3:
                seen.add(lines, block.label)
            yield block


def _is_known(text: str, known: Sequence[set[str]]) -> bool:
    own = words(text)
    return len(own) >= _FEWEST_WORDS and any(len(own & other) >= _CONTAINED * len(own) for other in known)


def _blocks(message: Message, number: int, names: dict[str, str]) -> Iterator[_Block]:
    for part in message.parts:
        match part:
            case Text(text=text) if text.strip():
                speaker = "harness" if message.role == "user" and not spoken_text(text) else message.role
                yield _Block(label=f"lw:{number} {speaker} said", text=plain_text(text), limit=_TEXT_CHARS)
            case ToolCall(name=name, arguments=arguments):
                yield _Block(label=f"lw:{number} called {name}", text=flat(arguments), limit=_ARGUMENT_CHARS)
            case ToolResult():
                failed = ", failed" if part.is_error else ""
                label = f"lw:{number} result of {names.get(part.call_id, 'a tool')}{failed}"
                yield _Block(label=label, text=plain_text(part.text), limit=_RESULT_CHARS)
            case Image() | Document():
                yield _Block(label=f"lw:{number} {message.role} attached", text=part.kind, limit=_TEXT_CHARS)
            case _:
                pass


def _render(block: _Block, shrink: float) -> str:
    return f"[{block.label}]\n{head_and_tail(block.text.strip(), int(block.limit * shrink))}"


def _first_and_newest(written: Sequence[str], tokenizer: Tokenizer, max_tokens: int) -> str:
    """Return the first block and as many of the newest as fit, with a note of how many were left out."""
    first, rest = written[0], list(written[1:])
    kept: list[str] = []
    left = max_tokens - tokenizer.count(first) - 24
    while rest and (cost := tokenizer.count(rest[-1]) + 2) <= left:
        kept.insert(0, rest.pop())
        left -= cost
    while True:
        note = [f"[{len(written) - 1 - len(kept)} pieces left out here]"]
        text = "\n\n".join([first, *note, *kept])
        if tokenizer.count(text) <= max_tokens:
            return text
        if not kept:
            return _longest_prefix(text, tokenizer, max_tokens)
        kept.pop(0)


def _longest_prefix(text: str, tokenizer: Tokenizer, max_tokens: int) -> str:
    """Return the longest beginning of a text that fits, by binary search."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if tokenizer.count(text[:middle]) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return text[:low]
