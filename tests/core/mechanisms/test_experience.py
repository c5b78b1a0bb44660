"""What a session shows of its own uses of what was removed: names said again, recalls, calls made again."""

import pytest

from lowwater.core.entries import Edit, Numbers
from lowwater.core.mechanisms.experience import experienced
from lowwater.core.messages import Message, Text, ToolCall, ToolResult
from lowwater.core.summary.frame import frame
from lowwater.core.view import Edited, Item, Original, Summary

SHOWN = "[read_file · src/rates.py · 9,000 chars elided · recall lw:3]\nload_rates RateTable"


def answer(text: str = "", *calls: ToolCall) -> Message:
    return Message(role="assistant", parts=(Text(text=text), *calls) if text else calls)


def read(path: str, key: str = "1") -> ToolCall:
    return ToolCall(id=key, name="read_file", arguments=f'{{"path": "{path}"}}')


def view(*later: Message) -> list[Item]:
    """A session in which the read of message 3 was elided when message 5 was the newest."""
    result = ToolResult(call_id="1", parts=(Text(text="def load_rates(): ...\n" * 400),))
    placeholder = ToolResult(call_id="1", parts=(Text(text=SHOWN),))
    original = Message(role="tool", parts=(result,))
    items: list[Item] = [
        Original(number=1, message=Message(role="user", parts=(Text(text="Mend it."),)), tokens=5),
        Original(number=2, message=answer("", read("src/rates.py")), tokens=20),
        Edited(
            number=3,
            original=original,
            edits=(Edit(path=(0, 0), by=Text(text=SHOWN)),),
            message=Message(role="tool", parts=(placeholder,)),
            tokens=30,
        ),
        *(Original(number=at, message=answer("Looking on."), tokens=5) for at in (4, 5)),
    ]
    items += [Original(number=at, message=each, tokens=9) for at, each in enumerate(later, start=6)]
    return items


@pytest.mark.parametrize(
    ("later", "observed"),
    [
        (answer("It goes on."), 0),
        (answer("The bug is in load_rates."), 1),
        (answer("", read("src/rates.py", "2")), 1),
        (answer("", read("src/other.py", "2")), 0),
        (answer("", ToolCall(id="2", name="lowwater_expand", arguments='{"handle": "lw:3"}')), 1),
        (answer("", ToolCall(id="2", name="lowwater_expand", arguments='{"handle": "lw:4"}')), 0),
        (answer("", ToolCall(id="2", name="notes", arguments='{"handle": "lw:3"}')), 0),
    ],
)
def test_what_counts_as_a_use(later: Message, observed: int) -> None:
    found = experienced(view(*[answer("Still going on.")] * 8, later), after=5)
    assert found.observed == observed
    assert 0 < found.expected < 1


def test_a_call_made_again_after_a_change_is_no_loss() -> None:
    change = ToolCall(id="7", name="edit_file", arguments='{"path": "src/rates.py", "old": "a", "new": "b"}')
    assert experienced(view(answer("", change), answer("", read("src/rates.py", "2"))), after=5).observed == 0


def test_what_was_said_before_the_compaction_is_no_new_use() -> None:
    items = view(answer("The bug is in load_rates."), answer("Again: load_rates."))
    assert experienced(items, after=5).observed == 1
    assert experienced(items, after=6).observed == 0


def test_nothing_is_experienced_without_removed_results_or_new_answers() -> None:
    assert experienced([], after=0).expected == 0
    assert experienced(view(), after=5).expected == 0
    assert experienced(view(answer("load_rates")), after=0).expected == 0


def test_an_index_behind_a_summary_counts_like_placeholders() -> None:
    index = "Index of removed tool results, with names only they had:\nread_file app/rates.py lw:3: load_rates RateTable"
    text = frame("## Goal\n- Mend it.", user_follows=True, recall=True, index=index)
    summary = Summary(
        message=Message(role="user", parts=(Text(text=text),)),
        tokens=40,
        sources=(Numbers(first=1, last=5),),
        depth=1,
    )
    later = [Original(number=at, message=answer("On."), tokens=5) for at in range(6, 40)]
    later.append(Original(number=40, message=answer("RateTable"), tokens=5))
    found = experienced([summary, *later], after=5)
    assert found.observed == 1
    assert found.expected > 0
