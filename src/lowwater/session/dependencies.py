"""What a session depends on outside of the core: summarizers, sinks, hooks, store, clock, models, and context lengths that were learned or set."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.limits import UsageWarning
from lowwater.core.mechanisms.reuse import Experience
from lowwater.core.models.model import FallbackChain, Model
from lowwater.core.models.registry import Registry
from lowwater.core.turns.state import Route, Setup, State
from lowwater.errors import BadInput, BadSetting
from lowwater.protocols import AsyncSummarizer, Clock, MemoryHook, Sink, Store, Summarizer, Tokenizer
from lowwater.session.turn_input import doubts_about

_log = logging.getLogger("lowwater")
_DOUBTED: set[str] = set()
_CHECK: ContextVar[Callable[[], None] | None] = ContextVar("lowwater_check", default=None)


class SystemClock:
    """Reads the system's clock."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time()


class ManualClock:
    """A clock that moves only when told to: for sessions that are replayed at the times they were recorded."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        """Return the time it was last moved to."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        if not seconds >= 0:
            raise BadSetting(f"cannot advance a clock by {seconds} seconds: time only goes forward")
        self._now += seconds


@contextmanager
def checked_while_counting(check: Callable[[], None]) -> Iterator[None]:
    """Call `check` repeatedly while a session is worked on inside the block; an exception from it ends that work.

    The core has no I/O and cannot be interrupted otherwise, but long work in it always counts tokens.
    """
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


class CheckedTokenizer:
    """A tokenizer that runs the check of `checked_while_counting` before each text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    @property
    def vocabulary(self) -> str:
        """The name of the vocabulary it counts in."""
        return self._tokenizer.vocabulary

    def count(self, text: str, /) -> int:
        """Return the number of tokens in `text`."""
        if (check := _CHECK.get()) is not None:
            check()
        return self._tokenizer.count(text)


class Windows:
    """Context lengths learned from errors, by provider, URL and model; shared by all sessions of one `Lowwater`."""

    def __init__(self) -> None:
        self._learned: dict[str, int] = {}
        self._lock = threading.Lock()

    def learn(self, state: State, tokens: int) -> State:
        """Return the session with the context length that an error reported for its model and URL; all sessions learn it."""
        place = _place(state.model, state.route)
        with self._lock:
            self._learned[place] = tokens
        return replace(
            state,
            learned_windows=_with(state.learned_windows, place, tokens),
            caller_windows=_with(state.caller_windows, place),
        )

    def accepted(self, state: State, prompt: int) -> State:
        """Return the session without a learned context length if a larger prompt was accepted: the limit has risen again."""
        place = _place(state.model, state.route)
        with self._lock:
            if prompt <= self._learned.get(place, prompt):
                known = dict(state.learned_windows).get(place, prompt)
                return (
                    state
                    if prompt <= known
                    else replace(state, learned_windows=_with(state.learned_windows, place))
                )
            del self._learned[place]
        return replace(state, learned_windows=_with(state.learned_windows, place))

    def applied(self, state: State) -> State:
        """Return the session with its model's context length as it was set or learned."""
        model = self._model(state.model, state.route, state)
        return state if model is state.model else replace(state, model=model)

    def applied_to(self, setup: Setup, state: State) -> Setup:
        """Return the setup with the context lengths of all its models as they were set or learned."""
        if not (self._learned or state.caller_windows or state.learned_windows):
            return setup
        models = tuple(
            self._model(model, route, state)
            for model, route in zip(setup.chain.models, setup.routes, strict=True)
        )
        return replace(setup, chain=FallbackChain(models=models))

    def _model(self, model: Model, route: Route, state: State) -> Model:
        place = _place(model, route)
        known = {**dict(state.learned_windows), **self._learned, **dict(state.caller_windows)}
        tokens = known.get(place, model.context_length)
        return model if tokens == model.context_length else replace(model, context_length=tokens)


class SharedExperience:
    """The observed and the expected uses of removed results, over all sessions of one `Lowwater`; only the counts are shared."""

    def __init__(self) -> None:
        self._all = Experience()
        self._lock = threading.Lock()

    def begun(self, state: State) -> State:
        """Return a new session that starts with the factor of earlier ones, which is stored in it so that every process decides alike."""
        with self._lock:
            factor = self._all.factor
        return state if factor == 1 else replace(state, experience=Experience(before=factor))

    def learn(self, seen: Experience, new: Experience) -> None:
        """Add the uses that a session has counted since `seen`; a reset of the session subtracts nothing."""
        expected, observed = new.expected - seen.expected, new.observed - seen.observed
        if expected > 0 and observed >= 0:
            with self._lock:
                self._all = self._all.plus(expected, observed)


def set_by_caller(state: State, tokens: int) -> State:
    """Return the session with the context length that a caller set for the model in use; other sessions do not learn it."""
    place = _place(state.model, state.route)
    return replace(state, caller_windows=_with(state.caller_windows, place, tokens))


def _with(
    known: tuple[tuple[str, int], ...], place: str, tokens: int | None = None
) -> tuple[tuple[str, int], ...]:
    others = tuple(pair for pair in known if pair[0] != place)
    return others if tokens is None else (*others, (place, tokens))


def _place(model: Model, route: Route) -> str:
    return f"{model.provider} {route.storable().base_url} {model.name}"


class Dependencies(Struct, frozen=True, kw_only=True):
    """The services that all sessions of one `Lowwater` share."""

    summarizers: tuple[Summarizer | AsyncSummarizer, ...]
    sinks: tuple[Sink, ...]
    hooks: tuple[MemoryHook, ...]
    store: Store
    on_warning: Callable[[UsageWarning], object] | None
    quiet: bool
    clock: Clock
    deadline: float
    registry: Registry
    windows: Windows
    experience: SharedExperience

    def doubt(self, model: str, *, base_url: str) -> None:
        """Log a warning about a model's name that is probably a mistake, once for each name in a process."""
        sentence = (
            "" if self.quiet or model in _DOUBTED else doubts_about(model, self.registry, base_url=base_url)
        )
        if sentence:
            _DOUBTED.add(model)
            _log.warning("%s", sentence)

    def note_no_summarizer(self, variable: str, why: str) -> None:
        """Log, once in a process, that summaries are extracted because no key may be used; nothing for other providers."""
        if not variable or self.quiet or variable in _DOUBTED:
            return
        _DOUBTED.add(variable)
        _log.warning(
            "%s: summaries are extracted from the transcript instead of written by a model, which costs no call and "
            "keeps about one in a hundred fewer of the names that are used later in view; summarizer=() says that this is meant",
            why,
        )

    def blocking(self) -> tuple[Summarizer, ...]:
        """Return the summarizers for a call that blocks, or raise BadInput if one has to be awaited."""
        if any(is_async(summarizer) for summarizer in self.summarizers):
            raise BadInput("the summarizer is async: call aprepare, acompress or aprefetch_summary instead")
        return cast(tuple[Summarizer, ...], self.summarizers)


def is_async(summarizer: Summarizer | AsyncSummarizer) -> bool:
    """Return whether the summarizer has to be awaited."""
    from inspect import iscoroutinefunction  # noqa: PLC0415 - for those who have a summarizer

    return iscoroutinefunction(summarizer.summarize)
