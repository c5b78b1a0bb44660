"""How well the size of a prompt is predicted, replayed over the usage recorded in sessions."""

from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Struct

from bench.transcripts import Recorded, Session
from lowwater.core.api_calls import Usage
from lowwater.core.formats.usage import decode_anthropic_usage as decode_anthropic
from lowwater.core.formats.usage import decode_openai_usage as decode_chat
from lowwater.core.tokens.counting import Calibration, count_message, count_thinking, rules_for
from lowwater.session.factories import counter_for

LEARNED_FROM = 10
"""Calls after which a session's calibration is frozen for the unanchored figures."""

ThinkingRule = Literal["family", "kept", "turn", "none"]


class Call(Struct, frozen=True, kw_only=True):
    """One call with usage: the prompt as counted and as reported."""

    model: str
    counted: int
    reported: int
    rewritten: bool
    """Whether the client compacted its conversation since the call before."""


class Errors(Struct, frozen=True, kw_only=True):
    """Relative errors of predicted prompt sizes."""

    anchored: list[float]
    """Of the next prompt, from the last one reported."""
    unanchored: list[float]
    """By what the session's first ten calls taught, until the client's first compaction."""
    after: list[float]
    """The same after a compaction of the client, with the hidden part learned from the one call right after it."""


class _PiUsage(Struct, rename="camel"):
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0


def calls_of(session: Session, thinking: ThinkingRule = "family") -> list[Call]:
    """Return the session's calls that report a prompt, each with the count of what was visible before it."""
    calls: list[Call] = []
    counted = of_this_turn = 0
    rewritten = False
    for recorded in session.messages:
        rules = rules_for(recorded.model)
        tokenizer = counter_for(recorded.model)
        rule = rules.thinking if thinking == "family" else thinking
        if recorded.kind == "compact_summary":
            counted, of_this_turn, rewritten = 0, 0, True
        if recorded.message.role == "user":
            counted -= of_this_turn if rule == "turn" else 0
            of_this_turn = 0
        reported = _prompt(recorded)
        if reported:
            calls.append(Call(model=recorded.model, counted=counted, reported=reported, rewritten=rewritten))
            rewritten = False
        thought = count_thinking(recorded.message, tokenizer)
        counted += count_message(recorded.message, tokenizer, framing=rules.framing)
        counted -= thought if rule == "none" else 0
        of_this_turn += thought
    return calls


def errors_of(calls: list[Call]) -> Errors:
    """Return how far predictions were from what was reported, call by call."""
    anchored: list[float] = []
    unanchored: list[float] = []
    after: list[float] = []
    live = Calibration(prior=rules_for(calls[0].model).scale) if calls else Calibration()
    frozen: Calibration | None = None
    compacted = False
    for index, call in enumerate(calls):
        compacted = compacted or call.rewritten
        if call.rewritten:
            live = live.restart()
        elif live.recent:
            anchored.append(_error(live.next_prompt(call.counted), call))
        if frozen is not None and call.rewritten:
            frozen = frozen.restart().observe(counted=call.counted, reported=call.reported)
        elif frozen is not None:
            (after if compacted else unanchored).append(_error(frozen.predict(call.counted), call))
        live = live.observe(counted=call.counted, reported=call.reported)
        if index == LEARNED_FROM - 1:
            frozen = live
    return Errors(anchored=anchored, unanchored=unanchored, after=after)


def _error(predicted: int, call: Call) -> float:
    return abs(predicted - call.reported) / call.reported


def _prompt(recorded: Recorded) -> int:
    if not recorded.usage:
        return 0
    decode: Callable[[bytes], Usage] = decode_anthropic if "claude" in recorded.model else decode_chat
    if b'"cacheRead"' in recorded.usage:  # as the agent pi writes it
        pi = msgspec.json.decode(recorded.usage, type=_PiUsage)
        return pi.input + pi.cache_read + pi.cache_write
    return decode(recorded.usage).prompt
