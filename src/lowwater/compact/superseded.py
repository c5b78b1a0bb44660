"""Which tool results say again what a later one says: copies, near copies, and reads of a file that changed since."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from lowwater.compact.making import Result
from lowwater.values.tools import classify, path_of

_NEAR = 0.85
"""Share of distinct lines two results have in common when one is as good as the other."""

_PART_WORDS = ("offset", "limit", "line", "range", "start", "end")


class Superseded(Struct, frozen=True, kw_only=True):
    """A result that a later message makes dispensable, and how."""

    result: Result
    by: int
    """The number of the later message."""
    how: str


class _Access(Struct, frozen=True, kw_only=True):
    """A later read or change of a file; `part` is what of it was read, empty for all."""

    number: int
    changed: bool
    part: str


def find_superseded(results: Sequence[Result], least_chars: int) -> list[Superseded]:
    """Find results of at least `least_chars` that a later one repeats, or whose file was read or written again later."""
    found: list[Superseded] = []
    texts: dict[str, int] = {}
    files: dict[str, _Access] = {}
    lines: dict[str, list[tuple[int, frozenset[int]]]] = {}
    for result in reversed(results):
        text = result.part.text
        if len(text) >= least_chars and not result.part.is_error:
            again = _again(result, texts, files, lines.get(result.tool, []))
            if again is not None:
                found.append(again)
            lines.setdefault(result.tool, []).append((result.number, _lines(text)))
        texts.setdefault(text, result.number)
        access = _access(result)
        if access is not None:
            files.setdefault(path_of(result.call) if result.call else "", access)
    found.reverse()
    return found


def _again(
    result: Result,
    texts: Mapping[str, int],
    files: Mapping[str, _Access],
    lines: Sequence[tuple[int, frozenset[int]]],
) -> Superseded | None:
    text = result.part.text
    if text in texts:
        return Superseded(result=result, by=texts[text], how="repeated in")
    mine = _access(result)
    if mine is not None and not mine.changed and result.call is not None:
        later = files.get(path_of(result.call))
        if later is not None and (later.changed or later.part in {"", mine.part}):
            how = "changed in" if later.changed else "read again in"
            return Superseded(result=result, by=later.number, how=how)
    near = _near(text, lines)
    return None if near is None else Superseded(result=result, by=near, how="almost the same in")


def _access(result: Result) -> _Access | None:
    """Return the result as an access to a file, if it is one that succeeded."""
    kind = classify(result.tool)
    if (
        result.call is None
        or kind not in {"read", "write"}
        or result.part.is_error
        or not path_of(result.call)
    ):
        return None
    rest = result.call.arguments.replace(path_of(result.call), "")
    partial = kind == "read" and any(word in rest for word in _PART_WORDS)
    return _Access(number=result.number, changed=kind == "write", part=rest if partial else "")


def _near(text: str, later: Sequence[tuple[int, frozenset[int]]]) -> int | None:
    if not later:
        return None
    mine = _lines(text)
    for number, lines in later[-64:]:
        smaller, larger = sorted((len(mine), len(lines)))
        if smaller >= 4 and smaller / larger >= _NEAR and len(mine & lines) / len(mine | lines) >= _NEAR:
            return number
    return None


def _lines(text: str) -> frozenset[int]:
    return frozenset(hash(line.strip()) for line in text.splitlines() if line.strip())
