"""A session as numbers: what each call added, how long it waited, and what was used again."""

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

SHARE = 1_000_000
"""Chances and shares are integers of millionths, so that costs stay exact."""
_WORTH_ELIDING, _DIGEST, _LEAST_DIGEST = 200, 0.16, 40
_FIVE_CALLS = 5
KEPT_FREE = 33_000
"""What Claude Code leaves of its window when it compacts by itself: 20,000 for the output and a buffer of 13,000."""


class Turn(Struct, frozen=True, kw_only=True):
    """What one call to the model added to the prompt, in tokens, and what it wrote."""

    text: int
    """New text: the answer before, its calls, what the user said."""
    results: int = 0
    """New tool results, which can be elided."""
    elided: int = 0
    """Their size once elided; never above `results`."""
    output: int = 0
    gap: float = 0.0
    """Seconds since the call before."""
    chance: int = 0
    """Uses of the results to expect once they are five calls old, in millionths."""

    @property
    def whole(self) -> int:
        """All that was added."""
        return self.text + self.results


class Use(Struct, frozen=True, kw_only=True):
    """A later call needs something of a turn's results."""

    at: int
    """The index of the turn that needs it."""
    of: int
    """The index of the turn whose results hold it."""
    tokens: int
    """What a recall would write."""
    in_digest: bool = False
    """Still visible after the result was elided; a summary loses it all the same."""


class Course(Struct, frozen=True, kw_only=True):
    """One session; without recorded uses the expected ones are charged instead."""

    name: str
    fixed: int
    """Tools and system prompt."""
    tail: int
    """Tokens at the end that no action touches."""
    turns: tuple[Turn, ...]
    uses: tuple[Use, ...] | None = None


class Sheet(Struct, frozen=True, kw_only=True):
    """What a model charges and allows; prices are nano-dollars per 1,000 tokens."""

    name: str
    input: int
    read: int
    write: int
    output: int
    other_input: int
    """What another model charges for a summary."""
    other_output: int
    ttl: float
    """Seconds a cached prefix lives."""
    window: int
    reserved: int = 20_000
    """Kept free for the output."""
    summary: int = 3_000
    """The size of every summary."""
    instruction: int = 400
    """The size of what asks for one."""

    @property
    def wall(self) -> int:
        """The largest prompt that fits."""
        return self.window - self.reserved


class State(Struct, frozen=True, kw_only=True):
    """Turns before `summarised` are behind one summary, results of those before `pruned` are elided."""

    summarised: int = 0
    pruned: int = 0


class Prune(Struct, frozen=True, kw_only=True, tag="prune"):
    """Elide the results of all turns before `upto`."""

    upto: int


class Summarise(Struct, frozen=True, kw_only=True, tag="summarise"):
    """Replace all turns before `upto` by a summary."""

    upto: int


Action = Prune | Summarise


class Act(Struct, frozen=True, kw_only=True):
    """An action before the call of turn `turn`."""

    turn: int
    action: Action


def after(state: State, action: Action | None) -> State:
    """Return the state that an action leads to."""
    match action:
        case Prune(upto=upto):
            return State(summarised=state.summarised, pruned=max(state.pruned, upto))
        case Summarise(upto=upto):
            return State(summarised=upto, pruned=max(state.pruned, upto))
        case None:
            return state


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
