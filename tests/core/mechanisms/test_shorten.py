"""Very large outputs keep head, tail and errors, and say what was cut (specification M)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.mechanisms import truncate
from lowwater.core.mechanisms.results import ShownResult, calls_in, results_in
from lowwater.core.messages import Image, Text
from lowwater.core.policies.policy import OWN, SEED
from lowwater.core.proposals import Preset
from lowwater.core.view import Edited, Item
from lowwater.testing.views import PICTURE, Script, asked, lines, making, offer_of

LOG = "\n".join(
    "ValueError: widget_17 is not a number" if at == 1_500 else f"step {at} of module_{at % 40}.py done"
    for at in range(3_000)
)


def result(output: str, tool: str = "bash") -> ShownResult:
    items = Script().user("go").calls(tool, {"command": "make"}, output).items()
    (found,) = results_in(items, range(len(items)), calls_in(items))
    return found


def shortened(items: list[Item], limit: int, preset: Preset = OWN) -> list[Item]:
    question = making(preset=preset)
    proposal = truncate.propose(items, range(len(items)), question, limit=limit)
    return list(items) if proposal is None else truncate.apply(items, proposal, question, limit=limit)


def test_m_what_was_cut_is_counted_exactly() -> None:
    shown = truncate.shortened(result(LOG), making(), 1_000)
    head, cut, rest = shown.partition("\n[… cut here: ")
    tail = rest.partition("[… the end of it:]\n")[2]
    between = len(LOG) - len(head) - 1 - len(tail)
    assert cut
    assert rest.startswith(f"{between:,} of {len(LOG):,} characters")


TEXTS = st.sampled_from(
    [
        LOG,
        lines(2_000),
        "word " * 9_000,
        "x" * 50_000,
        "日本語のテキストと中文文本、" * 2_000,
        "Error: 失敗しました\n" * 3_000,
        "👩‍👩‍👧‍👦" * 4_000,
        '{"key": [1, 2, {"nested": "value"}]}' * 2_000,
        "\n" * 20_000 + "end",
        "a b c d e f g h\n" * 500 + "日本語のテキスト" * 3_000,
    ]
)


@pytest.mark.parametrize("vocabulary", ["words", "o200k"])
def test_m_what_is_shown_is_within_the_limit_in_tokens(vocabulary: str) -> None:
    tokenizer = making().tokenizer if vocabulary == "words" else tokenizer_for(vocabulary)

    @given(TEXTS, st.integers(min_value=truncate.LEAST, max_value=3_000))
    def check(text: str, limit: int) -> None:
        shown = truncate.shortened(result(text), making(tokenizer=tokenizer), limit)
        assert tokenizer.count(shown) <= limit

    check()


def test_m_a_cjk_output_fills_most_of_its_limit() -> None:
    tokenizer = tokenizer_for("o200k")
    text = "".join(f"第{at}行：テストは失敗しました。" for at in range(5_000))
    shown = truncate.shortened(result(text), making(tokenizer=tokenizer), 2_000)
    assert 1_200 <= tokenizer.count(shown) <= 2_000


def test_m_results_at_the_limit_stay_and_those_above_it_go() -> None:
    items = Script().user("go").calls("bash", {}, "word " * 1_000).items()
    assert shortened(items, 1_000) == items
    assert shortened(items, 999) != items


def test_m_shortening_twice_is_shortening_once() -> None:
    items = (
        Script("anthropic")
        .user("go")
        .asks(("bash", {}), ("bash", {}))
        .answers("call_1", LOG)
        .answers("call_2", "日本語" * 3_000)
        .items()
    )
    once = shortened(items, 1_000)
    assert sum(isinstance(item, Edited) for item in once) == 1
    assert shortened(once, 1_000) == once


def test_a_shortened_result_can_be_shortened_further_from_what_it_said_before() -> None:
    items = Script().user("go").calls("bash", {}, LOG).items()
    again = shortened(shortened(items, 2_000), 500)[2]
    assert again.tokens <= 520
    assert f"of {len(LOG):,} characters" in again.message.results[0].text


def test_pictures_in_a_shortened_result_stay() -> None:
    items = Script("anthropic").user("go").calls("bash", {}, [Text(text=LOG), PICTURE]).items()
    parts = shortened(items, 1_000)[2].message.results[0].parts
    assert [part.kind for part in parts] == ["text", "image"]


def wall(items: list[Item], preset: Preset) -> list[int]:
    proposal = offer_of(truncate.NAME, asked(items, preset, context=40_000, last=4, tail=10**6))
    return [] if proposal is None else [target.item for target in proposal.targets]


def test_c2_at_the_wall_outputs_in_head_and_tail_are_offered_but_for_the_newest() -> None:
    huge = lines(4_000)
    items = (
        Script()
        .user(huge)
        .calls("bash", {"command": "a"}, lines(4_000, "a"))
        .calls("bash", {}, lines(4_000, "b"))
        .calls("bash", {}, lines(4_000, "c"))
        .items()
    )
    assert wall(items, OWN) == [2, 4]


def test_c2_at_the_wall_never_prune_outputs_are_offered_only_when_no_other_is_left() -> None:
    reads = Script().user("go").calls("Read", {"path": "a"}, lines(4_000, "a"))
    assert wall(reads.calls("bash", {}, "done").items(), SEED) == [2]
    more = Script().user("go").calls("Read", {"path": "a"}, lines(4_000, "a"))
    more = more.calls("bash", {}, lines(4_000, "b")).calls("bash", {}, "done")
    assert wall(more.items(), SEED) == [4]


def test_the_digest_of_the_middle_repeats_nothing_that_head_and_tail_show() -> None:
    middle = "\n".join(f"only_here_{at} is loaded" for at in range(3_000))
    text = f"begin with shared_settings\n{middle[:9_000]} shared_settings{middle[9_000:]}\nend"
    shown = truncate.shortened(result(text), making(), 1_000)
    cut, _, rest = shown.partition("[… cut here: ")[2].partition("\n")
    outline = rest.partition("[… the end of it:]")[0]
    assert "characters" in cut
    assert "only_here_" in outline
    assert "shared_settings" not in outline


def squeezed(items: list[Item], tokens: int, must_fit: int = 0) -> list[Item]:
    return truncate.squeeze(items, replace(making(preset=OWN), must_fit=must_fit), tokens=tokens)


def test_a_result_that_is_squeezed_below_its_ends_has_a_digest_of_what_nothing_else_shows() -> None:
    script = Script().user("go")
    for name in "abc":
        said = "\n".join(
            ["begun", "common_loader begins", *(f"module_{name}_{at} is loaded" for at in range(400))]
        )
        script = script.calls("bash", {"command": name}, said)
    items = script.calls("bash", {"command": "last"}, "the common_loader is done").items()
    small = squeezed(items, 330)
    texts = [item.message.results[0].text for item in small if item.message.results]
    assert sum(item.tokens for item in small) <= 330
    assert all(f"module_{name}_" in text for name, text in zip("abc", texts, strict=False))
    assert not any("common_loader" in text.partition("\n")[2] for text in texts[:3])


def test_new_results_are_cut_to_the_bone_only_if_the_prompt_would_not_fit() -> None:
    script = Script().user("go").calls("bash", {"command": "old"}, lines(2_000, "old"))
    items = script.calls("bash", {"command": "new"}, lines(4_000, "new")).items()
    spared, all_of_it = squeezed(items, 100, must_fit=2_000), squeezed(items, 100)
    assert spared[2].tokens == all_of_it[2].tokens
    assert 500 < spared[-1].tokens <= 820
    assert all_of_it[-1].tokens < 100


def test_a_squeeze_shortens_the_oldest_results_first_and_the_newest_only_if_it_must() -> None:
    script = Script().user("go " * 300)
    for name in "abc":
        script = script.calls("bash", {"command": name}, lines(2_000, name))
    items = script.items()
    whole = sum(item.tokens for item in items)
    mild, hard = squeezed(items, whole // 2), squeezed(items, whole // 10)
    assert mild[-1] is items[-1]
    assert [item.tokens for item in mild] != [item.tokens for item in items]
    assert hard[-1].tokens < items[-1].tokens
    for kept in (mild, hard):
        assert kept[0] is items[0], "the users' words stay"
        assert [item.message.calls for item in kept] == [item.message.calls for item in items]
    assert sum(item.tokens for item in mild) <= whole // 2
    assert sum(item.tokens for item in hard) <= whole // 10


def test_a_squeeze_gets_to_one_line_a_result_and_cuts_answers_and_arguments_last() -> None:
    script = Script().user("go").calls("write", {"path": "a.py", "text": "word " * 3_000}, "written " * 900)
    items = script.items()
    most = squeezed(items, 0)
    assert most[2].message.results[0].text.startswith("[write")
    call = most[1].message.calls[0]
    assert call.name == "write"
    assert '"path":"a.py"' in call.arguments
    assert "characters cut · lw:2" in call.arguments
    assert sum(item.tokens for item in most) < 250
    assert squeezed(most, 0) == most, "there is nothing more to gain"


def test_a_squeeze_leaves_a_result_alone_that_was_nothing_but_a_picture() -> None:
    picture = Image(
        source="base64", data="iVBORw0KGgo" * 300, media_type="image/png; " + "of a tide gauge " * 20
    )
    items = Script("anthropic").user("go " * 300).calls("fetch", {}, [picture]).items()
    most = squeezed(items, 0)
    assert most[2].message.results[0].text.startswith("[image")
    assert squeezed(most, 0) == most
