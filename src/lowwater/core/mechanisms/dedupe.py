"""`dedupe`: a tool result that a later message repeats, supersedes or makes stale is replaced by a reference to that message."""

import re
from collections.abc import Sequence
from typing import Literal
from zlib import crc32

from msgspec import Struct

from lowwater.core.mechanisms.digest import digest
from lowwater.core.mechanisms.edits import offer_edits
from lowwater.core.mechanisms.elide import replace_results
from lowwater.core.mechanisms.mechanism import EditContext, Mechanism, Zones
from lowwater.core.mechanisms.placeholder import repeats
from lowwater.core.mechanisms.results import ShownResult, unprotected
from lowwater.core.proposals import Proposal, Target
from lowwater.core.tools import FileAccess, file_access, subject_of
from lowwater.core.view import Item

NAME = "dedupe"
CopyRelation = Literal["repeated in", "almost the same in", "read again in", "changed in"]
CHANGED: CopyRelation = "changed in"
_LINE = 35
"""Tokens of the line that points to another message."""
_FAILED = re.compile(r"\s*(?:<\w*error>|(?:error|failed|failure|traceback)\b)", re.IGNORECASE)
_NEAR = 0.85
"""The share of distinct lines that two texts must have in common to count as nearly the same."""
_FEW_LINES = 4
_LONGEST = 32
_KEYS = 6
_MOST_COMPARED = 16
"""How many texts with the same key a text is compared with."""


def propose(items: Sequence[Item], zones: Zones, context: EditContext) -> Proposal | None:
    """Propose to replace results in the middle that a later one supersedes, except those of never-prune tools."""
    middle = zones.middle
    results = unprotected(context.results, context.preset)
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
    return offer_edits(NAME, items, targets, left=left)


def apply(items: Sequence[Item], proposal: Proposal, context: EditContext) -> list[Item]:
    """Return the items with the proposal's results replaced by references to the later messages.

    A result that became stale by a change of its file is shown nowhere else, so a digest of it stays.
    """
    targets = {(target.item, target.path): target for target in proposal.targets}
    return replace_results(
        items, proposal, context, lambda result: _pointer(result, targets[result.place], context)
    )


def _pointer(result: ShownResult, target: Target, context: EditContext) -> str:
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


MECHANISMS = (
    Mechanism(
        name=NAME,
        propose=propose,
        apply=apply,
        loses=0.02,  # measured: make bench-recall
        label="repeated results",
        sentence="Replace results that a later one repeats or supersedes by a reference to it",
        order=10,
        shares_parts=True,
    ),
)

# Which results later messages supersede


class Superseded(Struct, frozen=True, kw_only=True):
    """A result that a later message supersedes, and how."""

    result: ShownResult
    by: int
    """The number of the later message, which is not superseded itself."""
    how: CopyRelation


def find_superseded(results: Sequence[ShownResult], least_chars: int) -> list[Superseded]:
    """Return results of more than `least_chars` that a later one repeats, or whose file was read or changed later.

    Errors are never superseded: a later success does not say what went wrong.
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
    """The newest messages that read a file, by the part that they read, and the newest that changed it."""

    def __init__(self) -> None:
        self.read: dict[str, int] = {}
        self.changed: int | None = None


class _Later:
    """The results after the current one, indexed by text and by file."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._near: dict[str, NearCopies] = {}
        self._files: dict[str, _File] = {}

    def add(self, result: ShownResult, access: FileAccess | None) -> None:
        """Add a result, going backwards; superseded ones are not added, because nothing may refer to them."""
        self._texts.setdefault(result.text, result.number)
        if access is None or (access.changes and _FAILED.match(result.text)):
            return
        for path in access.paths:
            file = self._files.setdefault(path, _File())
            if access.changes:
                file.changed = file.changed or result.number
            else:
                file.read.setdefault(access.part, result.number)

    def same(self, result: ShownResult, access: FileAccess | None) -> Superseded | None:
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

    def nearly_same(self, result: ShownResult) -> Superseded | None:
        """Return the message of the same tool that has nearly the same lines; if there is none, remember the lines."""
        near = self._near.setdefault(result.tool, NearCopies())
        number = near.find_or_add(Lines(result.number, result.text))
        return None if number is None else Superseded(result=result, by=number, how="almost the same in")


# Which texts are nearly the same


class Lines:
    """The distinct lines of a text; `number` is the message it is from."""

    __slots__ = ("distinct", "keys", "most", "number", "size")

    def __init__(self, number: int, text: str) -> None:
        encoded = text.encode(errors="replace")
        lines = encoded.splitlines() if b"\r" in encoded else encoded.removesuffix(b"\n").split(b"\n")
        self.number = number
        self.distinct = frozenset(lines)
        """The lines without duplicates."""
        self.size = len(self.distinct)
        self.most = self.size / _NEAR + 1
        """A text with more distinct lines than this cannot be nearly the same."""
        self.keys = _keys(lines)

    def is_near(self, other: "Lines") -> bool:
        """Return whether nearly all lines of both texts are the same."""
        mine, theirs = self.size, other.size
        if mine < _FEW_LINES or theirs < _FEW_LINES or mine < _NEAR * theirs or theirs < _NEAR * mine:
            return False
        common = len(self.distinct & other.distinct)
        return common >= _NEAR * (mine + theirs - common)


def _keys(lines: list[bytes]) -> list[int]:
    """Return checksums of a few long lines, chosen pseudo-randomly, so that two nearly equal texts almost certainly share one.

    Long lines rarely occur in unrelated texts. A text of few lines has no keys: one more line makes it a different text.
    """
    if len(lines) < _FEW_LINES:
        return []
    if len(lines) > _LONGEST:
        lines = sorted(lines, key=len)[-_LONGEST:]
    return sorted(set(map(crc32, lines)))[:_KEYS]


class NearCopies:
    """An index of texts by which a nearly equal one can be found."""

    def __init__(self) -> None:
        self._by_key: dict[int, list[Lines]] = {}

    def find_or_add(self, lines: Lines) -> int | None:
        """Return the number of an earlier text that is nearly the same; if there is none, add this one."""
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
