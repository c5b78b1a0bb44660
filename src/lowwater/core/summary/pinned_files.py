"""Pinned files: what was read last of files that the settings name by pattern stays in view as content, whatever is summarised.

The content stands in a block of its own behind the block of pins, framed as what a tool returned. It is never in the block of
pins: what a file says is no instruction of the user's.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from lowwater.core.ledger import Ledger
from lowwater.core.mechanisms.results import calls_in, is_placeholder, result_text
from lowwater.core.messages import Message, Text, ToolResult
from lowwater.core.secrets.redaction import conceal
from lowwater.core.summary.pins import FILES_HEADING
from lowwater.core.tools import class_of, path_of
from lowwater.core.view import FILE_BLOCK_DEPTH, Item, Original, Summary, is_file_block

_ENTRY = "\n\n{rule} {path} (lw:{number}) {rule}\n{text}\n{rule} end of {path} {rule}"
_OPENED = re.compile(
    r"^(?P<rule>-{5,}) (?P<path>[^\n]+) \(lw:(?P<number>\d{1,15})\) (?P=rule)$", re.MULTILINE
)
_RULES = re.compile(r"-{5,}")
_MORE = "\n\nNo room here for {names}"


def is_pinned_path(path: str, patterns: Iterable[str]) -> bool:
    """Return whether a path, its name or any end of it matches one of the patterns; a path of several lines matches none."""
    if path.splitlines() != [path]:
        return False
    parts = path.replace("\\", "/").strip("/").split("/")
    ends = ["/".join(parts[at:]) for at in range(len(parts))]
    return any(fnmatchcase(end, pattern.strip("/")) for pattern in patterns for end in ends)


def pinned_results(items: Sequence[Item], patterns: Sequence[str]) -> dict[str, int]:
    """Return the newest message in which each pinned file was read, by its path as it was written; only those shown whole."""
    calls = calls_in(items)
    found: dict[str, int] = {}
    for item in items:
        if not isinstance(item, Original):
            continue
        for part in item.message.parts:
            call = calls.get(part.call_id) if isinstance(part, ToolResult) else None
            if call is None or class_of(call) != "read" or not isinstance(part, ToolResult) or part.is_error:
                continue
            path = path_of(call)
            if path and not is_placeholder(part) and is_pinned_path(path, patterns):
                found[path] = item.number
    return found


def file_block(
    ledger: Ledger,
    items: Sequence[Item],
    patterns: Sequence[str],
    *,
    tokens: int,
    size: Callable[[Message], int],
    count: Callable[[str], int],
    redact: bool,
) -> Summary | None:
    """Return the block with the pinned files that the view before a compaction shows and these items do not; None if there is none.

    It takes at most so many tokens, the newest first; the others are named in it.
    """
    before = ledger.view.items
    known = {path: number for item in before if is_file_block(item) for path, number in _entries(item)}
    known |= pinned_results(before, patterns)
    shown = pinned_results(items, patterns)
    entries: list[str] = []
    names: list[str] = []
    for path, number in sorted(known.items(), key=lambda each: -each[1]):
        text = _content(ledger, path, number, patterns)
        if path in shown or text is None:
            continue
        entry = _entry(path, number, conceal(text) if redact else text)
        cost = count(entry)
        if cost <= tokens:
            tokens -= cost
            entries.append(entry)
        else:
            names.append(f"{path} (lw:{number})")
    if not entries and not names:
        return None
    more = _MORE.format(names=", ".join(names)) if names else ""
    message = Message(role="user", parts=(Text(text=FILES_HEADING + "".join(reversed(entries)) + more),))
    return Summary(message=message, tokens=size(message), sources=(), depth=FILE_BLOCK_DEPTH)


def _entry(path: str, number: int, text: str) -> str:
    """Return a file in a frame whose rules are longer than any in its text, so that no text can end the frame."""
    longest = max(map(len, _RULES.findall(text)), default=4)
    return _ENTRY.format(rule="-" * (longest + 1), path=path, number=number, text=text)


def _entries(block: Item) -> Iterable[tuple[str, int]]:
    return ((found["path"], int(found["number"])) for found in _OPENED.finditer(block.message.text))


def _content(ledger: Ledger, path: str, number: int, patterns: Sequence[str]) -> str | None:
    """Return what a message returned of a pinned file; None if it did not read that, whatever a block quotes."""
    if not (1 < number <= len(ledger.messages) and is_pinned_path(path, patterns)):
        return None
    message = ledger.message(number)
    calls = {
        call.id: call
        for before in range(max(1, number - len(message.parts) - 8), number)
        for call in ledger.message(before).calls
    }
    for part in message.parts:
        call = calls.get(part.call_id) if isinstance(part, ToolResult) else None
        if call is not None and isinstance(part, ToolResult) and path_of(call) == path:
            return result_text(part)
    return None
