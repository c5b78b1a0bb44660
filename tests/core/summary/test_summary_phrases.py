"""Cutting, sentences, hygiene and nearness: what summaries are made with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.summary.activity import plain_text, spoken_text
from lowwater.core.summary.text import (
    NearDuplicates,
    clip,
    flat,
    jaccard,
    key_words,
    lines_of,
    one_line,
    sentences,
)
from lowwater.testing.strategies.transcripts import texts

CJK = "语言模型"


@given(texts(), st.integers(3, 80))
def test_a_cut_is_short_enough_and_never_inside_a_word(text, limit):
    line, cut = flat(text), clip(text, limit)
    assert len(cut) <= limit
    if cut == line or not cut:
        return
    kept = cut.removesuffix("…")
    kept = kept if line.startswith(kept) else kept.removesuffix("`")
    assert line.startswith(kept)
    rest = line[len(kept) :].lstrip(" ,;:-–—(\"'→·")
    assert len(rest) < len(line) - len(kept) or ord(max(kept[-1], rest[0])) > 0x2FFF


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("a short text", 40, "a short text"),
        ("several words that go on", 16, "several words…"),
        ("x" * 50, 20, ""),
        (CJK * 5, 10, "语言模型语言模型…"),
        ("run `pytest tests` now", 14, "run `pytest`…"),
        ("two\nlines", 40, "two lines"),
    ],
    ids=["fits", "between words", "one long word", "Chinese", "inside code", "newline"],
)
def test_cuts(text, limit, cut):
    assert clip(text, limit) == cut


def test_markdown_becomes_sentences_without_marks_and_code():
    text = "# Result\n\n- **Fixed** the parser.\n- [x] tests\n\n```py\ncode = 1\n```\n| file | state |\n|---|---|\n| a.py | done |\n"
    assert list(sentences(text)) == ["Result", "Fixed the parser.", "tests", "file: state", "a.py: done"]


def test_paragraphs_and_bullets_on_one_line_stay_apart():
    assert (
        one_line("# Plan\nDo it\nwell.\n\n- one\n- two\n```\ncode\n```")
        == "Plan · Do it well. · one · two · code"
    )


def test_key_words_leave_particles_out():
    assert key_words("Please make sure that the parser handles UTF-8") == ("handles", "parser", "utf-8")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("a<system-reminder>\nnever\n</system-reminder>b", "a b"),
        ("<system-reminder>unclosed", ""),
        ("[Request interrupted by user]", ""),
        ("Caveat: The messages below were generated", ""),
        ("<command-name>/review</command-name>\n<command-args>the parser</command-args>", "the parser"),
        ("<task>\nport it\n</task>", "port it"),
        ("compare a<b and List<int> here", "compare a<b and List<int> here"),
        ("look [image omitted] here", "look   here"),
    ],
    ids=["terminal", "reminder", "unclosed", "interrupt", "caveat", "command", "markup", "code", "image"],
)
def test_what_nobody_said_is_removed(text, left):
    assert spoken_text(text) == left


def test_overwritten_lines_become_lines():
    assert plain_text("10%\r20%\r\ndone\n") == "10%\n20%\ndone\n"


@given(
    st.lists(st.frozensets(st.sampled_from("abcdefghij"), min_size=1), max_size=12),
    st.sampled_from([0.5, 0.8, 0.9]),
)
def test_near_sets_are_found_exactly_when_they_are_near(sets, near):
    seen = NearDuplicates(near)
    for at, members in enumerate(sets):
        close = [i for i, other in enumerate(sets[:at]) if jaccard(members, other) >= near]
        assert seen.nearest(members) == (str(close[0]) if close else None)
        seen.add(members, str(at))


def test_lines_are_compared_without_blanks():
    assert lines_of("a\n\n  b \nb\n") == {"a", "b"}
