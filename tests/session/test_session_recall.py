"""A model can get back what was compacted, through tools, in a session that another process wrote."""

import json
from pathlib import Path
from typing import Any

from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.settings import CompressionSettings, Settings
from tests.generated import generate_session

MESSAGES: list[Any] = [
    json.loads(raw) for raw in generate_session("coding", seed=85, target_tokens=40_000).as_openai_chat()[:-1]
]
FILLER = " ".join(f"INV-{number} blah" for number in range(200_000, 200_700))
SETTINGS = Settings(compression=CompressionSettings(protect_last_n=4, max_view_tokens=12_000))


def test_what_the_view_no_longer_shows_is_found_and_expanded(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 's.db'}"
    writing = Lowwater(model="gpt-6.1-sol", settings=SETTINGS, store=address).session("s")
    needle = {"role": "user", "content": "The invoice is INV-471108; keep that in mind."}
    writing.append([*MESSAGES[:6], needle, *MESSAGES[6:]])
    writing.compress()
    session = Lowwater(model="gpt-6.1-sol", settings=SETTINGS, store=address).session("s")
    tools = session.recall_tools()
    (best, *_) = session.recall("INV-471108")
    assert best.text == needle["content"]
    assert best.handle in tools.handle("lowwater_search", {"query": "INV-471108"})
    assert needle["content"] in tools.handle("lowwater_expand", {"handle": best.handle})


def test_a_request_with_the_tools_in_it_offers_recall() -> None:
    for offered in (True, False):
        session = Lowwater(model="gpt-6.1-sol", settings=SETTINGS).session()
        tools = session.recall_tools().openai if offered else []
        session.prepare(MESSAGES, tools=tools)
        assert internals(session).last_compaction is not None
        view = json.dumps(session.view())
        assert ("recall lw:" in view or "recall any of them" in view) is offered


def test_the_use_of_recall_is_in_the_record_of_the_next_answer() -> None:
    """Between the call and the answer that uses it, the model may go on recalling."""
    session = Lowwater(model="gpt-6.1-sol", settings=SETTINGS, store="memory:").session("s")
    tools = session.recall_tools()
    results = [at for at, message in enumerate(MESSAGES) if message["role"] == "tool"]
    messages = list(MESSAGES)
    messages[results[1]] = {
        **MESSAGES[results[1]],
        "content": f"{FILLER}zebra invoice INV-471108 {FILLER}",
    }

    def turn(answer: dict[str, Any]) -> None:
        session.prepare(messages, tools=tools.openai)
        messages.append(answer)
        session.record({"choices": [{"message": answer, "finish_reason": "stop"}], "usage": {}})

    def recalling(id: str, name: str, **arguments: str) -> None:
        function = {"name": name, "arguments": json.dumps(arguments)}
        turn({"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]})
        messages.append({"role": "tool", "tool_call_id": id, "content": tools.handle(name, arguments)})

    recalling("a", "lowwater_search", query="zebra invoice")
    recalling("b", "lowwater_expand", handle=f"lw:{results[1] + 1}")
    recalling("c", "lowwater_expand", handle="lw:99999")
    turn({"role": "assistant", "content": "It is INV-471108."})
    turn({"role": "assistant", "content": "INV-471108, as I said."})
    (account,) = session._dependencies.store.accounts(["s"])
    used = [record.recall for record in account.records]
    assert all(use is not None for use in used)
    told = [(use.searches, use.expands, use.found, use.named) for use in used if use is not None]
    assert told == [(0, 0, 0, 0), (1, 0, 1, 0), (0, 1, 1, 0), (0, 1, 0, 1), (0, 0, 0, 0)]
