"""The seams of a view are read from its ledger: what the last request had too, and what a compaction wrote."""

from lowwater.core.cache.marks import Seams, seams_of
from lowwater.core.entries import (
    AlteredMessage,
    Appended,
    Compacted,
    Edit,
    KeptRange,
    Numbers,
    PreambleChanged,
    Rewound,
    SummarizedSpan,
)
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message, Text, ToolResult
from lowwater.testing.views import Script

RESULTS = [2, 4, 6, 8]
"""The indexes of the tool results in `talk`; the answer behind the last of them is at 9, the question at 10."""


def talk() -> list[Message]:
    script = Script("anthropic").user("go")
    for step in range(4):
        script.calls("bash", {"command": str(step)}, f"output {step}")
    return list(script.says("Done.").user("And now?").messages())


def opened(messages: list[Message] | None = None) -> Ledger:
    messages = talk() if messages is None else messages
    return Ledger().append(Appended(at=0.0, messages=tuple(messages), tokens=(10,) * len(messages)))


def kept(first: int, last: int) -> KeptRange:
    return KeptRange(numbers=Numbers(first=first, last=last))


def elided(ledger: Ledger, number: int, text: str = "[elided]") -> AlteredMessage:
    result = ledger.message(number).results[0]
    by = ToolResult(call_id=result.call_id, parts=(Text(text=text),))
    return AlteredMessage(number=number, edits=(Edit(path=(0,), by=by),), tokens=3)


def pruned(ledger: Ledger, *mechanisms: str) -> Ledger:
    """The results 3 and 5 elided."""
    stands = (kept(1, 2), elided(ledger, 3), kept(4, 4), elided(ledger, 5), kept(6, len(ledger.messages)))
    return ledger.append(Compacted(at=1.0, mechanisms=mechanisms or ("elide",), items=stands))


def seams(ledger: Ledger) -> Seams:
    return seams_of(ledger, ledger.view.messages)


def more(ledger: Ledger) -> Ledger:
    """An answer and the next question."""
    new = Script("anthropic").says("Because.").user("Why?").messages()
    return ledger.append(Appended(at=2.0, messages=tuple(new), tokens=(10, 10)))


def test_the_last_request_ended_before_the_newest_answer() -> None:
    assert seams(opened()) == Seams(shared=9)


def test_before_the_first_answer_nothing_is_shared() -> None:
    assert seams(opened(list(Script("anthropic").user("go").messages()))) == Seams()
    assert seams(Ledger()) == Seams()


def test_right_behind_a_compaction_only_what_stands_before_the_change_is_shared() -> None:
    assert seams(pruned(opened())) == Seams(shared=2, edge=4)


def test_a_turn_later_all_of_the_last_request_is_shared_again_and_the_edge_stays() -> None:
    assert seams(more(pruned(opened()))) == Seams(shared=11, edge=4)


def test_a_summary_is_an_edge() -> None:
    ledger = opened()
    summary = SummarizedSpan(text="So far.", role="user", sources=(Numbers(first=2, last=5),), tokens=5)
    ledger = ledger.append(
        Compacted(at=1.0, mechanisms=("summarize",), items=(kept(1, 1), summary, kept(6, 11)))
    )
    assert seams(ledger) == Seams(shared=1, edge=1)


def test_the_edge_before_is_remembered_where_it_still_stands() -> None:
    ledger = more(pruned(opened()))
    stands = (
        kept(1, 2),
        elided(ledger, 3),
        kept(4, 4),
        elided(ledger, 5),
        kept(6, 8),
        elided(ledger, 9),
        kept(10, 13),
    )
    ledger = ledger.append(Compacted(at=3.0, mechanisms=("elide",), items=stands))
    assert seams(ledger) == Seams(shared=8, edge=8, earlier=4)


def test_a_result_truncated_on_arrival_is_no_edge() -> None:
    ledger = opened(talk()[:9])
    stands = (kept(1, 8), elided(ledger, 9, "[short]"))
    ledger = ledger.append(Compacted(at=1.0, mechanisms=("shorten",), items=stands))
    assert seams(ledger) == Seams(shared=7)


def test_a_result_truncated_on_arrival_stays_none_after_a_compaction() -> None:
    ledger = opened()
    door = Compacted(
        at=1.0, mechanisms=("shorten",), items=(kept(1, 8), elided(ledger, 9, "[short]"), kept(10, 11))
    )
    ledger = ledger.append(door)
    stands = (kept(1, 2), elided(ledger, 3), kept(4, 8), elided(ledger, 9, "[short]"), kept(10, 11))
    ledger = ledger.append(Compacted(at=2.0, mechanisms=("elide",), items=stands))
    assert seams(ledger).edge == 2


def test_an_undone_compaction_has_no_edge() -> None:
    ledger = pruned(opened())
    undone = ledger.append(Rewound(at=2.0, to=1))
    assert seams(undone).edge is None
    assert seams(more(undone)) == Seams(shared=11)


def test_what_is_sent_may_have_messages_that_the_view_has_not() -> None:
    ledger = more(pruned(opened()))
    stub = Script("anthropic").user("stub").messages()[0]
    sent = ledger.view.messages
    sent.insert(4, stub)
    assert seams_of(ledger, sent) == Seams(shared=12, edge=5)


def test_a_system_prompt_that_changes_alone_is_told() -> None:
    ledger = opened().append(PreambleChanged(at=0.0, system=b'"one"', tools=b"[1]"))
    assert not seams(ledger).system_moves
    assert not seams(ledger.append(PreambleChanged(at=1.0, system=b'"one"', tools=b"[2]"))).system_moves
    assert seams(ledger.append(PreambleChanged(at=1.0, system=b'"two"', tools=b"[1]"))).system_moves


def test_seams_move_with_the_messages_and_those_that_are_gone_are_dropped() -> None:
    told = Seams(shared=4, edge=0, earlier=2, system_moves=True)
    assert told.moved(lambda at: at + 2) == Seams(shared=6, edge=2, earlier=4, system_moves=True)
    assert told.moved(lambda at: at - 1) == Seams(shared=3, earlier=1, system_moves=True)
    assert Seams().moved(lambda at: at + 2) == Seams()
