"""The middle becomes one summary, sized by what it replaces (specification B, C3)."""

import pytest
from msgspec.structs import replace

from lowwater.core.mechanisms import summarize
from lowwater.core.mechanisms.spans import replace_span
from lowwater.core.messages import Span
from lowwater.core.view import Item, Original, Summary
from lowwater.testing.views import Script, asked, lines, making, offer_of


def loop(turns: int) -> list[Item]:
    script = Script().user("Fix the tests.")
    for turn in range(turns):
        script.calls("bash", {"command": f"step {turn}"}, lines(20, f"word{turn}"))
    return script.items()


def raw(tokens: int) -> Original:
    return Original(number=1, message=Script().user("x").messages()[0], tokens=tokens)


def summary(tokens: int) -> Summary:
    return Summary(message=Script().user("x").messages()[0], tokens=tokens, sources=(), depth=1)


@pytest.mark.parametrize(
    ("middle", "most", "length"),
    [
        ([raw(200_000)], 12_000, 3_000),
        ([summary(5_000), raw(50_000)], 12_000, 5_000),
        ([summary(1_000), raw(50_000)], 12_000, 3_000),
        ([raw(200_000)], 2_500, 2_500),
    ],
    ids=["however much it replaces", "no shorter than what it updates", "a short one grows", "at most"],
)
def test_a_summary_is_expected_to_be_as_long_as_models_write_them(
    middle: list[Item], most: int, length: int
) -> None:
    assert summarize.usual(middle, most=most) == length


def test_what_is_offered_is_priced_by_the_length_to_be_expected_and_may_be_longer() -> None:
    items = [
        Original(number=at, message=item.message, tokens=4_000) for at, item in enumerate(loop(40), start=1)
    ]
    wanted = asked(items)
    may_be = offer_of(summarize.NAME, wanted)
    assert may_be is not None
    expected = summarize.propose_priced(wanted)[0]
    assert expected.span == may_be.span
    assert expected.removes - may_be.removes == wanted.counted(wanted.limits.summary) - 3_000 > 0


def test_c3_the_whole_middle_is_offered() -> None:
    items = loop(10)
    proposal = offer_of(summarize.NAME, asked(items, first=1, last=4))
    assert proposal is not None
    assert proposal.span == Span(start=1, stop=len(items) - 4)


def test_what_is_summarised_already_is_not_summarised_again() -> None:
    items = loop(10)
    proposal = offer_of(summarize.NAME, asked(items))
    assert proposal is not None
    assert proposal.span is not None
    once = replace_span(items, proposal.span, lines(200, "long summary"), making())
    assert [type(item) for item in once[1:3]] == [Summary, Original]
    assert offer_of(summarize.NAME, asked(once)) is None


def test_a_little_behind_a_long_summary_promises_only_a_little() -> None:
    items = loop(10)
    once = replace_span(items, Span(start=1, stop=17), lines(200, "long summary"), making())
    proposal = offer_of(summarize.NAME, asked(once))
    assert proposal is not None
    added = sum(item.tokens for item in once[3:-2])
    assert proposal.removes <= added


def test_a_view_without_a_middle_is_left_alone() -> None:
    assert offer_of(summarize.NAME, asked(loop(2), last=20)) is None
    assert offer_of(summarize.NAME, asked([])) is None


@pytest.mark.parametrize(("room", "kept"), [(0, 2), (600, 4), (100_000, 8)], ids=["none", "some", "plenty"])
def test_at_the_wall_the_newest_exchanges_stay_as_far_as_there_is_room(room: int, kept: int) -> None:
    items = loop(10)
    wanted = replace(asked(items, last=10), room=room)
    usual, all_of_it = offer_of(summarize.NAME, wanted), offer_of("summarize_all", wanted)
    assert usual is not None
    assert all_of_it is not None
    assert usual.span == Span(start=1, stop=len(items) - 10)
    assert all_of_it.span == Span(start=1, stop=len(items) - kept)


def test_where_bytes_are_the_limit_only_the_newest_exchange_stays() -> None:
    items = loop(10)
    offer = offer_of("summarize_all", replace(asked(items, last=10), room=100_000, too_large=True))
    assert offer is not None
    assert offer.span == Span(start=1, stop=len(items) - 2)
