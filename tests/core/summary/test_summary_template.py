"""The template of specification C3."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.summary.template import Section, outline, parse, render
from lowwater.testing.strategies.transcripts import texts

OUTLINES = st.dictionaries(st.sampled_from(Section), st.lists(texts(), max_size=4)).map(outline)


def test_the_sections_stand_in_the_order_of_the_specification():
    text = render(outline({section: ["something"] for section in Section}))
    headings = [line.strip("# ") for line in text.splitlines() if line.startswith("#")]
    assert headings == [
        "Goal",
        "Constraints & Preferences",
        "Progress",
        "Done",
        "In Progress",
        "Blocked",
        "Key Decisions",
        "Resolved Questions",
        "Pending User Asks",
        "Relevant Files",
        "Remaining Work / Next Steps",
        "Critical Context",
        "Tools & Patterns",
    ]


def test_empty_sections_are_left_out():
    assert render(outline({Section.DONE: ["the parser"], Section.GOAL: [], Section.TOOLS: [" "]})) == (
        "## Progress\n\n### Done\n- the parser"
    )


@given(OUTLINES)
def test_what_was_written_is_read_back(summary):
    assert parse(render(summary)) == summary


@given(texts())
def test_any_text_is_read_and_reading_again_changes_nothing(text):
    once = render(parse(text))
    assert render(parse(once)) == once


@pytest.mark.parametrize(
    ("text", "section"),
    [
        ("# Goal\nship it", Section.GOAL),
        ("## CONSTRAINTS\n* ship it", Section.CONSTRAINTS),
        ("## Progress\n### Completed work\n1. ship it", Section.DONE),
        ("### In progress\n- ship it", Section.IN_PROGRESS),
        ("## Next steps\n- ship it", Section.REMAINING),
        ("## Files\n- ship it", Section.FILES),
        ("## Something else\n- ship it", Section.CONTEXT),
        ("ship it", Section.CONTEXT),
    ],
    ids=[
        "paragraph",
        "capitals",
        "numbered",
        "sentence case",
        "alias",
        "short",
        "unknown heading",
        "no heading",
    ],
)
def test_summaries_of_models_are_read_into_the_same_sections(text, section):
    assert parse(text).of(section) == ("ship it",)


def test_nested_bullets_stay_with_their_item():
    text = "## Done\n- parser\n  - with errors\n- printer"
    assert parse(text).of(Section.DONE) == ("parser\n- with errors", "printer")
    assert render(parse(text)).endswith(text.removeprefix("## Done\n"))
