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
        placeholders = json.dumps(session.view())
        assert ("lw:" in placeholders) is offered
