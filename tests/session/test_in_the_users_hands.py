"""What users and models may do with summaries themselves: instruct, replace, add, and ask for a compaction."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from lowwater import Lowwater, Settings
from lowwater.core.events import Compaction
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.view import Summary
from lowwater.errors import BadInput, BadSetting
from lowwater.session.internals import internals
from lowwater.session.session import Session
from lowwater.summarizers.requests import instruction_with

MODEL = "claude-opus-4-5"
SMALL = Settings(max_view_tokens=6_000, protect_last_n=2)
RULE = "Never edit anything under vendor/."


class Asked:
    """A summarizer that keeps what it was asked, and answers with what an honest model would write."""

    def __init__(self) -> None:
        self.requests: list[SummaryRequest] = []

    def summarize(self, request: SummaryRequest, /) -> Written:
        self.requests.append(request)
        said = " ".join(
            f"Part {number} of the parser was read and line {number} was found in it." for number in range(40)
        )
        text = f"## Goal\n- Find the defect in the parser.\n## Constraints & Preferences\n- {RULE}\n### Done\n- {said}"
        return Written(text=text, by="honest")


class Reminder:
    """A memory hook that adds something after each compaction."""

    def __init__(self, *adds: object) -> None:
        self.adds = adds[0] if len(adds) == 1 else list(adds)
        self.before: list[Sequence[object]] = []
        self.after: list[Sequence[object]] = []

    def on_pre_compress(self, messages: Sequence[object], /) -> object:
        self.before.append(messages)
        return None

    def on_post_compress(self, messages: Sequence[object], /) -> object:
        self.after.append(messages)
        return self.adds


def talk(turns: int = 14) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [{"role": "user", "content": f"Find the defect in the parser. {RULE}"}]
    for turn in range(turns):
        said.append(
            {
                "role": "assistant",
                "content": f"Reading part {turn} of the parser, which has {turn + 300} lines. " * 12,
            }
        )
        said.append(
            {
                "role": "user",
                "content": f"Go on with part {turn + 1}, it is in src/parser/part_{turn}.py. " * 12,
            }
        )
    return said


def compacted(**given: Any) -> Session:
    options: dict[str, Any] = {"settings": SMALL, "summarizer": Asked()} | given
    session = Lowwater(model=MODEL, store="memory:", **options).session("s")
    session.prepare(talk())
    return session


def shown(session: Session) -> str:
    return json.dumps(session.view(apart=True))


def summaries(session: Session) -> list[Summary]:
    return [
        item for item in internals(session).ledger.view.items if isinstance(item, Summary) and item.sources
    ]


# Instructions


def test_own_instructions_reach_the_model_that_writes_and_leave_nothing_else_changed():
    asked, plain = Asked(), Asked()
    wanted = "Keep every file name, and write in German."
    compacted(
        summarizer=asked,
        settings=Settings(max_view_tokens=6_000, protect_last_n=2, summary_instructions=wanted),
    )
    compacted(summarizer=plain)
    assert asked.requests
    assert {request.instructions for request in asked.requests} == {wanted}
    assert {request.instructions for request in plain.requests} == {""}
    told, untold = (
        instruction_with("[user] hello", request, previous="")
        for request in (asked.requests[0], plain.requests[0])
    )
    assert wanted in told
    assert told.replace(wanted, "").startswith(untold[:200])
    assert told.index(wanted) < told.index("Rules:"), "what we require comes last"
    assert len(told) - len(untold) < len(wanted) + 120


def test_own_instructions_are_a_text():
    with pytest.raises(BadSetting, match="summary_instructions"):
        Settings(summary_instructions=3)


# The summary that stands


def test_the_user_replaces_the_summary_and_takes_that_back():
    session = compacted()
    before = shown(session)
    assert summaries(session)
    own = f"Goal: find the defect in the parser. {RULE} Parts 0 to 11 hold nothing of interest."
    done = session.compress(summary=own)
    assert isinstance(done, Compaction)
    assert done.summarizer == "you"
    assert done.score is not None
    assert done.cost == 0
    assert own in shown(session)
    assert "Part 7 of the parser was read" not in shown(session)
    (summary,) = summaries(session)
    assert summary.sources, "it stands for the same messages"
    session.rewind(session.checkpoints()[-1].position)
    assert shown(session) == before


def test_what_a_replaced_summary_misses_is_reported_and_not_refused():
    session = compacted()
    done = session.compress(summary="It went well.")
    assert done is not None
    assert [each.by for each in done.rejected] == ["you"]
    assert done.rejected[0].code
    assert "It went well." in shown(session)
    assert RULE in shown(session), "what the user laid down stands whatever a summary says"


def test_a_longer_summary_of_the_users_own_counts_too():
    session = compacted()
    own = " ".join(
        f"The part number {number} of the parser was quite an interesting read." for number in range(400)
    )
    done = session.compress(summary=own)
    assert done is not None
    assert done.reclaimed == 0
    assert own in shown(session)


def test_without_a_summary_there_is_none_to_replace():
    session = Lowwater(model=MODEL, store="memory:", summarizer=()).session("s")
    session.append([{"role": "user", "content": "hello"}])
    with pytest.raises(BadInput, match="no summary in view"):
        session.compress(summary="something")
    with pytest.raises(BadInput, match="not both"):
        session.compress("a topic", summary="something")


# Hooks


@pytest.mark.parametrize(
    "adds",
    [("The plan: fix part 3 first.",), ("The plan: fix part 3 first.", "Ask before you push.")],
    ids=["one", "two"],
)
def test_a_hook_adds_to_the_view_after_a_compaction_and_only_then(adds):
    hook = Reminder(*adds)
    session = compacted(hooks=[hook])
    assert len(hook.after) == len(hook.before) >= 1
    assert len(str(hook.after[0])) < len(str(hook.before[0]))
    for text in adds:
        assert shown(session).count(text) == 1
    assert not any(text in str(session.history()) for text in adds), "it is no message of the conversation"
    request = session.prepare(
        [*talk(), {"role": "assistant", "content": "Done."}, {"role": "user", "content": "And now?"}]
    )
    assert all(str(request.messages).count(text) == 1 for text in adds)
    assert len(hook.after) == 1


@pytest.mark.parametrize("adds", [None, "", [], 3, ["fine", 3]], ids=repr)
def test_what_is_no_text_is_left_out(adds, caplog):
    plain, hooked = compacted(), compacted(hooks=[Reminder(adds)])
    if adds == ["fine", 3]:
        assert "fine" in shown(hooked)
    else:
        assert shown(hooked) == shown(plain)
    assert ("no text" in caplog.text) == (adds in (3, ["fine", 3]))


def test_a_hook_that_fails_after_a_compaction_costs_nothing(caplog):
    class Broken(Reminder):
        def on_post_compress(self, messages: Sequence[object], /) -> object:
            raise ValueError("secret text")

    session = compacted(hooks=[Broken(None)])
    assert shown(session) == shown(compacted())
    assert "failed after a compaction: ValueError" in caplog.text
    assert "secret text" not in caplog.text


async def _twice(session: Session) -> None:
    await session.acompress()
    await session.acompress(summary="It went on in the parser.")


def test_the_async_twins_do_the_same():
    import asyncio

    hook = Reminder("The plan stands.")
    session = Lowwater(
        model=MODEL, store="memory:", settings=Settings(protect_last_n=2), summarizer=Asked(), hooks=[hook]
    ).session("s")
    session.append(talk())
    asyncio.run(_twice(session))
    assert "The plan stands." in shown(session)
    assert "It went on in the parser." in shown(session)


# The tool


def test_a_model_may_compact_where_that_is_offered():
    session = Lowwater(
        model=MODEL, store="memory:", settings=Settings(protect_last_n=2), summarizer=Asked()
    ).session("s")
    session.append(talk())
    plain, tools = session.recall_tools(), session.recall_tools().with_compact
    assert "lowwater_compact" not in json.dumps(plain.openai) + json.dumps(plain.anthropic)
    assert [tool["name"] for tool in tools.anthropic][:-1] == [tool["name"] for tool in plain.anthropic]
    assert tools.anthropic[-1]["name"] == "lowwater_compact"
    assert not plain.owns("lowwater_compact")
    assert tools.owns("lowwater_compact")
    assert plain.handle("lowwater_compact", {}).startswith("Nothing compacted")
    assert not summaries(session)
    answer = tools.handle("lowwater_compact", {"focus": "part 3"})
    done = session.status().last_compaction
    assert done is not None
    assert f"{done.before:,} to {done.after:,} tokens, {done.reclaimed:,} removed" in answer
    assert "It costs $" in answer
    assert "saves $" in answer
    assert summaries(session)
    assert tools.handle("lowwater_compact", {}).startswith("Nothing compacted")
    assert "it takes focus" in tools.handle("lowwater_compact", {"topic": "x"})


def test_a_model_compacts_in_the_middle_of_its_own_call():
    session = Lowwater(
        model=MODEL, store="memory:", settings=Settings(protect_last_n=2), summarizer=Asked()
    ).session("s")
    session.append(talk())
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "lowwater_compact", "arguments": "{}"}}
        ],
    }
    session.append([call])
    answer = session.recall_tools().with_compact.handle("lowwater_compact", "{}")
    session.append([{"role": "tool", "tool_call_id": "c1", "content": answer}])
    view = session.view()
    assert view[-1]["content"].startswith("Compacted:")
    assert view[-2]["tool_calls"][0]["id"] == "c1"
