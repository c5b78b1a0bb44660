"""What importers share: decoding messages and usage, building recordings, and making them playable."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import Any

from msgspec import Raw, Struct, field
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.formats.usage import decode_anthropic_usage, decode_openai_usage
from lowwater.core.messages import AnyPart, CallIds, Format, Message, Text
from lowwater.core.strict_json import read_fields, write_json
from lowwater.core.summary.activity import own_words
from lowwater.errors import MalformedMessage
from lowwater.logs.files import RecordedFile, SharedCalls, read_or
from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage, Recording

ChatFields = dict[str, Any]
"""The fields of an OpenAI chat message."""
STUB = "[no result was recorded]"
"""The result of a tool call without a recorded one; providers refuse calls without results."""


# Messages, usage and recordings

_ANTHROPIC_FIGURES = {"cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"}
_CHAT_FIGURES = {"prompt_tokens", "prompt_tokens_details", "input_tokens_details"}


def decode_recorded(raw: bytes, format: Format, *, file: RecordedFile, where: int | str) -> Message | None:
    """Return the message in `raw`; if it is malformed, count the place as broken and return None."""
    with file.broken_at(where):
        try:
            return decode_messages([raw], format)[0]
        except MalformedMessage as error:
            file.broken(where, error.problem)
    return None


def decode_chat_fields(message: object, *, file: RecordedFile, where: int | str) -> Message | None:
    """Return the chat message with these fields; if it is malformed, count the place as broken and return None."""
    with file.broken_at(where):
        return decode_recorded(write_json(message), "openai_chat", file=file, where=where)
    return None


def usage_in(raw: bytes, *, file: RecordedFile, where: int | str) -> Usage | None:
    """Return the usage reported by OpenAI or Anthropic; None if it has no prompt tokens.

    Both use the name `input_tokens`, which includes cached tokens at OpenAI and excludes them at Anthropic; the other fields
    show whose it is.
    """
    if raw.strip() in (b"", b"null", b"{}"):
        return None
    with file.broken_at(where):
        names = set(read_fields(raw))
        of_chat = bool(names & _CHAT_FIGURES) or not names & _ANTHROPIC_FIGURES
        usage = decode_openai_usage(raw) if of_chat else decode_anthropic_usage(raw)
        return usage if usage.prompt else None
    return None


def text_of_content(value: Raw) -> str:
    """Return a JSON value as text: a string's content, anything else as its JSON."""
    raw = bytes(value)
    return read_or(raw, raw.decode(errors="replace"))


def function_call(id: str, name: str, arguments: Raw) -> ChatFields:
    """Return a tool call as a chat message has it."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text_of_content(arguments)}}


def usage_with_cached(
    prompt: int | None, *, read: int | None, written: int | None = None, output: int | None
) -> Usage:
    """Return the usage in parts that do not overlap, from prompt tokens that include cache reads and writes."""
    whole = prompt or 0
    cached = min(read or 0, whole)
    stored = min(written or 0, whole - cached)
    return Usage(uncached=whole - cached - stored, cache_read=cached, cache_write=stored, output=output or 0)


def model_of_most(messages: Iterable[RecordedMessage]) -> str:
    """Return the model named by most calls; empty if there is none."""
    named = Counter(message.call.model for message in messages if message.call and message.call.model)
    return named.most_common(1)[0][0] if named else ""


def build_recording(
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
    parent: str = "",
    relation: str = "",
    project: str = "",
    shared: int = 0,
    usage: Usage | None = None,
) -> Recording:
    """Return the recording; `model` is used if no call names one, `started_at` instead of the first message's time."""
    times = (each.at for each in messages if each.at is not None)
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
        parent=parent,
        relation=relation,
        project=project,
        shared=shared,
        usage=usage,
    )


# Recordings that can be sent again

MAX_PLAUSIBLE_TOKENS = 100_000_000
"""Larger figures are errors in the recording and are dropped."""
_HARNESS_KINDS = ("meta", "attachment", "synthetic")
_TAG = "system-reminder"
"""The tag that Claude Code puts around its own text in user messages."""


def playable(recording: Recording) -> Recording:
    """Return the recording in a form that can be sent again.

    Empty messages are left out unless they were billed. Tool calls with an id that was used before get a new id, and so do
    their results. Text that the harness wrote in the user's role is put into tags, because the message alone does not show it.
    """
    kept = [each.call is not None or not is_empty(each.message) for each in recording.messages]
    ids = CallIds()
    messages = tuple(
        replace(
            each, message=_with_unique_ids(_with_harness_tags(each), ids), call=_plausible_call(each.call)
        )
        for each, keep in zip(recording.messages, kept, strict=True)
        if keep
    )
    places = [0, *accumulate(kept)]
    return replace(
        recording,
        messages=messages,
        shared=places[recording.shared],
        compactions=tuple(_moved_compaction(each, places) for each in recording.compactions),
    )


def _moved_compaction(compaction: NativeCompaction, places: list[int]) -> NativeCompaction:
    """Return a compaction with its index adjusted to the messages that are left."""
    before, removed = (
        figure if figure is not None and 0 <= figure <= MAX_PLAUSIBLE_TOKENS else None
        for figure in (compaction.before, compaction.removed)
    )
    index = places[min(max(compaction.index, 0), len(places) - 1)]
    return replace(compaction, index=index, before=before, removed=removed)


def _plausible_call(call: RecordedCall | None) -> RecordedCall | None:
    """Return a call without implausible figures."""
    if call is None or all(_is_plausible(usage) for usage in (call.usage or Usage(), *call.others)):
        return call
    usage = call.usage if call.usage is not None and _is_plausible(call.usage) else None
    return replace(call, usage=usage, others=tuple(filter(_is_plausible, call.others)))


def _is_plausible(usage: Usage) -> bool:
    return usage.prompt <= MAX_PLAUSIBLE_TOKENS and usage.output <= MAX_PLAUSIBLE_TOKENS


def is_empty(message: Message) -> bool:
    """Return whether a message has no content; hooks without output leave such messages, and providers refuse them."""
    return all(isinstance(part, Text) and not part.text.strip() for part in message.parts)


def _with_harness_tags(recorded: RecordedMessage) -> Message:
    """Return a message with the harness's text in tags; one that is recognised without them stays unchanged."""
    message = recorded.message
    if recorded.kind not in _HARNESS_KINDS or message.role != "user" or not own_words(message):
        return message
    return _with_new_wire(message.with_parts([_tagged_part(part) for part in message.parts]))


def between_tags(text: str) -> str:
    """Return text in the tags that Claude Code uses for its own text."""
    inside = text.replace(f"</{_TAG}", f"< /{_TAG}")
    return f"<{_TAG}>\n{inside}\n</{_TAG}>"


def _tagged_part(part: AnyPart) -> AnyPart:
    if not isinstance(part, Text) or not part.text.strip():
        return part
    return replace(part, text=between_tags(part.text))


def _with_unique_ids(message: Message, ids: CallIds) -> Message:
    """Return a message with call ids that no message before it has, and with results that refer to them."""
    changed = ids.with_unique_ids(message)
    if changed is message:
        return message
    return _with_new_wire(Message(role=message.role, parts=changed.parts, name=message.name), like=message)


def _with_new_wire(message: Message, *, like: Message | None = None) -> Message:
    """Return a changed message with new wire bytes, in the format it came in, or in that of `like`."""
    wire = (like or message).wire
    if wire is None:
        return message
    found = decode_messages(encode_messages([message], wire.format), wire.format)
    return found[0] if len(found) == 1 else message


# Sessions collected item by item


class InputMessage(Struct, kw_only=True):
    """A message that is not an answer."""

    fields: ChatFields
    where: int | str
    at: float | None = None
    kind: str = ""

    @property
    def is_prompt(self) -> bool:
        """Whether the user wrote it."""
        return self.fields["role"] == "user" and not self.kind


class GatheredResult(Struct, frozen=True, kw_only=True):
    """The result of a tool call."""

    content: object
    where: int | str
    at: float | None = None
    is_error: bool = False

    def fields(self, call: str) -> ChatFields:
        """Return its fields as a chat message."""
        fields: ChatFields = {"role": "tool", "tool_call_id": call, "content": self.content}
        return fields | {"is_error": True} if self.is_error else fields


class GatheredAnswer(Struct, kw_only=True):
    """A model's answer, whose parts may be recorded one by one; `key` is the same in every copy of it."""

    where: int | str
    at: float | None = None
    key: str = ""
    model: str = ""
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ChatFields] = field(default_factory=list)
    results: dict[str, GatheredResult] = field(default_factory=dict)
    """By call id."""
    usage: Usage | None = None
    others: list[Usage] = field(default_factory=list)
    made_by: str = ""
    """The session that it was copied from; empty if it is the session's own."""

    @property
    def is_void(self) -> bool:
        """Whether it has no content and no usage."""
        return not (self.texts or self.thoughts or self.calls or self.usage or self.others)

    def identity(self) -> str:
        """Return a digest that identifies the answer; empty if too little is recorded.

        Not all providers give answers unique ids, so the digest includes the content.
        """
        if not (self.key or (self.texts and self.usage)):
            return ""
        content = write_json([self.key, self.texts, self.calls, self.usage])
        return blake2b(content, digest_size=16).hexdigest()

    def fields(self) -> ChatFields:
        """Return its fields as a chat message."""
        fields: ChatFields = {"role": "assistant", "content": "\n\n".join(self.texts)}
        if self.thoughts:
            fields["reasoning_content"] = "\n\n".join(self.thoughts)
        if self.calls:
            fields["tool_calls"] = self.calls
        return fields


class AgentCompaction(Struct, frozen=True, kw_only=True):
    """A compaction by the recording agent."""

    at: float | None = None
    trigger: str = ""
    before: int | None = None
    version: str = ""


SessionItem = InputMessage | GatheredAnswer | AgentCompaction


class ChatSession:
    """Collects the items of a session and its abandoned branches, and yields them as recordings."""

    def __init__(self, file: RecordedFile) -> None:
        self.items: list[SessionItem] = []
        self._file = file
        self._left: list[list[SessionItem]] = []
        self._early: dict[str, GatheredResult] = {}

    def result(self, call: str, result: GatheredResult) -> None:
        """Attach a result to the last answer that made the call, in whatever order they are recorded."""
        for item in reversed(self.items):
            if isinstance(item, GatheredAnswer) and any(asked["id"] == call for asked in item.calls):
                item.results.setdefault(call, result)
                return
        self._early.setdefault(call, result)

    def rewind(self, to: int) -> None:
        """Go back to the first `to` items; the rest becomes a fork if it has a model call."""
        if any(isinstance(item, GatheredAnswer) for item in self.items[to:]):
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
        """Yield the session, then its forks, except those whose calls other sessions have recorded."""
        self._place_early()
        for number, items in enumerate([self.items, *self._left]):
            sharing = SharedCalls(session=f"{id}/fork-{number}" if number else id)
            branch = _BranchBuilder(self._file, sharing)
            for item in items:
                branch.add(item)
            if not branch.messages or sharing.is_copy:
                continue
            recording = build_recording(
                self._file,
                id=sharing.session,
                agent=agent,
                messages=branch.messages,
                compactions=branch.compactions,
                model=model,
                system=system,
                started_at=started_at,
            )
            if number:
                yield sharing.related(recording, parent=id, relation="fork")
            else:
                yield sharing.related(recording, parent=parent, relation=relation)

    def _place_early(self) -> None:
        """Attach results that were recorded before their calls; results without a call are counted as broken."""
        early, self._early = self._early, {}
        for call, result in early.items():
            self.result(call, result)
        for result in self._early.values():
            self._file.broken(result.where, "the result of a tool call that was not recorded")


class _BranchBuilder:
    """Turns the items of one branch into recorded messages."""

    def __init__(self, file: RecordedFile, sharing: SharedCalls) -> None:
        self.messages: list[RecordedMessage] = []
        self.compactions: list[NativeCompaction] = []
        self._file, self._sharing = file, sharing

    def add(self, item: SessionItem) -> None:
        match item:
            case InputMessage():
                self._say(item.fields, where=item.where, at=item.at, kind=item.kind)
            case GatheredAnswer():
                self._answer(item)
            case AgentCompaction():
                self.compactions.append(
                    NativeCompaction(
                        index=len(self.messages),
                        at=item.at,
                        trigger=item.trigger,
                        before=item.before,
                        version=item.version,
                    )
                )

    def _answer(self, answer: GatheredAnswer) -> None:
        if answer.is_void:
            return
        call = None
        identity = answer.identity()
        if self._sharing.records(self._file, identity or f"{self._file.path} {answer.where}"):
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

    def _result(self, call: str, answer: GatheredAnswer) -> None:
        result = answer.results.get(call)
        if result and self._say(result.fields(call), where=result.where, at=result.at):
            return
        stub = GatheredResult(content=STUB, where=answer.where)
        self._say(stub.fields(call), where=answer.where, at=answer.at, kind="synthetic")

    def _say(
        self,
        fields: ChatFields,
        *,
        where: int | str,
        at: float | None,
        call: RecordedCall | None = None,
        kind: str = "",
    ) -> bool:
        message = decode_chat_fields(fields, file=self._file, where=where)
        if message is None:
            return False
        self.messages.append(RecordedMessage(message=message, at=at, call=call, kind=kind))
        return True
