"""Reads Codex rollouts: response items and events, with token counts after each answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.usage import Tokens
from lowwater.core.strict_json import read_json, write_json
from lowwater.logs.files import FileLine, LogFolder, RecordedFile, first_objects, seconds, time_in
from lowwater.logs.recording import Recording
from lowwater.logs.recording_builder import (
    AgentCompaction,
    ChatFields,
    ChatSession,
    GatheredAnswer,
    GatheredResult,
    InputMessage,
    function_call,
    text_of_content,
    usage_with_cached,
)

# Items

CALL_TYPES = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
RESULTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output"}
)
KNOWN = CALL_TYPES | RESULTS | {"message", "reasoning"}
"""Items that are part of the conversation; searches made by the provider itself have no recorded result."""


class _Typed(Struct):
    type: str = ""


class CodexContent(Struct):
    """One part of a message or of a tool's output."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None
    image_url: str | None = None


class CodexItem(Struct):
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
    content: str | list[CodexContent] | None = None
    summary: list[CodexContent] | None = None


class _Output(Struct):
    content: Any = None
    success: bool | None = None


def read_item(raw: bytes) -> CodexItem | None:
    """Return an item, None if its type is not known, or raise BadInput."""
    return read_json(raw, CodexItem) if read_json(raw, _Typed).type in KNOWN else None


def call_of(item: CodexItem) -> ChatFields | None:
    """Return the tool call as a chat message has it; None without an id, because no result could belong to it."""
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
    return function_call(call, name, item.action if item.type == "local_shell_call" else item.arguments)


def codex_texts(content: str | list[CodexContent] | None) -> list[str]:
    """Return the pieces of text in a message or in reasoning."""
    if isinstance(content, str):
        return [content] if content else []
    return [text for part in content or [] if (text := part.text or part.refusal)]


def chat_content(content: str | list[CodexContent] | None) -> str | list[ChatFields]:
    """Return a message's content as chat messages have it: text and pictures."""
    if not isinstance(content, list):
        return content or ""
    parts: list[ChatFields] = []
    for part in content:
        if part.image_url:
            parts.append({"type": "image_url", "image_url": {"url": part.image_url}})
        elif text := part.text or part.refusal:
            parts.append({"type": "text", "text": text})
    return parts


def output_of(item: CodexItem) -> str | list[ChatFields]:
    """Return a tool's output: text, parts, or (in older rollouts) an object around it."""
    raw = bytes(item.tools) or bytes(item.output)
    match raw[:1]:
        case b"[" if not bytes(item.tools):
            return chat_content(read_json(raw, list[CodexContent]))
        case b"{":
            output = read_json(raw, _Output)
            return output.content if isinstance(output.content, str) else raw.decode()
        case _:
            return text_of_content(Raw(raw))


# Token counts


class _Figures(Struct):
    input_tokens: Tokens = None
    cached_input_tokens: Tokens = None
    cache_write_input_tokens: Tokens = None
    output_tokens: Tokens = None


class _Info(Struct):
    total_token_usage: _Figures | None = None
    last_token_usage: _Figures | None = None


class Counter:
    """The token counts so far, and the answers whose count is still to come."""

    def __init__(self) -> None:
        self.prompt: int | None = None
        """The prompt tokens of the last call; None before the first."""
        self._total: Usage | None = None
        self._waiting: list[GatheredAnswer] = []
        self._unseen: list[Usage] = []

    def answered(self, answer: GatheredAnswer) -> None:
        """Add an answer whose count is to come."""
        answer.others += self._unseen
        self._unseen = []
        self._waiting.append(answer)

    def count(self, raw: Raw) -> bool:
        """Read a count and return whether it is new: Codex repeats the last one when it learns of rate limits.

        If the total grew by more than the last call, the rest belongs to a call without a count of its own. The usage of a
        call without an answer, such as one that wrote a summary, goes to the next answer.
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
    return usage_with_cached(
        figures.input_tokens,
        read=figures.cached_input_tokens,
        written=figures.cache_write_input_tokens,
        output=figures.output_tokens,
    )


def _less(whole: Usage, some: Usage) -> Usage | None:
    """Return the difference, or None if the counts were reset."""
    left = Usage(
        uncached=whole.uncached - some.uncached,
        cache_read=whole.cache_read - some.cache_read,
        cache_write=whole.cache_write - some.cache_write,
        output=whole.output - some.output,
    )
    return left if min(left.uncached, left.cache_read, left.cache_write, left.output) >= 0 else None


# Rollouts

_KINDS = frozenset({b'"session_meta"', b'"response_item"', b'"turn_context"', b'"event_msg"', b'"compacted"'})
_INJECTED = ("<environment_context>", "<user_instructions>", "<turn_aborted>", "# AGENTS.md instructions")
"""The beginnings of messages that Codex writes in the user's role."""
_COPYING = 1.0
"""A fork writes all lines that it repeats within this many seconds."""


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
    cli_version: str | None = None
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
    """Reads one rollout per file; sub-agents and forks have their own files, which begin with a copy."""

    name = "codex"
    order = 20

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Return whether the lines have Codex's envelope, or the first line is that of an older rollout without one."""
        found = first_objects(head)
        return any(bytes(line.get("type", b"")) in _KINDS and "payload" in line for line in found) or any(
            {"id", "timestamp", "instructions"} <= line.keys() for line in found[:1]
        )

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield a session for each rollout in the file."""
        rollout = _Rollout(file)
        for line in file.lines():
            said = file.read(line.data, _Line, line.number)
            if said is None:
                continue
            with file.broken_at(line.number):
                if rollout.ends_before(said):
                    yield from rollout.recordings()
                    rollout = _Rollout(file)
                rollout.add(line, said)
        yield from rollout.recordings()


class _Rollout:
    """One session so far."""

    def __init__(self, file: RecordedFile) -> None:
        self._file = file
        self._session = ChatSession(file)
        self._meta: _Meta | None = None
        self._parent = ""
        self._model = ""
        self._answer: GatheredAnswer | None = None
        self._counter = Counter()
        self._started_at: float | None = None
        self._copied_from = ""
        """While a fork repeats lines, the session that they come from."""
        self._copied_at: float | None = None
        """The start of the repeated turn: a fork puts its own time on each line."""

    def ends_before(self, said: _Line) -> bool:
        """Return whether another session begins here; a fork repeats the beginning of its parent."""
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
        """Note the start of a turn; a turn that started before the fork was made is a copy."""
        began = time_in(id) if isinstance(id, str) else None
        if not self._copied_from or began is None:
            return
        forked = time_in(self._meta.id or "") if self._meta else None
        self._copied_at = began
        if forked is not None and began >= forked:
            self._copied_from = ""

    def _time(self, at: float | None) -> float | None:
        return at if not self._copied_from or self._copied_at is None else self._copied_at

    def _item(self, item: CodexItem | None, number: int, at: float | None) -> None:
        if item is None:
            return
        if item.type in RESULTS:
            if item.call_id:
                self._session.result(
                    item.call_id, GatheredResult(content=output_of(item), where=number, at=at)
                )
        elif item.type == "message" and item.role != "assistant":
            self._answer = None
            self._say(item, number, at)
        else:
            self._extend(item, number, at)

    def _say(self, item: CodexItem, number: int, at: float | None) -> None:
        texts = codex_texts(item.content)
        is_user = item.role == "user" and not (texts and texts[0].lstrip().startswith(_INJECTED))
        fields = {"role": item.role or "user", "content": chat_content(item.content)}
        self._session.items.append(
            InputMessage(fields=fields, where=number, at=at, kind="" if is_user else "meta")
        )

    def _extend(self, item: CodexItem, number: int, at: float | None) -> None:
        if self._answer is None:
            self._answer = GatheredAnswer(where=number, at=at, model=self._model, made_by=self._copied_from)
            self._session.items.append(self._answer)
            self._counter.answered(self._answer)
        answer = self._answer
        answer.key = answer.key or item.call_id or item.id or ""
        if item.type == "message":
            answer.texts += codex_texts(item.content)
        elif item.type == "reasoning":
            answer.thoughts += codex_texts(item.summary) + codex_texts(item.content)
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
        left = [text for item in items if item is not None for text in codex_texts(item.content)]
        text = compaction.message or "\n\n".join(left)
        version = (self._meta and self._meta.cli_version) or ""
        self._session.items.append(AgentCompaction(at=at, before=self._counter.prompt, version=version))
        if text:
            fields = {"role": "user", "content": text}
            self._session.items.append(
                InputMessage(fields=fields, where=number, at=at, kind="compact_summary")
            )


def _parent(meta: _Meta) -> str:
    """Return the session of which this one is a sub-agent or a fork; empty if there is none."""
    spawned = meta.parent_thread_id
    if bytes(meta.source)[:1] == b"{":
        subagent = bytes(read_json(bytes(meta.source), _Source).subagent)
        spawn = read_json(subagent, _Subagent).thread_spawn if subagent[:1] == b"{" else None
        spawned = spawned or (spawn.parent_thread_id if spawn else None)
    return spawned or meta.forked_from_id or ""


FORMATS = (Codex(),)
FOLDERS = tuple(
    LogFolder(agent="Codex", variable="CODEX_HOME", home=".codex", inside=name)
    for name in ("sessions", "archived_sessions")
)
