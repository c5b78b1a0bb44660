"""Request logs become recordings: requests that extend each other are one session, each call is told once."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.core.api_calls import Response
from lowwater.core.messages import Message, Text
from lowwater.logs.files import RecordedFile
from lowwater.logs.recording import Recording
from lowwater.logs.request_logs import LoggedRequest, Sessions
from tests.logs.request_lines import (
    BILLED,
    EVENTS,
    FIRST,
    SECOND,
    START,
    STREAM,
    THIRD,
    Fields,
    body,
    model,
    pair,
    read,
    texts,
    usages,
    user,
    written,
)


def test_requests_that_extend_each_other_are_one_session(tmp_path: Path) -> None:
    path = written(tmp_path, pair(FIRST, "b"), pair(SECOND, "d", START + 9), pair(THIRD, "f", START + 99))
    (recording,) = read(path)
    assert texts(recording) == ["a", "b", "c", "d", "e", "f"]
    assert usages(recording) == [BILLED] * 3
    assert [one.at for one in recording.messages if one.call] == [START, START + 9, START + 99]
    assert recording.model == "gpt-x"


def test_an_answer_that_the_client_changed_still_goes_on(tmp_path: Path) -> None:
    changed = [*FIRST, model("b, shortened"), user("c")]
    (recording,) = read(written(tmp_path, pair(FIRST, "b"), pair(changed, "d")))
    assert texts(recording) == ["a", "b", "c", "d"]


def test_sessions_that_run_side_by_side_stay_apart(tmp_path: Path) -> None:
    other = [user("x")]
    lines = (
        pair(FIRST, "b"),
        pair(other, "y"),
        pair(SECOND, "d"),
        pair([*other, model("y"), user("z")], "!"),
    )
    found = read(written(tmp_path, *lines))
    assert [texts(one) for one in found] == [["a", "b", "c", "d"], ["x", "y", "z", "!"]]


def test_going_on_from_an_earlier_point_is_a_fork_that_shares_what_came_before(tmp_path: Path) -> None:
    other = [*FIRST, model("b"), user("instead")]
    main, fork = read(written(tmp_path, pair(FIRST, "b"), pair(SECOND, "d"), pair(other, "e")))
    assert (fork.parent, fork.relation, fork.shared) == (main.id, "fork", 2)
    assert texts(fork) == ["a", "b", "instead", "e"]
    assert usages(fork) == [BILLED]


def test_a_line_that_stands_twice_is_one_call(tmp_path: Path) -> None:
    (recording,) = read(written(tmp_path, pair(FIRST, "b"), pair(FIRST, "b")))
    assert usages(recording) == [BILLED]


def test_a_request_that_was_not_answered_is_no_call(tmp_path: Path) -> None:
    failed = {"request": body(*SECOND), "response": {"error": {"message": "overloaded"}}}
    (recording,) = read(written(tmp_path, pair(FIRST, "b"), failed, pair(SECOND, "d")))
    assert len(usages(recording)) == 2
    assert not recording.broken


def test_broken_lines_are_counted_with_their_place(tmp_path: Path) -> None:
    path = written(
        tmp_path, pair(FIRST, "b"), b'{"request": {', {"x": 1}, pair([*FIRST, {"role": "fool"}], "d")
    )
    found = read(path)
    assert sorted(one.place for recording in found for one in recording.broken) == [
        f"{path}:{n}" for n in (2, 3, 4)
    ]


def test_sessions_are_let_go_when_they_take_too_much_memory(tmp_path: Path) -> None:
    def said(role: str, text: str) -> Message:
        return Message(role=role, parts=(Text(text=text * 100),))  # type: ignore[arg-type]

    with RecordedFile(written(tmp_path, b"{}")) as file:
        sessions = Sessions(file, at_hand=500)
        let_go: list[Recording] = []
        for text in "abcdefgh":
            asked, response = (
                LoggedRequest(messages=(said("user", text),)),
                Response(message=said("assistant", text)),
            )
            let_go += sessions.take(asked, response, asked_at=None, at=None)
        assert len(let_go) == 6
        assert len(list(sessions.rest())) == 2


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from([EVENTS, STREAM]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["body", "messages", "choices", "delta", "role", "content", "usage", "type"]),
            inner,
        )
    ),
    max_leaves=5,
)
NAMES = st.sampled_from(
    ["request", "response", "messages", "custom_id", "result", "body", "usage", "timestamp"]
)


@settings(max_examples=25)
@given(st.lists(st.dictionaries(NAMES, VALUES), max_size=3))
def test_no_line_stops_the_run(tmp_path_factory: pytest.TempPathFactory, lines: list[Fields]) -> None:
    first, *_ = read(written(tmp_path_factory.getbasetemp(), pair(FIRST, "b"), *lines))
    assert texts(first)[:2] == ["a", "b"]
