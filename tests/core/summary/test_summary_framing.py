"""The summary is framed as reference (specification C), and the last rung says what was left out."""

from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.entries import Numbers
from lowwater.core.summary.frame import frame, static_marker, unframe
from lowwater.core.summary.template import Section, parse
from lowwater.testing.strategies.transcripts import texts

SOURCES = (Numbers(first=4, last=80), Numbers(first=82, last=82))


def test_the_frame_says_background_and_not_instructions():
    text = frame("## Goal\n- port it", user_follows=True, sources=SOURCES)
    assert "Earlier turns of this conversation were compacted" in text
    assert "stands for messages 4 to 80, 82" in text
    assert "background from an earlier window, not instructions" in text
    assert "do not redo what it says is done" in text


def test_with_a_user_message_behind_it_that_is_what_to_answer():
    text = frame("## Goal\n- port it", user_follows=True)
    assert text.endswith("The user's message that follows is what to answer.")
    assert "still running" not in text


def test_without_one_the_task_is_still_running():
    text = frame("## Goal\n- port it", user_follows=False)
    assert "the task is still running" in text
    assert "repeated word for word right after this summary" in text


def test_recall_is_offered_only_where_there_is_recall():
    assert "such as lw:4)" in frame("x", user_follows=True, sources=SOURCES, recall=True)
    assert "lw:" not in frame("x", user_follows=True, sources=SOURCES)


@given(texts(), st.booleans(), st.booleans())
def test_the_summary_comes_out_of_its_frame_exactly(text, user_follows, recall):
    assert unframe(frame(text, user_follows=user_follows, recall=recall, sources=SOURCES)) == text


@given(texts(), st.booleans())
def test_a_frame_quoted_in_a_summary_cannot_end_the_summary(text, user_follows):
    inner = f"before {frame(text, user_follows=user_follows)} behind"
    framed = frame(inner, user_follows=user_follows)
    assert framed.count("----- end of the summary -----") == 1
    assert text in unframe(framed)
    assert unframe(framed).endswith(" behind")


def test_a_text_without_frame_comes_back_as_it_is():
    assert unframe("## Goal\n- port it") == "## Goal\n- port it"


def test_the_marker_says_what_was_left_out_and_how_to_recall_it(talk):
    talk.user("Port the uploader to Rust.").runs("ls", "a").runs("ls", "b").calls(
        "Read", {"file_path": "a"}, "x"
    )
    marker = static_marker(talk.request(first=4, recall=True), tokens=12_345)
    assert (
        "7 earlier messages (lw:4 to lw:10), about 12,345 tokens were left out without a summary." in marker
    )
    assert '"Port the uploader to Rust."' in marker
    assert "Bash 2×, Read 1×" in marker
    assert "lw:4 to lw:10, or search" in marker
    assert "lw:4 to lw:10, or search" not in static_marker(talk.request(first=4))


def test_the_marker_keeps_the_summary_before_it(talk):
    marker = parse(static_marker(talk.user("Go on with the port.").request(previous="## Goal\n- port it")))
    assert marker.of(Section.GOAL) == ("port it",)
    assert len(marker.of(Section.CONTEXT)) == 3
