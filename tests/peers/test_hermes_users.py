"""What users of Hermes ask for: no loops, no stalls, nothing stale, nothing invented, undo, readable counters."""

import threading
import time

import pytest

from lowwater import SummaryFailed
from lowwater.settings import OutputSettings, Settings
from lowwater.testing.fakes import RecordingSink, ScriptedClock, ScriptedSummarizer, fail, grow, hang, refuse
from tests.peers.conftest import EVERY

QUIET = Settings(output=OutputSettings(quiet=True))
NEWEST = "Now rename the fixture `fresh_db` to `clean_db`, nothing else."


@pytest.mark.parametrize("policy", ["runway", "guarded", "hermes-classic"])
@pytest.mark.parametrize("act", [grow, refuse], ids=["growing", "refusing"])
def test_no_loops_a_view_gets_smaller_or_stays(coding, play, policy, act):
    """Whatever the summarizer does, every commit shrinks the view, and nothing is compacted on turn after turn."""
    played = play(coding(60_000), window=32_000, policy=policy, summarizer=ScriptedSummarizer(act))
    assert played.compactions
    assert all(event.after < event.before for event in played.compactions)
    assert len(played.compactions) < len(played.sent) / 4
    assert max(sent.tokens for sent in played.sent) <= played.session.status().wall


@EVERY
def test_no_loops_preparing_again_changes_nothing(opened, coding, policy):
    """What nobody added to is not compacted a second time."""
    session = opened([*coding(50_000), {"role": "user", "content": NEWEST}], policy=policy)
    first = session.prepare().as_openai()
    count = session.status().compaction_count
    assert count == 1
    assert [session.prepare().as_openai() for _ in range(3)] == [first] * 3
    assert session.status().compaction_count == count


def test_no_stalls_a_summarizer_that_never_answers_is_left_behind(opened, coding):
    """The wait is bounded, the turn goes on with a smaller view, and the next turns do not wait again."""
    never = threading.Event()
    stuck = ScriptedSummarizer(hang(never))
    messages = [*coding(50_000), {"role": "user", "content": NEWEST}]
    session = opened(messages, stuck, clock=ScriptedClock(1e9), deadline=1.0)
    start = time.perf_counter()
    session.prepare()
    for turn in range(5):
        session.append({"role": "user", "content": f"and {turn}?"})
        session.prepare()
    waited = time.perf_counter() - start
    never.set()
    assert len(stuck.requests) == 1
    assert waited < 10
    status = session.status()
    assert status.prompt < status.threshold
    assert session.status().last_compaction.summarizer == "extractive"


def test_no_stale_task_is_revived_from_a_summary(opened, coding, summaries):
    """An older request stands nowhere but inside the frame that calls it background; the newest one stands outside."""
    messages = [*coding(50_000), {"role": "user", "content": NEWEST}]
    asked = [m["content"] for m in messages if m["role"] == "user"]
    session = opened(messages)
    session.compress()
    view = session.view()
    (summary,) = summaries(view)
    assert "not instructions" in summary
    assert "do not take up anything in it as a new request" in summary
    outside = [m["content"] for m in view if m["role"] == "user" and not summaries([m])]
    assert outside == [asked[0], *asked[1 - len(outside) :]], "the head's, and the newest in their order"
    assert len(outside) < len(asked) / 2
    assert view[-1]["content"] == NEWEST


def test_a_question_that_was_answered_is_not_listed_as_pending(opened, tool_loop, summaries):
    """Done is done: what the assistant reported as finished does not come back as open work."""
    opening = tool_loop(1)[:1]
    done = [
        {
            "role": "user",
            "content": "Please add a retry to src/net/client.py around the upload call.",
        },
        {
            "role": "assistant",
            "content": "Done: src/net/client.py now retries the upload three times; tests pass.",
        },
    ]
    rest = tool_loop(60, lines=60)[2:]
    session = opened([*opening, *done, *done, {"role": "user", "content": "Run every check."}, *rest])
    session.compress()
    (summary,) = summaries(session.view())
    pending = summary.partition("## Pending User Asks")[2].partition("\n## ")[0]
    assert "Run every check." in summary
    assert "retry" not in pending


@EVERY
@pytest.mark.parametrize("ends_with_user", [True, False], ids=["asked", "working"])
def test_nothing_is_invented_for_the_user(opened, coding, policy, ends_with_user):
    """Every user message of the view is one the user wrote, word for word, or a summary that says it is one."""
    messages = coding(50_000) + ([{"role": "user", "content": NEWEST}] if ends_with_user else [])
    session = opened(messages, policy=policy)
    assert session.compress() is not None
    written = [m["content"] for m in messages if m["role"] == "user"]
    shown = [
        text
        for m in session.view()
        if m["role"] == "user"
        for text in (
            [m["content"]] if isinstance(m["content"], str) else [part["text"] for part in m["content"]]
        )
    ]
    ours = ("Earlier turns of this conversation were compacted.", "Still in force, in the user's own words")
    invented = [text for text in shown if text not in written and not text.startswith(ours)]
    assert invented == []


def test_skills_and_policy_text_are_kept(opened, step, tool_loop, shown):
    """A prune leaves what a skill or the memory said, however old and long, and the system prompt as it was."""
    loop = tool_loop(60, lines=60)
    skill = "Always run `make lint` before a commit.\n" * 80
    kept = [
        *step(900, "skill_view", {"name": "commits"}, skill),
        *step(901, "memory", {"key": "tone"}, skill),
    ]
    session = opened([*loop[:8], *kept, *loop[8:]])
    session.prepare()
    assert session.status().last_mode == "prune"
    assert shown(session.view()).count(skill) == 2
    assert session.view()[0] == loop[0]


@EVERY
def test_tool_chains_in_flight_are_kept(opened, coding, step, refusal, policy):
    """Calls whose results just came, several at once, stay whole; and what is sent is legal."""
    calls = [step(at, "terminal", {"command": f"make part-{at}"}, "built\n" * 400) for at in range(700, 704)]
    together = {**calls[0][0], "tool_calls": [pair[0]["tool_calls"][0] for pair in calls]}
    chain = [together, *(pair[1] for pair in calls)]
    session = opened([*coding(50_000), {"role": "user", "content": NEWEST}, *chain], policy=policy)
    sent = session.prepare().as_openai()["messages"]
    assert session.status().compaction_count == 1
    assert sent[-5:] == chain
    assert refusal(sent) is None


@EVERY
def test_undo_across_a_compaction(opened, coding, policy):
    """Going back restores every message as it was and keeps what came later; going forward again works too."""
    messages = coding(50_000)
    session = opened(messages, policy=policy)
    session.compress()
    compacted = session.view()
    later = {"role": "user", "content": NEWEST}
    session.append(later)
    session.rewind("before-compaction-1")
    assert session.view() == [*messages, later]
    session.rewind("before-rewind-1")
    assert session.view() == [*compacted, later]


def test_a_client_may_undo_turns_that_a_compaction_came_before(opened, coding):
    """`/undo` in a client shortens the list it sends: the view follows, and history keeps what was there."""
    messages = [*coding(50_000), {"role": "user", "content": NEWEST}]
    session = opened([])
    session.prepare(messages)
    assert session.status().compaction_count == 1
    answered = [
        *messages,
        {"role": "assistant", "content": "Renamed."},
        {"role": "user", "content": "Wrong."},
    ]
    session.prepare(answered)
    undone = [*messages, {"role": "assistant", "content": "Renamed."}, {"role": "user", "content": "Thanks."}]
    sent = session.prepare(undone).as_openai()["messages"]
    assert [m["content"] for m in sent[-3:]] == [NEWEST, "Renamed.", "Thanks."]
    assert "Wrong." in [m["content"] for m in session.history()]


def test_one_session_keeps_one_name(coding, play):
    """However often it is compacted, events and status carry the id the user gave."""
    sink = RecordingSink()
    played = play(coding(60_000), window=32_000, sinks=[sink])
    assert played.session.status().compaction_count >= 2
    assert {name for name, _ in sink.events} == {"played"} == {played.session.status().session}


def test_counters_can_be_read(coding, play):
    """Compactions, prunes among them, summaries, tokens reclaimed and the share read from the cache, as words too."""
    played = play(coding(60_000), window=32_000, scale=1.0)
    status = played.session.status()
    totals = status.totals
    assert status.compaction_count == len(played.session.checkpoints()) == totals.compactions > 0
    assert totals.turns == len(played.sent)
    assert totals.cache_read == pytest.approx(0.9 * totals.prompt, rel=0.01)
    for words in (f"{totals.compactions} compactions", f"{totals.reclaimed:,} tokens", "90% read from cache"):
        assert words in str(status)


def test_old_images_go_and_their_bytes_are_named(opened, tool_loop, shown):
    """A picture counts a thousand tokens and a third of a megabyte: both leave the request together."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 40_000}}
    look = {"role": "user", "content": [{"type": "text", "text": "Look at this."}, picture]}
    loop, seen = tool_loop(60, lines=60), {"role": "assistant", "content": "I see."}
    session = opened([*loop[:20], look, seen, *loop[20:], {"role": "user", "content": NEWEST}])
    sent = session.prepare().as_openai()["messages"]
    assert session.status().last_mode == "prune"
    assert sum(len(str(message)) for message in sent) < 100_000
    assert "image · image/png · 330,000 bytes elided" in shown(sent)


def test_a_failure_of_access_drops_no_text(opened, coding, shown):
    """Whoever cannot be asked is no reason to lose what was said: it is asked once, and the extract stands in."""
    denied = ScriptedSummarizer(fail(SummaryFailed("401", kind="auth")))
    session = opened(coding(50_000), denied)
    event = session.compress()
    assert len(denied.requests) == 1
    assert event is not None
    assert event.summarizer == "extractive"
    assert "left out without a summary" not in shown(session.view())
