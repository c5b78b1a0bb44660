"""The summary is framed as reference (specification C), and the last rung says what was left out."""

from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.entries import Numbers
from lowwater.core.summary.frame import frame, static_marker, unframe
from lowwater.core.summary.template import Section, parse
from lowwater.testing.strategies.transcripts import texts

SOURCES = (Numbers(first=4, last=80), Numbers(first=82, last=82))


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


def test_the_marker_keeps_the_summary_before_it(talk):
    marker = parse(static_marker(talk.user("Go on with the port.").request(previous="## Goal\n- port it")))
    assert marker.of(Section.GOAL) == ("port it",)
    assert len(marker.of(Section.CONTEXT)) == 3
