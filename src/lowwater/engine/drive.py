"""Driving a turn: its effects are fulfilled on a thread or awaited, all of them within one deadline."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from msgspec.structs import replace

from lowwater.compact.summary import shown_to_others
from lowwater.engine.asking import aask, ask
from lowwater.engine.effects import Announce, Effect, Failure, Outcome, Perform, Steps, Summarize
from lowwater.ports import AsyncSummarizer, Clock, Summarizer
from lowwater.values.ledger import Ledger
from lowwater.values.summaries import Riding, SummaryRequest

T = TypeVar("T")


class Driver:
    """What one turn is driven with: `deadline` is how many seconds it may wait for summarizers and hooks, all together.

    `riding` gives the request that a summary can be asked for by extending, or one that ends behind the first so many items
    of the view; `announce` is told before each compaction, and how many seconds are left for that.
    """

    def __init__(
        self,
        *,
        deadline: float,
        clock: Clock,
        riding: Callable[[Ledger | None, int], Riding | None] = lambda _, __: None,
        announce: Callable[[Ledger, float], None] = lambda _, __: None,
    ) -> None:
        self._riding = riding
        self._announce = announce
        self._left = deadline
        self._clock = clock

    def drive(self, turn: Steps[T], summarizers: Sequence[Summarizer]) -> T:
        """Run a turn to its end."""
        try:
            effect = next(turn)
            while True:
                effect = turn.send(self._fulfil(effect, summarizers))
        except StopIteration as done:
            result: T = done.value
            return result

    async def adrive(self, turn: Steps[T], summarizers: Sequence[Summarizer | AsyncSummarizer]) -> T:
        """Run a turn to its end without blocking the event loop."""
        try:
            effect = next(turn)
            while True:
                effect = turn.send(await self._afulfil(effect, summarizers))
        except StopIteration as done:
            result: T = done.value
            return result

    def _fulfil(self, effect: Effect, summarizers: Sequence[Summarizer]) -> object:
        match effect:
            case Summarize():
                with self._waiting():
                    outcome = ask(summarizers[effect.rung], self._request(effect), effect.share * self._left)
                return self._stamped(outcome)
            case Announce():
                with self._waiting():
                    return self._announce(effect.ledger, max(0.0, self._left))
            case Perform():
                return effect.call()

    async def _afulfil(self, effect: Effect, summarizers: Sequence[Summarizer | AsyncSummarizer]) -> object:
        match effect:
            case Summarize():
                with self._waiting():
                    outcome = await aask(
                        summarizers[effect.rung], self._request(effect), effect.share * self._left
                    )
                return self._stamped(outcome)
            case Announce():
                with self._waiting():
                    return await asyncio.to_thread(self._announce, effect.ledger, max(0.0, self._left))
            case Perform():
                return await asyncio.to_thread(effect.call)

    def _request(self, effect: Summarize) -> SummaryRequest:
        request = shown_to_others(effect.request)
        if not effect.rides and not effect.upto:
            return request
        return replace(request, riding=self._riding(effect.ledger, effect.upto))

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self._left -= time.monotonic() - start

    def _stamped(self, outcome: Outcome) -> Outcome:
        return replace(outcome, at=self._clock.now()) if isinstance(outcome, Failure) else outcome
