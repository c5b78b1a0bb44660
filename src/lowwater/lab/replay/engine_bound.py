"""The lower bound on what a session costs when the real engine plays it under rent-or-buy."""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from math import inf

from msgspec.structs import replace

from lowwater.core.messages import Message, Thinking
from lowwater.core.models.model import Model
from lowwater.core.tokens.counting import count_message, rules_for
from lowwater.lab.bound import Reach, engine_bound
from lowwater.lab.course import Course, Sheet
from lowwater.lab.replay.script import ReplayScript, sheet_of
from lowwater.session.factories import counter_for, framing_for
from lowwater.settings import CompressionSettings, ToolResultSettings

_SURELY_WHOLE, _LEAST_LEFT = 0.95, 0.6
"""Shares of the limit: results up to the first are not shortened on arrival, and what is shortened keeps at least the second."""
_RESERVED = 16_000
_SURELY_FITS = 0.85
"""Below this share of the wall no size forces a compaction, however unsure the engine is about its estimate."""


class EngineBound:
    """The bound of one script; `lost` are the calls before which the cache fails.

    What the engine can keep out of a prompt at no cost is left out: thinking that a model refuses behind a change, and what is
    beyond the size to which results are shortened on arrival. Where no lifetime of the cache is published, nothing expires.
    """

    def __init__(
        self,
        script: ReplayScript,
        course: Course,
        model: Model,
        *,
        offers_recall: bool = True,
        lost: Sequence[bool] = (),
    ) -> None:
        free = _free_tokens(script, model, offers_recall=offers_recall)
        turns = tuple(
            replace(
                turn,
                text=max(0, turn.whole - free[index]),
                results=0,
                elided=0,
                gap=inf if lost and lost[index] else turn.gap,
            )
            for index, turn in enumerate(course.turns)
        )
        self._course = replace(course, turns=turns, uses=())
        sheet = sheet_of(model)
        self._sheet = sheet if model.cache.ttl is not None else replace(sheet, ttl=inf)
        self._reach = _reach(script, course, model)
        self._known = 0
        if model.cache.output_cached:
            before = (min(new.whole, last.output) for last, new in pairwise(turns))
            self._known = (sheet.write - sheet.read) * sum(before) // 1_000

    def least(self, *, one_lifetime: bool = False, changed_at: Collection[int] | None = None) -> int:
        """Return what the engine costs at least, in nano-dollars.

        Two conditions say where a difference comes from: that everything is stored for the same lifetime (the one that is
        cheaper) and nothing keeps it warm, and that the view changes before certain calls only.
        """
        reach = self._reach
        if changed_at is not None:
            edges = (edge if turn in changed_at else 0 for turn, edge in enumerate(reach.edges))
            reach = replace(reach, edges=tuple(edges), forced_from=None)
        bounds = (
            engine_bound(course, sheet, reach)
            for course, sheet in (self._lifetimes() if one_lifetime else [(self._course, self._sheet)])
        )
        return min(bounds) - self._known

    def _lifetimes(self) -> Iterator[tuple[Course, Sheet]]:
        """Yield the session with each lifetime alone, pauses beyond it being endless."""
        sheet = self._sheet
        for write, ttl in ((sheet.write, sheet.ttl), (sheet.write_long, sheet.ttl_long)):
            if write is not None:
                turns = tuple(
                    replace(turn, gap=inf) if turn.gap > ttl else turn for turn in self._course.turns
                )
                alone = replace(sheet, write=write, ttl=ttl, write_long=None, ttl_long=0.0)
                yield replace(self._course, turns=turns), alone


def _reach(script: ReplayScript, course: Course, model: Model) -> Reach:
    settings, window = CompressionSettings(), model.context_length
    first = len(script.exchanges[0].new) if script.exchanges else 0
    return Reach(
        edges=tuple(_edges(script, course, settings.protect_last_n)),
        head=int(first < settings.protect_first_n),
        forced_from=round(_SURELY_FITS * (window - min(_RESERVED, window // 4))),
    )


def _edges(script: ReplayScript, course: Course, newest: int) -> Iterator[int]:
    """Yield for each call how many turns are not among the `newest` messages; those that calls and results hold together are wholly or not at all."""
    starts, ends = [], []
    edge = messages = 0
    for turn, call in enumerate(script.exchanges):
        starts.append(messages)
        messages += len(call.new) + bool(turn)
        ends.append(messages)
        while edge <= turn:
            is_one_group = bool(edge) and course.turns[edge - 1].calls_tools
            if (ends[edge] if is_one_group else starts[edge] + 1) > messages - newest:
                break
            edge += 1
        yield edge


def _free_tokens(script: ReplayScript, model: Model, *, offers_recall: bool) -> list[int]:
    """Return for each turn the tokens that the engine may drop before or after they are sent once."""
    tokenizer, framing, scale = counter_for(model.name), framing_for(model.name), rules_for(model.name).scale
    results = ToolResultSettings()
    limit = min(results.insertion_limit_ratio * model.context_length, results.insertion_limit_tokens)
    free = [0.0] * (len(script.exchanges) + 1)

    def count(message: Message) -> float:
        return count_message(message, tokenizer, framing=framing) * scale

    for message, exchange in zip(script.messages, script.turn_of(), strict=True):
        if any(isinstance(part, Thinking) for part in message.parts):
            rest = tuple(part for part in message.parts if not isinstance(part, Thinking))
            free[exchange + 1] += count(message) - count(replace(message, parts=rest))
        elif message.results and offers_recall and (tokens := count(message)) > _SURELY_WHOLE * limit:
            free[exchange] += tokens - min(tokens, _LEAST_LEFT * limit)
    return [round(tokens) for tokens in free]
