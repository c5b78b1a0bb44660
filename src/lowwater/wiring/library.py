"""The library's entrance: models, settings and policy, and a session per conversation."""

import threading
from collections.abc import Callable, Iterable, Sequence

from lowwater.count.message import count_message
from lowwater.count.preamble import count_preamble
from lowwater.decide.policies import policy_named
from lowwater.decide.warnings import UsageWarning
from lowwater.engine.setup import Setup
from lowwater.load.registry import load_registry
from lowwater.observe.sinks import LogSink
from lowwater.ports import AsyncSummarizer, Clock, Sink, Summarizer
from lowwater.values.message import Message
from lowwater.values.settings import Settings
from lowwater.wiring.clock import SystemClock
from lowwater.wiring.counting import counter_for
from lowwater.wiring.session import Outside, Session


class Lowwater:
    """Keeps conversations inside a model's window; one object serves any number of sessions, from any thread.

    Without a summarizer, summaries are extracted from the transcript itself: no key, no network.
    """

    def __init__(
        self,
        *,
        model: str,
        fallbacks: Iterable[str] = (),
        policy: str | None = None,
        summarizer: Summarizer | AsyncSummarizer | Sequence[Summarizer | AsyncSummarizer] = (),
        settings: Settings | None = None,
        sinks: Iterable[Sink] = (),
        on_warning: Callable[[UsageWarning], object] | None = None,
        clock: Clock | None = None,
        deadline: float = 60.0,
    ) -> None:
        chosen = settings or Settings()
        summarizers = tuple(summarizer) if isinstance(summarizer, Sequence) else (summarizer,)
        self._registry = load_registry()
        self._model = model
        tokenizer = counter_for(model)

        def size(message: Message) -> int:
            return count_message(message, tokenizer)

        self._setup = Setup(
            chain=self._registry.chain(model, tuple(fallbacks)),
            settings=chosen,
            policy=policy_named(policy or chosen.compression.policy),
            tokenizer=tokenizer,
            size=size,
            size_preamble=lambda system, tools: count_preamble(system, tools, tokenizer),
            rungs=len(summarizers),
        )
        told = [*sinks] if chosen.output.quiet else [LogSink(), *sinks]
        self._outside = Outside(
            summarizers=summarizers,
            sinks=tuple(told),
            on_warning=on_warning,
            clock=clock or SystemClock(),
            deadline=deadline,
            registry=self._registry,
        )
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def session(self, name: str = "default") -> Session:
        """Return the session with this name, a new one the first time."""
        with self._lock:
            if name not in self._sessions:
                self._sessions[name] = Session(name, self._model, self._setup, self._outside)
            return self._sessions[name]
