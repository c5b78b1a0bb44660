"""`dedupe`: a result that a later message repeats, replaces or makes stale points to that message instead."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal
from zlib import crc32

from msgspec import Struct

from lowwater.core.mechanisms.digest import digest
from lowwater.core.mechanisms.editing import EditContext, offer
from lowwater.core.mechanisms.elide import replace_results
from lowwater.core.mechanisms.placeholder import repeats
from lowwater.core.mechanisms.results import Result
from lowwater.core.mechanisms.zones import Zones
from lowwater.core.messages import ToolCall
from lowwater.core.proposals import Proposal, Target
from lowwater.core.tools import arguments_of, classify, path_in, subject_of
from lowwater.core.view import Item

_PATCH = "*** Begin Patch"
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_PART = re.compile(r"offset|limit|line|range|start|end|page|head|tail")


class FileAccess(Struct, frozen=True, kw_only=True):
    """A call that reads or changes files."""

    paths: tuple[str, ...]
    changes: bool
    part: str = ""
    """Which part of the file is read, as the arguments say it; empty for all of it."""


def file_access(call: ToolCall) -> FileAccess | None:
    """Return what a call does to files, as far as its arguments name them; None for any other call."""
    kind = classify(call.name)
    patches = kind in {"write", "shell"} and _PATCH in call.arguments
    if not patches and kind not in {"read", "write"}:
        return None
    arguments = arguments_of(call)
    if patches:
        return FileAccess(paths=_patched(call, arguments), changes=True)
    path = path_in(arguments)
    if not path:
        return None
    changes = kind == "write" and arguments.get("command") != "view"
    return FileAccess(paths=(_plain(path),), changes=changes, part="" if changes else _part(arguments))


def _patched(call: ToolCall, arguments: Mapping[str, object]) -> tuple[str, ...]:
    texts = [value for value in arguments.values() if isinstance(value, str)] or [call.arguments]
    return tuple(dict.fromkeys(_plain(path) for text in texts for path in _PATCHED.findall(text)))


def _part(arguments: Mapping[str, object]) -> str:
    named = [name for name in sorted(arguments) if _PART.search(name) and arguments[name]]
    return " ".join(f"{name}={arguments[name]}" for name in named)


def _plain(path: str) -> str:
    return path.strip().removeprefix("./")


_NEAR = 0.85
"""Share of distinct lines two texts have in common when one is as good as the other."""
_FEW_LINES = 4
_LONGEST, _KEYS = 32, 6
_MOST_COMPARED = 16
"""With how many texts of one key a text is compared."""


class Lines:
    """A text by its lines; `number` says whose it is."""

    __slots__ = ("distinct", "keys", "most", "number", "size")

    def __init__(self, number: int, text: str) -> None:
        encoded = text.encode(errors="replace")
        lines = encoded.splitlines() if b"\r" in encoded else encoded.removesuffix(b"\n").split(b"\n")
        self.number = number
        self.distinct = frozenset(lines)
        """The lines without repetitions."""
        self.size = len(self.distinct)
        self.most = self.size / _NEAR + 1
        """No text with more distinct lines is near."""
        self.keys = _keys(lines)

    def is_near(self, other: "Lines") -> bool:
        """Return whether nearly all lines of both are the same."""
        mine, theirs = self.size, other.size
        if mine < _FEW_LINES or theirs < _FEW_LINES or mine < _NEAR * theirs or theirs < _NEAR * mine:
            return False
        common = len(self.distinct & other.distinct)
        return common >= _NEAR * (mine + theirs - common)


def _keys(lines: list[bytes]) -> list[int]:
    """Return a few checksums of long lines, as good as drawn: of nearly equal texts, one is all but certainly in both.

    Long lines are rarely those of another text. A text of few lines has no keys: one line more makes it another.
    """
    if len(lines) < _FEW_LINES:
        return []
    if len(lines) > _LONGEST:
        lines = sorted(lines, key=len)[-_LONGEST:]
    return sorted(set(map(crc32, lines)))[:_KEYS]


class NearCopies:
    """Texts that can be found by others that are nearly the same."""

    def __init__(self) -> None:
        self._by_key: dict[int, list[Lines]] = {}

    def find_or_add(self, lines: Lines) -> int | None:
        """Return the number of a text taken before that is nearly the same; if there is none, take this one."""
        size, most = lines.size, lines.most
        compared: set[Lines] = set()
        for key in lines.keys:
            for other in reversed(self._by_key.get(key, ())[-_MOST_COMPARED:]):
                if other.size > most or size > other.most or other in compared:
                    continue
                if lines.is_near(other):
                    return other.number
                compared.add(other)
        for key in lines.keys:
            self._by_key.setdefault(key, []).append(lines)
        return None


How = Literal["repeated in", "almost the same in", "read again in", "changed in"]
CHANGED: How = "changed in"

_FAILED = re.compile(r"\s*(?:<\w*error>|(?:error|failed|failure|traceback)\b)", re.IGNORECASE)


class Superseded(Struct, frozen=True, kw_only=True):
    """A result that a later message makes dispensable, and how."""

    result: Result
    by: int
    """The number of the later message, which is not superseded itself."""
    how: How


def find_superseded(results: Sequence[Result], least_chars: int) -> list[Superseded]:
    """Find results of more than `least_chars` that a later one repeats, or whose file was read or changed later.

    Results that failed are never found: a later success does not say what went wrong.
    """
    later = _Later()
    found: list[Superseded] = []
    for result in reversed(results):
        access = file_access(result.call) if result.call and not result.part.is_error else None
        again = None
        if len(result.text) > least_chars and not result.part.is_error:
            again = later.same(result, access) or later.nearly_same(result)
        if again is None:
            later.add(result, access)
        else:
            found.append(again)
    found.reverse()
    return found


class _File:
    """What later messages did to a file, the newest of each: reads by the part they read, changes."""

    def __init__(self) -> None:
        self.read: dict[str, int] = {}
        self.changed: int | None = None


class _Later:
    """The results behind the one that is looked at, as they can be found again."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._near: dict[str, NearCopies] = {}
        self._files: dict[str, _File] = {}

    def add(self, result: Result, access: FileAccess | None) -> None:
        """Take the next result, going backwards; one that is superseded is none to point to."""
        self._texts.setdefault(result.text, result.number)
        if access is None or (access.changes and _FAILED.match(result.text)):
            return
        for path in access.paths:
            file = self._files.setdefault(path, _File())
            if access.changes:
                file.changed = file.changed or result.number
            else:
                file.read.setdefault(access.part, result.number)

    def same(self, result: Result, access: FileAccess | None) -> Superseded | None:
        """Return the message that has the same text, or a newer state of the same file."""
        number = self._texts.get(result.text)
        if number is not None:
            return Superseded(result=result, by=number, how="repeated in")
        if access is None or access.changes:
            return None
        file = self._files.get(access.paths[0], _File())
        again = file.read.get("") or file.read.get(access.part)
        if again:
            return Superseded(result=result, by=again, how="read again in")
        return Superseded(result=result, by=file.changed, how=CHANGED) if file.changed else None

    def nearly_same(self, result: Result) -> Superseded | None:
        """Return the message of the same tool that has nearly the same lines; if there is none, remember the lines."""
        near = self._near.setdefault(result.tool, NearCopies())
        number = near.find_or_add(Lines(result.number, result.text))
        return None if number is None else Superseded(result=result, by=number, how="almost the same in")


NAME = "dedupe"
_LINE = 35
"""Tokens of the line that points to another message."""


def propose(
    items: Sequence[Item], zones: Zones, results: Sequence[Result], context: EditContext
) -> Proposal | None:
    """Offer those of `results`, all that are not protected, that lie in the middle and that a later one makes dispensable."""
    middle = zones.middle
    found = [
        again
        for again in find_superseded(results, context.preset.elide_limit_chars)
        if again.result.item in middle
    ]
    targets = [
        Target(
            item=again.result.item,
            path=again.result.path,
            tokens=again.result.tokens,
            how=again.how,
            by=again.by,
        )
        for again in found
    ]
    left = sum(min(target.tokens, _LINE + _digest_tokens(target, context)) for target in targets)
    return offer(NAME, items, targets, left=left)


def apply(items: Sequence[Item], proposal: Proposal, context: EditContext) -> list[Item]:
    """Return the items with the proposal's results replaced by the name of the message that has them.

    What a later change made stale stands nowhere else, and leaves a digest.
    """
    targets = {(target.item, target.path): target for target in proposal.targets}
    return replace_results(
        items, proposal, context, lambda result: _pointer(result, targets[result.place], context)
    )


def _pointer(result: Result, target: Target, context: EditContext) -> str:
    line = repeats(
        result.text,
        number=result.number,
        call=result.call,
        by=target.by,
        how=target.how,
        offers_recall=context.offers_recall,
    )
    tokens = _digest_tokens(target, context)
    if tokens <= 0:
        return line
    subject = subject_of(result.call) if result.call else ""
    names = digest(result.text, tool=result.kind, subject=subject, tokens=tokens, tokenizer=context.tokenizer)
    return f"{line}\n{names}" if names else line


def _digest_tokens(target: Target, context: EditContext) -> int:
    if target.how != CHANGED or context.preset.plain_placeholders:
        return 0
    return int(target.tokens * context.digest_ratio)
