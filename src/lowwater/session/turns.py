"""Taking turns on a session: one at a time, from threads and from tasks, and never over a change made meanwhile."""

import asyncio
import logging
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.events import Compaction
from lowwater.core.ledger import Ledger
from lowwater.core.legality import mend
from lowwater.core.policies.registry import policy_named
from lowwater.core.summary.request import CachedPrefix
from lowwater.core.turns.commit import Acted
from lowwater.core.turns.effects import Announce, Outcome, Perform, Steps, Summarize
from lowwater.core.turns.prefetch import PrefetchOutcome, is_prefetched, prefetch_summary, settle
from lowwater.core.turns.state import Setup, State
from lowwater.core.turns.turn import Prepared
from lowwater.errors import StaleLedger
from lowwater.observe.sinks import announce, tell, tell_warnings
from lowwater.session.dependencies import Dependencies
from lowwater.session.driver import Driver, booked, spent_on, timed
from lowwater.session.repository import Change, SharedState, new_name, setup_for
from lowwater.session.turn_input import written_messages


class IdleWork:
    """The idle time of one session; whoever takes a turn meanwhile does not wait for it."""

    def __init__(
        self,
        kept: SharedState,
        setup: Setup,
        outside: Dependencies,
        *,
        riding: Callable[[Ledger | None, int], CachedPrefix | None],
    ) -> None:
        self._kept = kept
        self._setup = setup
        self._outside = outside
        self._riding = riding
        self._busy = threading.Lock()

    def prefetch_summary(self) -> bool:
        """Have a summary prepared if that makes sense, blocking until it is, and return whether one is ready."""
        summarizers = self._outside.blocking()
        with self._alone() as alone:
            if alone:
                self._settle(self._driver().drive(self._steps(), summarizers))
        return is_prefetched(self._kept.state)

    async def aprefetch_summary(self) -> bool:
        """Do the same without blocking the event loop; if it is cancelled, nothing is parked."""
        with self._alone() as alone:
            if alone:
                parking = await self._driver().adrive(self._steps(), self._outside.summarizers)
                await asyncio.to_thread(self._settle, parking)
        return is_prefetched(self._kept.state)

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Tell whether nobody else is having one prepared: the same summary is not paid twice, and nobody waits."""
        alone = self._busy.acquire(blocking=False)
        try:
            yield alone
        finally:
            if alone:
                self._busy.release()

    def _steps(self) -> Generator[Summarize, Outcome, PrefetchOutcome | None]:
        windows, at = self._outside.windows, self._outside.clock.now()
        state = self._kept.state
        return prefetch_summary(
            windows.applied(state), windows.applied_to(setup_for(state, self._setup), state), at
        )

    def _settle(self, parking: PrefetchOutcome | None) -> None:
        if parking is not None:
            self._kept.change(lambda state: settle(state, parking))

    def _driver(self) -> Driver:
        return Driver(deadline=self._outside.deadline, clock=self._outside.clock, riding=self._riding)


_log = logging.getLogger("lowwater")

T = TypeVar("T", Prepared, Acted)
R = TypeVar("R")
Turn = Callable[[State, Setup, float], Steps[T]]

_ATTEMPTS = 3
_INSIDE: ContextVar[frozenset[int]] = ContextVar("lowwater_turns", default=frozenset())
"""The sessions whose turn is being taken, here or by whoever told this thread of it."""


class Offer(Struct, frozen=True, kw_only=True):
    """A turn that was worked out on a state and is not kept yet."""

    seen: State
    result: Prepared


class TurnRunner:
    """The turns of one session."""

    def __init__(
        self,
        kept: SharedState,
        setup: Setup,
        outside: Dependencies,
        *,
        riding: Callable[[Ledger | None, int], CachedPrefix | None],
    ) -> None:
        self._riding = riding
        self._kept = kept
        self._setup = setup
        self._outside = outside
        self._lock = threading.RLock()
        self._is_announcing = False
        # An asyncio lock belongs to the loop it was first waited for in, and a session may see several loops.
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    def take(self, turn: Turn[T]) -> T:
        """Take a turn, blocking until it is done."""
        summarizers = self._outside.blocking()
        with self._taking_turns():
            return self._driver().drive(self._steps(turn, self._setup), summarizers)

    def offer(self, turn: Turn[Prepared]) -> Offer:
        """Work a turn out without keeping it, and without asking anybody: one that would have to buys nothing.

        What fits no longer is made to fit all the same, without a model.
        """
        with self._taking_turns():
            try:
                return _at_once(self._driver(), self._offered(turn, self._setup))
            except _Asks:
                patient = replace(self._setup, rungs=0, policy=policy_named("never"))
                return _at_once(self._driver(), self._offered(turn, patient))

    def accept(self, offer: Offer, otherwise: Callable[[State], State]) -> bool:
        """Keep a turn that was offered, and tell whether it is still what follows; `otherwise` is kept if it is not."""
        is_next = self._kept.swap(offer.seen, _step(offer.result))
        if is_next:
            self._told(offer.result)
        else:
            self._kept.change(otherwise)
        return is_next

    def foresee(self, turn: Turn[T]) -> T:
        """Return what `offer` would come to now; nothing is kept, and nobody is asked or told."""
        patient = replace(self._setup, rungs=0, policy=policy_named("never"))
        return self._kept.read(
            lambda state: _foreseen(
                self._run(turn, state, setup, announced=True) for setup in (self._setup, patient)
            )
        )

    async def atake(self, turn: Turn[T]) -> T:
        """Take a turn without blocking the event loop; one that is cancelled may have been kept, and if so whole."""
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            return await self._driver().adrive(self._steps(turn, self._setup), self._outside.summarizers)

    def _driver(self) -> Driver:
        outside = self._outside
        return Driver(
            deadline=outside.deadline, clock=outside.clock, riding=self._riding, announce=self._announce
        )

    @contextmanager
    def _taking_turns(self) -> Iterator[None]:
        """Wait until no other turn is under way; a hook that is told in one may take another, on whichever thread it is."""
        inside = _INSIDE.get()
        if id(self) in inside:
            yield
            return
        with self._lock:
            token = _INSIDE.set(inside | {id(self)})
            try:
                yield
            finally:
                _INSIDE.reset(token)

    def _announce(self, ledger: Ledger, seconds: float) -> None:
        """Tell the hooks, for so many seconds; what one of them does to the session in its turn is told to none."""
        hooks = self._outside.hooks
        if not hooks or self._is_announcing:
            return
        self._is_announcing = True
        try:
            messages = written_messages(mend(ledger.view.messages), self._kept.state)
            announce(hooks, self._kept.home.name, messages, seconds=seconds)
        finally:
            self._is_announcing = False

    def _steps(self, turn: Turn[T], setup: Setup) -> Steps[T]:
        """Run the turn on the state as it is, and again if that has changed meanwhile; the last time nobody is asked."""
        spent: int | None = 0
        for attempt in range(_ATTEMPTS):
            seen = self._kept.state
            try:
                result = yield from self._run(turn, seen, setup, announced=attempt > 0)
            except StaleLedger:
                self._kept.refresh()
                continue
            result = booked(result, spent)
            if (yield Perform(call=partial(self._kept.swap, seen, _step(result)))):
                break
            spent = spent_on(seen, result)
        else:
            result = yield Perform(call=partial(self._last, turn, spent))
        told = self._told(result)
        if self._setup.settings.compression.split and _is_compacted(result):
            yield Perform(call=self._split)
        return told

    def _offered(self, turn: Turn[Prepared], setup: Setup) -> Steps[Offer]:
        """Run the turn on the state as it is; what was replaced in the store meanwhile is read again, once."""
        try:
            seen = self._kept.state
            return Offer(seen=seen, result=(yield from self._run(turn, seen, setup, announced=False)))
        except StaleLedger:
            self._kept.refresh()
            seen = self._kept.state
            return Offer(seen=seen, result=(yield from self._run(turn, seen, setup, announced=True)))

    def _last(self, turn: Turn[T], spent: int | None) -> T:
        """Run the turn while everybody in this process waits; nobody is asked, so that it waits for nobody."""
        with self._kept.held():
            while True:
                seen = self._kept.state
                steps = self._run(turn, seen, replace(self._setup, rungs=0), announced=True)
                result = booked(_exhausted(steps), spent)
                if self._kept.swap(seen, _step(result)):
                    return result

    def _run(self, turn: Turn[T], state: State, setup: Setup, *, announced: bool) -> Steps[T]:
        windows, clock = self._outside.windows, self._outside.clock
        at = clock.now()
        setup = windows.applied_to(setup_for(state, setup), state)
        steps = turn(windows.applied(state), setup, at)
        result = yield from _silently(steps) if announced else steps
        # The window is worked out anew at each turn: what was learned of it may be given up.
        result = replace(result, state=replace(result.state, model=state.model))
        return timed(result, clock.now() - at)

    def _split(self) -> None:
        """Go on in a child; if that fails, the compaction stands all the same."""
        at = self._outside.clock.now()
        try:
            self._kept.split(new_name(at), at)
        except Exception as error:  # noqa: BLE001  # whatever the store is, the compaction stands
            _log.warning("%s: it could not be split and goes on: %s", self._kept.home.name, error)

    def _told(self, result: T) -> T:
        outside = self._outside
        for event in result.events:
            tell(outside.sinks, self._kept.home.name, event)
        if isinstance(result, Prepared):
            if result.thinking_stopped:
                _log.warning(
                    "%s: thinking is disabled until the user says something: the tool loop began with an answer that was compacted, "
                    "and with a thinking budget the provider refuses a loop that does not begin with thinking. Adaptive thinking "
                    "has no such rule.",
                    self._kept.home.name,
                )
            name = self._kept.home.name
            tell_warnings(result.warnings, name, call=outside.on_warning, quiet=outside.quiet)
        return result


class _Asks(Exception):
    """A turn has to ask somebody."""


def _at_once(driver: Driver, steps: Steps[R]) -> R:
    """Drive steps to their end, or raise _Asks."""

    def checked() -> Steps[R]:
        try:
            effect = next(steps)
            while True:
                if isinstance(effect, Summarize):
                    raise _Asks
                effect = steps.send((yield effect))
        except StopIteration as done:
            result: R = done.value
            return result

    return driver.drive(checked(), ())


def _foreseen(attempts: Iterator[Steps[T]]) -> T:
    """Carry out the first steps that ask nobody."""
    for steps in attempts:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
    raise AssertionError("the last attempt asks nobody")


def _silently(steps: Steps[T]) -> Steps[T]:
    """Carry the steps out without telling anybody of a compaction: they were told before."""
    try:
        effect = next(steps)
        while True:
            effect = steps.send(None if isinstance(effect, Announce) else (yield effect))
    except StopIteration as done:
        result: T = done.value
        return result


def _exhausted(steps: Steps[T]) -> T:
    """Carry out steps that need nothing from the outside."""
    try:
        effect = next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError(f"nobody can be asked now: {type(effect).__name__}")


def _is_compacted(result: Prepared | Acted) -> bool:
    """Return whether a turn changed what was there; shortening what is new is no reason to split."""
    return any(isinstance(event, Compaction) and event.mode != "shorten" for event in result.events)


def _step(result: Prepared | Acted) -> Change:
    return Change(state=result.state, events=result.events)
