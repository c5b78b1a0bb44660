"""`Lowwater`: the entry point of the library. It holds model, settings, policy and store, and opens sessions."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from lowwater.adapters.models import load_registry
from lowwater.core.limits import UsageWarning
from lowwater.core.tokens.counting import count_message, count_preamble
from lowwater.core.turns.state import Route, Setup
from lowwater.errors import BadInput, BadSetting
from lowwater.observe.sinks import ConsoleSink, LogSink, SessionLogSink
from lowwater.protocols import Clock, MemoryHook, Sink, Store
from lowwater.session.async_twins import async_twin
from lowwater.session.dependencies import (
    CheckedTokenizer,
    Dependencies,
    SharedExperience,
    SystemClock,
    Windows,
)
from lowwater.session.factories import (
    Writer,
    compacts,
    counter_for,
    framing_for,
    key_variable,
    model_of,
    own_summarizers,
    resolve_store,
    summarizers_for,
    why_no_own_summarizers,
)
from lowwater.session.internals import internals
from lowwater.session.plugins import mechanisms_of, policy_of
from lowwater.session.repository import new_name
from lowwater.session.session import Session
from lowwater.session.turn_input import (
    CheckedClock,
    require_list,
    require_methods,
    require_text,
    settings_given,
)
from lowwater.settings import FallbackProvider, OutputSettings, Settings
from lowwater.settings.coercion import shown

SOURCE = "LOWWATER_SOURCE"
"""The environment variable with the source of new sessions, for programs that give none."""
LEAST_BUDGET = 1_000
"""The smallest budget of a session, in tokens: below it there is no room for an exchange and its instructions."""


class Lowwater:
    """Keeps conversations within a model's window; one object serves any number of sessions, from any thread.

    Summaries are written by the session's model, or by its provider's cheaper one where that costs less, with the key that the
    environment has for that provider (ANTHROPIC_API_KEY, OPENAI_API_KEY); never at a `base_url`, and for at most a tenth of
    what the session costs. Without a key, or with `summarizer=()`, they are extracted from the transcript: no network. A model's
    name as `summarizer` asks that model. Of several, the cheapest is asked first. `deadline` is how
    many seconds all of them together may hold up one turn.

    Sessions are stored in `store`: an open store or an address (`sqlite:///PATH`, `postgresql://…`, `memory:`). Without it the
    address in LOWWATER_STORE is used, or else a SQLite file in the user's data directory.

    Installed packages may add policies, mechanisms, stores and summarizers, which are given by name like the built-in ones;
    `mechanisms` are used in addition to the built-in ones.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str = "",
        fallbacks: Iterable[str | FallbackProvider] = (),
        policy: str | None = None,
        mechanisms: Iterable[str] = (),
        summarizer: Writer | Sequence[Writer] | None = None,
        settings: Settings | Mapping[str, object] | None = None,
        store: Store | str | None = None,
        sinks: Iterable[Sink] = (),
        hooks: Iterable[MemoryHook] = (),
        on_warning: Callable[[UsageWarning], object] | None = None,
        clock: Clock | None = None,
        deadline: float = 60.0,
    ) -> None:
        chosen = settings_given(settings)
        _refuse_mistakes(model=model, base_url=base_url, store=store, on_warning=on_warning)
        require_list(fallbacks, "fallbacks", of="models")
        require_list(mechanisms, "mechanisms", of="names")
        require_list(sinks, "sinks", of="sinks")
        require_list(hooks, "hooks", of="memory hooks")
        sinks, hooks = tuple(sinks), tuple(hooks)
        require_methods(sinks, "sinks", method="record")
        require_methods(hooks, "hooks", method="on_pre_compress")
        routes = (Route(model=model, base_url=base_url), *_fallbacks(fallbacks, chosen))
        named = bool(summarizer or chosen.compression.summary_model)
        is_automatic = summarizer is None and not named
        summarizers = (
            own_summarizers(model, base_url) if is_automatic else summarizers_for(summarizer or (), chosen)
        )
        if isinstance(deadline, bool) or not isinstance(deadline, int | float) or not deadline > 0:
            raise BadSetting(f"deadline must be a number of seconds above 0, not {shown(deadline)}")
        registry, framing = load_registry(), framing_for(model)
        tokenizer = CheckedTokenizer(counter_for(model))
        self._route = routes[0]
        self._setup = Setup(
            chain=registry.chain(model, (route.model for route in routes[1:])),
            routes=routes,
            settings=chosen,
            policy=policy_of(policy or chosen.compression.policy),
            mechanisms=mechanisms_of(tuple(mechanisms) or chosen.compression.mechanisms),
            tokenizer=tokenizer,
            size=partial(count_message, tokenizer=tokenizer, framing=framing),
            size_preamble=partial(count_preamble, tokenizer=tokenizer),
            rungs=len(summarizers),
            summaries_at=registry.find(model).provider if is_automatic else "",
            summary_models=tuple(model_of(each, registry) for each in summarizers),
            native=tuple(rung for rung, each in enumerate(summarizers) if compacts(each)),
        )
        self._dependencies = Dependencies(
            summarizers=summarizers,
            sinks=(*_own_sinks(chosen.output), *sinks),
            hooks=hooks,
            store=resolve_store(store, redact=chosen.privacy.redact),
            on_warning=on_warning,
            quiet=chosen.output.quiet,
            clock=SystemClock() if clock is None else CheckedClock(clock),
            deadline=deadline,
            registry=registry,
            windows=Windows(),
            experience=SharedExperience(),
        )
        for route in routes:
            self._dependencies.doubt(route.model, base_url=route.base_url)
        if is_automatic and not summarizers and not base_url:
            self._dependencies.note_no_summarizer(key_variable(model), why_no_own_summarizers(model))
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def session(
        self,
        name: str | None = None,
        *,
        title: str = "",
        source: str = "",
        budget: int | None = None,
        as_left: bool = False,
    ) -> Session:
        """Return the session with this name from the store, or a new one; without a name, a new one named after the time.

        A stored session continues with this object's model, and in its child if it was split; with `as_left` it stays
        exactly as it was left. A `budget` limits its requests to so many tokens, as if its model's window were that small, for a
        sub-agent for example; it is stored with the session and applies to no other; 0 lifts it. A new session without a `source`
        takes it from LOWWATER_SOURCE.
        """
        name = new_name(self._dependencies.clock.now()) if name is None else name
        if not isinstance(name, str) or not name.strip():
            raise BadInput("a session needs a name, or none at all to be given one")
        if budget is not None and (not isinstance(budget, int) or 0 != budget < LEAST_BUDGET):
            raise BadInput(
                f"a session's budget is a number of tokens, at least {LEAST_BUDGET:,}, or 0 to lift it"
            )
        with self._lock:
            session = self._sessions.get(name)
            if session is None:
                session = Session(name, self._route, self._setup, self._dependencies)
                if not as_left:
                    if internals(session).about.ended_at is not None:
                        session.refresh()
                    if internals(session).route != self._route:
                        session.use(self._route.model, base_url=self._route.base_url)
                self._sessions[name] = session
            if not source and not internals(session).ledger.messages:
                source = os.environ.get(SOURCE, "").strip()
            if title or source:
                internals(session).describe(title=title, source=source)
            if budget is not None:
                internals(session).set_budget(budget)
            return session

    def release(self, name: str) -> None:
        """Forget an open session; it stays in the store, and whoever still holds the object may go on using it."""
        with self._lock:
            self._sessions.pop(name, None)

    @property
    def store(self) -> Store:
        """The store that the sessions are in."""
        return self._dependencies.store

    def close(self) -> None:
        """Close the store; sessions cannot be used afterwards. At the end of a `with` or `async with` this happens by itself."""
        self._dependencies.store.close()

    asession = async_twin(session)
    aclose = async_twin(close)

    def __enter__(self) -> Self:
        """Return this object, to be closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the store."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return this object, to be closed at the end of the block, with its tokenizer loaded."""
        # Its tables are built at the first word that is more than one token, and hold the interpreter for some 0.3 s.
        self._setup.tokenizer.count("tokenizations")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the store and leave the event loop free."""
        await self.aclose()

    def __repr__(self) -> str:
        """Return the model, the policy, the kind of store and how many sessions are open; never an address or a key."""
        model, store = self._route.model, type(self._dependencies.store).__name__
        return (
            f"<Lowwater {model!r}, {self._setup.policy.name}, {store}, {len(self._sessions)} sessions open>"
        )


def _fallbacks(given: Iterable[str | FallbackProvider], settings: Settings) -> tuple[Route, ...]:
    """Return the fallback routes: those given, or else those of the settings."""
    chosen = tuple(given) or settings.fallback_providers
    for each in chosen:
        if not isinstance(each, FallbackProvider):
            require_text(each, "each of fallbacks")
    return tuple(
        Route(model=each) if isinstance(each, str) else Route(model=each.model, base_url=each.base_url or "")
        for each in chosen
    )


def _own_sinks(output: OutputSettings) -> tuple[Sink, ...]:
    """Return the sinks that the settings ask for, besides the caller's own."""
    spoken: tuple[Sink, ...] = () if output.quiet else (LogSink(), ConsoleSink())
    written = output.session_logs
    return (*spoken, SessionLogSink(Path(written).expanduser())) if written else spoken


def _refuse_mistakes(*, model: object, base_url: object, store: object, on_warning: object) -> None:
    """Raise BadInput or BadSetting for an argument that cannot be what was meant."""
    require_text(model, "model")
    if not isinstance(base_url, str):
        raise BadSetting(f"base_url must be text, not {shown(base_url)}")
    if not (store is None or isinstance(store, str) or callable(getattr(store, "outline", None))):
        raise BadSetting(f"store must be an address or an open store, not {shown(store)}")
    if not (on_warning is None or callable(on_warning)):
        raise BadSetting(f"on_warning must be a function, not {shown(on_warning)}")
