"""Codex rollouts become recordings: each call is counted once, also in forks and copies."""

import json

import pytest

from lowwater.core.api_calls import Usage
from lowwater.logs.importers import recordings
from tests.logs.codex_lines import call, calls, count, line, meta, output, said


@pytest.fixture
def read(tmp_path):
    def read(*lines, name="rollout.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(one) + "\n" for one in lines))
        return list(recordings([path]))

    return read


def test_a_count_that_is_repeated_counts_once(read):
    (session,) = read(
        meta(),
        said("user", "look"),
        said("assistant", "one"),
        count((100, 60, 5), (100, 60, 5)),
        count((100, 60, 5), (100, 60, 5)),
        said("assistant", "two"),
        count((100, 60, 5), (100, 60, 5)),
        call("c1"),
        output("c1"),
        count((130, 60, 5), (230, 120, 10)),
    )
    assert [one.usage.prompt for one in calls(session)] == [100, 130]
    assert session.messages[2].message.text == "two"
    assert len(session.messages[2].message.calls) == 1


def test_a_total_that_grew_by_more_tells_of_the_call_without_a_count(read):
    (session,) = read(
        meta(),
        said("user", "look"),
        said("assistant", "one"),
        count((100, 0, 5), (100, 0, 5)),
        said("assistant", "interrupted"),
        said("user", "stop"),
        said("assistant", "stopped"),
        count((200, 100, 5), (450, 200, 17)),
    )
    assert [one.usage for one in calls(session)] == [
        Usage(uncached=100, output=5),
        Usage(uncached=50, cache_read=100, output=7),
        Usage(uncached=100, cache_read=100, output=5),
    ]


def test_counts_that_begin_anew_are_believed_as_they_are(read):
    (session,) = read(
        meta(),
        said("assistant", "one"),
        count((100, 0, 5), (900, 0, 50)),
        said("assistant", "two"),
        count((110, 0, 6), (110, 0, 6)),
    )
    assert [one.usage.prompt for one in calls(session)] == [100, 110]
    assert all(one.others == () for one in calls(session))


def test_a_count_without_an_answer_is_told_beside_the_next(read):
    (session,) = read(
        meta(),
        said("assistant", "one"),
        count((100, 0, 5), (100, 0, 5)),
        count((90, 80, 30), (190, 80, 35)),
        said("assistant", "two"),
        count((50, 0, 5), (240, 80, 40)),
    )
    assert [one.others for one in calls(session)] == [(), (Usage(uncached=10, cache_read=80, output=30),)]


def test_writes_to_the_cache_are_taken_out_of_the_input(read):
    written = {
        "input_tokens": 100,
        "cached_input_tokens": 60,
        "cache_write_input_tokens": 30,
        "output_tokens": 5,
    }
    info = {"last_token_usage": written, "total_token_usage": written}
    (session,) = read(
        meta(), said("assistant", "one"), line("event_msg", {"type": "token_count", "info": info})
    )
    assert calls(session)[0].usage == Usage(uncached=10, cache_read=60, cache_write=30, output=5)


def test_a_session_without_counts_still_tells_its_answers_apart(read):
    (session,) = read(
        meta(), said("user", "a"), said("assistant", "b"), said("user", "c"), said("assistant", "d")
    )
    assert [message.message.text for message in session.messages] == ["a", "b", "c", "d"]
    assert [one.usage for one in calls(session)] == [None, None]


def test_a_rollback_leaves_a_fork(read):
    rollback = line("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    session, fork = read(
        meta(),
        said("user", "a"),
        said("assistant", "b"),
        count((10, 0, 1), (10, 0, 1)),
        said("user", "c"),
        said("assistant", "d"),
        count((20, 0, 1), (30, 0, 2)),
        rollback,
        said("user", "e"),
        said("assistant", "f"),
        count((20, 0, 1), (50, 0, 3)),
    )
    assert [message.message.text for message in session.messages] == ["a", "b", "e", "f"]
    assert [message.message.text for message in fork.messages] == ["a", "b", "c", "d"]
    assert (fork.parent, fork.relation, fork.shared) == ("s1", "fork", 2)
    assert (len(calls(session)), len(calls(fork))) == (2, 1)


SPAWNED = {"subagent": {"thread_spawn": {"parent_thread_id": "s1"}}}


@pytest.mark.parametrize(
    ("fields", "relation"),
    [({"forked_from_id": "s1"}, "fork"), ({"source": SPAWNED}, "subagent")],
    ids=["fork", "sub-agent"],
)
def test_a_fork_counts_what_it_copied_only_once(fields, relation, tmp_path, read):
    first = [meta(), said("user", "a"), call("c1"), output("c1"), count((10, 0, 1), (10, 0, 1))]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, first)))
    second = [meta("s2", **fields), *first, said("assistant", "on"), count((20, 0, 1), (30, 0, 2))]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, second)))
    one, two = recordings([tmp_path])
    assert (len(calls(one)), len(calls(two))) == (1, 1)
    assert (two.id, two.parent, two.relation, two.shared) == ("s2", "s1", relation, 3)


def test_several_rollouts_in_one_file_are_several_sessions(read):
    sessions = read(meta("s1"), said("assistant", "a"), meta("s2"), said("assistant", "b"))
    assert [session.id for session in sessions] == ["s1", "s2"]


def test_sessions_whose_provider_numbers_calls_from_nought_are_not_taken_for_copies(tmp_path):
    for name, prompt in (("a", 10), ("b", 12)):
        lines = [
            meta(name),
            said("user", name),
            call("functions.exec:0"),
            count((prompt, 0, 1), (prompt, 0, 1)),
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = list(recordings([tmp_path]))
    assert [(one.id, one.relation, len(calls(one))) for one in found] == [("a", "", 1), ("b", "", 1)]
