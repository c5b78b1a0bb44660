"""One original as a model is shown it: whole or a part of it, as much as fits, and how to ask for the rest."""

from collections.abc import Sequence

from lowwater.engine.recall.cutting import Count, fitting, within
from lowwater.engine.recall.neighbourhood import calls_answered
from lowwater.errors import BadInput
from lowwater.values.entries import Numbers
from lowwater.values.groups import Span
from lowwater.values.ledger import Numbered
from lowwater.values.recalled import Told


def caption(messages: Sequence[Numbered], told: Told) -> str:
    """Return what a message is in a few words: its handle, who speaks, which tool answered, its size."""
    by = ", ".join(dict.fromkeys(call.name for call in calls_answered(messages, told.number)))
    who = f"{told.who} of {by}" if by and told.who == "tool result" else told.who
    return f"{told.handle} · {who} · {told.tokens:,} tokens"


def part_of(told: Told, *, lines: Numbers | None, characters: Numbers | None) -> Span:
    """Return where the wanted part of a message's text is, or raise BadInput if it has none there."""
    text = told.text
    if characters is not None:
        if characters.first > len(text):
            raise BadInput(f"{told.handle} has only {len(text):,} characters: ask for some of these")
        return Span(start=characters.first - 1, stop=min(characters.last, len(text)))
    if lines is not None:
        count = text.count("\n") + 1
        if lines.first > count:
            raise BadInput(f"{told.handle} has only {count:,} lines: ask for some of these")
        return Span(start=_line_start(text, lines.first), stop=_line_start(text, lines.last + 1))
    return Span(start=0, stop=len(text))


def show(told: Told, said: str, part: Span, tokens: int, count: Count) -> str | None:
    """Return a part of a message under its caption, within `tokens`; None if there is no room for any of it.

    Raise BadInput if the message has no text at all.
    """
    text = told.text
    if not text:
        raise BadInput(f"{told.handle} has no text: look at the messages around it")

    def tell(room: int) -> str:
        end = fitting(text, part.start, part.stop, room, count)
        shown = Span(start=part.start, stop=end)
        body = text[part.start : end]
        if end < part.stop:
            body = f"{body.removesuffix(chr(10))}\n[{_rest(text, end, part.stop, told.tokens)}]"
        return f"[{said}{place_of(text, shown)}]\n{body}"

    return within(tokens, count, tell)


def place_of(text: str, part: Span) -> str:
    """Return which part of a text this is, for its caption; nothing if it is the whole."""
    if part.start == 0 and part.stop == len(text):
        return ""
    if _starts_line(text, part.start) and _ends_line(text, part.stop):
        last = _line_at(text, max(part.start, part.stop - 1))
        return f" · lines {_line_at(text, part.start):,}–{last:,} of {text.count(chr(10)) + 1:,}"
    return f" · characters {part.start + 1:,}–{part.stop:,} of {len(text):,}"


def _rest(text: str, end: int, stop: int, tokens: int) -> str:
    """Return how much of what was asked for is left, and how to ask for it."""
    about = max(1, round(tokens * (stop - end) / len(text)))
    if _starts_line(text, end) and _ends_line(text, stop):
        first, last = _line_at(text, end), _line_at(text, stop - 1)
        return f"cut here: {last - first + 1:,} lines, about {about:,} tokens, are left; go on with lines [{first}, {last}]"
    return (
        f"cut here: {stop - end:,} characters, about {about:,} tokens, are left; "
        f"go on with characters [{end + 1}, {stop}]"
    )


def _starts_line(text: str, place: int) -> bool:
    return place == 0 or text[place - 1] == "\n"


def _ends_line(text: str, place: int) -> bool:
    return place == len(text) or text[place] == "\n" or _starts_line(text, place)


def _line_at(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _line_start(text: str, line: int) -> int:
    """Return where a line begins; the end of the text for one that it does not have."""
    place = 0
    for _ in range(line - 1):
        place = text.find("\n", place) + 1
        if not place:
            return len(text)
    return place
