"""Old thinking goes; what the running turn or its provider needs stays."""

from typing import Any

import pytest
from msgspec.structs import replace

from lowwater.core.mechanisms import reasoning
from lowwater.core.messages import Format, Text, Thinking
from lowwater.core.view import Edited, Item, Original
from lowwater.testing.views import Script, asked, lines, making, offer_of

THOUGHT = lines(10, "thought")


def without(items: list[Item], **zones: Any) -> list[Item]:
    proposal = offer_of(reasoning.NAME, asked(items, **zones))
    return list(items) if proposal is None else reasoning.apply(items, proposal, making())


def thinks(items: list[Item]) -> list[int]:
    return [at for at, item in enumerate(items) if item.message.thinking]


def turns(format: Format, count: int) -> Script:
    script = Script(format)
    for turn in range(count):
        script.user(f"question {turn}").calls("bash", {}, "ok", thinking=THOUGHT)
        script.says("answer", thinking=THOUGHT)
    return script


@pytest.mark.parametrize("format", ["openai_chat", "anthropic"])
def test_thinking_of_earlier_turns_is_dropped(format: Format) -> None:
    items = turns(format, 3).items()
    assert thinks(items) == [1, 3, 5, 7, 9, 11]
    after = without(items, first=1, last=4)
    assert thinks(after) == [9, 11]
    assert [item.message.text for item in after] == [item.message.text for item in items]
    assert sum(item.tokens for item in after) < sum(item.tokens for item in items)


def test_thinking_in_head_and_tail_stays() -> None:
    items = turns("anthropic", 3).items()
    assert thinks(without(items, first=2, last=7)) == [1, 5, 7, 9, 11]


def test_the_running_turn_keeps_the_thinking_that_opened_it_in_the_anthropic_format() -> None:
    script = Script("anthropic").user("hi").says("hello", thinking=THOUGHT).user("Fix it.")
    for step in range(6):
        script.calls("bash", {"command": str(step)}, "ok", thinking=THOUGHT)
    items = script.items()
    assert thinks(without(items, first=1, last=2)) == [3, 13]


def test_the_running_turn_keeps_all_its_thinking_in_other_formats() -> None:
    script = Script().user("hi").says("hello", thinking=THOUGHT).user("Fix it.")
    for step in range(6):
        script.calls("bash", {"command": str(step)}, "ok", thinking=THOUGHT)
    items = script.items()
    assert thinks(without(items, first=1, last=2)) == [3, 5, 7, 9, 11, 13]


def only_thinking(*more: Text) -> list[Item]:
    items = turns("anthropic", 3).items()
    message = items[3].message.with_parts([Thinking(text=THOUGHT, signature="x" * 300), *more])
    items[3] = Original(number=4, message=message, tokens=60)
    return items


@pytest.mark.parametrize("more", [(), (Text(text=""),), (Text(text=" \n"),)], ids=["alone", "empty", "blank"])
def test_a_message_that_says_nothing_else_keeps_its_thinking(more: tuple[Text, ...]) -> None:
    items = only_thinking(*more)
    assert without(items)[3] is items[3]


@pytest.mark.parametrize("more", [(), (Text(text=""),), (Text(text=" \n"),)], ids=["alone", "empty", "blank"])
def test_where_its_model_would_refuse_it_a_line_stands_for_it(more: tuple[Text, ...]) -> None:
    """The message cannot be empty either."""
    left = reasoning.strip_behind(only_thinking(*more), 0, making())[3]
    assert not left.message.thinking
    assert reasoning.LEFT_OUT in left.message.text


def test_thinking_that_takes_no_tokens_is_not_worth_a_change() -> None:
    items = turns("anthropic", 3).items()
    silent = replace(items[3].message.thinking[0], text="", signature="short", redacted=True)
    message = items[3].message.with_parts([silent, Text(text="answer")])
    items[3] = Original(number=4, message=message, tokens=making().size(message))
    assert without(items)[3] is items[3]


def test_for_models_that_bind_thinking_all_of_it_goes_behind_the_first_change_and_none_before() -> None:
    items = turns("anthropic", 3).items()
    after = reasoning.strip_behind(items, 4, making())
    assert thinks(after) == [1, 3]
    assert all(new is old for new, old in zip(after[:4], items[:4], strict=True))
    assert isinstance(after[-1], Edited)
    assert after[-1].original is items[-1].message


def test_hidden_thinking_counts_by_its_signature() -> None:
    items = turns("anthropic", 3).items()
    hidden = Thinking(text="", signature="x" * 4_200)
    message = items[3].message.with_parts([hidden, Text(text="answer")])
    items[3] = Original(number=4, message=message, tokens=making().size(message))
    proposal = offer_of(reasoning.NAME, asked(items))
    assert proposal is not None
    (target,) = (target for target in proposal.targets if target.item == 3)
    assert target.tokens == pytest.approx(0.18 * 4_000, rel=0.05)


def test_dropping_twice_is_dropping_once() -> None:
    once = without(turns("anthropic", 4).items())
    assert offer_of(reasoning.NAME, asked(once)) is None
