"""One peer on one session or on several, in figures: what is printed, and written as JSON."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from bench.real_peers_beside import Modelled
from bench.real_peers_billing import Bill
from bench.real_peers_cases import Case, is_taken
from bench.real_peers_play import Played
from bench.real_peers_sent import lost, prefix_breaks, text_of
from lowwater.lab.references.uses import LaterUse

NANO = 1_000_000_000
Kind = Literal["real", "course"]
"""Requests that were really made and billed, or a schedule on the session's course."""


class Money(Struct, frozen=True, kw_only=True):
    """What it came to under one price sheet, in nano-dollars."""

    sheet: str
    cost: int
    summaries: int = 0
    rework: int = 0
    never: int
    optimum: int | None
    """With rework."""
    modelled: int | None = None
    """What its model says, without rework."""
    peak: int = 0
    summary_tokens: int = 0
    """What summarisers were shown."""
    too_large: int = 0

    @property
    def over_never(self) -> float:
        """Its cost beside that of never removing anything."""
        return self.cost / self.never

    @property
    def over_optimum(self) -> float | None:
        """Its cost beside the cheapest schedule's, rework charged to both."""
        return (self.cost + self.rework) / self.optimum if self.optimum else None

    @property
    def over_model(self) -> float | None:
        """Its cost beside what its model says."""
        return self.cost / self.modelled if self.modelled else None


class Row(Struct, frozen=True, kw_only=True):
    """One peer on one session, or the sums of several; `failed` says why something is missing."""

    name: str
    kind: Kind = "real"
    sessions: int = 1
    versions: dict[str, str] = {}
    money: tuple[Money, ...] = ()
    requests: int = 0
    breaks: int = 0
    invalid: int = 0
    summary_calls: int = 0
    facts: int = 0
    facts_left: int = 0
    """Planted facts that stand in the last request."""
    uses: int = 0
    uses_left: int = 0
    """Things that an answer names of an earlier result, and that stand in its request."""
    seconds: float = 0.0
    model: str = ""
    """Its model among the policies of a replay."""
    failed: str = ""


def row_of(name: str, case: Case, played: Played, *, money: Sequence[Money], model: str = "") -> Row:
    """Return what requests that were made come to."""
    by_turn = uses_by_turn(case)
    missing = sum(len(lost(sent, by_turn.get(turn, ()))) for turn, sent in enumerate(played.sents))
    uses = sum(len(by_turn.get(turn, ())) for turn in range(len(played.sents)))
    last = text_of(played.sents[-1].messages) if played.sents else ""
    return Row(
        name=name,
        versions=played.versions,
        money=tuple(money),
        requests=len(played.sents),
        breaks=prefix_breaks(played.sents),
        invalid=sum(not is_taken(sent.messages) for sent in played.sents),
        summary_calls=sum(len(sent.asked) for sent in played.sents),
        facts=len(case.facts),
        facts_left=sum(fact in last for fact in case.facts),
        uses=uses,
        uses_left=uses - missing,
        seconds=played.wall,
        model=model,
        failed=played.failed,
    )


def uses_by_turn(case: Case) -> dict[int, list[LaterUse]]:
    """Return for each request what its answer names of results that came with earlier ones."""
    turn_of = case.script.turn_of()
    found: dict[int, list[LaterUse]] = {}
    for use in case.uses:
        at = turn_of[use.number - 1]
        if turn_of[use.origin.number - 1] < at:
            found.setdefault(at, []).append(use)
    return found


def money_of(
    sheet: str, bill: Bill, *, never: Bill, optimum: Modelled | None, model: Modelled | None
) -> Money:
    """Return a bill beside what it is compared with."""
    return Money(
        sheet=sheet,
        cost=bill.cost,
        summaries=bill.summaries,
        rework=bill.rework,
        never=never.cost,
        optimum=optimum.cost + optimum.rework if optimum else None,
        modelled=model.cost if model else None,
        peak=max(bill.prompts),
        summary_tokens=bill.asked,
        too_large=bill.too_large,
    )


def scheduled(sheet: str, done: Modelled, never: Bill) -> Money:
    """Return a schedule on the course beside what it is compared with."""
    return Money(
        sheet=sheet,
        cost=done.cost,
        rework=done.rework,
        never=never.cost,
        optimum=done.cost + done.rework,
        peak=done.peak,
    )


def together(rows: Sequence[Row]) -> Row:
    """Return the sums of one peer's rows; it failed if it did anywhere."""
    first = rows[0]
    whole = [row for row in rows if not row.failed]
    failures = [row.failed for row in rows if row.failed]
    sheets = [money.sheet for money in whole[0].money] if whole else []
    failed = f"{len(failures)} of {len(rows)} sessions: {failures[0]}" if failures else ""
    return Row(
        name=first.name,
        kind=first.kind,
        sessions=len(whole),
        versions=first.versions,
        money=tuple(_summed(sheet, whole) for sheet in sheets),
        requests=sum(row.requests for row in whole),
        breaks=sum(row.breaks for row in whole),
        invalid=sum(row.invalid for row in whole),
        summary_calls=sum(row.summary_calls for row in whole),
        facts=sum(row.facts for row in whole),
        facts_left=sum(row.facts_left for row in whole),
        uses=sum(row.uses for row in whole),
        uses_left=sum(row.uses_left for row in whole),
        seconds=sum(row.seconds for row in whole),
        model=first.model,
        failed=failed,
    )


def _summed(sheet: str, rows: Sequence[Row]) -> Money:
    each = [money for row in rows for money in row.money if money.sheet == sheet]
    return Money(
        sheet=sheet,
        cost=sum(money.cost for money in each),
        summaries=sum(money.summaries for money in each),
        rework=sum(money.rework for money in each),
        never=sum(money.never for money in each),
        optimum=_all([money.optimum for money in each]),
        modelled=_all([money.modelled for money in each]),
        peak=max(money.peak for money in each),
        summary_tokens=sum(money.summary_tokens for money in each),
        too_large=sum(money.too_large for money in each),
    )


def _all(values: Sequence[int | None]) -> int | None:
    """Return the sum, None if one of them is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
