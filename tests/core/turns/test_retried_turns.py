"""What a turn spent that has to be taken again is in the bill once."""

import pytest
from msgspec.structs import replace

from lowwater.core.events import Compaction
from lowwater.core.ledger import Ledger
from lowwater.core.turns.state import Acted, State
from lowwater.session.turns import summary_spending, with_wasted_spending
from lowwater.testing.store_contract.samples import compaction
from tests.core.turns.test_prefetched_summary import session


def turn(seen: State, *, ahead: int | None, cost: int | None = None, compacts: bool = True) -> Acted:
    """A turn that left so much for a later compaction, and may have compacted at this cost."""
    events = (replace(compaction(), cost=cost),) if compacts else ()
    return Acted(state=replace(seen, uncharged_summary_cost=ahead), events=events)


@pytest.mark.parametrize(
    ("before", "after", "cost", "compacts", "spent"),
    [
        (0, 0, 7, True, 7),
        (5, 0, 12, True, 7),
        (5, 12, None, False, 7),
        (5, 5, None, False, 0),
        (5, 0, None, True, None),
        (None, 0, None, True, None),
    ],
    ids=["asked now", "asked ahead too", "given up", "asked nobody", "unknown", "unknown ahead"],
)
def test_what_was_paid_ahead_is_not_spent_again(
    before: int | None, after: int | None, cost: int | None, compacts: bool, spent: int | None
) -> None:
    seen = replace(session(Ledger()), uncharged_summary_cost=before)
    assert summary_spending(seen, turn(seen, ahead=after, cost=cost, compacts=compacts)) == spent


@pytest.mark.parametrize("compacts", [True, False], ids=["compacted", "left as it is"])
def test_what_was_spent_in_vain_is_in_one_bill(*, compacts: bool) -> None:
    seen = session(Ledger())
    done = with_wasted_spending(turn(seen, ahead=0, cost=3, compacts=compacts), 7)
    assert [event.cost for event in done.events if isinstance(event, Compaction)] == [10] * compacts
    assert done.state.uncharged_summary_cost == (0 if compacts else 7)
    assert done.state.totals.summary_cost == 7
    assert summary_spending(seen, done) == (10 if compacts else 7)
