"""A recorded session as a course: its messages counted, its gaps from the times of its answers."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import log

from msgspec import Struct

from lowwater.core.mechanisms.reuse import chance_of_use
from lowwater.core.messages import Message, ToolCall
from lowwater.core.tokens.counting import Framing, count_message
from lowwater.core.tools import ToolClass, class_of
from lowwater.logs.recording import NativeCompaction, Recording
from lowwater.protocols import Tokenizer
from lowwater.replay.course import SHARE, Course, Turn, Use

_WORTH_ELIDING, _DIGEST, _LEAST_DIGEST = 200, 0.16, 40
_FIVE_CALLS = 5
KEPT_FREE = 33_000
"""What Claude Code leaves of its window when it compacts by itself: 20,000 for the output and a buffer of 13,000."""


class Timed(Struct, frozen=True, kw_only=True):
    """A message and when it was written, in seconds."""

    message: Message
    at: float


def course_of(
    name: str,
    messages: Sequence[Timed],
    *,
    first_prompt: int,
    tail: int,
    uses: Sequence[Use],
    tokenizer: Tokenizer,
    framing: Framing | None = None,
) -> Course:
    """Return the course of a session; of its first prompt, what no message shows is tools and system.

    Every answer is a turn. Messages after the last one belong to none and are left out. Without a framing messages are
    counted in that of the format they came in.
    """
    turns: list[Turn] = []
    calls: dict[str, ToolCall] = {}
    new, before = Turn(text=0), None
    for timed in messages:
        message, tokens = timed.message, count_message(timed.message, tokenizer, framing=framing)
        calls |= {call.id: call for call in message.calls}
        if message.role == "assistant":
            gap = 0.0 if before is None else max(0.0, timed.at - before)
            turns.append(_turn(new, output=tokens, gap=gap))
            new, before = Turn(text=tokens), timed.at
        else:
            new = _with(new, message, tokens, calls)
    fixed = max(0, first_prompt - turns[0].whole) if turns else 0
    return Course(
        name=name, fixed=fixed, tail=tail, turns=tuple(turns), uses=tuple(_apart(uses, turns, tail))
    )


def recorded_window(recording: Recording, listed: int) -> int:
    """Return the window that a client worked with, where its own compactions show one; else the `listed` one.

    The registry has the largest window that is sold for a model; a client may use less of it.
    """
    calls = [each.call for each in recording.messages if each.call is not None]
    prompts = [call.usage.prompt for call in calls if call.usage is not None]
    return shown_window(recording.compactions, prompts, listed)


def shown_window(compactions: Iterable[NativeCompaction], prompts: Iterable[int], listed: int) -> int:
    """Return the window that a client's compactions and the `prompts` it sent show, if it compacted by itself.

    It did so at the first prompt beyond its limit, and sent everything below it.
    """
    largest = max(prompts, default=0)
    automatic = (each for each in compactions if each.kind == "summary" and each.trigger == "auto")
    sizes = [each.before for each in automatic if each.before]
    return min(listed, max(min(sizes), largest) + KEPT_FREE) if sizes else listed


def elided_size(tokens: int) -> int:
    """Return what is left of a result of so many tokens once it is elided."""
    return max(_LEAST_DIGEST, round(tokens * _DIGEST)) if tokens >= _WORTH_ELIDING else tokens


def uses_to_expect(tool: ToolClass, characters: int) -> int:
    """Return how many uses of a result are to be expected once it is five calls old, in millionths."""
    return round(-log(max(1 - chance_of_use(tool, characters, _FIVE_CALLS), 1e-6)) * SHARE)


def _turn(new: Turn, *, output: int, gap: float) -> Turn:
    return Turn(
        text=new.text, results=new.results, elided=new.elided, chance=new.chance, output=output, gap=gap
    )


def _with(new: Turn, message: Message, tokens: int, calls: dict[str, ToolCall]) -> Turn:
    if not message.results:
        return Turn(text=new.text + tokens, results=new.results, elided=new.elided, chance=new.chance)
    chance = sum(
        uses_to_expect(class_of(calls[result.call_id]), len(result.text))
        for result in message.results
        if result.call_id in calls
    )
    return Turn(
        text=new.text,
        results=new.results + tokens,
        elided=new.elided + elided_size(tokens),
        chance=new.chance + chance,
    )


def _apart(uses: Sequence[Use], turns: Sequence[Turn], tail: int) -> Iterator[Use]:
    """Yield the uses whose result was not used shortly before: what was recalled stands in the tail for a while."""
    ends = list(accumulate(turn.whole for turn in turns))
    last: dict[tuple[int, int], int] = {}
    for use in sorted(uses, key=lambda use: use.at):
        result = (use.of, use.tokens)
        if result not in last or ends[use.at] - ends[last[result]] >= tail:
            yield use
        last[result] = use.at
