"""A script as a course, counted as a model counts."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec.structs import replace

from lowwater.core.mechanisms.placeholder import placeholder
from lowwater.core.tokens.counting import count_preamble, rules_for
from lowwater.protocols import Tokenizer
from lowwater.replay.course import Course, Turn, Use
from lowwater.replay.recorded import Timed, course_of
from lowwater.replay.references.finding import find
from lowwater.replay.references.uses import Origin
from lowwater.replay.references.uses import Use as Named
from lowwater.replay.running.script import Script
from lowwater.session.factories import counter_for, framing_for

TAIL = 20_000
"""Tokens at the end that no declared action touches."""
_ANY_NUMBER = 100
"""The number in a placeholder's handle; only its length counts."""


def course_for(script: Script, uses: Sequence[Named], *, model: str, recorded: str) -> Course:
    """Return the course of a script in the tokens of `model`; what was reported is in those of the `recorded` one.

    Tools and system are what the first call was billed for beside its messages, or counted where that is not recorded.
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
        uses=tuple(_uses(uses, turn_of, tokenizer)),
        tokenizer=tokenizer,
        framing=framing_for(model),
    )
    if not script.first_prompt:
        course = replace(course, fixed=count_preamble(script.system, script.tools, tokenizer))
    return _scaled(course, scale)


def gaps_of(script: Script) -> list[float]:
    """Return the seconds before each call since the one before."""
    times = [exchange.at for exchange in script.exchanges]
    return [0.0, *(max(0.0, after - before) for before, after in pairwise(times))]


def _uses(named: Sequence[Named], turn_of: Sequence[int], tokenizer: Tokenizer) -> Iterator[Use]:
    """Yield one use for each result that a call needs; it is in the digest if all that is needed is."""
    needed: dict[tuple[int, int], list[Named]] = {}
    for use in named:
        at = turn_of[use.number - 1]
        if turn_of[use.origin.number - 1] < at:
            needed.setdefault((at, use.origin.number), []).append(use)
    shown: dict[int, str] = {}
    for (at, number), uses in sorted(needed.items()):
        origin = uses[0].origin
        if number not in shown:
            shown[number] = _shown(origin, tokenizer)
        yield Use(
            at=at,
            of=turn_of[number - 1],
            tokens=tokenizer.count(origin.text),
            in_digest=all(find(use.text, shown[number]) >= 0 for use in uses),
        )


def _shown(origin: Origin, tokenizer: Tokenizer) -> str:
    """Return what stands for a result once it is elided."""
    made = placeholder(
        origin.text, number=_ANY_NUMBER, call=origin.call, offers_recall=True, tokenizer=tokenizer
    )
    return made or origin.text


def _scaled(course: Course, scale: float) -> Course:
    turns = tuple(
        Turn(
            text=round(turn.text * scale),
            results=round(turn.results * scale),
            elided=round(turn.elided * scale),
            output=round(turn.output * scale),
            gap=turn.gap,
            chance=turn.chance,
        )
        for turn in course.turns
    )
    uses = tuple(replace(use, tokens=round(use.tokens * scale)) for use in course.uses or ())
    return replace(course, fixed=round(course.fixed * scale), tail=TAIL, turns=turns, uses=uses)
