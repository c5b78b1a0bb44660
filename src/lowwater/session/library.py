"""The library's entrance: models, settings and policy, and a session per conversation."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from lowwater.adapters.models import load_registry
from lowwater.core.policies.warnings import UsageWarning
from lowwater.core.tokens.counting import count_message, count_preamble
from lowwater.core.turns.state import Route, Setup
from lowwater.errors import BadInput, BadSetting
from lowwater.observe.sinks import ConsoleSink, LogSink, SessionLogSink
from lowwater.protocols import Clock, MemoryHook, Sink, Store
from lowwater.session.dependencies import Dependencies
from lowwater.session.factories import (
    CheckedTokenizer,
    SystemClock,
    Writer,
    compacts,
    counter_for,
    framing_for,
    model_of,
    opened_store,
    summarizers_for,
)
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
from lowwater.session.windows import Windows
from lowwater.settings import FallbackProvider, OutputSettings, Settings
from lowwater.settings.fitting import shown

SOURCE = "LOWWATER_SOURCE"
"""Names what new sessions come from, where the program does not say."""


class Lowwater:
    """Keeps conversations inside a model's window; one object serves any number of sessions, from any thread.

    Without a summarizer, summaries are extracted from the transcript itself: no key, no network. The name of a model is
    enough for one that asks it, with the key in the environment. Of several the cheapest is asked first; `deadline` is
    how many seconds they may hold up one turn, all together.

    Sessions are kept in `store`: one that is open, or an address (`sqlite:///PATH`, `postgresql://…`, `memory:`); without it
    in that of LOWWATER_STORE, or else in a SQLite file in the user's data directory.

    Packages that are installed may add policies, mechanisms, stores and summarizers, which are given by their names as well;
    `mechanisms` are asked beside our own.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str = "",
        fallbacks: Iterable[str | FallbackProvider] = (),
        policy: str | None = None,
        mechanisms: Iterable[str] = (),
        summarizer: Writer | Sequence[Writer] = (),
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
        summarizers = summarizers_for(summarizer, chosen)
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
            size=lambda message: count_message(message, tokenizer, framing=framing),
            size_preamble=lambda system, tools: count_preamble(system, tools, tokenizer),
            rungs=len(summarizers),
            summary_models=tuple(model_of(each, registry) for each in summarizers),
            native=tuple(rung for rung, each in enumerate(summarizers) if compacts(each)),
        )
        self._outside = Dependencies(
            summarizers=summarizers,
            sinks=(*_own_sinks(chosen.output), *sinks),
            hooks=hooks,
            store=opened_store(store, redact=chosen.privacy.redact),
            on_warning=on_warning,
            quiet=chosen.output.quiet,
            clock=SystemClock() if clock is None else CheckedClock(clock),
            deadline=deadline,
            registry=registry,
            windows=Windows(),
        )
        for route in routes:
            self._outside.doubt(route.model, base_url=route.base_url)
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def session(
        self, name: str | None = None, *, title: str = "", source: str = "", as_left: bool = False
    ) -> Session:
        """Return the session with this name, from the store or a new one; without a name a new one, named by the time.

        A new one whose `source` is not given has that of LOWWATER_SOURCE. It goes on with this library's model, and in its child if it was split; or `as_left`, just as it was left.
        """
        name = new_name(self._outside.clock.now()) if name is None else name
        if not isinstance(name, str) or not name.strip():
            raise BadInput("a session needs a name, or none at all to be given one")
        with self._lock:
            session = self._sessions.get(name)
            if session is None:
                session = Session(name, self._route, self._setup, self._outside)
                if not as_left:
                    if session.about.ended_at is not None:
                        session.refresh()
                    if session.route != self._route:
                        session.use(self._route.model, base_url=self._route.base_url)
                self._sessions[name] = session
            if not source and not session.ledger.messages:
                source = os.environ.get(SOURCE, "").strip()
            if title or source:
                session.describe(title=title, source=source)
            return session

    def release(self, name: str) -> None:
        """Let go of a session that is open here; it stays in the store, and whoever holds it may go on with it."""
        with self._lock:
            self._sessions.pop(name, None)

    @property
    def store(self) -> Store:
        """Where the sessions are kept."""
        return self._outside.store

    def close(self) -> None:
        """Let go of the store; sessions cannot be used afterwards."""
        self._outside.store.close()


def _fallbacks(given: Iterable[str | FallbackProvider], settings: Settings) -> tuple[Route, ...]:
    """Return where to fall back to: what was given, or else what the settings say."""
    chosen = tuple(given) or settings.fallback_providers
    for each in chosen:
        if not isinstance(each, FallbackProvider):
            require_text(each, "each of fallbacks")
    return tuple(
        Route(model=each) if isinstance(each, str) else Route(model=each.model, base_url=each.base_url or "")
        for each in chosen
    )


def _own_sinks(output: OutputSettings) -> tuple[Sink, ...]:
    """Return who is told what happens besides the caller's own sinks."""
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
