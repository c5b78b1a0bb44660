"""Questions have one right answer that the messages tell, and are asked over every view alike."""

from typing import Any

import pytest

from bench.likelihood.evidence import by_point, probe_table
from bench.likelihood.inputs import FULL
from bench.likelihood.probes import cases_of, probes_of
from bench.likelihood.prompts import CALL, END, Chat, encode
from tests.bench.test_likelihood_views import call, decision, session


def worked(*steps: tuple[str, str, str], said: str = "Repair the build.") -> list[Chat]:
    messages: list[Chat] = [{"role": "user", "content": said}]
    for at, (tool, arguments, result) in enumerate(steps):
        messages.append(call(at, tool, arguments))
        messages.append({"role": "tool", "tool_call_id": f"c{at}", "content": result})
    return messages


def answers(messages: list[Chat]) -> dict[str, str]:
    return {probe.kind: probe.answer for probe in probes_of(messages)}


def test_files_and_commands_are_those_of_the_calls():
    assert answers(
        worked(
            ("Read", '{"file_path": "src/a.py"}', "text"),
            ("Bash", '{"command": "make test"}', "ok"),
            ("Edit", '{"file_path": "src/b.py", "old_string": "x"}', "done"),
            ("Write", '{"file_path": "src/c.py", "content": "x"}', "done"),
            ("Read", '{"file_path": "src/d.py"}', "text"),
        )
    ) == {"read first": "src/a.py", "first command": "make test", "edited last": "src/c.py"}


@pytest.mark.parametrize(
    "output",
    [
        "12 passed\nFAILED tests/a.py::test_x - assert",
        "--- FAIL: tests/a.py::test_x (0.01s)\n--- FAIL: TestB (0.0s)",
    ],
    ids=["pytest", "go"],
)
def test_the_test_that_failed_first_is_named_as_the_output_has_it(output: str):
    found = answers(worked(("Bash", '{"command": "test"}', "all passed"), ("Bash", "{}", output)))
    assert found["failed first"] == "tests/a.py::test_x"


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Repair it. Never touch the folder vendor/.", "Never touch the folder vendor/."),
        ("Never touch vendor/. Always ask me before you push.", None),
        ("Repair it.", None),
    ],
    ids=["one", "two are no single answer", "none"],
)
def test_the_one_standing_instruction(said: str, answer: str | None):
    assert answers(worked(said=said)).get("laid down") == answer


def test_the_open_item_is_of_the_newest_list_and_one_in_progress_comes_first():
    old = '{"todos": [{"content": "one", "status": "in_progress"}]}'
    new = '{"todos": [{"content": "one", "status": "completed"}, {"content": "two", "status": "pending"}, {"content": "three", "status": "in_progress"}]}'
    assert answers(worked(("TodoWrite", old, "ok"), ("TodoWrite", new, "ok")))["still open"] == "three"
    done = '{"todos": [{"content": "one", "status": "completed"}]}'
    assert "still open" not in answers(worked(("TodoWrite", old, "ok"), ("TodoWrite", done, "ok")))


def test_long_answers_and_answers_of_several_lines_are_not_asked_for():
    assert not answers(worked(("Bash", '{"command": "one\\ntwo"}', "ok")))
    assert not answers(worked(("Bash", '{"command": "%s"}' % ("word " * 60), "ok")))


def test_every_view_ends_with_the_same_question_and_the_answer_with_its_end():
    made = next(
        case for case in cases_of(decision(session(lines=60), "{}")) if case.point.endswith("first command")
    )
    assert made.action == (*encode("make part0"), END)
    question = made.tokens(FULL)[-30:]
    for view in made.views:
        assert made.tokens(view)[-3:] == question[-3:]
        if "recall" not in view:
            assert made.tokens(view)[-30:] == question
    assert {"full", "lowwater-25%", "lowwater+recall-25%"} <= set(made.views)
    assert len(made.tokens("lowwater-25%")) < len(made.tokens("lowwater+recall-25%")) < len(made.tokens(FULL))
    assert made.tokens("lowwater+recall-25%").count(CALL) == made.tokens("lowwater-25%").count(CALL) + 1


def test_kinds_that_the_model_does_not_know_with_the_full_prompt_are_not_compared():
    def row(at: int, kind: str, view: str, right: str) -> dict[str, Any]:
        return {"point": f"s/one#{at} {kind}", "view": view, "spots": right}

    rows = [
        each
        for at in range(10)
        for each in (
            row(at, "edited last", "full", "1"),
            row(at, "edited last", "newest-25%", "01"[at < 4]),
            row(at, "laid down", "full", "01"[at < 6]),
            row(at, "laid down", "newest-25%", "1"),
        )
    ]
    lines = list(probe_table(by_point(rows)))
    assert "| edited last | 10 | 100% | 40% of 10 |" in lines
    assert "| laid down | 10 | 60% | – |" in lines
