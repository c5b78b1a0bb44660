"""The structure of a list of messages: groups that must not be split, turns, and where the list may be cut."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from lowwater.core.messages import Message, ToolCall, ToolResult
from lowwater.core.stored_form import stored_as


class Span(Struct, frozen=True, kw_only=True, rename=stored_as("span"), forbid_unknown_fields=True):
    """The messages at indexes `start` to `stop`, the latter not included."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


def groups(messages: Sequence[Message]) -> list[Span]:
    """Partition `messages` into groups that must not be split.

    An assistant message with tool calls forms a group with everything up to the last of its results, wherever a client
    put that; any other message is a group of its own.
    """
    return [Span(start=start, stop=stop) for start, stop in pairwise(legal_cuts(messages))]


def legal_cuts(messages: Sequence[Message]) -> list[int]:
    """Return the indexes at which `messages` may be cut without splitting a group, including both ends."""
    results_end = _results_end(messages)
    cuts = [0]
    stop = 0
    for index in range(len(messages)):
        stop = max(stop, index + 1, results_end.get(index, 0))
        if stop == index + 1:
            cuts.append(stop)
    return cuts


def _results_end(messages: Sequence[Message]) -> dict[int, int]:
    """Return, for each message whose calls have results, the index after the last of these."""
    owner: dict[str, int] = {}
    ends: dict[int, int] = {}
    for index, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolResult):
                if part.call_id in owner:
                    ends[owner[part.call_id]] = index + 1
            elif isinstance(part, ToolCall):
                owner[part.id] = index
    return ends


def turns(messages: Sequence[Message]) -> list[Span]:
    """Partition `messages` into turns, each of which ends with an answer of the model.

    What follows the last answer is the turn in progress.
    """
    spans: list[Span] = []
    start = 0
    for index, message in enumerate(messages):
        if message.role == "assistant":
            spans.append(Span(start=start, stop=index + 1))
            start = index + 1
    if start < len(messages):
        spans.append(Span(start=start, stop=len(messages)))
    return spans


class Unpaired(Struct, frozen=True, kw_only=True):
    """Calls and results that do not pair up, each as message index and call id."""

    calls: tuple[tuple[int, str], ...]
    """Calls that other messages follow, but never their result."""
    results: tuple[tuple[int, str], ...]
    """Results whose call does not come before them."""
    repeated: tuple[tuple[int, str], ...]
    """Calls and results that use an id again."""

    def __bool__(self) -> bool:
        return bool(self.calls or self.results or self.repeated)


def unpaired(messages: Sequence[Message]) -> Unpaired:
    """Return calls without results, results without calls, and ids used twice; the newest calls may still be open."""
    called: dict[str, int] = {}
    answered: set[str] = set()
    orphans: list[tuple[int, str]] = []
    repeated: list[tuple[int, str]] = []
    newest_call = -1
    for index, message in enumerate(messages):
        for result in message.results:
            if result.call_id not in called:
                orphans.append((index, result.call_id))
            elif result.call_id in answered:
                repeated.append((index, result.call_id))
            answered.add(result.call_id)
        for call in message.calls:
            newest_call = index
            if call.id in called:
                repeated.append((index, call.id))
            called[call.id] = index
            answered.discard(call.id)
    followed = any(message.role == "assistant" for message in messages[newest_call + 1 :])
    open_calls = tuple(
        (index, call_id)
        for call_id, index in called.items()
        if call_id not in answered and (index != newest_call or followed)
    )
    return Unpaired(calls=open_calls, results=tuple(orphans), repeated=tuple(repeated))
