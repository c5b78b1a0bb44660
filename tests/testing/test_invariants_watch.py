"""Every invariant that the watch knows can be broken, and it says so."""

import pytest

from lowwater.core.entries import (
    AlteredMessage,
    Appended,
    Compacted,
    Edit,
    KeptRange,
    Numbers,
    Opened,
    SummarizedSpan,
    ViewItem,
)
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message, Text, Thinking, ToolCall, ToolResult, Wire
from lowwater.testing.invariants import Protected, Watch, check_compaction, check_pairs, check_prefix

LOOSE = Protected(first=1, last=1)


def user(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def assistant(text: str) -> Message:
    return Message(role="assistant", parts=(Thinking(text="Hm."), Text(text=text)))


def call(id: str, tool: str = "bash") -> Message:
    return Message(role="assistant", parts=(ToolCall(id=id, name=tool, arguments="{}"),))


def result(id: str, text: str = "output") -> Message:
    return Message(role="tool", parts=(ToolResult(call_id=id, parts=(Text(text=text),)),))


TALK = (
    user("one"),
    assistant("1"),
    user("two"),
    call("a"),
    result("a"),
    call("b", "memory"),
    result("b"),
    assistant("2"),
    user("three"),
)


def kept(first: int, last: int) -> KeptRange:
    return KeptRange(numbers=Numbers(first=first, last=last))


def summary(first: int, last: int, tokens: int = 5) -> SummarizedSpan:
    return SummarizedSpan(
        text="It went on.", role="user", sources=(Numbers(first=first, last=last),), tokens=tokens
    )


def placeholder(number: int, id: str) -> AlteredMessage:
    shown = ToolResult(call_id=id, parts=(Text(text="gone"),))
    return AlteredMessage(number=number, edits=(Edit(path=(0,), by=shown),), tokens=1)


def opened() -> Ledger:
    ledger = Ledger().append(Opened(at=0.0, model="m", vocabulary="words"))
    return ledger.append(Appended(at=0.0, messages=TALK, tokens=(10,) * len(TALK)))


def compacted(*stands: ViewItem, mechanisms: tuple[str, ...] = ("summarize",)) -> Ledger:
    return opened().append(Compacted(at=1.0, mechanisms=mechanisms, items=stands))


def see(ledger: Ledger, protected: Protected = LOOSE) -> None:
    Watch(protected).see(ledger, ledger.view.messages)


@pytest.mark.parametrize(
    "ledger",
    [
        opened(),
        compacted(kept(1, 1), summary(2, 7), kept(8, 9)),
        compacted(kept(1, 4), placeholder(5, "a"), kept(6, 9), mechanisms=("elide",)),
    ],
    ids=["untouched", "summarised", "pruned"],
)
def test_what_is_in_order_is_let_through(ledger: Ledger) -> None:
    see(ledger)


@pytest.mark.parametrize(
    ("ledger", "protected", "claim"),
    [
        (compacted(kept(1, 3), summary(4, 4), kept(5, 9)), LOOSE, "the result in message 4 has its call"),
        (compacted(kept(1, 1), summary(2, 7, tokens=60), kept(8, 9)), LOOSE, "strictly smaller"),
        (compacted(summary(1, 7), kept(8, 9)), LOOSE, "head item 0 is untouched"),
        (compacted(kept(1, 1), summary(2, 7), kept(8, 9)), Protected(first=1, last=3), "tail item −3"),
        (
            compacted(kept(1, 6), placeholder(7, "b"), kept(8, 9), mechanisms=("elide",)),
            LOOSE,
            "never pruned is whole",
        ),
        (compacted(kept(1, 1), summary(2, 6), kept(8, 9)), LOOSE, "every message can be expanded to"),
        (compacted(kept(1, 2), summary(2, 7), kept(8, 9)), LOOSE, "no message stands for itself twice"),
        (
            compacted(kept(1, 1), summary(2, 9), mechanisms=("summarize_all",)),
            Protected(first=1, last=0),
            "the newest user message is there",
        ),
        (
            compacted(
                kept(1, 1),
                summary(2, 8),
                AlteredMessage(number=9, edits=(Edit(path=(0,), by=Text(text="3")),), tokens=1),
                mechanisms=("summarize_all",),
            ),
            Protected(first=1, last=0),
            "the users' words are verbatim",
        ),
        (
            compacted(kept(1, 1), summary(2, 8), kept(9, 9), mechanisms=("summarize_all",)),
            Protected(first=1, last=2),
            "the newest group is kept",
        ),
    ],
    ids=[
        "split group",
        "not smaller",
        "head",
        "tail",
        "never pruned",
        "lost",
        "twice",
        "newest user gone",
        "newest user changed",
        "newest group",
    ],
)
def test_what_is_broken_is_named(ledger: Ledger, protected: Protected, claim: str) -> None:
    with pytest.raises(AssertionError, match=claim):
        see(ledger, protected)


def test_the_newest_user_message_stands_right_behind_the_summary() -> None:
    talk = (user("one"), assistant("1"), user("two"), call("a"), result("a"), call("b"), result("b"))
    ledger = Ledger().append(Appended(at=0.0, messages=talk, tokens=(10,) * 7))
    good = Compacted(at=1.0, mechanisms=("leaf",), items=(kept(1, 1), summary(2, 2), kept(3, 7)))
    lifted = SummarizedSpan(
        text="It went on.",
        role="user",
        sources=(Numbers(first=2, last=2), Numbers(first=4, last=5)),
        tokens=5,
    )
    see(ledger.append(good))
    see(
        ledger.append(
            Compacted(at=1.0, mechanisms=("leaf",), items=(kept(1, 1), lifted, kept(3, 3), kept(6, 7)))
        )
    )
    wrong = Compacted(at=1.0, mechanisms=("leaf",), items=(kept(1, 1), kept(3, 3), lifted, kept(6, 7)))
    with pytest.raises(AssertionError, match="right behind the summary"):
        see(ledger.append(wrong))


def test_a_view_that_changes_without_an_entry_is_found() -> None:
    watch = Watch(LOOSE)
    ledger = opened()
    watch.see(ledger, ledger.view.messages)
    with pytest.raises(AssertionError, match="message 0 leaves as it left before"):
        watch.see(ledger, [user("another"), *ledger.view.messages[1:]])
    with pytest.raises(AssertionError, match="nothing sent is missing"):
        watch.see(ledger, ledger.view.messages[:-1])
    with pytest.raises(AssertionError, match="the ledger only grows"):
        watch.see(Ledger(), [])


def test_equal_content_in_other_bytes_is_not_the_same() -> None:
    spelled = [
        Message(role="user", parts=(Text(text="x"),), wire=Wire(format="anthropic", raw=raw))
        for raw in (b'{"role":"user","content":"x"}', b'{"content":"x","role":"user"}')
    ]
    with pytest.raises(AssertionError, match="leaves as it left before"):
        check_prefix(spelled[:1], spelled[1:])


@pytest.mark.parametrize(
    ("messages", "claim"),
    [
        ([call("a")], "newest calls are answered"),
        ([call("a"), user("x"), result("a")], "calls before message 1 are answered"),
        ([call("a"), call("b"), result("b"), result("a")], "calls before message 1 are answered"),
        ([call("a"), result("a"), result("a")], "the result in message 2 has its call"),
    ],
    ids=["open", "interrupted", "interleaved", "answered twice"],
)
def test_unpaired_calls_and_results_are_found(messages: list[Message], claim: str) -> None:
    with pytest.raises(AssertionError, match=claim):
        check_pairs(messages)


def test_thinking_may_go_where_a_model_binds_it() -> None:
    before = opened().view
    dropped = AlteredMessage(number=8, edits=(Edit(path=(0,), by=None),), tokens=8)
    after = compacted(kept(1, 7), dropped, kept(9, 9), mechanisms=("reasoning",)).view
    check_compaction(before, after, ("reasoning",), Protected(first=1, last=2, binds_thinking=True))
    with pytest.raises(AssertionError, match="tail item −2"):
        check_compaction(before, after, ("reasoning",), Protected(first=1, last=2))
