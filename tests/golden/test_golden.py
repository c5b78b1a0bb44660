"""Requests, decisions, accounts, audits and replays are, to the byte, what they were when they were recorded.

A difference that is meant is recorded by `python -m tests.golden.record`.
"""

import pytest

from tests.golden.conversations import FROZEN, TRANSCRIPTS
from tests.golden.difference import first_difference
from tests.golden.expected import IN_REPOSITORY, IN_SHARED_FOLDER, expected

needs_transcripts = pytest.mark.skipif(
    not TRANSCRIPTS.is_dir(), reason="no recorded sessions on this machine"
)


@pytest.mark.parametrize("name", IN_REPOSITORY)
def test_a_frozen_session_comes_out_as_recorded(name, tmp_path):
    difference = first_difference(expected(name), IN_REPOSITORY[name](tmp_path))
    assert not difference, f"{name}: {difference}"


@pytest.mark.full
@needs_transcripts
@pytest.mark.parametrize("name", IN_SHARED_FOLDER)
def test_a_session_of_the_shared_folder_comes_out_as_recorded(name, tmp_path):
    difference = first_difference(expected(name), IN_SHARED_FOLDER[name](tmp_path))
    assert not difference, f"{name}: {difference}"


def test_fifteen_sessions_in_every_format_are_frozen_and_nothing_is_recorded_in_vain():
    assert len(FROZEN) == 15
    for name in FROZEN:
        assert sum(run["status"]["status"]["compaction_count"] for run in expected(name)["runs"].values()) > 3


def test_the_first_difference_is_found_and_shows_the_text_behind_a_digest():
    recorded = {
        "turns": [{"new": ["a1"]}, {"new": ["a1", "b2"]}],
        "texts": {"a1": "one", "b2": "See page 12."},
    }
    now = {"turns": [{"new": ["a1"]}, {"new": ["a1", "c3"]}], "texts": {"a1": "one", "c3": "See page 13."}}
    assert first_difference(recorded, recorded) == ""
    assert first_difference(recorded, now) == (
        "turns › 2 › new › 2, from character 0\n  recorded: See page 12.\n  now:      See page 13."
    )


@pytest.mark.parametrize(
    ("recorded", "now"),
    [({"a": 1}, {}), ({}, {"a": 1}), ([1], [1, None]), ([1, None], [1]), (None, {"a": 1}), (1, 1.5)],
    ids=["gone", "added", "longer", "shorter", "never recorded", "another number"],
)
def test_nothing_that_differs_is_overlooked(recorded, now):
    assert first_difference({"tree": recorded}, {"tree": now})
