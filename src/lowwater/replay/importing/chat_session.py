"""A session that is written as events: gathered message by message, with results, rewinds and compactions in place."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from msgspec import Struct, field

from lowwater.core.api_calls import Usage
from lowwater.core.strict_json import write_json
from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage, Recording
from lowwater.replay.importing.decoding import decoded_object
from lowwater.replay.importing.gathering import STUB, gathered
from lowwater.replay.importing.lines import RecordedFile
from lowwater.replay.importing.sharing import Sharing

Fields = dict[str, Any]
"""Those of an OpenAI chat message, about to be written as JSON."""


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
