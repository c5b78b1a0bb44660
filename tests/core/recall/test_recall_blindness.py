"""A search finds what there is, however often it was searched for before; what the view still shows comes last."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lowwater import Lowwater
from lowwater.core.entries import Appended
from lowwater.core.formats.codec import encode_messages
from lowwater.core.ledger import Ledger
from lowwater.core.recall.search import recall
from lowwater.core.stored import Append, Hit
from lowwater.errors import BadInput
from lowwater.stores.memory import MemoryStore
from lowwater.testing.views import Script
from tests.cli.command_runner import told
from tests.core.recall.recall_ledgers import compact, kept, summed
from tests.core.recall.recall_parts import search, tools_for

Find = Callable[[str, int], Sequence[Hit]]


def searched(times: int) -> Ledger:
    """One message with the words, and many questions for them that match better."""
    script = Script().user("Long ago: the invoice of Zanzibar was lost. " + "Other things happened. " * 30)
    for _ in range(times):
        script.calls("lowwater_search", {"query": "invoice Zanzibar"}, "invoice Zanzibar: lw:1")
    return script.says("Done.").ledger()


def indexed(ledger: Ledger) -> Find:
    store = MemoryStore()
    messages = tuple(numbered.message for numbered in ledger.messages)
    tokens = tuple(numbered.tokens for numbered in ledger.messages)
    store.append("mine", 0, Append(entries=(Appended(at=0.0, messages=messages, tokens=tokens),)))
    return lambda words, limit: store.search(words, session="mine", limit=limit)


@pytest.mark.parametrize("has_index", [True, False], ids=["index", "scan"])
@pytest.mark.parametrize("limit", [1, 5])
def test_recalls_own_answers_hide_nothing(has_index: bool, limit: int) -> None:
    ledger = searched(100)
    index = indexed(ledger) if has_index else None
    found = recall(ledger, "invoice Zanzibar", search=index, limit=limit)
    assert [hit.handle for hit in found] == ["lw:1"]
    tools = tools_for(ledger, search=index)
    assert "\nlw:1 · user" in tools.handle("lowwater_search", {"query": "invoice Zanzibar"})


def test_nor_do_they_where_all_sessions_are_searched(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    library = Lowwater(store=f"sqlite:///{path}", model="gpt-5.2")
    messages = [numbered.message for numbered in searched(20).messages]
    library.session("asked often").append(encode_messages(messages, "openai_chat"))
    library.close()
    found = told(path, "recall", "--all", "invoice", "Zanzibar", "--limit", "2")["found"]
    assert [each["handle"] for each in found] == ["lw:1"]


def test_no_more_is_asked_for_than_it_takes() -> None:
    ledger = Script().user("again").user("again").user("again").user("again").ledger()
    index, wanted = indexed(ledger), list[int]()

    def counting(words: str, limit: int) -> Sequence[Hit]:
        wanted.append(limit)
        return index(words, limit)

    assert len(recall(ledger, "again", search=counting, limit=1)) == 1
    assert recall(ledger, "zeppelin", search=counting, limit=1) == []
    assert wanted == [3, 3]


def test_what_is_in_view_comes_last_and_is_marked() -> None:
    script = Script().user("The ticket is old, and much else is said in this long message about a train.")
    script.says("Noted.").user("ticket ticket").says("ticket")
    ledger = compact(script.ledger(), summed("Early.", (1, 2)), kept(3, 4))
    answer = search(ledger, query="ticket", limit=3)
    assert answer.startswith("[3 matches, best first, those in view last · ")
    first, *others = [line for line in answer.splitlines() if line.startswith("lw:")]
    assert first.startswith("lw:1 · user · ")
    assert "in view" not in first
    assert all(line.endswith(" tokens · in view") for line in others)
    assert "lw:1 · " in search(ledger, query="ticket", limit=1), "one that is in view does not take its place"


def test_a_person_gets_the_best_match_first_wherever_it_stands() -> None:
    script = Script().user("A ticket among many other words of a long message.").says("Noted.").user("ticket")
    ledger = compact(script.ledger(), summed("Early.", (1, 2)), kept(3, 3))
    assert [hit.handle for hit in recall(ledger, "ticket")] == ["lw:3", "lw:1"]


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one_is_refused_in_a_sentence(limit: int) -> None:
    with pytest.raises(BadInput, match=f"limit is {limit}: ask for at least 1 message"):
        recall(searched(1), "invoice", limit=limit)
