"""What stands in a view for an elided tool result: what it was, what matters of it, and how to get it back (SPEC L)."""

import re

from lowwater.compact.digest import digest
from lowwater.ports import Tokenizer
from lowwater.values.parts import ToolCall
from lowwater.values.references import NAME, error_lines
from lowwater.values.tools import ToolClass, classify, subject_of

FRAME_SHARE = 0.01
"""What the frame may add to the digest's share of the original."""

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


def placeholder(
    text: str,
    *,
    number: int,
    call: ToolCall | None,
    offers_recall: bool,
    tokenizer: Tokenizer,
    digest_ratio: float = 0.15,
    known: frozenset[str] = frozenset(),
    plain: bool = False,
) -> str:
    """Return what to show for `text`, the result of `call` in message `number`, or nothing if that is not smaller.

    It is one line, and unless `plain`, a digest. Both together take at most `digest_ratio` and one per cent of the
    original's tokens, where the shortest line allows it. `known` names stand elsewhere in the view and are left out.
    """
    whole = tokenizer.count(text)
    size, back = f"{len(text):,} chars elided", way_back(number, call, offers_recall=offers_recall)
    if plain or digest_ratio <= 0:
        shown = _frame(call, _argument(call), size, _preview(text, call), back)
    else:
        room = int(whole * (digest_ratio + FRAME_SHARE))
        line = _fitting_frame(text, call, size, back, room, tokenizer)
        shown = _with_digest(line, text, call, min(room, whole), tokenizer, known)
    return shown if tokenizer.count(shown) < whole else ""


def repeats(
    text: str, *, number: int, call: ToolCall | None, by: int, how: str = "repeated in", offers_recall: bool
) -> str:
    """Return the line that stands for a result which message `by` has, `how` says in what way."""
    back = way_back(number, call, offers_recall=offers_recall)
    return _frame(call, _argument(call), f"{len(text):,} chars elided", f"{how} lw:{by}", back)


def way_back(number: int, call: ToolCall | None, *, offers_recall: bool) -> str:
    """Return how to get an elided result back; the handle is always in it."""
    if offers_recall:
        return f"recall lw:{number}"
    again = _RUN_AGAIN.get(classify(call.name)) if call else None
    return f"{again} · lw:{number}" if again else f"on record as lw:{number}"


def _with_digest(
    line: str, text: str, call: ToolCall | None, room: int, tokenizer: Tokenizer, known: frozenset[str]
) -> str:
    """Return the line with as much of a digest below it as there is room for."""
    tool, subject = (classify(call.name), subject_of(call)) if call else ("other", "")
    said = known.union(NAME.findall(call.arguments), NAME.findall(line)) if call else known
    left = room - tokenizer.count(line + "\n")
    for _ in range(2):
        names = digest(text, tool=tool, subject=subject, tokens=left, tokenizer=tokenizer, known=said)
        shown = f"{line}\n{names}" if names else line
        over = tokenizer.count(shown) - room
        if over <= 0:
            return shown
        left -= over
    return line


def _fitting_frame(
    text: str, call: ToolCall | None, size: str, back: str, room: int, tokenizer: Tokenizer
) -> str:
    """Return the fullest line that leaves most of the room to the digest."""
    argument = _argument(call)
    line = _frame(call, argument, size, _preview(text, call), back)
    if tokenizer.count(line) <= room // 8:
        return line
    line = _frame(call, argument, size, "", back)
    return line if tokenizer.count(line) <= room // 4 else _frame(call, "", size, "", back)


def _frame(call: ToolCall | None, *parts: str) -> str:
    tool = _one_line(call.name.rsplit("__", 1)[-1], _ARGUMENT) if call else "tool"
    return f"[{' · '.join(part for part in (tool, *parts) if part)}]"


def _argument(call: ToolCall | None) -> str:
    """Return what the call was about, a path by its end, anything else by its start."""
    if call is None:
        return ""
    subject = subject_of(call)
    if "/" in subject and not subject.count(" "):
        return _one_line(subject, _ARGUMENT, from_end=True)
    return _one_line(subject, _ARGUMENT)


def _preview(text: str, call: ToolCall | None) -> str:
    """Return the first error line, or the first line unless it is that of a file."""
    error = next(error_lines(text), None)
    if error:
        return _one_line(error.text, _PREVIEW)
    first = None if call and classify(call.name) == "read" else _FIRST.search(text)
    return _one_line(first[0], _PREVIEW) if first else ""


def _one_line(text: str, width: int, *, from_end: bool = False) -> str:
    """Return `text` in at most `width` characters, without anything that would break the frame."""
    near = text[-4 * width :] if from_end else text[: 4 * width]
    printable = "".join(character if character.isprintable() else " " for character in near)
    flat = " ".join(printable.translate(_BREAKING).split())
    if len(flat) <= width and len(near) == len(text):
        return flat
    return "…" + flat[-width + 1 :] if from_end else flat[: width - 1] + "…"
