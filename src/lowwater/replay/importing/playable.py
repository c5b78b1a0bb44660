"""Makes what an importer read playable: nothing empty, every call with an id of its own, the harness's words marked.

Agents write down more than they send, and some of it no provider takes. Importers tell what stands in the file; what has
to be mended in the recordings of any of them is mended here.
"""

from collections import Counter, deque
from itertools import accumulate

from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.messages import AnyPart, Message, Text, ToolCall, ToolResult
from lowwater.core.summary.activity import own_words
from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage, Recording

MOST_TOKENS = 100_000_000
"""A call with more is a mistake in the recording: its figures are not believed."""
_OF_THE_HARNESS = ("meta", "attachment", "synthetic")
_TAG = "system-reminder"
"""What Claude Code puts around what it says in the user's role."""


def playable(recording: Recording) -> Recording:
    """Return the recording as it can be sent again.

    Empty messages are left out unless they were billed. A call whose id another one of the session has gets a new id, and
    its result with it. What a harness says in the user's role is marked as such, for the message alone does not tell.
    """
    kept = [each.call is not None or not is_empty(each.message) for each in recording.messages]
    ids = _Ids()
    messages = tuple(
        replace(each, message=ids.told_apart(_marked(each)), call=_believed(each.call))
        for each, keep in zip(recording.messages, kept, strict=True)
        if keep
    )
    places = [0, *accumulate(kept)]
    return replace(
        recording,
        messages=messages,
        shared=places[recording.shared],
        compactions=tuple(_placed(each, places) for each in recording.compactions),
    )


def _placed(compaction: NativeCompaction, places: list[int]) -> NativeCompaction:
    """Return a compaction at the place that its message has among those that are left."""
    before, removed = (
        figure if figure is not None and 0 <= figure <= MOST_TOKENS else None
        for figure in (compaction.before, compaction.removed)
    )
    index = places[min(max(compaction.index, 0), len(places) - 1)]
    return replace(compaction, index=index, before=before, removed=removed)


def _believed(call: RecordedCall | None) -> RecordedCall | None:
    """Return a call without figures that no call can have."""
    if call is None or all(_is_plausible(usage) for usage in (call.usage or Usage(), *call.others)):
        return call
    usage = call.usage if call.usage is not None and _is_plausible(call.usage) else None
    return replace(call, usage=usage, others=tuple(filter(_is_plausible, call.others)))


def _is_plausible(usage: Usage) -> bool:
    return usage.prompt <= MOST_TOKENS and usage.output <= MOST_TOKENS


def is_empty(message: Message) -> bool:
    """Return whether a message says nothing at all: hooks without output leave such ones, and no provider takes them."""
    return all(isinstance(part, Text) and not part.text.strip() for part in message.parts)


def _marked(recorded: RecordedMessage) -> Message:
    """Return a message with the harness's words between tags; one that is recognised without them stays as it came."""
    message = recorded.message
    if recorded.kind not in _OF_THE_HARNESS or message.role != "user" or not own_words(message):
        return message
    return _rewritten(message.with_parts([_marked_part(part) for part in message.parts]))


def between_tags(text: str) -> str:
    """Return what a harness says as one that marks it would send it."""
    inside = text.replace(f"</{_TAG}", f"< /{_TAG}")
    return f"<{_TAG}>\n{inside}\n</{_TAG}>"


def _marked_part(part: AnyPart) -> AnyPart:
    if not isinstance(part, Text) or not part.text.strip():
        return part
    return replace(part, text=between_tags(part.text))


class _Ids:
    """The ids of a session's calls so far, told apart where several have the same."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._number: Counter[str] = Counter()
        self._waiting: dict[str, deque[str]] = {}
        """The calls of the newest message that wait for their results, by the ids they were recorded with."""
        self._latest: dict[str, str] = {}

    def told_apart(self, message: Message) -> Message:
        """Return a message whose calls have ids that no call before has, and whose results name those."""
        for call in message.calls:
            self._waiting[call.id] = deque()
        parts = tuple(self._part(part) for part in message.parts)
        if all(new is old for new, old in zip(parts, message.parts, strict=True)):
            return message
        return _rewritten(Message(role=message.role, parts=parts, name=message.name), like=message)

    def _part(self, part: AnyPart) -> AnyPart:
        match part:
            case ToolCall(id=id):
                new = self._free(id)
                self._taken.add(new)
                self._waiting[id].append(new)
                self._latest[id] = new
                return part if new == id else replace(part, id=new)
            case ToolResult(call_id=id):
                waiting = self._waiting.get(id)
                new = waiting.popleft() if waiting else self._latest.get(id, id)
                return part if new == id else replace(part, call_id=new)
            case _:
                return part

    def _free(self, id: str) -> str:
        new = id
        while new in self._taken:
            self._number[id] += 1
            new = f"{id}-{self._number[id] + 1}"
        return new


def _rewritten(message: Message, *, like: Message | None = None) -> Message:
    """Return a message that was changed with the bytes that say so, in the format it came in, or `like` another."""
    wire = (like or message).wire
    if wire is None:
        return message
    found = decode_messages(encode_messages([message], wire.format), wire.format)
    return found[0] if len(found) == 1 else message
