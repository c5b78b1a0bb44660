"""A recorded session as a framework plays it: every question, call and result is there, and what a request still shows is told apart."""

import json
from pathlib import Path

import msgspec

from bench.frameworks.recorded import Outcome, Recorded, RecordedModel, recorded_of, table
from bench.frameworks.running import Compaction
from bench.frameworks.task import LOGS, RESULT, TOOL, task_of
from lowwater.core.formats.codec import decode_messages
from lowwater.lab.replay.script import ReplayScript, script_of
from lowwater.logs.recording import RecordedMessage, Recording
from lowwater.testing.provider import CallTools, Say, Seen

MESSAGES = [
    {"role": "user", "content": "Look at the parser."},
    {
        "role": "assistant",
        "content": "I read it.",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "Read File", "arguments": '{"path": "src/parser.py"}'},
            },
            {"id": "c2", "type": "function", "function": {"name": "Bash", "arguments": "not json"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "def parse_header(): ...  # see src/lexer_tables.py"},
    {"role": "tool", "tool_call_id": "c2", "content": "3 passed"},
    {"role": "assistant", "content": "It reads src/lexer_tables.py now"},
    {"role": "user", "content": "And now?"},
    {"role": "assistant", "content": "Done."},
]


def script() -> ReplayScript:
    raws = [msgspec.json.encode(message) for message in MESSAGES]
    messages = [
        RecordedMessage(message=message, at=float(at))
        for at, message in enumerate(decode_messages(raws, "openai_chat"))
    ]
    return script_of(Recording(id="r1", agent="test", path="", messages=tuple(messages)))


def recorded() -> Recorded:
    return recorded_of("here", script())


def request(*messages: dict[str, str], tools: bool = True) -> Seen:
    offered = [{"type": "function", "function": {"name": TOOL}}] if tools else []
    body = {"messages": list(messages), "tools": offered}
    return Seen(
        method="POST", path="/v1/chat/completions", headers={}, raw=msgspec.json.encode(body), body=body
    )


def test_questions_calls_and_results_are_those_recorded() -> None:
    found = recorded()
    assert found.questions == ("[turn 1] Look at the parser.", "[turn 2] And now?")
    assert [[each.exchange for each in turn] for turn in found.turns] == [[0, 1], [2]]
    assert [call.name for call in found.turns[0][0].calls] == ["Read_File", "Bash"]
    assert found.turns[0][0].calls[0].arguments == {"path": "src/parser.py", RESULT: 0}
    assert found.results[1] == "3 passed"


def test_the_model_answers_turn_by_turn_and_ends_a_turn_that_was_left_open() -> None:
    model = RecordedModel(recorded())
    first = model(request({"role": "user", "content": "[turn 1] Look at the parser."}))
    assert isinstance(first, CallTools)
    result = {"role": "tool", "tool_call_id": "c1", "content": "x"}
    assert model(request(result)) == Say("It reads src/lexer_tables.py now")
    assert model(request(result)) == Say("That is all for now.")
    assert model(request({"role": "user", "content": "[turn 2] And now?"})) == Say("Done.")
    assert model.exchanges == [0, 1, -1, 2]


def test_a_summary_is_extracted_from_the_messages_that_the_request_shows() -> None:
    model = RecordedModel(recorded())
    answer = model(
        request({"role": "user", "content": "Sum up:\nLook at the parser.\nI read it."}, tools=False)
    )
    assert isinstance(answer, Say)
    assert "parser" in answer.text


def test_a_worker_gets_the_recorded_task_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    file.write_text(json.dumps({"system": "S", "tools": ["Bash"], "questions": ["Q"], "results": ["a", "b"]}))
    task = task_of(60, str(file))
    assert (task.system, task.questions, [tool.name for tool in task.tools]) == ("S", ("Q",), [TOOL, "Bash"])
    assert task.tools[1].call({RESULT: 1, "command": "ls"}) == "b"
    assert task_of(3).tools == (LOGS,)
    assert len(task_of(3).questions) == 3


def outcome(arm: Compaction, cost: int, *, turns: int = 2) -> Outcome:
    return Outcome(
        session="s",
        source="here",
        framework="LangChain",
        arm=arm,
        window=16_000,
        model="m",
        questions=2,
        turns=turns,
        requests=3,
        refused=0,
        summaries=0,
        largest=1,
        cost=cost,
        rework=50,
        uses=4,
        in_view=3,
    )


def test_only_sessions_that_both_finished_are_compared_and_the_others_are_counted() -> None:
    (*_, row) = table([outcome("own", 100), outcome("lowwater", 50)])
    assert "| 1 | 0 | 0 | 0.500 |" in row
    assert "| 0.667 |" in row
    (*_, row) = table([outcome("own", 100, turns=1), outcome("lowwater", 50)])
    assert "| 0 | 1 | 0 | – |" in row
