"""Behind a summary a model that can recall finds an index of the results it stands for, and nobody else does."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.core.entries import Appended, Compacted
from lowwater.core.ledger import Ledger
from lowwater.core.mechanisms.edits import framed_parts
from lowwater.core.mechanisms.spans import replace_span, request_for
from lowwater.core.messages import Format, Span
from lowwater.core.summary.frame import index_in, unframe
from lowwater.core.summary.index import MOST_TOKENS, SHARE, index_of_results
from lowwater.core.view import Item, Original, Summary, view_items
from lowwater.testing.views import Script, lines, making

TEXT = "## Goal\n- Fix the tests."
RECALL = making(offers_recall=True)
LONG = lines(40)


def worked(format: Format = "openai_chat") -> Script:
    script = Script(format).user("Fix the tests.")
    script.calls("read_file", {"path": "/home/me/app/main.py"}, LONG)
    script.calls("terminal", {"command": "pytest -x tests/test_login.py --maxfail=1"}, lines(60, "run"))
    script.calls("read_file", {"path": "/home/me/app/main.py"}, lines(41))
    script.calls("read_file", {"path": "short.py"}, "x = 1")
    script.calls("edit_file", {"path": "/home/me/app/main.py"}, LONG)
    script.calls("mcp__lowwater__lowwater_expand", {"handle": "lw:3"}, LONG)
    return script.says("Done.").user("And now?")


def summarised(items: list[Item], start: int, stop: int, text: str = TEXT) -> list[Item]:
    return replace_span(items, Span(start=start, stop=stop), text, RECALL)


def index_of(items: list[Item]) -> list[str]:
    (summary,) = (item for item in items if isinstance(item, Summary))
    return index_in(summary.message.text).splitlines()[1:]


@pytest.mark.parametrize("format", ["openai_chat", "anthropic", "openai_responses"])
def test_each_tool_and_subject_is_one_line_without_short_results_and_acknowledgements(format: Format) -> None:
    after = summarised(worked(format).items(), 1, 14)
    assert sorted(index_of(after)) == [
        "read_file app/main.py lw:3,7",
        "terminal pytest -x tests/test_login.py lw:5",
    ]


def test_the_index_is_no_part_of_the_summary_but_of_its_size() -> None:
    items = worked().items()
    with_index, without = (
        summarised(items, 1, 14)[1],
        replace_span(items, Span(start=1, stop=14), TEXT, making())[1],
    )
    assert unframe(with_index.message.text) == unframe(without.message.text) == TEXT
    assert framed_parts(with_index.message) == (0,)
    assert with_index.tokens == RECALL.size(with_index.message)
    assert with_index.tokens > without.tokens + 20


def test_without_recall_and_without_results_the_bytes_are_as_before() -> None:
    assert (
        "read_file"
        not in replace_span(worked().items(), Span(start=1, stop=14), TEXT, making())[1].message.text
    )
    plain = Script().user("hi").says(LONG).user("Go on.").items()
    framed = summarised(plain, 1, 2)[1].message.text
    assert framed.endswith(
        "- Fix the tests.\n----- end of the summary -----\n\nThe user's message that follows is what to answer."
    )


def test_an_updated_summary_carries_the_lines_of_the_one_before() -> None:
    items = summarised(worked().items(), 1, 5)
    first = index_of(items)
    again = summarised(items, 1, len(items) - 1)
    assert set(first) == {"read_file app/main.py lw:3", "terminal pytest -x tests/test_login.py lw:5"}
    assert set(index_of(again)) == {
        "read_file app/main.py lw:3,7",
        "terminal pytest -x tests/test_login.py lw:5",
    }
    request = request_for(items, Span(start=1, stop=4), max_tokens=1_000, focus="", recall=True)
    assert request.previous == TEXT
    assert request.max_tokens == 1_000, "the index is not a part of what the summary may take"


def test_handles_of_another_session_are_not_carried_over() -> None:
    once = summarised(worked().items(), 1, 5)
    elsewhere: list[Item] = [
        Original(number=at, message=item.message, tokens=item.tokens) for at, item in enumerate(once, start=1)
    ]
    assert index_of(summarised(elsewhere, 1, 4)) == ["read_file app/main.py lw:4"]


def many(count: int) -> list[Item]:
    script = Script().user("Look at everything.")
    for at in range(count):
        script.calls("read_file", {"path": f"src/part{at}.py"}, lines(30, f"w{at}"))
    return script.says("Seen.").user("And now?").items()


def test_what_does_not_fit_is_counted_and_what_is_newest_is_kept() -> None:
    items = many(60)
    index = index_of_results(items[1:121], tokens=200, tokenizer=RECALL.tokenizer, redact=True)
    heading, *shown, more = index.splitlines()
    assert RECALL.tokenizer.count(index) <= 200
    assert shown[0].endswith(" lw:121")
    left = 60 - len(shown)
    assert more == f"and {left} more, lw:3 to lw:{2 * left + 1}: search for their words"
    assert heading.endswith(":")


def test_what_was_left_out_once_stays_counted() -> None:
    items = many(1_200)
    once = summarised(items, 1, 2_401)
    kept, more = index_of(once)[:-1], index_of(once)[-1]
    twice = index_of(summarised([*once[:2], *many(3)[1:7], *once[2:]], 1, 8))
    counts = [int(re.findall(r"\d+", line)[0]) for line in (more, twice[-1])]
    assert 1_200 - len(kept) == counts[0]
    assert counts[1] >= counts[0] > 0


def test_an_index_takes_a_share_of_what_is_saved_and_the_view_stays_smaller() -> None:
    for count in (1, 2, 5, 30, 400):
        items = many(count)
        bare = replace_span(items, Span(start=1, stop=2 * count + 1), TEXT, making())[1]
        saved = sum(item.tokens for item in items[1 : 2 * count + 1]) - bare.tokens
        index = summarised(items, 1, 2 * count + 1)[1]
        assert RECALL.tokenizer.count(index_in(index.message.text)) <= max(0, min(MOST_TOKENS, SHARE * saved))


def test_no_secret_comes_back_by_being_cut() -> None:
    secret = "sk-ant-api03-" + "Ab3dEf9hIj" * 9
    script = Script().user("Go.").calls("terminal", {"command": f"curl -u {secret} x.org"}, LONG)
    items = script.says("Done.").user("And now?").items()
    (line,) = index_of(summarised(items, 1, 3))
    assert "Ab3d" not in line
    assert line.endswith(" lw:3")
    open_items = replace_span(items, Span(start=1, stop=3), TEXT, making(offers_recall=True, redact=False))
    assert "sk-ant-api03-" in index_of(open_items)[0]


@settings(max_examples=40)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=6), st.text(max_size=40))
def test_whatever_calls_are_about_every_result_is_led_to_and_the_summary_comes_out_exactly(
    subjects: list[str], text: str
) -> None:
    script = Script().user("Go.")
    for subject in subjects:
        script.calls("web_search", {"query": subject}, lines(60, "found"))
    items = script.says("Done.").user("And now?").items()
    stop = 2 * len(subjects) + 1
    once = summarised(items, 1, stop, text)
    assert once == summarised(items, 1, stop, text)
    assert unframe(once[1].message.text) == unframe(
        replace_span(items, Span(start=1, stop=stop), text, making())[1].message.text
    )
    for after in (once, summarised(once, 1, 3, text)):
        listed = {int(n) for line in index_of(after) for n in line.rpartition(" lw:")[2].split(",")}
        assert listed == set(range(3, stop + 1, 2))


def test_the_ledger_shows_the_same_view_again() -> None:
    messages = tuple(worked().messages())
    ledger = Ledger().append(Appended(at=0.0, messages=messages, tokens=tuple(map(RECALL.size, messages))))
    after = summarised(list(ledger.view.items), 1, 14)
    assert (
        list(ledger.append(Compacted(at=0.0, mechanisms=("summarize",), items=view_items(after))).view.items)
        == after
    )
