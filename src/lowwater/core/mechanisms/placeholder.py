"""The placeholder of an elided tool result: what it was, a digest of it, and how to get it back."""

import re
from collections.abc import Container

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.mechanisms.digest import digest
from lowwater.core.messages import ToolCall
from lowwater.core.references import NAME, lines_with_errors
from lowwater.core.tools import ToolClass, classify, subject_of
from lowwater.protocols import Tokenizer

FRAME_SHARE = 0.01
"""What the line above a digest may add to the digest's share of the original's tokens."""

_ARGUMENT, _PREVIEW = 60, 80
_FIRST = re.compile(r"\S.*")
_BREAKING = str.maketrans({"[": "(", "]": ")", "·": "-"})
_RUN_AGAIN: dict[ToolClass, str] = {
    "read": "run again",
    "search": "run again",
    "list": "run again",
    "web": "run again",
    "shell": "run again if harmless",
}


class _Frame(Struct, frozen=True, kw_only=True):
    """The parts of the one line that every placeholder has."""

    tool: str
    argument: str
    size: str
    preview: str
    back: str

    def __str__(self) -> str:
        parts = (self.tool, self.argument, self.size, self.preview, self.back)
        return f"[{' · '.join(part for part in parts if part)}]"


def placeholder(
    text: str,
    *,
    number: int,
    call: ToolCall | None,
    offers_recall: bool,
    tokenizer: Tokenizer,
    digest_ratio: float = 0.15,
    known: Container[str] = frozenset(),
    repeated: Container[str] = frozenset(),
    plain: bool = False,
    tokens: int | None = None,
) -> str:
    """Return the placeholder of `text`, the result of `call` in message `number`; empty if it would not be smaller.

    It is one line and, unless `plain`, a digest. Together they have at most `digest_ratio` plus one per cent of the
    original's tokens, if the shortest line allows that. `known` names are shown elsewhere in the view and are left out;
    `repeated` ones, which an older result has too, come last.
    `tokens` is the size of `text` if it is known already.
    """
    whole = tokenizer.count(text) if tokens is None else tokens
    frame = _frame(text, number, call, preview=_preview(text, call), offers_recall=offers_recall)
    if plain or digest_ratio <= 0:
        shown = str(frame)
    else:
        room = int(whole * (digest_ratio + FRAME_SHARE))
        line = _line_within(frame, room, tokenizer)
        shown = line + _digest_below(
            line, text, call, room, tokenizer=tokenizer, known=known, repeated=repeated
        )
    return shown if tokenizer.count(shown) < whole else ""


def repeats(
    text: str, *, number: int, call: ToolCall | None, by: int, how: str = "repeated in", offers_recall: bool
) -> str:
    """Return the line that replaces a result which message `by` supersedes; `how` says in what way."""
    return str(_frame(text, number, call, preview=f"{how} lw:{by}", offers_recall=offers_recall))


def way_back(number: int, call: ToolCall | None, *, offers_recall: bool) -> str:
    """Return how to get an elided result back; the text always contains its handle."""
    if offers_recall:
        return f"recall lw:{number}"
    again = _RUN_AGAIN.get(classify(call.name)) if call else None
    return f"{again} · lw:{number}" if again else f"on record as lw:{number}"


def _frame(text: str, number: int, call: ToolCall | None, *, preview: str, offers_recall: bool) -> _Frame:
    return _Frame(
        tool=_one_line(call.name.rsplit("__", 1)[-1], _ARGUMENT) if call else "tool",
        argument=_argument(call) if call else "",
        size=f"{len(text):,} chars elided",
        preview=preview,
        back=way_back(number, call, offers_recall=offers_recall),
    )


def _line_within(frame: _Frame, room: int, tokenizer: Tokenizer) -> str:
    """Return the most detailed line that leaves most of the room to the digest."""
    if tokenizer.count(str(frame)) <= room // 8:
        return str(frame)
    line = str(replace(frame, preview=""))
    if tokenizer.count(line) <= room // 4:
        return line
    return str(replace(frame, argument="", preview=""))


def _digest_below(
    line: str,
    text: str,
    call: ToolCall | None,
    room: int,
    *,
    tokenizer: Tokenizer,
    known: Container[str],
    repeated: Container[str],
) -> str:
    """Return as much of a digest as fits below the line, beginning with a line break."""
    tool, subject, arguments = (
        (classify(call.name), subject_of(call), call.arguments) if call else ("other", "", "")
    )
    said = [*NAME.findall(arguments), *NAME.findall(line)]
    left = room - tokenizer.count(line + "\n")
    while left > 0:
        found = digest(
            text,
            tool=tool,
            subject=subject,
            tokens=left,
            tokenizer=tokenizer,
            said=said,
            known=known,
            repeated=repeated,
        )
        over = tokenizer.count(f"{line}\n{found}") - room
        if not found or over <= 0:
            return f"\n{found}" if found else ""
        left -= over
    return ""


def _argument(call: ToolCall) -> str:
    """Return what the call was about in a few characters: the end of a path, the start of anything else."""
    subject = subject_of(call)
    is_path = "/" in subject and not re.search(r"\s", subject[-_ARGUMENT:])
    return _one_line(subject, _ARGUMENT, from_end=is_path)


def _preview(text: str, call: ToolCall | None) -> str:
    """Return the first error line, or else the first line; nothing for the contents of a file."""
    if call is not None and classify(call.name) == "read":
        return ""
    error = next(lines_with_errors(text), None)
    if error:
        return _one_line(error.text, _PREVIEW)
    first = _FIRST.search(text)
    return _one_line(first[0], _PREVIEW) if first else ""


def _one_line(text: str, width: int, *, from_end: bool = False) -> str:
    """Return `text` in at most `width` characters, without anything that would break the placeholder's format."""
    near = text[-4 * width :] if from_end else text[: 4 * width]
    if not near.isprintable():
        near = "".join(character if character.isprintable() else " " for character in near)
    flat = " ".join(near.translate(_BREAKING).split())
    if len(flat) <= width and len(near) == len(text):
        return flat
    return "…" + flat[-width + 1 :] if from_end else flat[: width - 1] + "…"
