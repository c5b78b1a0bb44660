"""Recall in sessions that were really compacted: everything can be had back, and asking for it never overflows."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.ledger import Ledger
from lowwater.core.limits import derive_limits
from lowwater.core.messages import Message
from lowwater.core.recall.expand import expand
from lowwater.core.recall.recalled import ExpansionLine, recalled_text
from lowwater.core.recall.search import recall, recall_room
from lowwater.core.view import Summary
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.recall_tools import RecallTools
from lowwater.session.session import Session
from lowwater.settings import CompressionSettings, LeafSettings, OutputSettings, Settings
from lowwater.testing.fakes import RecordingSink
from tests.generated import generate_session

CONTEXT = 24_000
REFUSED = "Nothing recalled: "


def play(policy: str, target: int = 40_000, sink: RecordingSink | None = None) -> Session:
    """Play a recorded session in a small window, a summary of summaries included if the policy makes any."""
    messages = [
        json.loads(raw) for raw in generate_session("coding", seed=5, target_tokens=target).as_openai_chat()
    ]
    settings = Settings(
        compression=CompressionSettings(protect_last_n=6),
        leaf=LeafSettings(leaf_chunk_tokens=3_000, leaf_target_tokens=400),
        output=OutputSettings(quiet=True),
    )
    session = Lowwater(
        model="model-nobody-knows", policy=policy, settings=settings, sinks=[sink or RecordingSink()]
    ).session()
    session.learn_context_length(CONTEXT)
    waiting: list[Any] = []
    for message in messages:
        if message["role"] == "assistant" and waiting:
            session.append(waiting)
            session.prepare(offers_recall=True)
            waiting = []
        waiting.append(message)
    return session


@pytest.fixture(scope="module", params=["guarded", "runway", "rent-or-buy"])
def ledger(request) -> Ledger:
    return internals(play(request.param)).ledger


def leaves(ledger: Ledger, child: ExpansionLine) -> Iterator[int]:
    if child.kind == "message":
        yield child.sources[0].first
        return
    for below in expand(ledger, child.handle).children:
        yield from leaves(ledger, below)


def test_every_original_can_be_had_back_from_what_the_view_shows(ledger) -> None:
    found: dict[int, Message] = {}
    for item in ledger.view.items:
        if isinstance(item, Summary):
            handle = "lw:" + ",".join(f"{span.first}-{span.last}" for span in item.sources)
            for child in expand(ledger, handle).children:
                found |= {
                    number: recall(ledger, f"lw:{number}")[0].message for number in leaves(ledger, child)
                }
        else:
            found[item.number] = recall(ledger, f"lw:{item.number}")[0].message
    assert [found[number] for number in sorted(found)] == ledger.history()


def test_a_full_sweep_makes_levels_that_can_be_walked() -> None:
    ledger = internals(play("guarded", 120_000)).ledger
    depths = {item.depth for item in ledger.view.items if isinstance(item, Summary)}
    assert max(depths) > 1
    deepest = max(
        (item for item in ledger.view.items if isinstance(item, Summary)), key=lambda item: item.depth
    )
    handle = "lw:" + ",".join(f"{span.first}-{span.last}" for span in deepest.sources)
    below = [child for child in expand(ledger, handle).children if child.kind == "summary"]
    assert len(below) > 1
    assert all(child.first_line for child in below)


def test_every_handle_a_model_reads_is_one_it_can_expand(ledger) -> None:
    room = recall_room(derive_limits(CONTEXT, CompressionSettings()), prompt=0)
    text = "\n".join(recalled_text(item.message) for item in ledger.view.items)
    handles = re.findall(r"recall (lw:\d+)", text) + re.findall(r"stands for messages? (\d+ to \d+)", text)
    for handle in handles:
        tools = RecallTools(lambda: ledger, tokenizer=tokenizer_for("o200k"), room=lambda: room)
        assert not tools.handle("lowwater_expand", {"handle": handle}).startswith(REFUSED)
    assert handles


def test_a_model_that_recalls_all_the_time_never_overflows_its_window() -> None:
    sink, given = RecordingSink(), list[str]()
    session = play("runway", 40_000, sink)
    before = len(sink.compactions)
    vocabulary = tokenizer_for(internals(session).ledger.vocabulary)
    limits = derive_limits(CONTEXT, CompressionSettings())
    tools = session.recall_tools()
    session.append({"role": "user", "content": "Read everything again."})
    largest = max(range(1, 90), key=lambda number: internals(session).ledger.messages[number - 1].tokens)
    for turn in range(30):
        ids = [f"again_{turn}_{call}" for call in range(3)]
        asked = json.dumps({"handle": f"lw:{largest}" if turn % 2 else "lw:1-90", "around": "e"})
        session.append({"role": "assistant", "tool_calls": [called(id, asked) for id in ids]})
        answers = [tools.handle("lowwater_expand", asked) for _ in ids]
        session.append([result(id, answer) for id, answer in zip(ids, answers, strict=True)])
        refusals = sum(vocabulary.count(answer) + 8 for answer in answers if answer.startswith(REFUSED))
        assert session.status().prompt <= limits.wall + refusals, "only what a call must be answered with"
        session.prepare(tools=tools.openai, offers_recall=True)
        given += [answer for answer in answers if not answer.startswith(REFUSED)]
    assert len(given) > 30
    assert not any(event.mode == "shorten" for event in sink.compactions[before:]), (
        "at the door all of it passes"
    )


def called(id: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "lowwater_expand", "arguments": arguments}}


def result(id: str, answer: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": answer}
