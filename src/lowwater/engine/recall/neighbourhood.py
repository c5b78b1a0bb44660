"""What stands around a message: the group it belongs to and its neighbours, read no further than needed."""

from collections.abc import Sequence

from lowwater.values.entries import Numbers
from lowwater.values.ledger import Numbered
from lowwater.values.parts import ToolCall
from lowwater.values.recalled import Told

_REACH = 64
"""How far a result may be from its call to be found with it."""


def told(messages: Sequence[Numbered], numbers: Numbers) -> list[Told]:
    """Return the messages with these numbers."""
    read = messages[numbers.first - 1 : numbers.last]
    return [
        Told(number=number, message=one.message, tokens=one.tokens)
        for number, one in enumerate(read, start=numbers.first)
    ]


def group_of(messages: Sequence[Numbered], number: int) -> Numbers:
    """Return the group a message is in: a tool result with its call, a call with its results; else itself alone."""
    first = _first(messages, number)
    return Numbers(first=first, last=max(number, _last(messages, first)))


def calls_answered(messages: Sequence[Numbered], number: int) -> list[ToolCall]:
    """Return the calls that the results in a message answer, as far as they are near."""
    wanted = {result.call_id for result in messages[number - 1].message.results}
    first = _first(messages, number) if wanted else number
    return [call for call in messages[first - 1].message.calls if call.id in wanted]


def around(messages: Sequence[Numbered], group: Numbers, by: int) -> Numbers:
    """Return the group with `by` messages before and after it."""
    return Numbers(first=max(1, group.first - by), last=min(len(messages), group.last + by))


def _first(messages: Sequence[Numbered], number: int) -> int:
    """Return the number of the message with the call that a message answers, its own if there is none near."""
    wanted = {result.call_id for result in messages[number - 1].message.results}
    if not wanted:
        return number
    for before in range(number - 1, max(0, number - 1 - _REACH), -1):
        if any(call.id in wanted for call in messages[before - 1].message.calls):
            return before
    return number


def _last(messages: Sequence[Numbered], first: int) -> int:
    """Return the number of the message with the last answer to the calls in a message, its own if there is none near."""
    last = first
    wanted = {call.id for call in messages[first - 1].message.calls}
    for after in range(first + 1, min(len(messages), first + _REACH) + 1):
        if not wanted:
            break
        message = messages[after - 1].message
        if message.role == "assistant":
            break
        answered = {result.call_id for result in message.results} & wanted
        if answered:
            last = after
            wanted -= answered
    return last
