"""All offers for a view, from one reading of it."""

from msgspec.structs import replace

from lowwater.core.mechanisms.mechanism import survey
from lowwater.core.mechanisms.registry import propose
from lowwater.core.messages import Text
from lowwater.core.policies.policy import OWN, RUNWAY
from lowwater.core.view import Item, Original, Summary
from lowwater.testing.views import PICTURE, Script, asked, lines, size
from tests.generated import generate_session


def session(turns: int = 60) -> list[Item]:
    messages = generate_session("coding", seed=3, turns=turns).messages
    return [Original(number=at, message=m, tokens=size(m)) for at, m in enumerate(messages, start=1)]


def test_edits_do_not_overlap() -> None:
    for preset in (OWN, RUNWAY):
        offers = [p for p in propose(asked(session(), preset, protect=500)).proposals if p.span is None]
        places = [(target.item, target.path) for offer in offers for target in offer.targets]
        assert {offer.mechanism for offer in offers} >= {"elide", "reasoning"}
        assert len(set(places)) == len(places)


def test_a_picture_and_the_text_beside_it_are_counted_once_each() -> None:
    script = Script().user("go").calls("bash", {}, [Text(text=lines(200)), PICTURE]).calls("bash", {}, "ok")
    items = script.items()
    offers = {p.mechanism: p for p in propose(asked(items)).proposals}
    together = sum(target.tokens for name in ("elide", "images") for target in offers[name].targets)
    assert together <= items[2].tokens


def test_everything_lies_in_the_middle_but_for_what_is_for_the_wall() -> None:
    offers = propose(asked(session(), first=3, last=20, tail=2_000))
    for offer in offers.proposals:
        if offer.mechanism in {"shorten", "summarize_all"}:
            continue
        changed = [target.item for target in offer.targets]
        if offer.span is not None:
            changed = [offer.span.start, offer.span.stop - 1]
        assert min(changed) >= offers.zones.head
        assert max(changed) < offers.zones.tail


def test_b_the_system_prompt_in_the_preamble_is_one_of_the_first_messages() -> None:
    items = session()
    listed = survey(asked(items, first=3))
    beside = survey(replace(asked(items, first=3), system_in_preamble=True))
    assert items[1].message.calls
    assert (listed.zones.head, beside.zones.head) == (3, 3)
    assert survey(replace(asked(items, first=2), system_in_preamble=True)).zones.head == 1
    assert survey(replace(asked(items, first=0), system_in_preamble=True)).zones.head == 0


def test_a_survey_counts_the_raw_tokens_between_head_and_tail() -> None:
    items = session()
    found = survey(asked(items, first=3, last=20))
    middle = items[found.zones.head : found.zones.tail]
    assert found.outside_tail == sum(item.tokens for item in middle)
    summary = Summary(message=items[5].message, tokens=700, sources=(), depth=1)
    less = survey(asked([*items[:5], summary, *items[9:]], first=3, last=20))
    assert less.outside_tail == found.outside_tail - sum(item.tokens for item in items[5:9])
    assert survey(asked([])).outside_tail == 0


def test_the_same_view_gets_the_same_offers() -> None:
    items = session()
    assert propose(asked(items)) == propose(asked(tuple(items)))


def test_sizes_are_scaled_to_the_models_tokens() -> None:
    items = session(120)
    twice = replace(asked(items, tail=8_000), scale=2.0)
    assert survey(twice).zones.tail >= survey(asked(items, tail=8_000)).zones.tail
    assert survey(twice).zones == survey(asked(items, tail=4_000)).zones
    assert twice.longest_result == replace(twice, scale=1.0).longest_result // 2


def test_an_empty_view_is_offered_nothing() -> None:
    assert propose(asked([])).proposals == ()
