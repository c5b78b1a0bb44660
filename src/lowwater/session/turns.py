"""Runs the turns of a session: one at a time in each thread or event loop, and never over a change made meanwhile.

A turn yields effects; a blocking and an async driver carry them out, under one deadline. A summarizer may hang, raise anything
or return anything: what comes of it is always a `SummaryOutcome`, never a failed turn.
"""

import logging
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.events import Compaction, Event
from lowwater.core.ledger import Ledger
from lowwater.core.legality import mend
from lowwater.core.summary.request import CachedPrefix, SummaryRequest, Written
from lowwater.core.turns.costs import both
from lowwater.core.turns.effects import (
    Announce,
    Failure,
    Steps,
    Summarize,
    SummaryOutcome,
)
from lowwater.core.turns.state import Acted, Setup, State, is_prefetched
from lowwater.core.turns.turn import Prepared
from lowwater.errors import LowwaterError, StaleLedger, SummaryFailed
from lowwater.observe.sinks import hook_additions, run_memory_hooks, send_event, send_warnings
from lowwater.protocols import AsyncSummarizer, Clock, Summarizer
from lowwater.session.dependencies import Dependencies, is_async
from lowwater.session.repository import SharedState, StateChange, new_name, setup_for
from lowwater.session.turn_input import written_messages

if TYPE_CHECKING:
    import asyncio

    from lowwater.core.turns.prefetch import PrefetchOutcome

_log = logging.getLogger("lowwater")

_ATTEMPTS = 3
"""How often a turn runs without the lock; after that it runs once more with it, and without summarizers."""

_SESSIONS_IN_TURN: ContextVar[frozenset[int]] = ContextVar("lowwater_turns", default=frozenset())
"""The sessions in whose turn this code runs, also on a thread that a hook was called on."""

T = TypeVar("T", Prepared, Acted)
R = TypeVar("R")
Turn = Callable[[State, Setup, float], Steps[T]]
PrefixFor = Callable[[Ledger | None, int], CachedPrefix | None]
"""Returns the request that a summary can be asked for with: see `Driver`."""


class _Finished(Generic[R]):
    """The result of a turn that is finished."""

    def __init__(self, result: R) -> None:
        self.result = result


class Driver:
    """Drives one turn; `deadline` is how many seconds it may wait for summarizers and hooks, all together.

    `cached_prefix(ledger, upto)` returns the request that a summary can be asked for by extending it: the one sent last for
    `upto=0`, else one that ends after the first `upto` items of the view. `base_url` is where the session's calls go: a summarizer
    that goes anywhere else, or does not say, gets that request without secrets. `announce(ledger, seconds)` is called before each
    compaction, with the seconds that are left for it, and `additions` after each, which returns the texts that hooks add to the view.
    """

    def __init__(
        self,
        *,
        deadline: float,
        clock: Clock,
        cached_prefix: Callable[[Ledger | None, int], CachedPrefix | None] = lambda _, __: None,
        base_url: str = "",
        announce: Callable[[Ledger, float], None] = lambda _, __: None,
        additions: Callable[[Ledger, float], tuple[str, ...]] = lambda _, __: (),
    ) -> None:
        self._cached_prefix = cached_prefix
        self._base_url = base_url
        self._announce = announce
        self._additions = additions
        self._left = deadline
        self._clock = clock
        self.has_asked = False
        """Whether a summarizer was asked."""

    def drive(self, turn: Steps[R], summarizers: Sequence[Summarizer]) -> R:
        """Run a turn to its end."""
        reached = self._run_on(turn, None)
        while isinstance(reached, Summarize):
            with self._on_the_clock():
                summarizer, seconds = summarizers[reached.rung], reached.share * self._left
                request = self._request(reached, summarizer)
                self.has_asked = True
                outcome = ask_summarizer(summarizer, request, seconds)
            reached = self._run_on(turn, self._with_time(outcome))
        return reached.result

    async def adrive(self, turn: Steps[R], summarizers: Sequence[Summarizer | AsyncSummarizer]) -> R:
        """Run a turn to its end: summarizers are awaited here, everything else is done on a thread."""
        import asyncio  # noqa: PLC0415 - those who await have it loaded

        reached = await asyncio.to_thread(self._run_on, turn, None)
        while isinstance(reached, Summarize):
            with self._on_the_clock():
                summarizer, seconds = summarizers[reached.rung], reached.share * self._left
                request = await asyncio.to_thread(self._request, reached, summarizer)
                self.has_asked = True
                outcome = await aask_summarizer(summarizer, request, seconds)
            reached = await asyncio.to_thread(self._run_on, turn, self._with_time(outcome))
        return reached.result

    def _run_on(self, turn: Steps[R], answer: SummaryOutcome | None) -> "Summarize | _Finished[R]":
        """Run a turn until it needs a summary or is finished."""
        try:
            effect = turn.send(answer)
            while not isinstance(effect, Summarize):
                with self._on_the_clock():
                    left = max(0.0, self._left)
                    if isinstance(effect, Announce):
                        said = self._announce(effect.ledger, left)
                    else:
                        said = self._additions(effect.ledger, left)
                effect = turn.send(said)
        except StopIteration as done:
            return _Finished(done.value)
        return effect

    def _request(self, effect: Summarize, summarizer: Summarizer | AsyncSummarizer) -> SummaryRequest:
        """Return the request as its summarizer gets it: without secrets, and with the cached prefix if it extends that."""
        from lowwater.core.summary.sanitize import prefix_for_others, shown_to_others  # noqa: PLC0415 - loaded with the first summary

        request = shown_to_others(effect.request)
        if not effect.extends_last_request and not effect.upto:
            return request
        prefix = self._cached_prefix(effect.ledger, effect.upto)
        reaches = getattr(summarizer, "reaches", None)
        if prefix is not None and request.redact and not (reaches and reaches(self._base_url)):
            prefix = prefix_for_others(prefix)
        return replace(request, cached_prefix=prefix)

    @contextmanager
    def _on_the_clock(self) -> Iterator[None]:
        """Take the time that the block needs from what is left of the deadline."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._left -= time.monotonic() - start

    def _with_time(self, outcome: SummaryOutcome) -> SummaryOutcome:
        return replace(outcome, at=self._clock.now()) if isinstance(outcome, Failure) else outcome


def ask_summarizer(summarizer: Summarizer, request: SummaryRequest, seconds: float) -> SummaryOutcome:
    """Return what the summarizer answers within `seconds`; after that it is abandoned on its thread and counts as failed."""
    if seconds <= 0:
        return _timed_out()
    answers: SimpleQueue[object] = SimpleQueue()
    bounded = replace(request, within=seconds)
    _start_thread(lambda: _call(summarizer, bounded), answers.put)
    try:
        return _validated(answers.get(timeout=seconds))
    except Empty:
        return _timed_out()


async def aask_summarizer(
    summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest, seconds: float
) -> SummaryOutcome:
    """Do what `ask_summarizer` does without blocking the event loop; a blocking summarizer runs on a thread."""
    if seconds <= 0:
        return _timed_out()
    import asyncio  # noqa: PLC0415 - those who await have it loaded

    # A summarizer may swallow its cancellation, so the task is cancelled and not awaited.
    task = asyncio.ensure_future(_acall(summarizer, replace(request, within=seconds)))
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            return _timed_out()
        return Failure(kind="failed", error="cancelled") if task.cancelled() else _validated(task.result())
    finally:
        task.cancel()


async def _acall(summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest) -> object:
    from inspect import isawaitable  # noqa: PLC0415 - for those who have a summarizer

    try:
        answer: object = (
            summarizer.summarize(request) if is_async(summarizer) else _call_on_thread(summarizer, request)
        )
        while isawaitable(answer):
            answer = await answer
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever it raises is a failed summary, never a failed turn
        return _failure(error)
    return answer


def _call_on_thread(
    summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest
) -> "asyncio.Future[object]":
    """Return a future of the answer; unlike the loop's own executor threads, this one does not delay the end of the process."""
    import asyncio  # noqa: PLC0415 - those who await have it loaded

    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()

    def deliver(answer: object) -> None:
        if not future.done():
            future.set_result(answer)

    def hand_over(answer: object) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(deliver, answer)

    _start_thread(lambda: _call(summarizer, request), hand_over)
    return future


def _start_thread(work: Callable[[], object], deliver: Callable[[object], object]) -> None:
    threading.Thread(target=lambda: deliver(work()), name="lowwater-summarizer", daemon=True).start()


def _call(summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest) -> object:
    try:
        return summarizer.summarize(request)
    except BaseException as error:  # noqa: BLE001  # on this thread even SystemExit only means that there is no summary
        return _failure(error)


def _validated(answer: object) -> SummaryOutcome:
    """Return the answer with its texts cleaned, or a failure if it is not a summary."""
    from lowwater.core.summary.sanitize import as_label, whole_characters  # noqa: PLC0415 - loaded with the first summary

    match answer:
        case Written(text=str(), by=str(), model=str(), block=bytes(), usage=Usage() | None):
            # The text of a signed block has to stay as the provider signed it.
            text = answer.text if answer.block else whole_characters(answer.text)
            return replace(answer, text=text, by=as_label(answer.by), model=as_label(answer.model))
        case Failure():
            return replace(answer, error=as_label(answer.error))
        case Coroutine():
            answer.close()
            return Failure(kind="failed", error="the summarizer has to be awaited")
        case _:
            return Failure(kind="failed", error=f"the summarizer returned a {type(answer).__name__}")


def _failure(error: BaseException) -> Failure:
    """Return the failure an error means; of errors other than SummaryFailed only the type is told, for they may quote a message."""
    if isinstance(error, SummaryFailed):
        spent = error.spent if isinstance(error.spent, Usage) else None
        return Failure(kind=error.kind, error=str(error), usage=spent)
    unreachable = isinstance(error, ConnectionError | TimeoutError)
    return Failure(kind="network" if unreachable else "failed", error=type(error).__name__)


def _timed_out() -> Failure:
    return Failure(kind="timeout", error="no summary in time")


def with_duration(result: T, seconds: float) -> T:
    """Return the result of a turn with `seconds` as the duration of its compactions."""
    events: tuple[Event, ...] = tuple(
        replace(event, seconds=seconds) if isinstance(event, Compaction) else event for event in result.events
    )
    last = next(
        (event for event in reversed(events) if isinstance(event, Compaction)), result.state.last_compaction
    )
    return replace(result, events=events, state=replace(result.state, last_compaction=last))


def summary_spending(seen: State, result: T) -> int | None:
    """Return what a turn on the state `seen` spent on summaries, in nano-dollars; None if that is not known.

    `State.uncharged_summary_cost` is what was spent and not yet charged to a compaction: what the turn adds to it counts, what it found does not.
    """
    total = result.state.uncharged_summary_cost
    for event in result.events:
        total = both(total, event.cost) if isinstance(event, Compaction) else total
    return (
        None if total is None or seen.uncharged_summary_cost is None else total - seen.uncharged_summary_cost
    )


def with_wasted_spending(result: T, spent: int | None) -> T:
    """Return a turn with what earlier attempts at it spent on summaries that were not used.

    It is added to the totals and charged to the turn's first compaction, or to the next one if the turn made none.
    """
    if spent == 0:
        return result
    events = list(result.events)
    at = next((at for at, event in enumerate(events) if isinstance(event, Compaction)), None)
    state = replace(result.state, totals=result.state.totals.paid(spent, for_summaries=True))
    if at is None:
        state = replace(state, uncharged_summary_cost=both(state.uncharged_summary_cost, spent))
    else:
        event = events[at]
        assert isinstance(event, Compaction)
        events[at] = replace(event, cost=both(event.cost, spent))
    return replace(result, state=state, events=tuple(events))


class WorkedOutTurn(Struct, frozen=True, kw_only=True):
    """A turn that ran on the state `seen` and is not stored yet."""

    seen: State
    result: Prepared


class TurnRunner:
    """Runs the turns of one session and stores what comes of them."""

    def __init__(
        self, shared: SharedState, setup: Setup, dependencies: Dependencies, *, cached_prefix: PrefixFor
    ) -> None:
        self._shared = shared
        self._setup = setup
        self._dependencies = dependencies
        self._cached_prefix = cached_prefix
        self._lock = threading.RLock()
        self._is_announcing = False
        # An asyncio lock belongs to the loop it was first waited for in, and a session may see several loops.
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    def run(self, turn: Turn[T]) -> T:
        """Run and store a turn, blocking until it is done."""
        summarizers = self._dependencies.blocking()
        with self._one_at_a_time():
            return self._driver().drive(self._steps(turn), summarizers)

    async def arun(self, turn: Turn[T]) -> T:
        """Do what `run` does and leave the event loop free; a cancelled turn is stored as a whole or not at all."""
        import asyncio  # noqa: PLC0415 - those who await have it loaded

        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            return await self._driver().adrive(self._steps(turn), self._dependencies.summarizers)

    def work_out(self, turn: Turn[Prepared]) -> WorkedOutTurn:
        """Run a turn without storing it and without asking a summarizer.

        Where one would have to be asked, the turn is decided as if there were none: what can be had without a model is bought
        if it pays at its own price.
        """
        with self._one_at_a_time():
            try:
                return _without_summarizer(self._driver(), self._worked_out(turn, self._setup))
            except _NeedsSummarizer:
                return _without_summarizer(
                    self._driver(), self._worked_out(turn, self._setup_without_summarizers())
                )

    def accept(self, worked_out: WorkedOutTurn, otherwise: Callable[[State], State]) -> bool:
        """Store a turn that was worked out; if the state has changed since, store `otherwise` instead and return False."""
        is_current = self._shared.replace_if_current(worked_out.seen, _change_by(worked_out.result))
        if is_current:
            after = worked_out.result.state.experience
            self._dependencies.experience.learn(worked_out.seen.experience, after)
            self._report(worked_out.result)
        else:
            self._shared.change(otherwise)
        return is_current

    def preview(self, turn: Turn[T]) -> T:
        """Return what `work_out` would come to now; hooks and sinks are not called either."""
        setups = (self._setup, self._setup_without_summarizers())
        return self._shared.read(
            lambda state: _first_without_effects(
                self._run(turn, state, setup, silent=True) for setup in setups
            )
        )

    def _steps(self, turn: Turn[T]) -> Steps[T]:
        """Run the turn on the current state and store it; run it again if the state has changed meanwhile."""
        wasted: int | None = 0
        for attempt in range(_ATTEMPTS):
            seen = self._shared.state
            try:
                result = yield from self._run(turn, seen, self._setup, silent=attempt > 0)
            except StaleLedger:
                self._shared.refresh()
                continue
            result = with_wasted_spending(result, wasted)
            if self._shared.replace_if_current(seen, _change_by(result)):
                break
            wasted = summary_spending(seen, result)
        else:
            result = self._run_locked(turn, wasted)
        self._dependencies.experience.learn(seen.experience, result.state.experience)
        self._report(result)
        if self._setup.settings.compression.split and _is_compacted(result):
            self._split()
        return result

    def _run_locked(self, turn: Turn[T], wasted: int | None) -> T:
        """Run and store the turn while every other thread of this process waits, and so without a summarizer."""
        with self._shared.locked():
            while True:
                seen = self._shared.state
                steps = self._run(turn, seen, replace(self._setup, rungs=0), silent=True)
                result = with_wasted_spending(_result_without_effects(steps), wasted)
                if self._shared.replace_if_current(seen, _change_by(result)):
                    return result

    def _worked_out(self, turn: Turn[Prepared], setup: Setup) -> Steps[WorkedOutTurn]:
        """Run the turn on the current state; once more if the session was replaced in the store meanwhile."""
        try:
            seen = self._shared.state
            return WorkedOutTurn(seen=seen, result=(yield from self._run(turn, seen, setup, silent=False)))
        except StaleLedger:
            self._shared.refresh()
            seen = self._shared.state
            return WorkedOutTurn(seen=seen, result=(yield from self._run(turn, seen, setup, silent=True)))

    def _run(self, turn: Turn[T], state: State, setup: Setup, *, silent: bool) -> Steps[T]:
        """Run the turn on `state`, with the context lengths known now; a `silent` one does not call the hooks."""
        windows, clock = self._dependencies.windows, self._dependencies.clock
        at = clock.now()
        setup = windows.applied_to(setup_for(state, setup), state)
        steps = turn(windows.applied(state), setup, at)
        result = yield from _silently(steps) if silent else steps
        # Learned context lengths are applied at each turn and not stored with the model: they may be given up again.
        result = replace(result, state=replace(result.state, model=state.model))
        return with_duration(result, clock.now() - at)

    def _setup_without_summarizers(self) -> Setup:
        return replace(self._setup, rungs=0, summary_models=(), native=())

    def _driver(self) -> Driver:
        return Driver(
            deadline=self._dependencies.deadline,
            clock=self._dependencies.clock,
            cached_prefix=self._cached_prefix,
            base_url=self._shared.state.route.base_url,
            announce=self._announce,
            additions=self._additions,
        )

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Wait until no other turn is under way; a hook that is called in a turn may take another, on any thread."""
        entered = _SESSIONS_IN_TURN.get()
        if id(self) in entered:
            yield
            return
        with self._lock:
            token = _SESSIONS_IN_TURN.set(entered | {id(self)})
            try:
                yield
            finally:
                _SESSIONS_IN_TURN.reset(token)

    def _announce(self, ledger: Ledger, seconds: float) -> None:
        """Call the hooks, for at most so many seconds; a compaction that a hook itself causes is not announced."""
        hooks = self._dependencies.hooks
        if not hooks or self._is_announcing:
            return
        self._is_announcing = True
        try:
            messages = written_messages(mend(ledger.view.messages), self._shared.state)
            run_memory_hooks(hooks, self._shared.repository.name, messages, seconds=seconds)
        finally:
            self._is_announcing = False

    def _additions(self, ledger: Ledger, seconds: float) -> tuple[str, ...]:
        """Return what the hooks add to the view after a compaction; one that a hook itself causes gets nothing."""
        hooks = [hook for hook in self._dependencies.hooks if hasattr(hook, "on_post_compress")]
        if not hooks or self._is_announcing:
            return ()
        self._is_announcing = True
        try:
            messages = written_messages(mend(ledger.view.messages), self._shared.state)
            return hook_additions(hooks, self._shared.repository.name, messages, seconds=seconds)
        finally:
            self._is_announcing = False

    def _report(self, result: Prepared | Acted) -> None:
        """Tell the sinks what a turn did, and the user what is worth a warning."""
        dependencies, name = self._dependencies, self._shared.repository.name
        for event in result.events:
            send_event(dependencies.sinks, name, event)
        if not isinstance(result, Prepared):
            return
        if result.thinking_stopped:
            _log.warning(
                "%s: thinking is disabled until the user says something: the tool loop began with an answer that was compacted, "
                "and with a thinking budget the provider refuses a loop that does not begin with thinking. Adaptive thinking "
                "has no such rule.",
                name,
            )
        send_warnings(result.warnings, name, call=dependencies.on_warning, quiet=dependencies.quiet)

    def _split(self) -> None:
        """Continue in a child session; if that fails, the compaction still counts."""
        at = self._dependencies.clock.now()
        try:
            self._shared.split(new_name(at), at)
        except Exception as error:  # noqa: BLE001  # whatever the store raises, the compaction is stored
            _log.warning("%s: it could not be split and goes on: %s", self._shared.repository.name, error)


class SummaryPrefetch:
    """Prepares summaries while a session is idle; turns taken meanwhile do not wait for it."""

    def __init__(
        self, shared: SharedState, setup: Setup, dependencies: Dependencies, *, cached_prefix: PrefixFor
    ) -> None:
        self._shared = shared
        self._setup = setup
        self._dependencies = dependencies
        self._cached_prefix = cached_prefix
        self._busy = threading.Lock()

    def prefetch_summary(self) -> bool:
        """Have a summary prepared if that makes sense, blocking until it is, and return whether one is ready."""
        summarizers = self._dependencies.blocking()
        with self._if_free() as is_free:
            if is_free:
                self._settle(self._driver().drive(self._steps(), summarizers))
        return is_prefetched(self._shared.state)

    async def aprefetch_summary(self) -> bool:
        """Do the same without blocking the event loop.

        If it is cancelled, there is no summary, and one that was asked for counts as failed: it may be billed all the same.
        """
        import asyncio  # noqa: PLC0415 - those who await have it loaded

        with self._if_free() as is_free:
            if is_free:
                driver = self._driver()
                try:
                    outcome = await driver.adrive(self._steps(), self._dependencies.summarizers)
                except asyncio.CancelledError:
                    if driver.has_asked:
                        await asyncio.to_thread(self._settle_cancelled)
                    raise
                await asyncio.to_thread(self._settle, outcome)
        return is_prefetched(self._shared.state)

    @contextmanager
    def _if_free(self) -> Iterator[bool]:
        """Yield whether no summary is being prepared: the same one is not paid twice, and nobody waits for the other."""
        is_free = self._busy.acquire(blocking=False)
        try:
            yield is_free
        finally:
            if is_free:
                self._busy.release()

    def _steps(self) -> Generator[Summarize, SummaryOutcome, "PrefetchOutcome | None"]:
        from lowwater.core.turns.prefetch import prefetch_summary  # noqa: PLC0415 - loaded when it is asked for

        windows, at = self._dependencies.windows, self._dependencies.clock.now()
        state = self._shared.state
        return prefetch_summary(
            windows.applied(state), windows.applied_to(setup_for(state, self._setup), state), at
        )

    def _settle(self, outcome: "PrefetchOutcome | None") -> None:
        if outcome is not None:
            from lowwater.core.turns.prefetch import settle  # noqa: PLC0415 - loaded when it is asked for

            self._shared.change(lambda state: settle(state, outcome))

    def _settle_cancelled(self) -> None:
        from lowwater.core.turns.prefetch import PrefetchOutcome  # noqa: PLC0415 - loaded by the one that was cancelled

        at = self._dependencies.clock.now()
        try:
            self._settle(PrefetchOutcome(at=at, prefetched_summary=None, cost=None, failed_at=at, low=None))
        except LowwaterError as error:
            _log.warning("%s: a cancelled summary is not recorded: %s", self._shared.repository.name, error)

    def _driver(self) -> Driver:
        return Driver(
            deadline=self._dependencies.deadline,
            clock=self._dependencies.clock,
            cached_prefix=self._cached_prefix,
            base_url=self._shared.state.route.base_url,
        )


class _NeedsSummarizer(Exception):
    """A turn that may not ask a summarizer has to."""


def _without_summarizer(driver: Driver, steps: Steps[R]) -> R:
    """Drive steps to their end, or raise _NeedsSummarizer."""

    def checked() -> Steps[R]:
        try:
            effect = next(steps)
            while True:
                if isinstance(effect, Summarize):
                    raise _NeedsSummarizer
                effect = steps.send((yield effect))
        except StopIteration as done:
            result: R = done.value
            return result

    return driver.drive(checked(), ())


def _first_without_effects(attempts: Iterator[Steps[T]]) -> T:
    """Return the result of the first steps that need nothing from outside."""
    for steps in attempts:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
    raise AssertionError("the last attempt needs nothing from outside")


def _result_without_effects(steps: Steps[T]) -> T:
    """Return the result of steps that need nothing from outside."""
    try:
        effect = next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError(f"nobody can be asked now: {type(effect).__name__}")


def _silently(steps: Steps[T]) -> Steps[T]:
    """Run the steps without calling the hooks: they were called in an earlier attempt, or nothing is to happen.

    What they would add after a compaction is left out.
    """
    try:
        effect = next(steps)
        while True:
            effect = steps.send((yield effect) if isinstance(effect, Summarize) else None)
    except StopIteration as done:
        result: T = done.value
        return result


def _is_compacted(result: Prepared | Acted) -> bool:
    """Return whether a turn compacted earlier messages; truncating new ones on arrival is no reason to split."""
    return any(isinstance(event, Compaction) and event.mode != "shorten" for event in result.events)


def _change_by(result: Prepared | Acted) -> StateChange:
    return StateChange(state=result.state, events=result.events)
