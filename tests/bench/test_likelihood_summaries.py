"""Summaries by a real model: what the engine asks is noted, and what the model answered stands in its view."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.likelihood import summaries
from bench.likelihood.inputs import ENDS, digest_of
from bench.likelihood.points import Decision, Point
from bench.likelihood.prompts import Chat, action_of, encode, prompt_tokens
from bench.likelihood.summaries import Judged, SummaryViews, Texts, judged_table

LOG = "line {at} of the build says that part {part} was compiled in {at} ms by worker_{at}\n"
SUMMARY = """## Goal
- The user asked: "Repair the build. Never touch the folder vendor/."

## Constraints & Preferences
- "Never touch the folder vendor/."

## Progress
- `make part0` to `make part8` were run: each part was compiled without an error, see report_0.txt to report_8.txt.

## Next Steps
- Run `make part9` and the parts behind it.
"""


def decision(results: int = 12, lines: int = 40) -> Decision:
    messages: list[Chat] = [
        {"role": "system", "content": "You repair programs."},
        {"role": "user", "content": "Repair the build. Never touch the folder vendor/."},
    ]
    for at in range(results):
        function = {"name": "bash", "arguments": f'{{"command": "make part{at}"}}'}
        called = {"id": f"c{at}", "type": "function", "function": function}
        text = "".join(LOG.format(at=100 + line, part=f"part_{at}") for line in range(lines))
        messages.append({"role": "assistant", "content": None, "tool_calls": [called]})
        messages.append({"role": "tool", "tool_call_id": f"c{at}", "content": f"{text}see report_{at}.txt"})
    tokens = len(prompt_tokens(messages))
    point = Point(source="s", session="one", call=9, band=30_000, tokens=tokens, action=9)
    action = action_of("bash", '{"command": "make part12"}')
    return Decision(point=point, messages=tuple(messages), action=action)


def answered(tmp_path: Path, asked: dict[str, Any], text: str, *, ends: bool = True) -> Texts:
    tokens = [*encode(text), *(ENDS[-1:] if ends else ())]
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"id": name, "tokens": tokens}) + "\n" for name in asked))
    return Texts(path)


@pytest.fixture(autouse=True)
def _without_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their packages are asked in the full tests of `bench.real_peers`."""
    monkeypatch.setattr(summaries, "PROMPTED", ())


def test_what_the_model_would_be_asked_is_noted_and_one_of_it_extends_the_conversation():
    made = decision()
    with SummaryViews(Texts(), only_asks=True) as views:
        assert set(dict(views.views(made))) == {"cached-25%", "plain-25%"}
        asked = list(views.texts.asked.values())
    conversation = prompt_tokens(made.messages, for_call=False)
    shared = conversation[: len(conversation) - len(encode("assistant\n")) - 1]
    extends = [tuple(each["tokens"][: len(shared)]) == shared for each in asked]
    assert extends == [True, False]
    assert all(0 < each["most"] <= summaries.MOST_WRITTEN for each in asked)


def test_the_answers_stand_in_the_views_and_are_judged(tmp_path: Path):
    made = decision()
    with SummaryViews(Texts(), only_asks=True) as views:
        dict(views.views(made))
        asked = views.texts.asked
    with SummaryViews(answered(tmp_path, asked, SUMMARY)) as views:
        shown = dict(views.views(made))
    assert not views.texts.asked
    assert [each.writer for each in views.judged] == ["cached", "plain"]
    assert all(each.outcome == "accepted as written" for each in views.judged)
    assert all("`make part0` to `make part8` were run" in json.dumps(list(view)) for view in shown.values())


def test_an_answer_without_an_end_was_cut_off_and_is_refused(tmp_path: Path):
    made = decision()
    with SummaryViews(Texts(), only_asks=True) as views:
        dict(views.views(made))
        asked = views.texts.asked
    with SummaryViews(answered(tmp_path, asked, SUMMARY, ends=False)) as views:
        shown = dict(views.views(made))
    assert all(each.cut_off and each.outcome.startswith("refused") for each in views.judged)
    assert all(
        "`make part0` to `make part8` were run" not in json.dumps(list(view)) for view in shown.values()
    )


def test_views_without_an_answer_are_left_out(tmp_path: Path):
    with SummaryViews(answered(tmp_path, {digest_of([1]): {}}, SUMMARY)) as views:
        assert not dict(views.views(decision()))
        assert not views.judged


def test_the_table_says_how_many_of_each_were_accepted():
    def judged(writer: str, outcome: str) -> Judged:
        return Judged(
            point="p",
            writer=writer,
            outcome=outcome,
            score=0.5,
            coverage=0.5,
            tokens=100,
            replaced=1_000,
            invented=2,
            cut_off=False,
        )

    rows = [
        judged("plain", "accepted as written"),
        judged("plain", "refused (invented)"),
        judged("langchain", "repaired (weak)"),
    ]
    lines = list(judged_table(rows))
    assert "| 2 | 50% | 0% | 50% | invented 1 | 0.50 |" in lines[2]
    assert lines[3].startswith("| the prompt of langchain | 1 | 0% | 100% | 0% | – |")
