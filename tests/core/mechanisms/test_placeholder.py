import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.adapters.tokenizer import SplintrTokenizer
from lowwater.core.mechanisms.placeholder import placeholder, repeats
from lowwater.core.messages import ToolCall
from lowwater.core.tokens.estimate import CharacterTokenizer

TOKENIZER = SplintrTokenizer()

TEST_RUN = "============ test session starts ============\n" + "\n".join(
    f"tests/auth/test_login_{at}.py::test_case_{at} PASSED in 0.{at:03} s" for at in range(300)
)
FAILED_RUN = (
    TEST_RUN
    + "\nFAILED tests/auth/test_login.py::test_login - AssertionError: expected 200\n1 failed, 300 passed"
)
SOURCE = "\n".join(
    f"{3 * at - 2:6}→def handler_{at}(request):\n"
    f"{3 * at - 1:6}→    # what is asked for here is looked up, and if it is there, given back as it is\n"
    f"{3 * at:6}→    return store_{at}.load(request)"
    for at in range(1, 100)
)
WORDS = "\n".join(f"in line {at} there are many words and nothing that has a name at all" for at in range(60))


def call(name="terminal", **arguments):
    written = ", ".join(f'"{key}": "{value}"' for key, value in arguments.items())
    return ToolCall(id="c1", name=name, arguments=f"{{{written}}}")


PYTEST = call(command="pytest tests/auth -x")


def shown(text=FAILED_RUN, of=PYTEST, number=412, offers_recall=True, **options):
    return placeholder(
        text, number=number, call=of, offers_recall=offers_recall, tokenizer=TOKENIZER, **options
    )


def test_spec_l_the_plain_line_says_tool_argument_size_preview_and_how_to_get_it_back():
    assert shown(plain=True) == (
        f"[terminal · pytest tests/auth -x · {len(FAILED_RUN):,} chars elided"
        " · FAILED tests/auth/test_login.py::test_login - AssertionError: expected 200 · recall lw:412]"
    )


def test_spec_l_a_file_has_no_preview():
    assert shown(SOURCE, of=call("Read", file_path="src/web.py"), plain=True) == (
        f"[Read · src/web.py · {len(SOURCE):,} chars elided · recall lw:412]"
    )


@pytest.mark.parametrize(
    ("tool", "offers_recall", "back"),
    [
        pytest.param("terminal", True, "recall lw:412]", id="recall is offered"),
        pytest.param("Read", False, "run again · lw:412]", id="a file can be read again"),
        pytest.param("mcp__code__grep", False, "run again · lw:412]", id="a search can be run again"),
        pytest.param("terminal", False, "run again if harmless · lw:412]", id="a command may do things"),
        pytest.param("Task", False, "on record as lw:412]", id="a report cannot be had again"),
        pytest.param("book_flight", False, "on record as lw:412]", id="an unknown tool may do things"),
    ],
)
def test_spec_l_the_way_back_depends_on_what_the_request_offers_and_always_has_the_handle(
    tool, offers_recall, back
):
    for plain in (True, False):
        line = shown(of=call(tool, path="x"), offers_recall=offers_recall, plain=plain).split("\n")[0]
        assert line.endswith(back)


def test_spec_l_a_result_without_its_call_is_still_named_and_recallable():
    line = shown(of=None).split("\n")[0]
    assert line.startswith("[tool · ")
    assert line.endswith(" · recall lw:412]")


def test_spec_l_a_large_result_carries_a_digest():
    line, *below = shown(SOURCE, of=call("Read", file_path="src/web.py")).split("\n")
    assert line == f"[Read · src/web.py · {len(SOURCE):,} chars elided · recall lw:412]"
    assert below[0].startswith("1 handler_1 store_1.load")


@pytest.mark.parametrize(
    ("text", "ratio"),
    [(FAILED_RUN, 0.05), (SOURCE, 0.15), (SOURCE[:800], 0.15), (WORDS, 0.30)],
    ids=["run", "file", "short", "words"],
)
def test_spec_l_frame_and_digest_stay_within_the_ratio_and_one_per_cent(text, ratio):
    found = shown(text, digest_ratio=ratio)
    longest = max((ratio + 0.01) * TOKENIZER.count(text), TOKENIZER.count(found.split("\n")[0]))
    assert 0 < TOKENIZER.count(found) <= longest


def test_spec_l_a_short_result_spends_its_room_on_names_rather_than_on_the_argument():
    found = shown(SOURCE[:800], of=call("Read", file_path="/home/someone/projects/shop/src/web/handlers.py"))
    assert found.startswith("[Read · 800 chars elided · recall lw:412]\nhandler_1 ")


def test_spec_l_names_that_stand_elsewhere_are_left_out():
    known = frozenset(f"store_{at}.load" for at in range(1, 50))
    found = set(shown(SOURCE, known=known).split())
    assert not known & found
    assert {f"store_{at}.load" for at in range(50, 60)} <= found


def test_spec_l_names_in_the_arguments_are_not_said_again():
    assert (
        "handler_7 "
        not in shown(SOURCE, of=call("grep", pattern="handler_7"), digest_ratio=0.5).split("\n", 1)[1]
    )


def test_spec_l_a_repeated_result_names_the_message_that_has_it():
    line = repeats(SOURCE, number=412, call=call("Read", file_path="src/web.py"), by=430, offers_recall=True)
    assert line == f"[Read · src/web.py · {len(SOURCE):,} chars elided · repeated in lw:430 · recall lw:412]"


def test_spec_l_a_superseded_result_says_how():
    line = repeats(SOURCE, number=412, call=PYTEST, by=430, how="changed in", offers_recall=False)
    assert " · changed in lw:430 · run again if harmless · lw:412]" in line


def test_a_result_smaller_than_its_placeholder_is_left_alone():
    assert shown("exit code 0") == ""
    assert shown("exit code 0", plain=True) == ""


def test_a_long_path_is_cut_at_its_start_and_a_long_command_at_its_end():
    path = "/very" * 30 + "/last.py"
    line = shown(SOURCE, of=call("Read", file_path=path), plain=True)
    assert " · …" in line
    assert "/very/last.py · " in line
    command = "make " + "target " * 30
    line = shown(SOURCE, of=call(command=command), plain=True)
    assert " · make target target" in line
    assert "… · " in line


def test_what_is_in_brackets_or_on_other_lines_does_not_break_the_frame():
    odd = call(command="a[1] · b\\n c\\u2028d\\u0000e]")
    assert "terminal · a(1) - b c d e) · " in shown(SOURCE, of=odd, plain=True)


TEXTS = st.text(min_size=0, max_size=400)


@given(text=TEXTS, name=TEXTS, subject=TEXTS, plain=st.booleans(), recall=st.booleans())
def test_the_frame_is_one_line_in_brackets_whatever_the_call_says(text, name, subject, plain, recall):
    odd = ToolCall(id="c", name=name, arguments=subject)
    found = shown(text + SOURCE, of=odd, plain=plain, offers_recall=recall)
    line, *below = found.splitlines()
    assert line.startswith("[")
    assert line.endswith("lw:412]")
    assert line.count("[") == line.count("]") == 1
    assert not (plain and below)


@given(
    text=st.one_of(TEXTS, st.sampled_from([FAILED_RUN, SOURCE, WORDS])),
    ratio=st.floats(0, 1),
    plain=st.booleans(),
)
def test_a_placeholder_is_smaller_than_the_original_or_nothing_and_always_the_same(text, ratio, plain):
    for tokenizer in (TOKENIZER, CharacterTokenizer()):
        found = placeholder(
            text,
            number=7,
            call=PYTEST,
            offers_recall=True,
            tokenizer=tokenizer,
            digest_ratio=ratio,
            plain=plain,
        )
        assert not found or tokenizer.count(found) < tokenizer.count(text)
        assert found == placeholder(
            text,
            number=7,
            call=PYTEST,
            offers_recall=True,
            tokenizer=tokenizer,
            digest_ratio=ratio,
            plain=plain,
        )
