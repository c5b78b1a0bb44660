"""Gemini CLI: a session as one JSON object, or as lines that replace, add and take back messages."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct

from lowwater.core.strict_json import read_json
from lowwater.errors import BadInput
from lowwater.logs.recording import Recording
from lowwater.replay.importing.chat_session import ChatSession, Compacted, Item, Said
from lowwater.replay.importing.gemini_cli_messages import Message, answer_of, text_in
from lowwater.replay.importing.lines import RecordedFile
from lowwater.replay.importing.outline import fields_in
from lowwater.replay.importing.times import seconds


class _Record(Struct, rename={"set": "$set", "rewind_to": "$rewindTo"}):
    """One line, or the whole file: a message if it has an id and a type, else what is to change."""

    id: str | None = None
    type: str | None = None
    sessionId: str | None = None  # noqa: N815  # Gemini's spelling, here and below
    startTime: Any = None  # noqa: N815
    kind: str | None = None
    messages: list[Raw] | None = None
    set: Raw = Raw(b"")
    rewind_to: str | None = None


class GeminiCli:
    """One session a file; those of sub-agents lie in a folder named after their parent."""

    name = "gemini-cli"

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Tell by the fields of the object around the messages, or of the line before them."""
        names = fields_in(head).keys()
        return {"sessionId", "startTime"} <= names and bool({"projectHash", "messages", "kind"} & names)

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield the session and the branches that were taken back."""
        chat = _Chat(file)
        lines = file.lines()
        first = next(lines, None)
        if first is not None and fields_in(first.data) and _is_whole(first.data):
            chat.add(first.data, first.number)
            for line in lines:
                chat.add(line.data, line.number)
        else:
            file.take_broken()
            chat.add(file.whole(), 1)
        yield from chat.recordings()


class _Chat:
    """One session so far."""

    def __init__(self, file: RecordedFile) -> None:
        self._file = file
        self._id = ""
        self._kind = ""
        self._started_at: float | None = None
        self._session = ChatSession(file)
        self._known: dict[str, int] = {}

    def add(self, data: bytes, where: int | str) -> None:
        try:
            record = read_json(data, _Record)
            if record.rewind_to is not None:
                self._rewind(record.rewind_to)
            elif record.id and record.type:
                self._message(read_json(data, Message), where)
            elif bytes(record.set):
                self._change(read_json(bytes(record.set), _Record), where)
            else:
                self._change(record, where)
        except BadInput as error:
            self._file.broken(where, str(error))

    def recordings(self) -> Iterator[Recording]:
        subagent = self._kind == "subagent"
        parent = self._file.path.parent.name
        return self._session.recordings(
            id=self._id or self._file.path.stem,
            agent=GeminiCli.name,
            parent=parent if subagent else "",
            relation="subagent" if subagent else "",
            started_at=self._started_at,
        )

    def _change(self, record: _Record, where: int | str) -> None:
        self._id = record.sessionId or self._id
        self._kind = record.kind or self._kind
        self._started_at = seconds(record.startTime) or self._started_at
        if record.messages is not None:
            self._replace(record.messages, where)

    def _replace(self, raws: Sequence[Raw], where: int | str) -> None:
        """Take a new list of messages: a shorter one goes back, one that begins with others is a compaction."""
        messages: list[Message] = []
        for number, raw in enumerate(raws, start=1):
            try:
                messages.append(read_json(bytes(raw), Message))
            except BadInput as error:
                self._file.broken(f"{where} message {number}", str(error))
        places = [self._known.get(message.id) for message in messages]
        compacts = bool(self._known) and bool(places) and places[0] is None
        if compacts:
            self._session.items.append(Compacted(at=seconds(messages[0].timestamp)))
        elif self._known and None not in places:
            self._back_to(1 + max((place for place in places if place is not None), default=-1))
        for number, (message, place) in enumerate(zip(messages, places, strict=True), start=1):
            if place is None:
                self._message(message, f"{where} message {number}", is_summary=compacts and number == 1)

    def _rewind(self, to: str) -> None:
        """Take back that message and all behind it; all there are if it is not known."""
        self._back_to(self._known.get(to, 0))

    def _back_to(self, place: int) -> None:
        self._session.rewind(place)
        self._known = {id: known for id, known in self._known.items() if known < place}

    def _message(self, message: Message, where: int | str, *, is_summary: bool = False) -> None:
        at = seconds(message.timestamp)
        item: Item
        match message.type:
            case "gemini":
                item = answer_of(message, where, at)
            case "user":
                fields = {"role": "user", "content": text_in(message.content)}
                item = Said(fields=fields, where=where, at=at, kind="compact_summary" if is_summary else "")
            case _:
                return
        place = len(self._session.items)
        if message.id:
            place = self._known.setdefault(message.id, place)
        if place < len(self._session.items):
            self._session.items[place] = item
        else:
            self._session.items.append(item)


def _is_whole(data: bytes) -> bool:
    try:
        read_json(data, _Record)
    except BadInput:
        return False
    return True
