"""The sessions that peers are run on: the generated one, and some of the recorded ones, as plain chat messages."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from bench.real_peers_session import dense_session
from bench.transcripts import CANONICAL, Recorded, sessions
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.messages import Message
from lowwater.core.tokens.counting import count_message
from lowwater.errors import BadInput
from lowwater.lab.references.uses import LaterUse, uses_of
from lowwater.lab.replay.script import ReplayScript, script_of
from lowwater.logs.recording import RecordedMessage, Recording
from lowwater.testing.legality import refusal_of

LEAST_CALLS, LEAST_TOKENS, MOST_TOKENS = 40, 120_000, 260_000
"""Recorded sessions that are as large as the generated one."""
_REPLACED = "compact_summary"
_CHECKED_AS = "gpt-5.6-sol"
"""A model that takes cache breakpoints in chat messages."""


class Case(Struct, frozen=True, kw_only=True):
    """One session."""

    name: str
    script: ReplayScript
    model: str = ""
    """The model that was recorded, if one was."""
    facts: tuple[str, ...] = ()
    """What was planted in it."""
    uses: tuple[LaterUse, ...] = ()

    @property
    def system(self) -> str:
        """The system prompt, empty where it is not recorded."""
        return msgspec.json.decode(self.script.system, type=str) if self.script.system else ""

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that are called."""
        called = (call.name for message in self.script.messages for call in message.calls)
        return tuple(dict.fromkeys(called))


def generated(*, requests: int = 53, tokens: int = 204_000) -> Case:
    """Return the generated session."""
    made = dense_session(requests=requests, tokens=tokens)
    raws = [msgspec.json.encode(message) for message in made.messages]
    recording = Recording(
        id=f"dense-{requests}",
        agent="generated",
        path="",
        system=msgspec.json.encode(made.system),
        tools=made.tools,
        messages=tuple(
            RecordedMessage(message=message, at=at)
            for message, at in zip(decode_messages(raws, "openai_chat"), made.times, strict=True)
        ),
    )
    return _case(recording, facts=made.facts)


def recorded(number: int) -> list[Case]:
    """Return so many recorded sessions, spread over those that qualify; none where there are no recordings.

    They have times, are about as large as the generated one, and every request of theirs is one that a provider takes.
    """
    if not number or not CANONICAL.is_dir():
        return []
    found = list(_qualified())
    step = max(1, len(found) // number)
    return found[::step][:number]


def _qualified() -> Iterator[Case]:
    count = tokenizer_for("o200k")
    for session in sessions():
        lines = [line for line in session.messages if line.kind != _REPLACED]
        answers = [line for line in lines if line.message.role == "assistant"]
        if len(answers) < LEAST_CALLS or any(line.at is None for line in answers):
            continue
        if not LEAST_TOKENS <= sum(count_message(line.message, count) for line in lines) <= MOST_TOKENS:
            continue
        model = next((line.model for line in answers if line.model), "")
        recording = Recording(
            id=session.id, agent=session.agent, path="", model=model, messages=tuple(_plain(lines))
        )
        try:
            case = _case(recording)
        except BadInput:
            continue
        if _is_legal(case):
            yield case


def _case(recording: Recording, facts: tuple[str, ...] = ()) -> Case:
    script = script_of(recording)
    return Case(
        name=script.name,
        script=script,
        model=recording.model,
        facts=facts,
        uses=tuple(uses_of(script.messages)),
    )


def _plain(lines: Sequence[Recorded]) -> Iterator[RecordedMessage]:
    """Yield messages with text alone: peers differ in what else they take, and this is not about that."""
    raws = encode_messages([line.message for line in lines], "openai_chat")
    plain = [msgspec.json.encode(plain_message(msgspec.json.decode(raw))) for raw in raws]
    for message, line in zip(decode_messages(plain, "openai_chat"), lines, strict=True):
        yield RecordedMessage(message=message, at=line.at)


def plain_message(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its content as one text, without fields that only some know; reminders are the user's."""
    content, calls = message.get("content"), message.get("tool_calls")
    if isinstance(content, list):
        content = "\n".join(part["text"] for part in content if part.get("type") == "text")
    role = message["role"] if message["role"] in ("assistant", "tool") else "user"
    plain = {"role": role, "content": content or (None if calls else "")}
    if calls:
        plain["tool_calls"] = calls
    if role == "tool":
        plain["tool_call_id"] = message["tool_call_id"]
    return plain


def _is_legal(case: Case) -> bool:
    """Return whether a provider takes the session's last request, and so all of them."""
    return is_taken(case.script.messages[:-1])


def is_taken(messages: Sequence[Message]) -> bool:
    """Return whether a provider takes a request with these messages."""
    raws = encode_messages(messages, "openai_chat")
    body = {"model": _CHECKED_AS, "messages": [msgspec.json.decode(raw) for raw in raws]}
    return refusal_of(body, "openai_chat") is None
