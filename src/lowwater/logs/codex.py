"""Codex: rollouts of response items and events, with token counts behind each answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.usage import Tokens
from lowwater.core.strict_json import read_json, write_json
from lowwater.errors import BadInput
from lowwater.logs.files import FileLine, RecordedFile, first_objects, seconds, time_in
from lowwater.logs.gathering import (
    AgentCompaction,
    Answer,
    ChatSession,
    Fields,
    InputMessage,
    Result,
    text_of,
)
from lowwater.logs.recording import Recording

CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
RESULTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output"}
)
KNOWN = CALLS | RESULTS | {"message", "reasoning"}
"""Items that are part of the conversation; searches that the provider makes itself leave no result to show."""
_KINDS = frozenset({b'"session_meta"', b'"response_item"', b'"turn_context"', b'"event_msg"', b'"compacted"'})
_INJECTED = ("<environment_context>", "<user_instructions>", "<turn_aborted>", "# AGENTS.md instructions")
"""How messages begin that Codex writes in the user's name."""
_COPYING = 1.0
"""Seconds within which a fork writes down what it repeats."""


class _Typed(Struct):
    type: str = ""


class Content(Struct):
    """One part of a message or of a tool's output."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None
    image_url: str | None = None


class Item(Struct):
    """Any item; each type has some of these fields."""

    type: str = ""
    role: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: Raw = Raw(b'""')
    input: str | None = None
    action: Raw = Raw(b"null")
    output: Raw = Raw(b'""')
    tools: Raw = Raw(b"")
    content: str | list[Content] | None = None
    summary: list[Content] | None = None


class _Output(Struct):
    content: Any = None
    success: bool | None = None


def read_item(raw: bytes) -> Item | None:
    """Return an item, None if it is none of the known ones, or raise BadInput."""
    return read_json(raw, Item) if read_json(raw, _Typed).type in KNOWN else None


def call_of(item: Item) -> Fields | None:
    """Return a chat message's tool call; None if no result could ever belong to it."""
    call = item.call_id or item.id
    if not call:
        return None
    if item.type == "custom_tool_call":
        return {
            "id": call,
            "type": "custom",
            "custom": {"name": item.name or "custom", "input": item.input or ""},
        }
    name = item.name or item.type.removesuffix("_call")
    arguments = text_of(item.action if item.type == "local_shell_call" else item.arguments)
    return {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}


def texts_of(content: str | list[Content] | None) -> list[str]:
    """Return the pieces of text in a message or in reasoning."""
    if isinstance(content, str):
        return [content] if content else []
    return [text for part in content or [] if (text := part.text or part.refusal)]


def content_of(content: str | list[Content] | None) -> str | list[Fields]:
    """Return a message's content as chat messages have it: text and pictures."""
    if not isinstance(content, list):
        return content or ""
    parts: list[Fields] = []
    for part in content:
        if part.image_url:
            parts.append({"type": "image_url", "image_url": {"url": part.image_url}})
        elif text := part.text or part.refusal:
            parts.append({"type": "text", "text": text})
    return parts


def output_of(item: Item) -> str | list[Fields]:
    """Return what a tool answered: text, parts, or (in older rollouts) an object around it."""
    raw = bytes(item.tools) or bytes(item.output)
    match raw[:1]:
        case b"[" if not bytes(item.tools):
            return content_of(read_json(raw, list[Content]))
        case b"{":
            output = read_json(raw, _Output)
            return output.content if isinstance(output.content, str) else raw.decode()
        case _:
            return text_of(Raw(raw))


class _Figures(Struct):
    input_tokens: Tokens = None
    cached_input_tokens: Tokens = None
    cache_write_input_tokens: Tokens = None
    output_tokens: Tokens = None


class _Info(Struct):
    total_token_usage: _Figures | None = None
    last_token_usage: _Figures | None = None


class Counter:
    """The counts so far, and the answers that still wait for theirs."""

    def __init__(self) -> None:
        self.prompt: int | None = None
        """That of the last call."""
        self._total: Usage | None = None
        self._waiting: list[Answer] = []
        self._unseen: list[Usage] = []

    def answered(self, answer: Answer) -> None:
        """Take note of an answer whose count is to come."""
        answer.others += self._unseen
        self._unseen = []
        self._waiting.append(answer)

    def count(self, raw: Raw) -> bool:
        """Read a count and tell whether it is new: Codex repeats the last one when it learns of rate limits.

        What the total grew by beyond the last call belongs to a call that had no count of its own; a call that gave
        no answer, such as one that summarised, is told beside the next.
        """
        info = read_json(bytes(raw), _Info) if bytes(raw) not in (b"", b"null") else _Info()
        total = _usage(info.total_token_usage) if info.total_token_usage else None
        last = _usage(info.last_token_usage) if info.last_token_usage else None
        if (total is None and last is None) or (total is not None and total == self._total):
            return False
        grown = _less(total, self._total or Usage()) if total else None
        before, self._total = self._total, total
        usage = last or grown
        if usage is None:
            return False
        self.prompt = usage.prompt
        missed = _less(grown, usage) if grown and before else None
        self._give(usage, missed if missed and missed.prompt else None)
        return True

    def _give(self, usage: Usage, missed: Usage | None) -> None:
        if not self._waiting:
            self._unseen += [missed, usage] if missed else [usage]
            return
        *earlier, newest = self._waiting
        newest.usage = usage
        if missed and len(earlier) == 1:
            earlier[0].usage = missed
        elif missed:
            newest.others.append(missed)
        self._waiting = []


def _usage(figures: _Figures) -> Usage:
    """Return the figures taken apart: at OpenAI the input includes what was read from the cache and written to it."""
    prompt = figures.input_tokens or 0
    read = min(figures.cached_input_tokens or 0, prompt)
    written = min(figures.cache_write_input_tokens or 0, prompt - read)
    return Usage(
        uncached=prompt - read - written,
        cache_read=read,
        cache_write=written,
        output=figures.output_tokens or 0,
    )


def _less(whole: Usage, some: Usage) -> Usage | None:
    """Return the difference, or None if the counts began anew."""
    left = Usage(
        uncached=whole.uncached - some.uncached,
        cache_read=whole.cache_read - some.cache_read,
        cache_write=whole.cache_write - some.cache_write,
        output=whole.output - some.output,
    )
    return left if min(left.uncached, left.cache_read, left.cache_write, left.output) >= 0 else None


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

    def add(self, line: FileLine, said: _Line) -> None:
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
        self._session.items.append(
            InputMessage(fields=fields, where=number, at=at, kind="" if is_user else "meta")
        )

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
            turns = [at for at, item in enumerate(items) if isinstance(item, InputMessage) and item.is_prompt]
            self._answer = None
            self._session.rewind(turns[-event.num_turns] if event.num_turns <= len(turns) else 0)

    def _compacted(self, compaction: _Compaction, number: int, at: float | None) -> None:
        self._answer = None
        items = [read_item(bytes(raw)) for raw in compaction.replacement_history or []]
        left = [text for item in items if item is not None for text in texts_of(item.content)]
        text = compaction.message or "\n\n".join(left)
        self._session.items.append(AgentCompaction(at=at, before=self._counter.prompt))
        if text:
            fields = {"role": "user", "content": text}
            self._session.items.append(
                InputMessage(fields=fields, where=number, at=at, kind="compact_summary")
            )


def _parent(meta: _Meta) -> str:
    """Return the session that this one is a sub-agent or a fork of; empty if there is none."""
    spawned = meta.parent_thread_id
    if bytes(meta.source)[:1] == b"{":
        subagent = bytes(read_json(bytes(meta.source), _Source).subagent)
        spawn = read_json(subagent, _Subagent).thread_spawn if subagent[:1] == b"{" else None
        spawned = spawned or (spawn.parent_thread_id if spawn else None)
    return spawned or meta.forked_from_id or ""
