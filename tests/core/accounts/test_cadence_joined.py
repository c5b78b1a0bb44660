"""A session that is split where it is compacted is still one for its compactions."""

from lowwater.core.accounts.cadence import cadence, joined
from lowwater.core.accounts.efficiency import efficiency
from lowwater.core.accounts.payback import paybacks
from tests.core.accounts.accounts import REGISTRY, account, compaction, turn

BOUGHT = compaction(20, before=30_000, after=20_000, cost=3_000_000)
PARENT = account(
    turn(10, read=29_000, write=1_000), BOUGHT, name="parent", ended_at=20.0, because="compression"
)
CHILD = account(
    *(turn(20 + at, read=20_000, removed=10_000) for at in range(3)),
    compaction(23, before=20_000, after=10_000, first_changed=9),
    turn(23, read=10_000, removed=20_000),
    name="child",
    parent="parent",
    ended_at=30.0,
    because="compression",
)
GRANDCHILD = account(turn(40, read=10_000, removed=20_000), name="grandchild", parent="child")
FORK = account(turn(50, read=1), name="fork", parent="parent")
STRANGER = account(turn(5, read=1), name="stranger", parent="deleted")
EVERY = [GRANDCHILD, FORK, CHILD, STRANGER, PARENT]


def test_a_lineage_is_one_account_and_a_fork_stands_alone() -> None:
    found = {each.session.name: each for each in joined(EVERY)}
    assert set(found) == {"grandchild", "fork", "stranger"}
    assert found["grandchild"].records == PARENT.records + CHILD.records + GRANDCHILD.records
    assert found["grandchild"].events == PARENT.events + CHILD.events


def test_a_session_that_goes_on_itself_has_no_heir() -> None:
    still_open = account(turn(1), name="open")
    assert joined([still_open, account(turn(2), name="fork", parent="open")])[0] == still_open


def test_what_a_compaction_saved_is_told_from_the_turns_of_the_child() -> None:
    assert efficiency(EVERY, REGISTRY).repayment.paid == 2
    alone = paybacks(PARENT, REGISTRY)[0]
    assert (alone.over, alone.failed, alone.price) == ("no", False, None)


def test_the_turns_between_two_events_are_counted_across_a_split() -> None:
    assert cadence(EVERY).turns_between_events == 3
    assert cadence(EVERY).sessions == 5


def test_every_turn_is_counted_once() -> None:
    assert efficiency(EVERY, REGISTRY).total.turns == 1 + 4 + 1 + 1 + 1
