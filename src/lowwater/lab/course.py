"""A course: a session reduced to numbers, with the tokens that each call added, the pauses, and what was used again."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import log

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.costs.prices import INSTRUCTION
from lowwater.core.mechanisms.reuse import YOUNG, chance_of_use
from lowwater.core.messages import Message, ToolCall
from lowwater.core.tokens.counting import Framing, count_message
from lowwater.core.tools import ToolClass, class_of
from lowwater.logs.recording import NativeCompaction, Recording
from lowwater.protocols import Tokenizer

SHARE = 1_000_000
"""Probabilities and shares are integers in millionths, so that costs stay exact."""
_WORTH_ELIDING, _DIGEST, _LEAST_DIGEST = 200, 0.16, 40
KEPT_FREE = 33_000
"""What Claude Code keeps free when it compacts by itself: 20,000 tokens for the output and a buffer of 13,000."""


class CourseTurn(Struct, frozen=True, kw_only=True):
    """The tokens that one call added to the prompt, and its output."""

    text: int
    """New text: the previous answer with its tool calls, and user messages."""
    results: int = 0
    """New tool results, which can be elided."""
    elided: int = 0
    """The size of the results once elided; at most `results`."""
    output: int = 0
    gap: float = 0.0
    """Seconds since the previous call."""
    chance: int = 0
    """Expected uses of the results after they are five calls old, in millionths."""
    calls_tools: bool = False
    """Whether its answer called tools, so that the next turn does not wait for the user."""

    @property
    def whole(self) -> int:
        """All tokens added."""
        return self.text + self.results


class CourseUse(Struct, frozen=True, kw_only=True):
    """A later call needs something of a turn's results."""

    at: int
    """The index of the turn that needs it."""
    of: int
    """The index of the turn whose results hold it."""
    tokens: int
    """Tokens that a recall would write."""
    in_digest: bool = False
    """Whether it is still visible after eliding the result; a summary loses it in any case."""


class Course(Struct, frozen=True, kw_only=True):
    """One session; without recorded uses (`uses` is None), expected uses are charged."""

    name: str
    fixed: int
    """Tokens of tools and system prompt."""
    tail: int
    """Tokens of the protected tail."""
    turns: tuple[CourseTurn, ...]
    uses: tuple[CourseUse, ...] | None = None


class Sheet(Struct, frozen=True, kw_only=True):
    """A price sheet: prices in nano-dollars per 1,000 tokens, cache lifetime, window and sizes."""

    name: str
    input: int
    read: int
    write: int
    output: int
    other_input: int
    """The input price of another model for summaries."""
    other_output: int
    ttl: float
    """Cache lifetime in seconds."""
    window: int
    reserved: int = 20_000
    """Tokens kept free for the output."""
    summary: int = 3_000
    """Tokens of every summary."""
    instruction: int = INSTRUCTION
    """Tokens of the instruction that asks for one."""
    write_long: int | None = None
    """The price of storing a prefix for the longer lifetime; None if there is none."""
    ttl_long: float = 0.0
    """The longer lifetime in seconds."""

    @property
    def wall(self) -> int:
        """The largest prompt that fits the window."""
        return self.window - self.reserved


class CourseState(Struct, frozen=True, kw_only=True):
    """Turns before `summarised` are replaced by one summary; results of turns before `pruned` are elided."""

    summarised: int = 0
    pruned: int = 0


class CoursePrune(Struct, frozen=True, kw_only=True, tag="prune"):
    """Elide the results of all turns before `upto`."""

    upto: int


class Summarise(Struct, frozen=True, kw_only=True, tag="summarise"):
    """Replace all turns before `upto` by a summary."""

    upto: int


Action = CoursePrune | Summarise


class CourseAction(Struct, frozen=True, kw_only=True):
    """An action taken before the call of turn `turn`."""

    turn: int
    action: Action


def after(state: CourseState, action: Action | None) -> CourseState:
    """Return the state that an action leads to."""
    match action:
        case CoursePrune(upto=upto):
            return CourseState(summarised=state.summarised, pruned=max(state.pruned, upto))
        case Summarise(upto=upto):
            return CourseState(summarised=upto, pruned=max(state.pruned, upto))
        case None:
            return state


class Timed(Struct, frozen=True, kw_only=True):
    """A message and its time in seconds."""

    message: Message
    at: float


def course_of(
    name: str,
    messages: Sequence[Timed],
    *,
    first_prompt: int,
    tail: int,
    uses: Sequence[CourseUse],
    tokenizer: Tokenizer,
    framing: Framing | None = None,
) -> Course:
    """Return the course of a session; of its first prompt, what no message shows is tools and system.

    Every answer is a turn. Messages after the last one belong to none and are left out. Without a framing messages are
    counted in that of the format they came in.
    """
    turns: list[CourseTurn] = []
    calls: dict[str, ToolCall] = {}
    new, before = CourseTurn(text=0), None
    for timed in messages:
        message, tokens = timed.message, count_message(timed.message, tokenizer, framing=framing)
        calls |= {call.id: call for call in message.calls}
        if message.role == "assistant":
            gap = 0.0 if before is None else max(0.0, timed.at - before)
            turns.append(_turn(new, output=tokens, gap=gap, calls_tools=bool(message.calls)))
            new, before = CourseTurn(text=tokens), timed.at
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
    """Return the size of a result of `tokens` tokens once it is elided."""
    return max(_LEAST_DIGEST, round(tokens * _DIGEST)) if tokens >= _WORTH_ELIDING else tokens


def uses_to_expect(tool: ToolClass, characters: int) -> int:
    """Return the expected uses of a result after it is five calls old, in millionths."""
    return round(-log(max(1 - chance_of_use(tool, characters, YOUNG), 1e-6)) * SHARE)


def _turn(new: CourseTurn, *, output: int, gap: float, calls_tools: bool) -> CourseTurn:
    return replace(new, output=output, gap=gap, calls_tools=calls_tools)


def _with(new: CourseTurn, message: Message, tokens: int, calls: dict[str, ToolCall]) -> CourseTurn:
    if not message.results:
        return CourseTurn(text=new.text + tokens, results=new.results, elided=new.elided, chance=new.chance)
    chance = sum(
        uses_to_expect(class_of(calls[result.call_id]), len(result.text))
        for result in message.results
        if result.call_id in calls
    )
    return CourseTurn(
        text=new.text,
        results=new.results + tokens,
        elided=new.elided + elided_size(tokens),
        chance=new.chance + chance,
    )


def _apart(uses: Sequence[CourseUse], turns: Sequence[CourseTurn], tail: int) -> Iterator[CourseUse]:
    """Yield the uses whose result was not used shortly before: a recalled result stays in the tail for a while."""
    ends = list(accumulate(turn.whole for turn in turns))
    last: dict[tuple[int, int], int] = {}
    for use in sorted(uses, key=lambda use: use.at):
        result = (use.of, use.tokens)
        if result not in last or ends[use.at] - ends[last[result]] >= tail:
            yield use
        last[result] = use.at
