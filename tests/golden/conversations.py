"""The conversations whose output is recorded: generated ones frozen in `sessions/`, and recorded ones of the shared folder.

The frozen files were written once, by `generate_session` of commit d7491a8 (five of them got pictures), and are read
without any code of the generator.
"""

import gzip
import json
import lzma
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

HERE = Path(__file__).parent
TRANSCRIPTS = HERE.parents[2] / "shared" / "transcripts"

FROZEN = tuple(sorted(path.name.removesuffix(".json.xz") for path in (HERE / "sessions").glob("*.json.xz")))

RECORDED = {
    "canonical/agentv/019ed50c-2fb3-7002-a384-360bea6e7f04.jsonl.gz": "gpt-5.5",
    "canonical/agentv/019ed836-b1da-78f1-8a0c-e598363d10f4.jsonl.gz": "gpt-6-sol",
    "canonical/deer-flow/fe3f7974-1bcb-4a01-a950-79673baafefd.jsonl.gz": "deepseek-chat",
    "canonical/deer-flow/7cfa5f8f-a2f8-47ad-acbd-da7137baf990.jsonl.gz": "gemini-3.1-pro-preview",
    "canonical/entireio-cli/0240bd7a-75c0-4610-8e14-089e984d6001.jsonl.gz": "claude-opus-4-7",
    "canonical/entireio-cli/030e1e67-6bf0-492d-8bd3-cc3383ec93ab.jsonl.gz": "claude-opus-5-5",
    "canonical/entireio-cli/07d86da7-2e39-4276-a0d5-7b46a85b8750.jsonl.gz": "claude-sonnet-5-5",
    "canonical/entireio-git-sync/019d7d4c-fef7-7d21-908c-d8850b805a6d.jsonl.gz": "gpt-5.4",
    "canonical/entireio-git-sync/019ddba6-d9ca-71d2-89c3-5dd074c317b3.jsonl.gz": "gpt-6-astra",
    "canonical/packmind-context-evaluator/00acd976-784c-4077-95cd-19aa1b51739b.jsonl.gz": "claude-haiku-4-5",
    "canonical/packmind-context-evaluator/2d14de52-046f-4151-9c9a-8841f80af584.jsonl.gz": "claude-fable-5-1",
    "canonical/session-share/general-tool-calls.jsonl.gz": "claude-opus-4-5",
    "canonical/session-share/0ccf1a04-1b4c-43b6-8aa5-79e41db43a68.jsonl.gz": "gpt-4o",
    "canonical/tau-bench/airline-task00-trial0.jsonl.gz": "a-model-nobody-knows",
    "canonical/pi-mono/large-session.jsonl.gz": "claude-sonnet-4-5",
}
"""Recorded sessions that are played, and on which model; only digests and numbers of them are kept."""


class Turn(Struct, frozen=True, kw_only=True):
    """What was new before one call of the model, and what it answered, as messages or items of the session's format."""

    at: float
    new: list[Any]
    answer: list[Any]
    answered_at: float
    usage: dict[str, int]
    """What the call consumed when the session was generated; a recorded session has the output only."""


class Conversation(Struct, frozen=True, kw_only=True):
    """A conversation as plain data."""

    name: str
    format: str
    model: str
    system: str
    tools: list[Any]
    turns: list[Turn]


def frozen(name: str) -> Conversation:
    """Return a generated conversation as it was frozen."""
    packed = (HERE / "sessions" / f"{name}.json.xz").read_bytes()
    return msgspec.json.decode(lzma.decompress(packed), type=Conversation)


def recorded(path: str, model: str) -> Conversation:
    """Return a recorded conversation of the shared folder, as a client that speaks the chat format would have held it."""
    lines = map(json.loads, gzip.decompress((TRANSCRIPTS / path).read_bytes()).splitlines()[1:])
    return Conversation(
        name=name_of(path), format="openai_chat", model=model, system="", tools=[], turns=list(_turns(lines))
    )


def name_of(path: str) -> str:
    """Return what a file of the shared folder is called here: its folder, and its name without endings."""
    return f"{Path(path).parent.name}-{Path(path).name.partition('.')[0]}"


def _turns(lines: Iterator[dict[str, Any]]) -> Iterator[Turn]:
    """Yield the turns without what comes after the last answer; where no time was noted, 15 seconds pass."""
    sent = ("role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content")
    new: list[Any] = []
    at = 0.0
    for line in lines:
        noted = datetime.fromisoformat(line["ts"]).timestamp() if line.get("ts") else at + 15
        before, at = at, max(at, noted)
        message = {key: line[key] for key in sent if key in line}
        if message["role"] == "assistant" and new:
            usage = {"output": len(json.dumps(message)) // 4}
            yield Turn(at=before, new=new, answer=[message], answered_at=at, usage=usage)
            new = []
        else:
            new.append(message)


def as_recording(conversation: Conversation) -> bytes:
    """Return a frozen conversation of the chat format as a log that `lowwater audit` and `replay` read."""
    header = {"id": conversation.name, "source": "golden", "model": conversation.model, "agent": "generated"}
    lines: list[dict[str, Any]] = [header, {"role": "system", "content": conversation.system}]
    for turn in conversation.turns:
        lines += [{**message, "ts": _stamp(turn.at)} for message in turn.new]
        usage = {
            "input_tokens": turn.usage["uncached"],
            "cache_read_input_tokens": turn.usage["cache_read"],
            "cache_creation_input_tokens": turn.usage["cache_write"],
            "output_tokens": turn.usage["output"],
        }
        said = {"ts": _stamp(turn.answered_at), "model": conversation.model, "usage": usage}
        lines += [{**message, **said} for message in turn.answer]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _stamp(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
