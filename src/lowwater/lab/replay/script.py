"""Turns a recording into a script for the engine, and into a course with a price sheet for simulations."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.cache.belief import HALF_LIFE, HALF_LIFE_ON_DISK
from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.mechanisms.placeholder import placeholder
from lowwater.core.messages import Format, Message
from lowwater.core.models.model import Model, Units
from lowwater.core.models.registry import Registry
from lowwater.core.tokens.counting import count_preamble, rules_for
from lowwater.errors import BadInput
from lowwater.lab.course import Course, CourseTurn, CourseUse, Sheet, Timed, course_of
from lowwater.lab.references.uses import LaterUse, Origin, find_words
from lowwater.logs.recording import RecordedMessage, Recording
from lowwater.logs.recording_builder import is_empty
from lowwater.protocols import Tokenizer
from lowwater.session.factories import counter_for, framing_for

FORMAT: Format = "openai_chat"
PAUSE = 20.0
"""Seconds between calls if no times are recorded: enough for tools to run, and short enough for a warm cache."""
REPLACEMENT_KIND = "compact_summary"
"""Messages of this kind are summaries that the recording agent put in place of history; they are left out, as the history is kept."""
TAIL = 20_000
"""Tokens of the protected tail."""
_SAMPLE_NUMBER = 100
"""A message number for sample placeholders; only its number of digits matters."""
SHEETS: Mapping[str, str] = {
    "anthropic-r10": "claude-opus-4-5",
    "anthropic-r05": "claude-opus-5-5",
    "openai-30m": "gpt-5.6-sol",
    "deepseek": "deepseek-flash",
}
"""The four price sheets on which replays are compared, each with the model that it stands for."""
ASSUMED = "claude-opus-5-5"
"""The model used for sessions that name no model, or one without known prices."""
_RESERVED = 20_000
_OTHER_INPUT, _OTHER_OUTPUT = 5, 1
"""Divisors of the input price: a cheaper model is assumed to cost a fifth of it for input, and all of it for output."""
_MINUTE = 60.0


class ScriptedCall(Struct, frozen=True, kw_only=True):
    """One call: new messages and the answer, as raw JSON in the chat format."""

    new: tuple[bytes, ...]
    answer: bytes
    at: float
    """The time of the call, in seconds."""


class ReplayScript(Struct, frozen=True, kw_only=True):
    """A session without the client's own compactions; `messages` has those of all exchanges, numbered as in a ledger."""

    name: str
    messages: tuple[Message, ...]
    exchanges: tuple[ScriptedCall, ...]
    first_prompt: int = 0
    """Prompt tokens reported for the first call; 0 if not recorded."""
    system: bytes = b""
    tools: bytes = b""
    """As JSON; empty if not recorded."""
    lacks_times: bool = False
    """Whether the times of some calls were missing and set to `PAUSE` after the previous one."""

    def beginning(self, calls: int) -> "ReplayScript":
        """Return the script of the first `calls` calls."""
        kept = self.exchanges[:calls]
        return replace(
            self,
            exchanges=kept,
            messages=self.messages[: sum(len(exchange.new) + 1 for exchange in kept)],
        )

    def turn_of(self) -> list[int]:
        """Return for each message the index of its exchange."""
        return [turn for turn, exchange in enumerate(self.exchanges) for _ in range(len(exchange.new) + 1)]


class _Answer(Struct, frozen=True, kw_only=True):
    new: tuple[Message, ...]
    message: Message
    at: float | None
    prompt: int


def script_of(recording: Recording) -> ReplayScript:
    """Return the script of a recording, or raise BadInput if it has no answer.

    Consecutive messages of the assistant are one answer; messages after the last answer belong to no call. Empty messages
    cannot be sent and are left out.
    """
    kept = [
        each for each in recording.messages if each.kind != REPLACEMENT_KIND and not is_empty(each.message)
    ]
    answers = _answers(kept)
    if not answers:
        raise BadInput("no call in it has an answer")
    exchanges = tuple(
        ScriptedCall(
            new=tuple(encode_messages(answer.new, FORMAT)),
            answer=encode_messages([answer.message], FORMAT)[0],
            at=at,
        )
        for answer, at in zip(answers, _times(answers), strict=True)
    )
    raws = [raw for exchange in exchanges for raw in (*exchange.new, exchange.answer)]
    return ReplayScript(
        name=f"{recording.agent}/{recording.id}",
        messages=tuple(decode_messages(raws, FORMAT)),
        exchanges=exchanges,
        first_prompt=answers[0].prompt,
        system=recording.system,
        tools=recording.tools,
        lacks_times=any(answer.at is None for answer in answers),
    )


def _answers(messages: Sequence[RecordedMessage]) -> list[_Answer]:
    answers: list[_Answer] = []
    new: list[Message] = []
    for recorded in messages:
        message = recorded.message
        if message.role != "assistant":
            new.append(message)
        elif new:
            answers.append(
                _Answer(new=tuple(new), message=message, at=_at(recorded), prompt=_prompt(recorded))
            )
            new = []
        elif answers:
            last = answers[-1]
            together = Message(role="assistant", parts=(*last.message.parts, *message.parts))
            answers[-1] = replace(last, message=together)
    return answers


def _at(recorded: RecordedMessage) -> float | None:
    asked = recorded.call.asked_at if recorded.call is not None else None
    return recorded.at if asked is None else asked


def _times(answers: Sequence[_Answer]) -> Iterator[float]:
    """Yield the time of each call; a call without one is placed `PAUSE` after the previous call."""
    known = next((at for at, answer in enumerate(answers) if answer.at is not None), 0)
    at = (answers[known].at or 0.0) - PAUSE * (known + 1)
    for answer in answers:
        at = at + PAUSE if answer.at is None else answer.at
        yield at


def _prompt(recorded: RecordedMessage) -> int:
    usage = recorded.call.usage if recorded.call is not None else None
    return 0 if usage is None else usage.prompt


def course_for(script: ReplayScript, uses: Sequence[LaterUse], *, model: str, recorded: str) -> Course:
    """Return the course of a script in the tokens of `model`; reported sizes are in tokens of the `recorded` model.

    The size of tools and system is what the first call was billed for beyond its messages, or counted if that is not recorded.
    """
    tokenizer, scale = counter_for(model), rules_for(model).scale
    turn_of = script.turn_of()
    course = course_of(
        script.name,
        [
            Timed(message=message, at=script.exchanges[turn].at)
            for message, turn in zip(script.messages, turn_of, strict=True)
        ],
        first_prompt=round(script.first_prompt / rules_for(recorded).scale),
        tail=round(TAIL / scale),
        uses=tuple(_course_uses(uses, turn_of, tokenizer)),
        tokenizer=tokenizer,
        framing=framing_for(model),
    )
    if not script.first_prompt:
        course = replace(course, fixed=count_preamble(script.system, script.tools, tokenizer))
    return _scaled(course, scale)


def gaps_of(script: ReplayScript) -> list[float]:
    """Return the seconds between each call and the previous one."""
    times = [exchange.at for exchange in script.exchanges]
    return [0.0, *(max(0.0, after - before) for before, after in pairwise(times))]


def _course_uses(
    named: Sequence[LaterUse], turn_of: Sequence[int], tokenizer: Tokenizer
) -> Iterator[CourseUse]:
    """Yield one use for each result that a call needs; it counts as in the digest if everything needed is."""
    needed: dict[tuple[int, int], list[LaterUse]] = {}
    for use in named:
        at = turn_of[use.number - 1]
        if turn_of[use.origin.number - 1] < at:
            needed.setdefault((at, use.origin.number), []).append(use)
    shown: dict[int, str] = {}
    for (at, number), uses in sorted(needed.items()):
        origin = uses[0].origin
        if number not in shown:
            shown[number] = _placeholder_text(origin, tokenizer)
        yield CourseUse(
            at=at,
            of=turn_of[number - 1],
            tokens=tokenizer.count(origin.text),
            in_digest=all(find_words(use.text, shown[number]) >= 0 for use in uses),
        )


def _placeholder_text(origin: Origin, tokenizer: Tokenizer) -> str:
    """Return the placeholder of a result once it is elided; the result itself if it is too short for one."""
    made = placeholder(
        origin.text, number=_SAMPLE_NUMBER, call=origin.call, offers_recall=True, tokenizer=tokenizer
    )
    return made or origin.text


def _scaled(course: Course, scale: float) -> Course:
    turns = tuple(
        CourseTurn(
            text=round(turn.text * scale),
            results=round(turn.results * scale),
            elided=round(turn.elided * scale),
            output=round(turn.output * scale),
            gap=turn.gap,
            chance=turn.chance,
            calls_tools=turn.calls_tools,
        )
        for turn in course.turns
    )
    uses = tuple(replace(use, tokens=round(use.tokens * scale)) for use in course.uses or ())
    return replace(course, fixed=round(course.fixed * scale), tail=TAIL, turns=turns, uses=uses)


def model_named(name: str, registry: Registry) -> Model:
    """Return the model of a price sheet or of this name, or raise BadInput if it has no known price."""
    model = registry.find(SHEETS.get(name, name))
    if model.prices is None:
        raise BadInput(f"no price is known for {name!r}, so that nothing can be charged for it")
    return model


def sheet_of(model: Model) -> Sheet:
    """Return the price sheet of a model: its default cache lifetime, without price cliffs and off-peak prices.

    If no lifetime is published, a prefix is assumed to live for the half-life of the cache.
    """
    prices = model.prices
    assert prices is not None
    half_life = HALF_LIFE_ON_DISK if isinstance(model.cache.matching, Units) else HALF_LIFE
    return Sheet(
        name=model.name,
        input=prices.input,
        read=prices.cache_read,
        write=prices.cache_write,
        output=prices.output,
        other_input=prices.input // _OTHER_INPUT,
        other_output=prices.input // _OTHER_OUTPUT,
        ttl=half_life if model.cache.ttl is None else model.cache.ttl,
        window=model.context_length,
        reserved=min(_RESERVED, model.context_length // 4),
        write_long=prices.cache_write_long,
        ttl_long=model.cache.ttl_long or 0.0,
    )


class Arm(Struct, frozen=True, kw_only=True):
    """How often the cache fails against its rules; the random draws depend on the session only, so they are the same for all policies."""

    name: str
    evicted: float = 0.0
    """The probability per minute that a prefix is evicted."""
    missed: float = 0.0
    """The share of calls that miss the cache."""
    seed: int = 0


NEUTRAL = Arm(name="neutral")


PESSIMISTIC = Arm(name="pessimistic", evicted=0.04, missed=0.03)
"""About as in recorded Codex sessions: 97 % of the previous prompt was read within a minute, 88 % after one to five."""


ARMS = (NEUTRAL, PESSIMISTIC)


def cache_losses(arm: Arm, session: str, gaps: Sequence[float]) -> tuple[bool, ...]:
    """Return for each call whether the cache has lost the prefix for a reason that no policy can know."""
    draw = Random(f"lowwater arm {arm.seed} {session}")  # noqa: S311 (not for secrets)
    lost: list[bool] = []
    for gap in gaps:
        evicted, missed = draw.random(), draw.random()
        lost.append(evicted > (1 - arm.evicted) ** (gap / _MINUTE) or missed < arm.missed)
    return tuple(lost)
