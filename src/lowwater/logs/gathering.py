"""From single recorded messages to whole recordings that can be played."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import Any

from msgspec import Raw, Struct, field
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.formats.usage import decode_anthropic_usage as anthropic_usage
from lowwater.core.formats.usage import decode_openai_usage as chat_usage
from lowwater.core.messages import AnyPart, Format, Message, Text, ToolCall, ToolResult
from lowwater.core.strict_json import read_fields, read_json, write_json
from lowwater.core.summary.activity import own_words
from lowwater.errors import BadInput, MalformedMessage
from lowwater.logs.files import RecordedFile, Sharing
from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage, Recording

_ANTHROPIC_FIGURES = {"cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"}
_CHAT_FIGURES = {"prompt_tokens", "prompt_tokens_details", "input_tokens_details"}
STUB = "[no result was recorded]"
"""The result of a tool call that has none in the recording: without one it could not be sent again."""
MOST_TOKENS = 100_000_000
"""A call with more is a mistake in the recording: its figures are not believed."""
_OF_THE_HARNESS = ("meta", "attachment", "synthetic")
_TAG = "system-reminder"
"""What Claude Code puts around what it says in the user's role."""
Fields = dict[str, Any]
"""Those of an OpenAI chat message, about to be written as JSON."""


def decoded(raw: bytes, format: Format, *, file: RecordedFile, where: int | str) -> Message | None:
    """Return the message in `raw`; None, and the place is counted as broken, if it is none."""
    try:
        return decode_messages([raw], format)[0]
    except MalformedMessage as error:
        file.broken(where, error.problem)
    except BadInput as error:
        file.broken(where, str(error))
    return None


def decoded_object(message: object, *, file: RecordedFile, where: int | str) -> Message | None:
    """Return a chat message that an importer made of other fields; None, and counted as broken, if it is none."""
    try:
        raw = write_json(message)
    except BadInput as error:
        file.broken(where, str(error))
        return None
    return decoded(raw, "openai_chat", file=file, where=where)


def usage_in(raw: bytes, *, file: RecordedFile, where: int | str) -> Usage | None:
    """Return the usage that a provider reported, whichever it was; None if it says nothing of the prompt.

    Both say `input_tokens`, which counts cached tokens at OpenAI and does not at Anthropic: the names beside it tell.
    """
    if raw.strip() in (b"", b"null", b"{}"):
        return None
    try:
        names = set(read_fields(raw))
        of_chat = bool(names & _CHAT_FIGURES) or not names & _ANTHROPIC_FIGURES
        usage = chat_usage(raw) if of_chat else anthropic_usage(raw)
    except BadInput as error:
        file.broken(where, str(error))
        return None
    return usage if usage.prompt else None


def model_of_most(messages: Iterable[RecordedMessage]) -> str:
    """Return the model that most calls name; empty if none does."""
    named = Counter(message.call.model for message in messages if message.call and message.call.model)
    return named.most_common(1)[0][0] if named else ""


def gathered(
    file: RecordedFile,
    *,
    id: str,
    agent: str,
    messages: Sequence[RecordedMessage],
    compactions: Sequence[NativeCompaction] = (),
    system: bytes = b"",
    tools: bytes = b"",
    model: str = "",
    started_at: float | None = None,
) -> Recording:
    """Return the recording; `model` and `started_at` count where calls name no model and the file says when it began."""
    times = (said.at for said in messages if said.at is not None)
    return Recording(
        id=id,
        agent=agent,
        path=str(file.path),
        messages=tuple(messages),
        model=model_of_most(messages) or model,
        started_at=next(times, None) if started_at is None else started_at,
        system=system,
        tools=tools,
        compactions=tuple(compactions),
    )


def text_of(value: Raw) -> str:
    """Return JSON as a model reads it: a string as it is, anything else as it was written."""
    raw = bytes(value)
    try:
        return read_json(raw, str)
    except BadInput:
        return raw.decode(errors="replace")


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


class Said(Struct, kw_only=True):
    """A message that is no answer."""

    fields: Fields
    where: int | str
    at: float | None = None
    kind: str = ""

    @property
    def is_prompt(self) -> bool:
        """Whether the user said it."""
        return self.fields["role"] == "user" and not self.kind


class Result(Struct, frozen=True, kw_only=True):
    """What a tool answered."""

    content: object
    where: int | str
    at: float | None = None
    is_error: bool = False

    def fields(self, call: str) -> Fields:
        """Return the chat message it makes."""
        fields: Fields = {"role": "tool", "tool_call_id": call, "content": self.content}
        return fields | {"is_error": True} if self.is_error else fields


class Answer(Struct, kw_only=True):
    """A model's answer, whose parts may come one by one; `key` is the same in every copy of it."""

    where: int | str
    at: float | None = None
    key: str = ""
    model: str = ""
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[Fields] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    """By the ids of the calls."""
    usage: Usage | None = None
    others: list[Usage] = field(default_factory=list)
    made_by: str = ""
    """The session it was copied from; empty for the session's own."""

    @property
    def is_void(self) -> bool:
        """Whether nothing came of it, and nothing was billed that is known."""
        return not (self.texts or self.thoughts or self.calls or self.usage or self.others)

    def identity(self) -> str:
        """Return what tells it from all other answers as far as that is recorded; empty if nothing does.

        Not all providers give calls and answers ids of their own, so that the contents count too.
        """
        if not (self.key or (self.texts and self.usage)):
            return ""
        content = write_json([self.key, self.texts, self.calls, self.usage])
        return blake2b(content, digest_size=16).hexdigest()

    def fields(self) -> Fields:
        """Return the chat message it makes."""
        fields: Fields = {"role": "assistant", "content": "\n\n".join(self.texts)}
        if self.thoughts:
            fields["reasoning_content"] = "\n\n".join(self.thoughts)
        if self.calls:
            fields["tool_calls"] = self.calls
        return fields


class Compacted(Struct, frozen=True, kw_only=True):
    """A compaction by the agent itself."""

    at: float | None = None
    trigger: str = ""
    before: int | None = None


Item = Said | Answer | Compacted


class ChatSession:
    """What was said so far, and the branches that were left."""

    def __init__(self, file: RecordedFile) -> None:
        self.items: list[Item] = []
        self._file = file
        self._left: list[list[Item]] = []
        self._early: dict[str, Result] = {}

    def result(self, call: str, result: Result) -> None:
        """Give a result to the last answer that made the call; it will stand behind it, whenever it comes."""
        for item in reversed(self.items):
            if isinstance(item, Answer) and any(asked["id"] == call for asked in item.calls):
                item.results.setdefault(call, result)
                return
        self._early.setdefault(call, result)

    def rewind(self, to: int) -> None:
        """Go back to so many items; what is left behind is a fork if a model was called on it."""
        if any(isinstance(item, Answer) for item in self.items[to:]):
            self._left.append(self.items)
        self.items = self.items[:to]

    def recordings(
        self,
        *,
        id: str,
        agent: str,
        parent: str = "",
        relation: str = "",
        model: str = "",
        system: bytes = b"",
        started_at: float | None = None,
    ) -> Iterator[Recording]:
        """Yield the session, then its forks; not those whose calls other sessions have told."""
        self._place_early()
        for number, items in enumerate([self.items, *self._left]):
            sharing = Sharing(session=f"{id}/fork-{number}" if number else id)
            told = _Told(self._file, sharing)
            for item in items:
                told.add(item)
            if not told.messages or sharing.is_copy:
                continue
            recording = gathered(
                self._file,
                id=sharing.session,
                agent=agent,
                messages=told.messages,
                compactions=told.compactions,
                model=model,
                system=system,
                started_at=started_at,
            )
            if number:
                yield sharing.related(recording, parent=id, relation="fork")
            else:
                yield sharing.related(recording, parent=parent, relation=relation)

    def _place_early(self) -> None:
        """Give results that were written down before their calls to these; those without any are broken."""
        early, self._early = self._early, {}
        for call, result in early.items():
            self.result(call, result)
        for result in self._early.values():
            self._file.broken(result.where, "the result of a tool call that was not recorded")


class _Told:
    """One branch as recorded messages."""

    def __init__(self, file: RecordedFile, sharing: Sharing) -> None:
        self.messages: list[RecordedMessage] = []
        self.compactions: list[NativeCompaction] = []
        self._file, self._sharing = file, sharing

    def add(self, item: Item) -> None:
        match item:
            case Said():
                self._say(item.fields, where=item.where, at=item.at, kind=item.kind)
            case Answer():
                self._answer(item)
            case Compacted():
                self.compactions.append(
                    NativeCompaction(
                        index=len(self.messages), at=item.at, trigger=item.trigger, before=item.before
                    )
                )

    def _answer(self, answer: Answer) -> None:
        if answer.is_void:
            return
        call = None
        identity = answer.identity()
        if self._sharing.tells(self._file, identity or f"{self._file.path} {answer.where}"):
            call = RecordedCall(
                model=answer.model,
                usage=answer.usage,
                others=tuple(answer.others),
                id=identity,
                made_by=answer.made_by,
            )
        if self._say(answer.fields(), where=answer.where, at=answer.at, call=call):
            for asked in answer.calls:
                self._result(str(asked["id"]), answer)
        self._sharing.answered(len(self.messages))

    def _result(self, call: str, answer: Answer) -> None:
        result = answer.results.get(call)
        if result and self._say(result.fields(call), where=result.where, at=result.at):
            return
        stub = Result(content=STUB, where=answer.where)
        self._say(stub.fields(call), where=answer.where, at=answer.at, kind="synthetic")

    def _say(
        self,
        fields: Fields,
        *,
        where: int | str,
        at: float | None,
        call: RecordedCall | None = None,
        kind: str = "",
    ) -> bool:
        message = decoded_object(fields, file=self._file, where=where)
        if message is None:
            return False
        self.messages.append(RecordedMessage(message=message, at=at, call=call, kind=kind))
        return True
