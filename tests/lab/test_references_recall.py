from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.messages import ToolCall
from lowwater.core.references import ReferenceKind
from lowwater.lab.references.reachability import Because, RecallScore, UseOutcome, recall_score
from lowwater.lab.references.uses import LaterUse, Origin

ORIGIN = Origin(number=1, turn=1, call=ToolCall(id="1", name="read", arguments="{}"), text="a_b")

outcomes = st.lists(
    st.builds(
        lambda kind, because, tokens: UseOutcome(
            use=LaterUse(kind=kind, text="a_b", number=2, turn=2, origin=ORIGIN),
            because=because,
            tokens=tokens,
        ),
        st.sampled_from(get_args(ReferenceKind)),
        st.sampled_from(get_args(Because)),
        st.integers(0, 9),
    ),
    max_size=30,
)


@given(outcomes, outcomes)
def test_sums_of_parts_are_those_of_the_whole(some, others):
    assert recall_score(some).plus(recall_score(others)) == recall_score([*some, *others])


@given(outcomes)
def test_every_use_is_in_one_place_and_has_a_kind_and_a_reason(some):
    recall = recall_score(some)
    assert recall.uses == len(some) == sum(sum(places.values()) for places in recall.by_kind.values())
    assert sum(recall.ways.values()) == recall.one_recall
    assert sum(recall.causes.values()) == recall.gone


def test_shares_are_of_all_uses_and_of_those_that_left_the_view():
    recall = RecallScore(in_view=6, one_recall=3, gone=1)
    assert (recall.share_in_view, recall.share_one_recall) == (0.6, 0.75)
    assert (RecallScore().share_in_view, RecallScore().share_one_recall) == (1.0, 1.0)
