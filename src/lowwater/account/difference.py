"""What changed from one view to another: which messages are kept, edited, summarised, restored, appended, dropped."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal

from msgspec import Struct

from lowwater.account.changed_parts import PartChange, changed_parts, changed_summary
from lowwater.account.kinship import Kin, kin_of, numbers_of
from lowwater.values.entries import Numbers
from lowwater.values.view import Edited, Item, Summary, View

ChangeKind = Literal["kept", "edited", "summarised", "restored", "appended", "dropped"]
_RUNS = frozenset({"kept", "appended", "dropped"})
"""Kinds of which neighbours make up one run."""


class Size(Struct, frozen=True, kw_only=True):
    """How much stands in a view: items, and their tokens."""

    items: int
    tokens: int


class Change(Struct, frozen=True, kw_only=True):
    """What became of some messages; each message of either view is in exactly one change."""

    kind: ChangeKind
    numbers: tuple[Numbers, ...]
    """Which messages, whether they stood in person or in a summary."""
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
        """By how many tokens the view grew through it; negative if it shrank."""
        return self.after.tokens - self.before.tokens


class Preamble(Struct, frozen=True, kw_only=True):
    """What changed before the messages."""

    system: bool
    tools: bool
    before: int
    """Its tokens."""
    after: int

    @property
    def changed(self) -> bool:
        """Whether anything did."""
        return self.system or self.tools or self.before != self.after


class Models(Struct, frozen=True, kw_only=True):
    """The models that answer."""

    before: str
    after: str


class Difference(Struct, frozen=True, kw_only=True):
    """What leads from one view to another, in the order of the messages."""

    before: Size
    after: Size
    changes: tuple[Change, ...]
    """Every message of either view, what is kept included."""
    preamble: Preamble
    models: Models

    @property
    def is_empty(self) -> bool:
        """Whether both views show the same."""
        same = all(change.kind == "kept" for change in self.changes)
        return same and not self.preamble.changed and self.models.before == self.models.after


def difference(before: View, after: View) -> Difference:
    """Return what changed from one view to another; the tokens of all changes add up to the difference of the views."""
    return Difference(
        before=_size(before.items),
        after=_size(after.items),
        changes=tuple(_runs(_change(kin) for kin in kin_of(before.items, after.items))),
        preamble=Preamble(
            system=before.system != after.system,
            tools=before.tools != after.tools,
            before=before.preamble_tokens,
            after=after.preamble_tokens,
        ),
        models=Models(before=before.model, after=after.model),
    )


def _change(kin: Kin) -> Change:
    kind = _kind(kin)
    return Change(
        kind=kind,
        numbers=_spans({number for item in (*kin.before, *kin.after) for number in numbers_of(item)}),
        before=_size(kin.before),
        after=_size(kin.after),
        parts=_parts(kind, kin),
    )


def _kind(kin: Kin) -> ChangeKind:
    if not kin.after:
        return "dropped"
    if kin.is_same:
        return "kept"
    known = {item.message.digest for item in kin.before if isinstance(item, Summary)}
    if any(isinstance(item, Summary) and item.message.digest not in known for item in kin.after):
        return "summarised"
    if not kin.before:
        return "appended"
    if any(isinstance(item, Summary) for item in kin.before):
        return "restored"
    was_edited = any(isinstance(item, Edited) for item in kin.before)
    return "edited" if any(isinstance(item, Edited) for item in kin.after) or not was_edited else "restored"


def _parts(kind: ChangeKind, kin: Kin) -> tuple[PartChange, ...]:
    match kind, kin.before, kin.after:
        case "edited" | "restored", [was], [now] if not isinstance(was, Summary):
            return changed_parts(was, now)
        case "summarised" | "restored", _, _:
            return changed_summary(kin.before, kin.after)
        case _:
            return ()


def _runs(changes: Iterable[Change]) -> Iterator[Change]:
    """Yield changes, neighbours that were kept, appended or dropped as one."""
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
