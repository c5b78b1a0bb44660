"""A difference between two views in words for a terminal: one line per change, sizes in columns."""

from collections.abc import Iterator, Sequence
from difflib import unified_diff

from msgspec import Struct

from lowwater.account.changed_parts import PartChange
from lowwater.account.difference import Change, Difference, Size
from lowwater.values.counted import counted
from lowwater.values.entries import Numbers

_MOST_SPANS = 3
_CONTEXT = 2
"""Lines around a change that a diff shows."""
_COMPARED = 4_000
"""Lines of a text that are compared; comparing takes the square of them."""


class _Line(Struct, frozen=True, kw_only=True):
    """One line of the table, and what stands under it."""

    kind: str
    which: str = ""
    was: str = ""
    now: str = ""
    gained: str = ""
    about: str = ""
    under: tuple[str, ...] = ()

    @property
    def has_columns(self) -> bool:
        """Whether it says more than how much stayed."""
        return bool(self.gained or self.about)


def words_of(difference: Difference, *, full: bool = False) -> str:
    """Return a difference as text; `full` shows what changed inside edited messages and summaries, line by line."""
    if difference.is_empty:
        return f"no difference: {_amount(difference.before)} in both views"
    lines = [*_before_messages(difference), *(_line(change, full=full) for change in difference.changes)]
    gained = difference.after.tokens - difference.before.tokens
    total = f"{_amount(difference.before)} → {_amount(difference.after)} ({_signed(gained)})"
    return "\n".join([total, *_table(lines)])


def _before_messages(difference: Difference) -> Iterator[_Line]:
    models, preamble = difference.models, difference.preamble
    if models.before != models.after:
        about = f"{models.before or 'none'} → {models.after or 'none'}"
        yield _Line(kind="model", about=about)
    if preamble.changed:
        changed = [
            name for name, is_new in (("system", preamble.system), ("tools", preamble.tools)) if is_new
        ]
        yield _Line(
            kind="preamble",
            which=" and ".join(changed),
            was=f"{preamble.before:,}",
            now=f"{preamble.after:,}",
            gained=_signed(preamble.after - preamble.before),
        )


def _line(change: Change, *, full: bool) -> _Line:
    if change.kind == "kept":
        return _Line(kind=f"({change.after.items:,} unchanged)")
    under = tuple(line for part in change.parts for line in _diff(part)) if full else ()
    return _Line(
        kind=change.kind,
        which=_which(change.numbers),
        was="" if change.kind == "appended" else f"{change.before.tokens:,}",
        now="" if change.kind == "dropped" else f"{change.after.tokens:,}",
        gained=_signed(change.gained),
        about=_about(change),
        under=under,
    )


def _about(change: Change) -> str:
    """Say what the sizes do not: which parts, or how many items became how many."""
    if change.kind in {"appended", "dropped"}:
        return counted(change.messages, "message")
    if change.kind == "summarised" or not change.parts or not change.parts[0].path:
        return f"{counted(change.before.items, 'item')} → {counted(change.after.items, 'item')}"
    return ", ".join(dict.fromkeys(f"{part.what}{'' if part.now else ' dropped'}" for part in change.parts))


def _table(lines: Sequence[_Line]) -> Iterator[str]:
    """Yield the lines with their columns aligned, numbers to the right; what stayed has none."""
    told = [line for line in lines if line.has_columns]
    kind, which, was, now, gained = (
        max((len(getattr(line, name)) for line in told), default=0)
        for name in ("kind", "which", "was", "now", "gained")
    )
    for line in lines:
        arrow = "→" if line.was and line.now else " "
        sizes = f"{line.was:>{was}} {arrow} {line.now:>{now}}  {line.gained:>{gained}}"
        columns = f"{line.kind:<{kind}}  {line.which:<{which}}  {sizes}  {line.about}"
        yield f"  {columns if line.has_columns else line.kind}".rstrip()
        yield from (f"      {under}".rstrip() for under in line.under)


def _diff(part: PartChange) -> Iterator[str]:
    """Yield a unified diff of a part, without the lines that only name files."""
    was, now = part.was.splitlines()[:_COMPARED], part.now.splitlines()[:_COMPARED]
    place = ".".join(map(str, part.path))
    yield f"{part.what} {place}".rstrip()
    yield from list(unified_diff(was, now, lineterm="", n=_CONTEXT))[2:]


def _which(numbers: Sequence[Numbers]) -> str:
    spans = [f"{s.first}–{s.last}" if s.last > s.first else f"{s.first}" for s in numbers[:_MOST_SPANS]]
    more = [f"and {len(numbers) - _MOST_SPANS:,} more spans"] if len(numbers) > _MOST_SPANS else []
    return ", ".join([*spans, *more])


def _amount(size: Size) -> str:
    return f"{counted(size.items, 'item')}, {counted(size.tokens, 'token')}"


def _signed(number: int) -> str:
    return f"{'+' if number > 0 else '−' if number else '±'}{abs(number):,}"
