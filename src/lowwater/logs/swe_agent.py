"""Reads trajectories of SWE-agent and mini-swe-agent.

A trajectory is one JSON object. SWE-agent's `history` is what the agents were shown, in one list for all of them; if it is
missing, the steps in `trajectory` are read. mini-swe-agent has `messages`, with the provider's answers beside them. Only
mini-swe-agent records times and the usage of each call; SWE-agent records sums.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.logs.files import RecordedFile, fields_in, json_items, read_or, seconds, unquoted
from lowwater.logs.recording import RecordedCall, RecordedMessage, Recording
from lowwater.logs.recording_builder import build_recording, decode_chat_fields, usage_in

_AGENT, _MINI = "swe-agent", "mini-swe-agent"
_NONE = Raw(b"null")


class _Answer(Struct):
    """A provider's answer, as mini-swe-agent records it."""

    model: Any = None
    created: Any = None
    usage: Raw = _NONE


class _Extra(Struct):
    response: Raw = _NONE
    timestamp: Any = None


class _Message(Struct):
    role: str
    content: Any = None
    agent: str | None = None
    tool_calls: Any = None
    tool_call_ids: Any = None
    tool_call_id: Any = None
    extra: Raw = _NONE
    timestamp: Any = None


class _Step(Struct):
    response: str = ""
    observation: str = ""


class _Model(Struct):
    name: str = ""
    model_name: str = ""


class _Agent(Struct):
    model: _Model | None = None


class _Config(Struct):
    agent: _Agent | None = None
    model: _Model | None = None


class _Stats(Struct):
    tokens_sent: int = 0
    tokens_received: int = 0


class _Info(Struct):
    config: _Config | None = None
    model_stats: _Stats | None = None


class _Said(Struct, frozen=True):
    agent: str
    message: RecordedMessage


class SweAgent:
    """Reads one trajectory per file; each further agent in it is a session of its own."""

    name = "swe-agent"
    order = 100

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Return whether the beginning of the object has the fields of a trajectory."""
        fields = fields_in(head)
        if b"mini-swe-agent" in fields.get("trajectory_format", b"") or b'"mini_version"' in fields.get(
            "info", b""
        ):
            return True
        step = fields_in(next(json_items(fields.get("trajectory", b"")), b""))
        return {"action", "observation"} <= step.keys() or {"trajectory", "history", "info"} <= fields.keys()

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield the session of the main agent, then those of the other agents."""
        fields = fields_in(file.whole())
        mini = "trajectory" not in fields
        model = _model(fields)
        said = list(_said(fields, file, model))
        agents = list(dict.fromkeys(one.agent for one in said if one.agent)) or [""]
        for agent in agents:
            main = agent == agents[0]
            messages = tuple(one.message for one in said if one.agent == agent or (main and not one.agent))
            if not messages:
                return
            yield build_recording(
                file,
                id=file.path.stem if main else f"{file.path.stem}:{agent}",
                agent=_MINI if mini else _AGENT,
                messages=messages,
                model=model,
                parent="" if main else file.path.stem,
                relation="" if main else "subagent",
                usage=_sum(fields) if main and not mini else None,
            )


def _said(fields: dict[str, bytes], file: RecordedFile, model: str) -> Iterator[_Said]:
    name = next((name for name in ("history", "messages") if _has_items(fields.get(name, b""))), "")
    if not name:
        yield from _steps(fields.get("trajectory", b""), file, model)
        return
    for at, raw in enumerate(json_items(fields[name])):
        where = f"{name}[{at}]"
        told = file.read(raw, _Message, where)
        if told and (message := _recorded(told, file, where, model)) is not None:
            yield _Said(told.agent or "", message)


def _steps(trajectory: bytes, file: RecordedFile, model: str) -> Iterator[_Said]:
    for at, raw in enumerate(json_items(trajectory)):
        where = f"trajectory[{at}]"
        step = file.read(raw, _Step, where)
        if step is None:
            continue
        for role, text in (("assistant", step.response), ("user", step.observation)):
            message = _recorded(_Message(role=role, content=text), file, where, model)
            if text and message is not None:
                yield _Said("", message)


def _recorded(told: _Message, file: RecordedFile, where: str, model: str) -> RecordedMessage | None:
    shaped: dict[str, object] = {"role": told.role, "content": told.content}
    if told.role == "assistant" and told.tool_calls:
        shaped["tool_calls"] = told.tool_calls
    if told.role == "tool":
        answered = told.tool_call_ids[:1] if isinstance(told.tool_call_ids, list) else []
        shaped["tool_call_id"] = answered[0] if answered else told.tool_call_id
    message = decode_chat_fields(shaped, file=file, where=where)
    if message is None:
        return None
    extra = read_or(bytes(told.extra), _Extra())
    answer = read_or(bytes(extra.response), _Answer())
    call = None
    if message.role == "assistant":
        named = answer.model if isinstance(answer.model, str) else model
        call = RecordedCall(model=named, usage=usage_in(bytes(answer.usage), file=file, where=where))
    at = seconds(told.timestamp) or seconds(extra.timestamp) or seconds(answer.created)
    return RecordedMessage(message=message, at=at, call=call)


def _model(fields: dict[str, bytes]) -> str:
    """Return the model's name from the configuration, which is an object or a JSON string with one."""
    config = read_or(unquoted(fields.get("replay_config", b"")), _Config())
    info = read_or(fields.get("info", b""), _Info()).config or _Config()
    named = (config.agent and config.agent.model, config.model, info.model, info.agent and info.agent.model)
    return next((model.name or model.model_name for model in named if model), "")


def _sum(fields: dict[str, bytes]) -> Usage | None:
    stats = read_or(fields.get("info", b""), _Info()).model_stats
    if stats is None or stats.tokens_sent <= 0:
        return None
    return Usage(uncached=stats.tokens_sent, output=max(0, stats.tokens_received))


def _has_items(raw: bytes) -> bool:
    return next(json_items(raw), None) is not None


FORMATS = (SweAgent(),)
