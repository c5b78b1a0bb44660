"""Old pictures become a line; the newest the user showed stays."""

from typing import Any

import pytest

from lowwater.core.mechanisms import images
from lowwater.core.messages import Document, Format, Image, Text
from lowwater.core.policies.policy import OWN, SEED
from lowwater.core.proposals import Preset
from lowwater.core.view import Item
from lowwater.testing.views import PICTURE, Script, asked, making, offer_of

FORMATS: list[Format] = ["openai_chat", "anthropic", "openai_responses"]


def without(items: list[Item], preset: Preset = OWN, **zones: Any) -> list[Item]:
    proposal = offer_of(images.NAME, asked(items, preset, **zones))
    return list(items) if proposal is None else images.apply(items, proposal, making(preset=preset))


def pictures(items: list[Item]) -> list[int]:
    return [
        at
        for at, item in enumerate(items)
        for part in [*item.message.parts, *(inner for r in item.message.results for inner in r.parts)]
        if part.kind in {"image", "document"}
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_pictures_in_messages_and_in_tool_results_become_a_line(format: Format) -> None:
    script = Script(format).user("hi").says("hello").user("Look.", PICTURE)
    script.calls("screenshot", {}, [Text(text="taken"), PICTURE]).says("Seen.").user("Go on.").says("Yes.")
    items = script.items()
    assert pictures(items) == [2, 4]
    after = without(items)
    assert pictures(after) == []
    assert after[2].message.text.splitlines() == [
        "Look.",
        "[image · image/png · 3,300 bytes elided · on record as lw:3]",
    ]
    assert after[4].message.results[0].text.startswith("taken\n[image · image/png")
    assert sum(item.tokens for item in after) < sum(item.tokens for item in items)


def test_their_bytes_go_as_well() -> None:
    script = Script("anthropic").user("hi").says("hello").user("Look.", PICTURE).says("Seen.")
    script.calls("screenshot", {}, [PICTURE]).says("Seen.").user("Go on.").says("Yes.")
    items = script.items()
    before, after = (sum(item.message.bytes for item in each) for each in (items, without(items)))
    assert before - after > 1.9 * len(PICTURE.data)


def test_a_picture_at_an_address_is_named_by_it() -> None:
    url = Image(source="url", data="https://example.com/chart.png")
    items = (
        Script("anthropic")
        .user("hi")
        .says("hello")
        .user("Look.", url)
        .says("Seen.")
        .user("On.")
        .says("Yes.")
        .items()
    )
    assert (
        "[image · https://example.com/chart.png elided · on record as lw:3]" in without(items)[2].message.text
    )


def test_documents_go_unless_they_are_plain_text() -> None:
    pdf = Document(source="base64", data="JVBERi0xLjcK" * 300, media_type="application/pdf", title="a.pdf")
    text = Document(source="text", data="plain words", media_type="text/plain")
    script = (
        Script("anthropic")
        .user("hi")
        .says("hello")
        .user("Read.", pdf, text)
        .says("Done.")
        .user("On.")
        .says("Yes.")
    )
    kinds = [part.kind for part in without(script.items())[2].message.parts]
    assert kinds == ["text", "text", "document"]


def test_the_handle_says_recall_where_the_request_offers_it() -> None:
    items = (
        Script()
        .user("hi")
        .says("hello")
        .user("Look.", PICTURE)
        .says("Seen.")
        .user("On.")
        .says("Yes.")
        .items()
    )
    proposal = offer_of(images.NAME, asked(items))
    assert proposal is not None
    after = images.apply(items, proposal, making(offers_recall=True))
    assert "recall lw:3" in after[2].message.text


@pytest.mark.parametrize("format", FORMATS)
def test_what_the_user_showed_in_the_newest_message_stays(format: Format) -> None:
    script = Script(format).user("hi").says("hello").user("Make it look like this.", PICTURE)
    for step in range(8):
        script.calls("bash", {"command": str(step)}, "ok")
    items = script.items()
    assert without(items) == items


def test_pictures_in_head_and_tail_stay() -> None:
    script = (
        Script()
        .user("Look.", PICTURE)
        .says("Seen.")
        .user("And.", PICTURE)
        .says("Seen.")
        .user("On.")
        .says("Yes.")
    )
    items = script.items()
    assert pictures(without(items, first=1, last=2)) == [0]
    assert pictures(without(items, first=1, last=4)) == [0, 2]


def test_what_never_prune_tools_showed_stays() -> None:
    script = Script().user("go").calls("Read", {"path": "a.png"}, [PICTURE]).calls("bash", {}, "ok")
    items = script.items()
    assert pictures(without(items, SEED)) == [2]
    assert pictures(without(items, OWN)) == []


def test_d_pictures_count_among_the_newest_output_that_is_protected() -> None:
    script = Script().user("go")
    for _ in range(5):
        script.calls("screenshot", {}, [PICTURE])
    items = script.items()
    assert pictures(without(items, SEED)) == [10]
    assert pictures(without(items, SEED, protect=items[2].tokens)) == [8, 10]
    assert pictures(without(items, SEED, protect=items[2].tokens + 1)) == [6, 8, 10]


def test_replacing_twice_is_replacing_once() -> None:
    script = Script().user("hi").says("hello").user("Look.", PICTURE).says("Seen.").user("On.").says("Yes.")
    assert offer_of(images.NAME, asked(without(script.items()))) is None


def test_the_line_for_a_picture_does_not_make_a_short_result_a_long_one() -> None:
    script = Script("anthropic").user("hi").says("hello")
    script.calls("screenshot", {}, [PICTURE, Text(text="x" * 190)]).says("Seen.").user("Go on.").says("Yes.")
    after = without(script.items(), SEED)
    assert pictures(after) == []
    assert offer_of("elide", asked(after, SEED, tail=0, last=1)) is None
