"""Old tool results become placeholders; the newest, or those worth most, stay (specification C1, D, L)."""

from typing import Any

import pytest

from lowwater.core.mechanisms import elide, truncate
from lowwater.core.mechanisms.results import calls_in, results_in
from lowwater.core.messages import Format, Image, Opaque, Span, Text
from lowwater.core.policies.policy import OWN, RUNWAY, SEED
from lowwater.core.proposals import Preset
from lowwater.core.view import Edited, Item, Original, Summary
from lowwater.testing.views import PICTURE, Script, asked, lines, making, offer_of

OUTPUT = lines(40)
"""240 tokens, more than 1,000 characters."""


def elided(items: list[Item], preset: Preset = SEED, **zones: Any) -> list[Item]:
    """Carry out what `elide` offers; by default the first message and the last two are protected, and no output."""
    proposal = offer_of(elide.NAME, asked(items, preset, **zones))
    return list(items) if proposal is None else elide.apply(items, proposal, making(preset=preset))


def outputs(count: int) -> list[str]:
    """Return outputs of one size that have nothing in common."""
    return [lines(40, f"word{at}") for at in range(count)]


def touched(before: list[Item], after: list[Item]) -> list[int]:
    return [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old is not new]


def loop(*outputs: str, tool: str = "bash") -> Script:
    script = Script().user("Fix the tests.")
    for at, output in enumerate(outputs):
        script.calls(tool, {"command": f"step {at}"}, output)
    return script


@pytest.mark.parametrize("chars", [200, 201], ids=["at the limit", "over it"])
def test_c1_the_limit_is_in_characters_and_itself_kept(chars: int) -> None:
    output = ("ab " * 100)[:chars]
    items = loop(output, "ok").items()
    assert len(items[2].message.results[0].text) == chars
    assert touched(items, elided(items)) == ([2] if chars > 200 else [])


def test_d_the_newest_output_before_the_tail_is_protected_and_the_one_that_crosses_the_limit_is_kept_whole() -> (
    None
):
    items = loop(*outputs(6)).items()
    tokens = items[2].tokens
    assert {item.tokens for item in items[2::2]} == {tokens}
    assert touched(items, elided(items, protect=tokens)) == [2, 4, 6, 8]
    assert touched(items, elided(items, protect=tokens + 1)) == [2, 4, 6]
    assert touched(items, elided(items, protect=2 * tokens)) == [2, 4, 6]
    assert touched(items, elided(items, protect=100 * tokens)) == []


def test_d_the_tail_itself_does_not_count_towards_the_protected_output() -> None:
    items = loop(*outputs(6)).items()
    assert touched(items, elided(items, protect=items[2].tokens, last=6)) == [2, 4]


def test_by_value_a_read_stays_before_the_newer_output_of_a_shell() -> None:
    script = Script().user("go").calls("read_file", {"path": "a.py"}, lines(60, "code"))
    script.calls("bash", {"command": "ls"}, lines(60, "log")).says("Then.").calls("bash", {}, "ok")
    items = script.items()
    assert touched(items, elided(items, OWN, protect=1)) == [4]
    assert touched(items, elided(items, Preset(by_value=False), protect=1)) == [2]


def test_by_value_short_results_that_cannot_go_do_not_use_up_what_is_protected() -> None:
    script = (
        Script()
        .user("go")
        .calls("bash", {}, lines(60))
        .calls("bash", {}, "a few words")
        .calls("bash", {}, "ok")
    )
    items = script.items()
    assert touched(items, elided(items, OWN, protect=1)) == []


def test_results_that_are_placeholders_are_not_touched_again() -> None:
    items = loop(*(lines(300, f"word{at}") for at in range(4))).items()
    for preset in (RUNWAY, OWN):
        once = elided(items, preset)
        assert touched(items, once) == [2, 4, 6]
        assert offer_of(elide.NAME, asked(once, preset)) is None


def test_placeholders_that_another_session_wrote_are_not_touched_again() -> None:
    once = elided(loop(lines(2_000), "ok").items(), OWN)
    elsewhere: list[Item] = [
        Original(number=at, message=item.message, tokens=item.tokens) for at, item in enumerate(once, start=7)
    ]
    assert len(once[2].message.results[0].text) > OWN.elide_limit_chars
    assert offer_of(elide.NAME, asked(elsewhere, OWN)) is None


def test_a_shortened_result_is_elided_by_what_it_said_before() -> None:
    output = "\n".join(f"module_{at}.py is fine" for at in range(3_000))
    items = loop(output, "ok").items()
    proposal = truncate.propose(items, [2], making(), limit=1_000)
    assert proposal is not None
    shorter = truncate.apply(items, proposal, making(), limit=1_000)
    gone = elided(shorter, OWN)
    shown = gone[2].message.results[0].text
    assert f"{len(output):,} chars elided" in shown
    assert gone[2].tokens <= 0.2 * shorter[2].tokens
    assert offer_of(elide.NAME, asked(gone, OWN)) is None


def test_pictures_in_a_result_stay_when_its_text_goes() -> None:
    script = Script("anthropic").user("go").calls("bash", {}, [Text(text=OUTPUT), PICTURE, Text(text=OUTPUT)])
    items = script.calls("bash", {}, "ok").items()
    parts = elided(items)[2].message.results[0].parts
    assert [part.kind for part in parts] == ["text", "image"]
    assert isinstance(parts[1], Image)


def test_blocks_of_unknown_type_go_with_the_text() -> None:
    block = Opaque(block="search_result", body='{"type":"search_result","content":"%s"}' % ("tide " * 200))
    script = (
        Script("anthropic").user("go").calls("web_search", {"query": "tide"}, "see").calls("bash", {}, "ok")
    )
    items = script.items()
    message = items[2].message
    result = message.results[0]
    found = message.with_parts([type(result)(call_id=result.call_id, parts=(Text(text="see"), block))])
    items[2] = Original(number=3, message=found, tokens=300)
    parts = elided(items)[2].message.results[0].parts
    assert [part.kind for part in parts] == ["text"]
    assert "chars elided" in elided(items)[2].message.results[0].text


@pytest.mark.parametrize("format", ["openai_chat", "anthropic", "openai_responses"])
def test_a_placeholder_stands_in_the_result_and_everything_around_it_stays(format: Format) -> None:
    script = Script(format).user("go").asks(("bash", {"command": "a"}), ("bash", {"command": "b"}))
    script.answers("call_1", OUTPUT).answers("call_2", "short").says("Done.").calls("bash", {}, "ok")
    items = script.items()
    after = elided(items)
    assert [call.id for item in after for call in item.message.calls] == ["call_1", "call_2", "call_3"]
    assert [result.call_id for item in after for result in item.message.results] == [
        "call_1",
        "call_2",
        "call_3",
    ]
    assert "short" in [result.text for item in after for result in item.message.results]


def test_what_is_promised_is_about_what_is_removed() -> None:
    items = loop(*(lines(30 + 30 * at, f"word{at}") for at in range(12))).items()
    for preset in (RUNWAY, OWN):
        proposal = offer_of(elide.NAME, asked(items, preset))
        assert proposal is not None
        after = elide.apply(items, proposal, making(preset=preset))
        removed = sum(item.tokens for item in items) - sum(item.tokens for item in after)
        # A digest may turn out smaller than expected, because it leaves out what is shown elsewhere.
        assert removed * 0.85 <= proposal.removes <= removed * 1.1
        assert proposal.first_changed == 2
        assert proposal.survives == sum(item.tokens for item in items[2:]) - proposal.removes


def test_a_result_whose_call_is_gone_is_still_elided() -> None:
    items = loop(OUTPUT, "ok").items()
    orphaned = [item for at, item in enumerate(items) if at != 1]
    assert "chars elided" in elided(orphaned)[1].message.results[0].text


def test_summaries_and_edited_items_keep_their_place() -> None:
    items = loop(*outputs(2), "ok").items()
    once = elided(items, first=3)
    assert isinstance(once[4], Edited)
    assert not any(isinstance(item, Summary) for item in once)
    found = results_in(once, range(len(once)), calls_in(once))
    assert [result.number for result in found] == [3, 7]


def test_a_digest_leaves_out_what_is_shown_elsewhere_or_in_an_older_result() -> None:
    def names(word: str, count: int) -> str:
        return "\n".join(f"{word}_{at} is there" for at in range(count))

    script = (
        Script()
        .user("Look at said_name.")
        .calls("bash", {"command": "a"}, names("older", 60) + names("said_name", 1))
    )
    script.calls("bash", {"command": "b"}, names("older", 60) + names("newer", 60) + " said_name")
    script.calls("bash", {"command": "c"}, names("staying", 60)).says("Done.").user("So?")
    items = script.items()
    older, newer = (item.message.results[0].text for item in elided(items, OWN)[2:5:2])
    assert "older_1" in older
    assert "newer_1" in newer
    assert "older_1 " not in newer
    assert "said_name " not in older + newer


def test_what_a_summary_of_the_same_rewrite_replaces_is_not_shown_elsewhere() -> None:
    text = "\n".join(f"{word}_name is there" for word in "abcdefgh" * 20)
    script = (
        Script()
        .user("go")
        .says(text)
        .calls("bash", {"command": "a"}, text + lines(60))
        .says("Done.")
        .user("So?")
    )
    items = script.items()
    proposal = offer_of(elide.NAME, asked(items, OWN))
    assert proposal is not None
    shown = elide.apply(items, proposal, making())[3].message.results[0].text
    alone = (
        elide.apply(items, proposal, making(summarised=(Span(start=1, stop=2),)))[3].message.results[0].text
    )
    assert "a_name" not in shown
    assert "a_name" in alone
