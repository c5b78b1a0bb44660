"""Again and again (specification C): the next summary updates the one before."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.core.messages import legal_cuts
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest
from lowwater.core.summary.template import Section, outline, parse, render
from lowwater.testing.fakes import WordTokenizer
from lowwater.testing.strategies.ledgers import conversations
from tests.generated.generate import generate_session

COUNT = WordTokenizer()
SEEDS = st.integers(0, 10_000)
KINDS = st.sampled_from(["coding", "research", "support"])
AMPLE = 50_000


@pytest.fixture
def updated(tokenizer):
    """Summarise a talk from a previous summary given as items by section."""
    return lambda talk, previous, **more: parse(
        extract(talk.request(first=100, previous=render(outline(previous)), **more), tokenizer)
    )


def summary_of(messages, *, budget=AMPLE, previous="", focus=""):
    numbers = tuple(range(1, len(messages) + 1))
    request = SummaryRequest(
        messages=tuple(messages),
        numbers=numbers,
        max_tokens=budget,
        previous=previous,
        focus=focus,
        recall=True,
    )
    return extract(request, COUNT)


@settings(max_examples=25)
@given(kind=KINDS, seed=SEEDS, turns=st.integers(2, 15), budget=st.integers(50, 3_000))
def test_updating_with_nothing_new_changes_nothing(kind, seed, turns, budget):
    first = summary_of(generate_session(kind, seed=seed, turns=turns).messages, budget=budget)
    assert summary_of((), budget=budget, previous=first) == first


@settings(max_examples=25)
@given(kind=KINDS, seed=SEEDS, turns=st.integers(6, 20), share=st.floats(0.2, 0.8))
def test_constraints_and_files_of_the_previous_summary_survive(kind, seed, turns, share):
    messages = generate_session(kind, seed=seed, turns=turns).messages
    cut = min(legal_cuts(messages), key=lambda at: abs(at - share * len(messages)))
    first = summary_of(messages[:cut])
    second = parse(summary_of(messages[cut:], previous=first))
    assert set(parse(first).of(Section.CONSTRAINTS)) <= set(second.of(Section.CONSTRAINTS))
    assert paths(parse(first)) <= paths(second)


def paths(summary):
    """The files of a summary by their full path, as far as it says."""
    root, found = "", set()
    for item in summary.of(Section.FILES):
        named = item.split(" · defines")[0].split("`")[1::2]
        if item.startswith("Paths are relative to"):
            root = named[0] + "/"
        else:
            found |= {
                path if path.startswith("/") else (root + path).replace(f"{root}./", "") for path in named
            }
    return found


@settings(max_examples=40)
@given(messages=conversations(), budget=st.integers(0, 400), focus=st.sampled_from(["", "the parser"]))
def test_a_summary_is_never_longer_than_its_budget(messages, budget, focus):
    text = summary_of(messages, budget=budget, focus=focus)
    assert COUNT.count(text) <= budget
    assert COUNT.count(summary_of(messages, budget=budget // 2, previous=text)) <= budget // 2


@settings(max_examples=20)
@given(kind=KINDS, seed=SEEDS, turns=st.integers(2, 20), budget=st.integers(0, 1_500))
def test_a_summary_of_a_session_is_never_longer_than_its_budget(kind, seed, turns, budget):
    assert (
        COUNT.count(summary_of(generate_session(kind, seed=seed, turns=turns).messages, budget=budget))
        <= budget
    )


@settings(max_examples=20)
@given(messages=conversations(), budget=st.integers(0, 2_000))
def test_the_same_request_gives_the_same_text(messages, budget):
    assert summary_of(messages, budget=budget) == summary_of(list(messages), budget=budget)


def test_items_in_progress_move_to_done(talk, updated):
    talk.calls(
        "TodoWrite",
        {
            "todos": [
                {"content": "write", "status": "completed"},
                {"content": "test", "status": "in_progress"},
            ]
        },
    )
    summary = updated(
        talk, {Section.DONE: ["read"], Section.IN_PROGRESS: ["write"], Section.REMAINING: ["test", "drop it"]}
    )
    assert summary.of(Section.DONE) == ("read", "write")
    assert "test" in summary.of(Section.IN_PROGRESS)
    assert "write" not in summary.of(Section.IN_PROGRESS)
    assert summary.of(Section.REMAINING) == ()


def test_tasks_with_ids_are_finished_by_their_id(talk, updated):
    talk.calls("TaskUpdate", {"taskId": "3", "status": "completed"})
    summary = updated(talk, {Section.IN_PROGRESS: ["#3 write the parser"]})
    assert summary.of(Section.DONE) == ("#3 write the parser",)


def test_the_running_task_is_done_when_it_is_answered(talk, updated):
    talk.says("The retry is in place and all tests pass.")
    summary = updated(
        talk, {Section.IN_PROGRESS: ['Working on: "Add a retry to the uploader."', "Last said: soon"]}
    )
    assert summary.of(Section.IN_PROGRESS) == ()
    assert summary.of(Section.DONE) == (
        '"Add a retry to the uploader." → The retry is in place and all tests pass.',
    )


def test_a_pending_ask_is_no_longer_pending_when_it_is_answered(talk, updated):
    talk.says("The README now documents the retry.")
    summary = updated(talk, {Section.PENDING: ['"Document the retry in the README."']})
    assert summary.of(Section.PENDING) == ()
    assert summary.of(Section.DONE) == (
        '"Document the retry in the README." → The README now documents the retry.',
    )


def test_a_blocked_item_is_resolved_when_its_command_succeeds(talk, updated):
    blocked = "`npm test` fails: Error: expected 1 to be 2"
    talk.runs("npm test", "  7 passing (12ms)")
    summary = updated(talk, {Section.BLOCKED: [blocked]})
    assert summary.of(Section.BLOCKED) == ()
    assert summary.of(Section.RESOLVED) == ("No longer failing: `npm test`: Error: expected 1 to be 2",)


def test_a_blocked_item_stays_blocked_while_nothing_happened_to_it(talk, updated):
    blocked = "`npm test` fails: Error: expected 1 to be 2"
    assert updated(talk.runs("ls", "a"), {Section.BLOCKED: [blocked]}).of(Section.BLOCKED) == (blocked,)


def test_counts_of_a_file_add_up(talk, updated):
    talk.calls("Read", {"file_path": "/r/a/b.py", "offset": 50, "limit": 51}, "x")
    talk.calls("Edit", {"file_path": "/r/a/b.py", "old_string": "a", "new_string": "b"})
    summary = updated(talk, {Section.FILES: ["`/r/a/b.py` · edited 2×, read (lines 1–60)"]})
    assert summary.of(Section.FILES) == ("`/r/a/b.py` · edited 3×, read 2× (lines 1–100)",)


def test_the_first_goal_stays_and_the_latest_is_replaced(talk, updated):
    talk.user("Now write the release notes for it.").says("They are written.")
    summary = updated(talk, {Section.GOAL: ['First asked: "Port it."', 'Asked last: "Test it."']})
    assert summary.of(Section.GOAL) == (
        'First asked: "Port it."',
        'Asked last: "Now write the release notes for it."',
    )


def test_several_summaries_become_one(tokenizer):
    one = render(
        outline({Section.GOAL: ["port"], Section.FILES: ["Paths are relative to `/a/b`.", "`x.py` · read"]})
    )
    two = render(
        outline({Section.GOAL: ["port"], Section.FILES: ["Paths are relative to `/c/d`.", "`y.py` · edited"]})
    )
    request = SummaryRequest(messages=(), max_tokens=1_000, previous=f"{one}\n\n{two}")
    summary = parse(extract(request, tokenizer))
    assert summary.of(Section.GOAL) == ("port",)
    assert summary.of(Section.FILES) == ("`/c/d/y.py` · edited", "`/a/b/x.py` · read")


def test_a_summary_a_model_wrote_is_updated_too(talk, tokenizer):
    previous = (
        "# Goal\nPort the uploader.\n\n## Constraints\n- Keep Python 3.9.\n\n## Next Steps\n1. Write tests."
    )
    talk.user("Rename the class to Uploader.").says("Renamed it to `Uploader` everywhere.")
    summary = parse(extract(talk.request(previous=previous), tokenizer))
    assert summary.of(Section.GOAL)[0] == "Port the uploader."
    assert summary.of(Section.CONSTRAINTS) == ("Keep Python 3.9.",)
    assert summary.of(Section.REMAINING) == ("Write tests.",)
