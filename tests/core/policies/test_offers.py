"""What a plan would leave, with nothing counted twice."""

from lowwater.core.messages import Span
from lowwater.core.policies.at_threshold import expected_after, summaries, useful
from lowwater.core.proposals import Proposal, Target
from lowwater.testing.decision_contexts import example_context, offer

MIDDLE = offer("summarize", 50_000, span=Span(start=4, stop=10))


def elide(*places: tuple[int, int], removes: int) -> Proposal:
    targets = tuple(Target(item=item, path=(0,), tokens=tokens) for item, tokens in places)
    return Proposal(mechanism="elide", removes=removes, first_changed=4, survives=0, targets=targets)


def test_edits_alone_add_up() -> None:
    now = example_context(100_000)
    assert expected_after(now, (elide((5, 9_000), removes=8_000), elide((6, 2_500), removes=2_000))) == 90_000


def test_an_edit_inside_a_span_that_goes_anyway_is_counted_once() -> None:
    inside = elide((4, 5_000), (9, 5_000), removes=9_000)
    assert expected_after(example_context(100_000), (inside, MIDDLE)) == 50_000


def test_an_edit_beside_the_span_comes_on_top() -> None:
    beside = elide((3, 5_000), (10, 5_000), removes=9_000)
    assert expected_after(example_context(100_000), (beside, MIDDLE)) == 41_000


def test_of_an_edit_across_the_edge_the_outer_part_comes_on_top() -> None:
    across = elide((9, 6_000), (10, 2_000), removes=4_000)
    assert expected_after(example_context(100_000), (across, MIDDLE)) == 49_000


def test_of_one_that_does_not_say_where_nothing_comes_on_top() -> None:
    assert expected_after(example_context(100_000), (offer("elide", 9_000), MIDDLE)) == 50_000


def test_edits_that_remove_more_than_the_span_count_in_its_place() -> None:
    assert expected_after(example_context(100_000), (offer("elide", 60_000), MIDDLE)) == 40_000


def test_chunks_add_up() -> None:
    chunks = (
        offer("leaf", 9_000, span=Span(start=4, stop=6)),
        offer("leaf", 8_000, span=Span(start=6, stop=9)),
    )
    assert expected_after(example_context(100_000), chunks) == 83_000


def test_the_models_tokens_count_and_less_than_nothing_is_nothing() -> None:
    assert expected_after(example_context(100_000, scale=1.5), (MIDDLE,)) == 25_000
    assert expected_after(example_context(40_000), (MIDDLE,)) == 0


def test_one_token_is_of_use_and_none_is_not() -> None:
    now = example_context(100_000, offer("elide", 0), offer("images", 1), offer("dedupe", -1))
    assert useful(now, "dedupe", "elide", "images") == (offer("images", 1),)


def test_a_summary_of_the_whole_comes_before_chunks() -> None:
    chunks = (offer("leaf", 5), offer("condense", 6))
    assert summaries(example_context(1_000, *chunks, MIDDLE)) == (MIDDLE,)
    assert summaries(example_context(1_000, *chunks)) == chunks
