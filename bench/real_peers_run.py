"""Plays sessions through everything that is compared, and puts the figures together."""

import re
import sys
from collections.abc import Sequence
from time import monotonic

from msgspec import Struct

from bench.peers.catalogue import Variant
from bench.real_peers_beside import Beside
from bench.real_peers_billing import Asks, Bill, Sizes, bill
from bench.real_peers_cases import Case
from bench.real_peers_ours import POLICY, play_ours
from bench.real_peers_play import Played, Progress, Terms, play_never, play_peer
from bench.real_peers_rows import Money, Row, money_of, row_of, scheduled, together, uses_by_turn
from lowwater.adapters.models import load_registry
from lowwater.core.models.model import Model
from lowwater.lab.replay.course_replay import OPTIMUM
from lowwater.lab.replay.script import model_named

NEVER = "never"
_PASSING = re.compile(r"\d+ of \d+")
"""Words that the next ones may write over."""


class Group(Struct, frozen=True, kw_only=True):
    """Some sessions together: the sums of each peer, and its sessions one by one."""

    name: str
    sessions: tuple[str, ...]
    requests: int
    rows: tuple[Row, ...]
    each: tuple[tuple[Row, ...], ...]


def compare(
    name: str,
    cases: Sequence[Case],
    variants: Sequence[Variant],
    sheets: Sequence[str],
    *,
    terms: Terms = Terms(),  # noqa: B008  # a frozen value
) -> Group:
    """Run all on these sessions; progress goes to standard error."""
    each = [_Comparison(case, sheets).rows(variants, terms) for case in cases]
    rows = [together(same) for same in zip(*each, strict=True)]
    return Group(
        name=name,
        sessions=tuple(case.name for case in cases),
        requests=sum(len(case.script.exchanges) for case in cases),
        rows=tuple(rows),
        each=tuple(tuple(rows) for rows in each),
    )


class _Priced(Struct, frozen=True, kw_only=True):
    """One price sheet for one session."""

    sheet: str
    model: Model
    sizes: Sizes
    fixed: int
    beside: Beside
    never: Bill


class _Comparison:
    """One session under some price sheets."""

    def __init__(self, case: Case, sheets: Sequence[str]) -> None:
        self._case = case
        self._uses = uses_by_turn(case)
        self._never = play_never(case)
        self._priced = [self._price(sheet) for sheet in sheets]

    def _price(self, sheet: str) -> _Priced:
        model = model_named(sheet, load_registry())
        sizes = Sizes(model)
        fixed = sizes.preamble(self._case.script)
        never = bill(self._never.sents, model, fixed=fixed, uses=self._uses, sizes=sizes)
        return _Priced(
            sheet=sheet, model=model, sizes=sizes, fixed=fixed, beside=Beside(self._case, model), never=never
        )

    def rows(self, variants: Sequence[Variant], terms: Terms) -> list[Row]:
        """Return a row for each: nothing removed, ours, the optimum, and the peers."""
        rows = [self._row(NEVER, self._never, model=NEVER), self._ours(), self._optimum()]
        for variant in variants:
            progress = self._progress(variant.name)
            played = play_peer(self._case, variant, progress, terms)
            progress(played.failed or "done")
            rows.append(self._row(variant.name, played, asks=variant.asks, model=variant.model))
        return rows

    def _row(self, name: str, played: Played, *, asks: Asks = "fresh", model: str = "") -> Row:
        money: list[Money] = []
        if not played.failed:
            money = [self._money(priced, played, asks, model) for priced in self._priced]
        return row_of(name, self._case, played, money=money, model=model)

    def _money(self, priced: _Priced, played: Played, asks: Asks, model: str) -> Money:
        billed = bill(
            played.sents,
            priced.model,
            fixed=priced.fixed,
            asks=asks,
            uses=self._uses,
            sizes=priced.sizes,
        )
        beside = priced.beside
        return money_of(
            priced.sheet, billed, never=priced.never, optimum=beside.optimum, model=beside.of(model)
        )

    def _ours(self) -> Row:
        """Return what the engine comes to: its decisions follow the prices, so it is played for each sheet.

        What is not money is told of the first.
        """
        money: list[Money] = []
        first: Played | None = None
        for priced in self._priced:
            progress = self._progress(f"lowwater on {priced.sheet}")
            played = play_ours(
                self._case, priced.model, fixed=priced.fixed, sizes=priced.sizes, progress=progress
            )
            progress("done")
            money.append(self._money(priced, played, "extended", POLICY))
            first = first or played
        assert first is not None
        return row_of(f"lowwater {POLICY}", self._case, first, money=money, model=POLICY)

    def _optimum(self) -> Row:
        found = [(priced, priced.beside.optimum) for priced in self._priced]
        money = [scheduled(each.sheet, done, each.never) for each, done in found if done is not None]
        failed = "" if len(money) == len(found) else "no schedule fits the window of every price sheet"
        done = found[0][1]
        return Row(
            name=OPTIMUM,
            kind="course",
            money=() if failed else tuple(money),
            requests=len(self._case.script.exchanges),
            breaks=done.compactions if done else 0,
            summary_calls=done.summaries if done else 0,
            failed=failed,
        )

    def _progress(self, name: str) -> Progress:
        """Return what tells on standard error how far something is."""
        started = monotonic()

        def tell(words: str) -> None:
            passing = _PASSING.fullmatch(words) is not None
            if passing and not sys.stderr.isatty():
                return
            said = f"{self._case.name[:40]} · {name}: {words} ({monotonic() - started:.0f} s)"
            start = "\r\033[K" if sys.stderr.isatty() else ""
            print(start + said, end="" if passing else "\n", file=sys.stderr, flush=True)

        return tell
