"""Codex: rollouts of response items and events, with token counts behind each answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct

from lowwater.core.strict_json import read_json, write_json
from lowwater.errors import BadInput
from lowwater.logs.recording import Recording
from lowwater.replay.importing.chat_session import Answer, ChatSession, Compacted, Result, Said
from lowwater.replay.importing.codex_items import (
    RESULTS,
    Item,
    call_of,
    content_of,
    output_of,
    read_item,
    texts_of,
)
from lowwater.replay.importing.codex_usage import Counter
from lowwater.replay.importing.detect import first_objects
from lowwater.replay.importing.lines import Line, RecordedFile
from lowwater.replay.importing.times import seconds, time_in

_KINDS = frozenset({b'"session_meta"', b'"response_item"', b'"turn_context"', b'"event_msg"', b'"compacted"'})
_INJECTED = ("<environment_context>", "<user_instructions>", "<turn_aborted>", "# AGENTS.md instructions")
"""How messages begin that Codex writes in the user's name."""
_COPYING = 1.0
"""Seconds within which a fork writes down what it repeats."""


class _Line(Struct):
    type: str = ""
    timestamp: str | None = None
    payload: Raw = Raw(b"")
    id: str | None = None
    instructions: str | None = None


class _Text(Struct):
    text: str | None = None


class _Spawn(Struct):
    parent_thread_id: str | None = None


class _Subagent(Struct):
    thread_spawn: _Spawn | None = None


class _Source(Struct):
    subagent: Raw = Raw(b"")


class _Meta(Struct):
    id: str | None = None
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    source: Raw = Raw(b"")
    base_instructions: _Text | None = None
    instructions: str | None = None


class _Context(Struct):
    model: str | None = None
    turn_id: Any = None


class _Event(Struct):
    type: str = ""
    info: Raw = Raw(b"null")
    num_turns: int | None = None
    turn_id: Any = None


class _Compaction(Struct):
    message: str | None = None
    replacement_history: list[Raw] | None = None


class Codex:
    """One rollout a file; sub-agents and forks have files of their own, which begin with a copy."""

    name = "codex"

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Tell by the envelope, or by the first line of rollouts that had none yet."""
        found = first_objects(head)
        return any(bytes(line.get("type", b"")) in _KINDS and "payload" in line for line in found) or any(
            {"id", "timestamp", "instructions"} <= line.keys() for line in found[:1]
        )

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield a session for each rollout in the file."""
        rollout = _Rollout(file)
        for line in file.lines():
            said = file.read(line, _Line)
            if said is None:
                continue
            try:
                if rollout.ends_before(said):
                    yield from rollout.recordings()
                    rollout = _Rollout(file)
                rollout.add(line, said)
            except BadInput as error:
                file.broken(line.number, str(error))
        yield from rollout.recordings()


class _Rollout:
    """One session so far."""

    def __init__(self, file: RecordedFile) -> None:
        self._file = file
        self._session = ChatSession(file)
        self._meta: _Meta | None = None
        self._parent = ""
        self._model = ""
        self._answer: Answer | None = None
        self._counter = Counter()
        self._started_at: float | None = None
        self._copied_from = ""
        """The session whose lines are being read, while a fork repeats them."""
        self._copied_at: float | None = None
        """When the turn began that is being repeated: a fork writes its own time on each line."""

    def ends_before(self, said: _Line) -> bool:
        """Tell whether another session begins here; a fork repeats the beginning of the one it comes from."""
        if said.type != "session_meta" or self._meta is None or self._parent:
            return False
        return read_json(bytes(said.payload), _Meta).id != self._meta.id

    def add(self, line: Line, said: _Line) -> None:
        at = seconds(said.timestamp)
        if self._copied_from and at is not None and at - (self._started_at or at) > _COPYING:
            self._copied_from = ""
        match said.type:
            case "session_meta":
                self._begin(read_json(bytes(said.payload), _Meta), at)
            case "turn_context":
                context = read_json(bytes(said.payload), _Context)
                self._model = context.model or self._model
                self._turn(context.turn_id)
            case "response_item":
                self._item(read_item(bytes(said.payload)), line.number, self._time(at))
            case "event_msg":
                self._event(read_json(bytes(said.payload), _Event))
            case "compacted":
                self._compacted(read_json(bytes(said.payload), _Compaction), line.number, self._time(at))
            case "" if said.id:
                self._begin(_Meta(id=said.id, instructions=said.instructions), at)
            case _ if not bytes(said.payload):
                self._item(read_item(line.data), line.number, at)
            case _:
                pass

    def recordings(self) -> Iterator[Recording]:
        meta = self._meta or _Meta()
        system = (meta.base_instructions and meta.base_instructions.text) or meta.instructions or ""
        is_fork = self._parent == meta.forked_from_id
        return self._session.recordings(
            id=meta.id or self._file.path.stem,
            agent=Codex.name,
            parent=self._parent,
            relation="" if not self._parent else "fork" if is_fork else "subagent",
            model=self._model,
            system=write_json(system) if system else b"",
            started_at=self._started_at,
        )

    def _begin(self, meta: _Meta, at: float | None) -> None:
        if self._meta is None:
            self._meta, self._parent, self._started_at = meta, _parent(meta), at
            self._copied_from = meta.forked_from_id or ""

    def _turn(self, id: object) -> None:
        """Take note of the turn that begins: one that began before a fork was made is a copy."""
        began = time_in(id) if isinstance(id, str) else None
        if not self._copied_from or began is None:
            return
        forked = time_in(self._meta.id or "") if self._meta else None
        self._copied_at = began
        if forked is not None and began >= forked:
            self._copied_from = ""

    def _time(self, at: float | None) -> float | None:
        return at if not self._copied_from or self._copied_at is None else self._copied_at

    def _item(self, item: Item | None, number: int, at: float | None) -> None:
        if item is None:
            return
        if item.type in RESULTS:
            if item.call_id:
                self._session.result(item.call_id, Result(content=output_of(item), where=number, at=at))
        elif item.type == "message" and item.role != "assistant":
            self._answer = None
            self._say(item, number, at)
        else:
            self._extend(item, number, at)

    def _say(self, item: Item, number: int, at: float | None) -> None:
        texts = texts_of(item.content)
        is_user = item.role == "user" and not (texts and texts[0].lstrip().startswith(_INJECTED))
        fields = {"role": item.role or "user", "content": content_of(item.content)}
        self._session.items.append(Said(fields=fields, where=number, at=at, kind="" if is_user else "meta"))

    def _extend(self, item: Item, number: int, at: float | None) -> None:
        if self._answer is None:
            self._answer = Answer(where=number, at=at, model=self._model, made_by=self._copied_from)
            self._session.items.append(self._answer)
            self._counter.answered(self._answer)
        answer = self._answer
        answer.key = answer.key or item.call_id or item.id or ""
        if item.type == "message":
            answer.texts += texts_of(item.content)
        elif item.type == "reasoning":
            answer.thoughts += texts_of(item.summary) + texts_of(item.content)
        elif call := call_of(item):
            answer.calls.append(call)

    def _event(self, event: _Event) -> None:
        if event.type == "task_started":
            self._turn(event.turn_id)
        elif event.type == "token_count" and self._counter.count(event.info):
            self._answer = None
        elif event.type == "thread_rolled_back" and event.num_turns:
            items = self._session.items
            turns = [at for at, item in enumerate(items) if isinstance(item, Said) and item.is_prompt]
            self._answer = None
            self._session.rewind(turns[-event.num_turns] if event.num_turns <= len(turns) else 0)

    def _compacted(self, compaction: _Compaction, number: int, at: float | None) -> None:
        self._answer = None
        items = [read_item(bytes(raw)) for raw in compaction.replacement_history or []]
        left = [text for item in items if item is not None for text in texts_of(item.content)]
        text = compaction.message or "\n\n".join(left)
        self._session.items.append(Compacted(at=at, before=self._counter.prompt))
        if text:
            fields = {"role": "user", "content": text}
            self._session.items.append(Said(fields=fields, where=number, at=at, kind="compact_summary"))


def _parent(meta: _Meta) -> str:
    """Return the session that this one is a sub-agent or a fork of; empty if there is none."""
    spawned = meta.parent_thread_id
    if bytes(meta.source)[:1] == b"{":
        subagent = bytes(read_json(bytes(meta.source), _Source).subagent)
        spawn = read_json(subagent, _Subagent).thread_spawn if subagent[:1] == b"{" else None
        spawned = spawned or (spawn.parent_thread_id if spawn else None)
    return spawned or meta.forked_from_id or ""
