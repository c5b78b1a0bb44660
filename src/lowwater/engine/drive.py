"""Driving a turn: its effects are fulfilled on a thread or awaited, all of them within one deadline."""

import time
from collections.abc import Generator, Sequence
from typing import TypeVar

from msgspec.structs import replace

from lowwater.engine.asking import aask, ask
from lowwater.engine.effects import Failure, Outcome, Summarize
from lowwater.ports import AsyncSummarizer, Clock, Summarizer

T = TypeVar("T")


class Driver:
    """What one turn is driven with: `deadline` is how many seconds all its summarizers may take together."""

    def __init__(self, *, deadline: float, clock: Clock) -> None:
        self._until = time.monotonic() + deadline
        self._clock = clock

    def drive(self, turn: Generator[Summarize, Outcome, T], summarizers: Sequence[Summarizer]) -> T:
        """Run a turn to its end."""
        try:
            effect = next(turn)
            while True:
                outcome = ask(summarizers[effect.rung], effect.request, self._seconds_for(effect))
                effect = turn.send(self._stamped(outcome))
        except StopIteration as done:
            result: T = done.value
            return result

    async def adrive(
        self, turn: Generator[Summarize, Outcome, T], summarizers: Sequence[Summarizer | AsyncSummarizer]
    ) -> T:
        """Run a turn to its end without blocking the event loop."""
        try:
            effect = next(turn)
            while True:
                outcome = await aask(summarizers[effect.rung], effect.request, self._seconds_for(effect))
                effect = turn.send(self._stamped(outcome))
        except StopIteration as done:
            result: T = done.value
            return result

    def _seconds_for(self, effect: Summarize) -> float:
        return effect.share * (self._until - time.monotonic())

    def _stamped(self, outcome: Outcome) -> Outcome:
        return replace(outcome, at=self._clock.now()) if isinstance(outcome, Failure) else outcome
