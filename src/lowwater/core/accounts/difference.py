"""The difference between two views of a session, as values and as text."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from itertools import groupby
from typing import Literal

from msgspec import Struct

from lowwater.core.entries import Numbers
from lowwater.core.messages import (
    AnyPart,
    Document,
    Image,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    message_text,
)
from lowwater.core.view import Edited, Item, Summary, View, shown_parts
from lowwater.core.wording import counted

_Key = int | bytes
"""A message by its number; a summary without sources by its content."""


class AlignedItems(Struct, frozen=True, kw_only=True):
    """Items of two views that cover the same messages, and no others."""

    before: tuple[Item, ...]
    after: tuple[Item, ...]

    @property
    def is_same(self) -> bool:
        """Whether the model is shown the same in both views."""
        return len(self.before) == len(self.after) and all(
            was is now or (was.message == now.message and was.tokens == now.tokens)
            for was, now in zip(self.before, self.after, strict=True)
        )


def align_views(before: Sequence[Item], after: Sequence[Item]) -> Iterator[AlignedItems]:
    """Yield the items of two views in groups that cover the same messages, ordered by the first message; each item is in one."""
    roots = _DisjointSets()
    for item in (*before, *after):
        roots.join(_keys(item))
    found: dict[_Key, tuple[list[Item], list[Item]]] = {}
    for at, view in enumerate((before, after)):
        for item in view:
            found.setdefault(roots.of(_keys(item)[0]), ([], []))[at].append(item)
    for was, now in sorted(found.values(), key=_first):
        yield AlignedItems(before=tuple(was), after=tuple(now))


def numbers_of(item: Item) -> list[int]:
    """Return the numbers of the messages an item covers."""
    if not isinstance(item, Summary):
        return [item.number]
    return [number for span in item.sources for number in range(span.first, span.last + 1)]


def _keys(item: Item) -> Sequence[_Key]:
    return numbers_of(item) or [item.message.digest]


def _first(sides: tuple[list[Item], list[Item]]) -> int:
    return min((number for side in sides for item in side for number in numbers_of(item)), default=0)


class _DisjointSets:
    """A union-find structure: each key leads to the root of its group."""

    def __init__(self) -> None:
        self._above: dict[_Key, _Key] = {}

    def of(self, key: _Key) -> _Key:
        above = self._above
        while (up := above.setdefault(key, key)) != key:
            above[key] = above[up]
            key = up
        return key

    def join(self, keys: Iterable[_Key]) -> None:
        first, *rest = keys
        root = self.of(first)
        for key in rest:
            self._above[self.of(key)] = root


class PartChange(Struct, frozen=True, kw_only=True):
    """One part that two views show differently; `was` or `now` is empty if that view does not show it."""

    path: tuple[int, ...]
    """As in an edit: its index, and inside a tool result the index there; empty for a summary."""
    what: str
    was: str
    now: str


def changed_parts(before: Item, after: Item) -> tuple[PartChange, ...]:
    """Return the parts of a message that two views show differently, in order."""
    was, now = _shown(before), _shown(after)
    return tuple(
        PartChange(
            path=path,
            what=_what(was.get(path) or now[path], path),
            was=_text(was.get(path)),
            now=_text(now.get(path)),
        )
        for path in sorted(was.keys() | now.keys())
        if was.get(path) != now.get(path)
    )


def changed_summary(before: Iterable[Item], after: Iterable[Item]) -> tuple[PartChange, ...]:
    """Return the summaries of one view as replaced by those of the other; nothing if neither has any."""
    was, now = _summaries(before), _summaries(after)
    return (PartChange(path=(), what="summary", was=was, now=now),) if was or now else ()


def _shown(item: Item) -> dict[tuple[int, ...], AnyPart]:
    """Return an item's parts by path; a tool result with parts inside is represented by these."""
    return {
        path: part
        for path, part in shown_parts(item)
        if not isinstance(part, ToolResult) or not any(True for _ in part.parts)
    }


def _summaries(items: Iterable[Item]) -> str:
    return "\n\n".join(message_text(item.message) for item in items if isinstance(item, Summary))


def _what(part: AnyPart, path: tuple[int, ...]) -> str:
    inside = "tool result" if len(path) > 1 else ""
    match part:
        case Text():
            return inside or "text"
        case _:
            kind = part.kind.replace("_", " ")
            return f"{kind} in a {inside}" if inside else kind


def _text(part: AnyPart | None) -> str:
    match part:
        case None | ToolResult():
            return ""
        case Text() | Thinking():
            return part.text
        case ToolCall():
            return f"{part.name} {part.arguments}"
        case Image() | Document():
            return f"[{part.kind}: {len(part.data):,} characters]"
        case Opaque():
            return part.body


ChangeKind = Literal["kept", "edited", "summarised", "restored", "appended", "dropped"]
_RUNS = frozenset({"kept", "appended", "dropped"})
"""The kinds of which neighbouring changes are joined into one."""


class Size(Struct, frozen=True, kw_only=True):
    """The size of a view or a part of it: items, and their tokens."""

    items: int
    tokens: int


class Change(Struct, frozen=True, kw_only=True):
    """What became of some messages; each message of either view is in exactly one change."""

    kind: ChangeKind
    numbers: tuple[Numbers, ...]
    """Which messages, whether shown themselves or covered by a summary."""
    before: Size
    after: Size
    parts: tuple[PartChange, ...] = ()
    """What was replaced by what in an edited message, or in a summary that was there before."""

    @property
    def messages(self) -> int:
        """How many messages it concerns."""
        return sum(span.last - span.first + 1 for span in self.numbers)

    @property
    def gained(self) -> int:
        """By how many tokens it made the view grow; negative if the view shrank."""
        return self.after.tokens - self.before.tokens


class PreambleDifference(Struct, frozen=True, kw_only=True):
    """What changed before the messages."""

    system: bool
    tools: bool
    before: int
    """Its size in tokens."""
    after: int

    @property
    def changed(self) -> bool:
        """Whether anything changed."""
        return self.system or self.tools or self.before != self.after


class Models(Struct, frozen=True, kw_only=True):
    """The model in use at each view."""

    before: str
    after: str


class Difference(Struct, frozen=True, kw_only=True):
    """What leads from one view to another, in the order of the messages."""

    before: Size
    after: Size
    changes: tuple[Change, ...]
    """Every message of either view, what is kept included."""
    preamble: PreambleDifference
    models: Models

    @property
    def is_empty(self) -> bool:
        """Whether both views show the same."""
        same = all(change.kind == "kept" for change in self.changes)
        return same and not self.preamble.changed and self.models.before == self.models.after

    def __str__(self) -> str:
        """Return it in words, without what changed inside a message."""
        return words_of(self)


def difference(before: View, after: View) -> Difference:
    """Return what changed from one view to another; the tokens of all changes add up to the difference of the views."""
    return Difference(
        before=_size(before.items),
        after=_size(after.items),
        changes=tuple(_runs(_change(aligned) for aligned in align_views(before.items, after.items))),
        preamble=PreambleDifference(
            system=before.system != after.system,
            tools=before.tools != after.tools,
            before=before.preamble_tokens,
            after=after.preamble_tokens,
        ),
        models=Models(before=before.model, after=after.model),
    )


def _change(aligned: AlignedItems) -> Change:
    kind = _kind(aligned)
    return Change(
        kind=kind,
        numbers=_spans({number for item in (*aligned.before, *aligned.after) for number in numbers_of(item)}),
        before=_size(aligned.before),
        after=_size(aligned.after),
        parts=_parts(kind, aligned),
    )


def _kind(aligned: AlignedItems) -> ChangeKind:
    if not aligned.after:
        return "dropped"
    if aligned.is_same:
        return "kept"
    known = {item.message.digest for item in aligned.before if isinstance(item, Summary)}
    if any(isinstance(item, Summary) and item.message.digest not in known for item in aligned.after):
        return "summarised"
    if not aligned.before:
        return "appended"
    if any(isinstance(item, Summary) for item in aligned.before):
        return "restored"
    was_edited = any(isinstance(item, Edited) for item in aligned.before)
    return (
        "edited" if any(isinstance(item, Edited) for item in aligned.after) or not was_edited else "restored"
    )


def _parts(kind: ChangeKind, aligned: AlignedItems) -> tuple[PartChange, ...]:
    match kind, aligned.before, aligned.after:
        case "edited" | "restored", [was], [now] if not isinstance(was, Summary):
            return changed_parts(was, now)
        case "summarised" | "restored", _, _:
            return changed_summary(aligned.before, aligned.after)
        case _:
            return ()


def _runs(changes: Iterable[Change]) -> Iterator[Change]:
    """Yield changes, with neighbours that were kept, appended or dropped joined into one."""
    for kind, some in groupby(changes, lambda change: change.kind):
        if kind in _RUNS:
            yield _joined(tuple(some))
        else:
            yield from some


def _joined(run: Sequence[Change]) -> Change:
    return Change(
        kind=run[0].kind,
        numbers=_spans({n for change in run for s in change.numbers for n in range(s.first, s.last + 1)}),
        before=_sum(change.before for change in run),
        after=_sum(change.after for change in run),
    )


def _spans(numbers: Iterable[int]) -> tuple[Numbers, ...]:
    """Return numbers as ranges."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return tuple(Numbers(first=first, last=last) for first, last in spans)


def _size(items: Iterable[Item]) -> Size:
    tokens = [item.tokens for item in items]
    return Size(items=len(tokens), tokens=sum(tokens))


def _sum(sizes: Iterable[Size]) -> Size:
    every = tuple(sizes)
    return Size(items=sum(size.items for size in every), tokens=sum(size.tokens for size in every))


_MOST_SPANS = 3
_CONTEXT = 2
"""Lines that a diff shows around a change."""
_COMPARED = 4_000
"""Lines of a text that are compared; the time grows with their square."""


class _Line(Struct, frozen=True, kw_only=True):
    """One line of the table, and the lines of its diff."""

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
    """Return what the sizes do not show: which parts changed, or how many items became how many."""
    if change.kind in {"appended", "dropped"}:
        return counted(change.messages, "message")
    if change.kind == "summarised" or not change.parts or not change.parts[0].path:
        return f"{counted(change.before.items, 'item')} → {counted(change.after.items, 'item')}"
    return ", ".join(dict.fromkeys(f"{part.what}{'' if part.now else ' dropped'}" for part in change.parts))


def _table(lines: Sequence[_Line]) -> Iterator[str]:
    """Yield the lines with their columns aligned, numbers to the right; what stayed has none."""
    in_columns = [line for line in lines if line.has_columns]
    kind, which, was, now, gained = (
        max((len(getattr(line, name)) for line in in_columns), default=0)
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
