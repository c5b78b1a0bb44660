"""Which tool results say again what a later one says: copies, near copies, and reads of a file read or changed since."""

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from lowwater.compact.file_access import FileAccess, file_access
from lowwater.compact.near_copies import Lines, NearCopies
from lowwater.compact.results import Result

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
