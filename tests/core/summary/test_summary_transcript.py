"""Input to a summarizer with a model (specification C3): originals, bounded, nothing twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.summary.transcript import head_and_tail, transcript_for

LINES = "\n".join(f"line {n} of the output" for n in range(2_000))


@pytest.fixture
def transcript(tokenizer):
    return lambda request, max_tokens=1_000_000: transcript_for(request, tokenizer, max_tokens=max_tokens)


def test_every_message_is_there_with_its_handle(talk, transcript):
    talk.user("Count the lines.").calls("Bash", {"command": "wc -l a"}, "12 a", text="Counting.").says(
        "Twelve."
    )
    assert transcript(talk.request(first=7)) == (
        "[lw:7 user said]\nCount the lines.\n\n"
        "[lw:8 assistant said]\nCounting.\n\n"
        '[lw:8 called Bash]\n{"command":"wc -l a"}\n\n'
        "[lw:9 result of Bash]\n12 a\n\n"
        "[lw:10 assistant said]\nTwelve."
    )


def test_a_tool_result_is_shown_with_head_and_tail(talk, transcript):
    shown = transcript(talk.runs("make", LINES).request())
    result = shown.partition("[lw:2 result of Bash]\n")[2]
    assert 2_500 < len(result) <= 3_000
    assert result.startswith("line 0 of the output")
    assert result.endswith("line 1999 of the output")
    assert "characters left out" in result


def test_arguments_and_text_have_their_limits(talk, transcript):
    shown = transcript(talk.user(LINES).calls("Write", {"content": LINES}).request())
    said, called = (piece.partition("]\n")[2] for piece in shown.split("\n\n")[:2])
    assert len(said) <= 3_000
    assert len(called) <= 400


def test_when_it_does_not_fit_the_first_and_the_newest_stay(talk, transcript):
    talk.user("Go through all the files.")
    for n in range(60):
        talk.runs(f"cat {n}", f"file {n} " + " ".join(f"w{n}x{k}" for k in range(400)))
    shown = transcript(talk.request(), max_tokens=2_000)
    assert "Go through all the files." in shown
    assert "pieces left out here" in shown
    assert "file 59 w59x0" in shown
    assert "file 3 w3x0" not in shown


def test_items_already_in_the_previous_summary_are_not_sent_again(talk, transcript):
    previous = '## Progress\n### In Progress\n- Working on: "Add a retry with backoff to the uploader of the product."'
    talk.user("Add a retry with backoff to the uploader of the product, please.").says(
        "Done, with three attempts."
    )
    shown = transcript(talk.request(previous=previous))
    assert "backoff" not in shown
    assert "three attempts" in shown


def test_near_duplicate_results_are_sent_once(talk, transcript):
    text = "\n".join(f"def function_{n}(): return {n}" for n in range(40))
    talk.calls("Read", {"file_path": "a.py"}, text).calls(
        "Read", {"file_path": "a.py"}, text + "\n# one more line"
    )
    shown = transcript(talk.request())
    assert shown.count("def function_7()") == 1
    assert "(nearly the same as lw:2 result of Read)" in shown


@given(st.text(), st.integers(60, 500))
def test_head_and_tail_is_never_longer_than_its_limit(text, limit):
    assert len(head_and_tail(text, limit)) <= max(limit, len(text) if len(text) <= limit else limit)
