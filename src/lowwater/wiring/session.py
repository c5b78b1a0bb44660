"""One conversation: what a user of the library holds in the loop."""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any, cast

import msgspec
from msgspec import Struct

from lowwater.assemble.marks import marks_for
from lowwater.decide.explain import explain
from lowwater.decide.warnings import UsageWarning, warn
from lowwater.engine import rewinding
from lowwater.engine.drive import adrive, drive
from lowwater.engine.recall import Recalled, recall
from lowwater.engine.record import learn_context, record, reset, switch
from lowwater.engine.rewinding import Checkpoint
from lowwater.engine.setup import Setup
from lowwater.engine.situate import limits_for
from lowwater.engine.state import State
from lowwater.engine.turn import Incoming, Prepared, append, compress, prepare, take_in
from lowwater.errors import BadInput
from lowwater.observe.sinks import tell
from lowwater.ports import AsyncSummarizer, Clock, Sink, Summarizer
from lowwater.values.decision import Decision
from lowwater.values.entries import Opened
from lowwater.values.events import Compaction
from lowwater.values.ledger import Ledger
from lowwater.values.message import Format, Message
from lowwater.values.registry import Registry
from lowwater.wire.detect import told_format
from lowwater.wire.formats import decode_messages, encode_messages, raw_messages
from lowwater.wire.reading import write_json
from lowwater.wire.response import decode_response
from lowwater.wiring.counting import calibration_for
from lowwater.wiring.request import PreparedRequest
from lowwater.wiring.status import Status, status_of

_log = logging.getLogger("lowwater")
_SEVERITY = {
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "critical": logging.CRITICAL,
}


class Outside(Struct, frozen=True, kw_only=True):
    """The outside world of a session."""

    summarizers: tuple[Summarizer | AsyncSummarizer, ...]
    sinks: tuple[Sink, ...]
    on_warning: Callable[[UsageWarning], object] | None
    clock: Clock
    deadline: float
    registry: Registry

    def blocking(self) -> tuple[Summarizer, ...]:
        """Return the summarizers for a call that blocks, or raise BadInput if one has to be awaited."""
        if any(iscoroutinefunction(summarizer.summarize) for summarizer in self.summarizers):
            raise BadInput("the summarizer is async: call aprepare or acompress instead")
        return cast(tuple[Summarizer, ...], self.summarizers)


class Session:
    """A conversation that fits its window; every original message stays in its ledger.

    All methods may be called from any thread; those that may ask a summarizer have an async twin whose name starts
    with `a`.
    """

    def __init__(self, name: str, model: str, setup: Setup, outside: Outside) -> None:
        self.name = name
        self._setup = setup
        self._outside = outside
        self._spelling = model
        self._format: Format | None = None
        self._lock = threading.RLock()
        self._turn = asyncio.Lock()
        found = outside.registry.find(model)
        opened = Opened(at=outside.clock.now(), model=found.name, vocabulary=setup.tokenizer.vocabulary)
        self._state = State(ledger=Ledger().append(opened), model=found, calibration=calibration_for(model))

    def append(self, messages: Sequence[object] | Mapping[str, object]) -> None:
        """Add messages to the end: dicts as the provider's API takes them, or what its SDK returned."""
        new = self._decode([messages] if isinstance(messages, Mapping) else list(messages))
        with self._lock:
            self._state = append(self._state, new, self._setup, self._outside.clock.now())

    def take_in(
        self,
        messages: Sequence[object],
        *,
        system: object = None,
        tools: Sequence[object] | None = None,
        max_tokens: int | None = None,
    ) -> None:
        """Bring the ledger up to the whole list a client keeps, without deciding anything."""
        with self._lock:
            incoming = self._incoming(messages, system, tools, max_tokens, offers_recall=False)
            self._state = take_in(self._state, incoming, self._setup, self._outside.clock.now())

    def prepare(
        self,
        messages: Sequence[object] | None = None,
        *,
        system: object = None,
        tools: Sequence[object] | None = None,
        max_tokens: int | None = None,
        offers_recall: bool = False,
    ) -> PreparedRequest:
        """Return the request to send, compacted if the policy says so.

        `messages` is the whole list a client keeps; leave it out where messages were appended. What the list changes
        about earlier messages is taken as the client's will, and the ledger keeps what was there before.
        """
        with self._lock:
            incoming = self._incoming(messages, system, tools, max_tokens, offers_recall=offers_recall)
            turn = prepare(self._state, incoming, self._setup, self._outside.clock.now())
            return self._prepared(drive(turn, self._outside.blocking(), self._outside.deadline))

    async def aprepare(
        self,
        messages: Sequence[object] | None = None,
        *,
        system: object = None,
        tools: Sequence[object] | None = None,
        max_tokens: int | None = None,
        offers_recall: bool = False,
    ) -> PreparedRequest:
        """Do what `prepare` does without blocking the event loop; one turn of a session at a time."""
        async with self._turn:
            incoming = self._incoming(messages, system, tools, max_tokens, offers_recall=offers_recall)
            turn = prepare(self._state, incoming, self._setup, self._outside.clock.now())
            return self._prepared(await adrive(turn, self._outside.summarizers, self._outside.deadline))

    def record(self, response: object) -> None:
        """Append the model's answer and learn from its usage; takes an SDK's response, a dict or the raw bytes."""
        raw = response if isinstance(response, bytes) else write_json(response)
        answer = decode_response(raw)
        with self._lock:
            if self._format is None and answer.message.wire is not None:
                self._format = answer.message.wire.format
            self._state = record(self._state, answer, self._setup, self._outside.clock.now())

    def compress(self, focus: str | None = None) -> Compaction | None:
        """Compact by hand; `focus` names a topic to keep in more detail. Returns what was done, None if nothing helps."""
        with self._lock:
            turn = compress(self._state, self._setup, self._outside.clock.now(), focus=focus or "")
            return self._compressed(drive(turn, self._outside.blocking(), self._outside.deadline))

    async def acompress(self, focus: str | None = None) -> Compaction | None:
        """Do what `compress` does without blocking the event loop."""
        async with self._turn:
            turn = compress(self._state, self._setup, self._outside.clock.now(), focus=focus or "")
            return self._compressed(await adrive(turn, self._outside.summarizers, self._outside.deadline))

    def use(self, model: str) -> None:
        """Switch to another model: window, prices, cache rules and counts follow at once (SPEC G)."""
        with self._lock:
            found = self._outside.registry.find(model)
            prior = calibration_for(model).prior
            self._spelling = model
            self._state = switch(self._state, found, prior, self._outside.clock.now())

    def learn_context_length(self, tokens: int) -> None:
        """Take the window's size from a provider's error; it holds for this model from now on."""
        if tokens < 1:
            raise BadInput(f"a context length of {tokens} makes no sense")
        with self._lock:
            self._state = learn_context(self._state, tokens)

    def view(self) -> list[Any]:
        """Return what the model is shown now, as messages in the conversation's format."""
        return self._encoded(self._state.ledger.view.messages)

    def history(self) -> list[Any]:
        """Return every message ever appended, in order, as it came."""
        return self._encoded(self._state.ledger.history())

    def checkpoints(self) -> list[Checkpoint]:
        """Return where the session can go back to, oldest first: before each compaction, and by name."""
        return rewinding.checkpoints(self._state.ledger)

    def checkpoint(self, name: str) -> None:
        """Give the present position a name."""
        with self._lock:
            self._state = rewinding.mark(self._state, name, self._outside.clock.now())

    def rewind(self, to: str | int, *, discard_later: bool = False) -> None:
        """Undo compactions back to a checkpoint and keep the messages that came later; or go back in time.

        A rewind is an entry like any other: it has a checkpoint before it and can itself be rewound.
        """
        with self._lock:
            at = self._outside.clock.now()
            self._state = rewinding.rewind(self._state, to, discard_later=discard_later, at=at)

    def recall(self, wanted: str) -> list[Recalled]:
        """Return originals: the one a handle such as `lw:412` names, or the five that match the words best."""
        return recall(self._state.ledger, wanted)

    @property
    def decision(self) -> Decision | None:
        """The last decision, with its reason; None before the first."""
        return self._state.decision

    @property
    def scale(self) -> float:
        """How many of the model's tokens one counted token is, as far as usage has taught."""
        return self._state.calibration.scale

    def last_compaction(self) -> Compaction | None:
        """Return the newest compaction, or None if there was none."""
        return next((event for event in reversed(self._state.events) if isinstance(event, Compaction)), None)

    def explain(self) -> str:
        """Say why the last decision was taken, with its numbers."""
        decision = self._state.decision
        if decision is None:
            return "Nothing was decided yet: call prepare first."
        return explain(decision, scale=self.scale)

    def status(self) -> Status:
        """Return the session in numbers; printed, it is a few lines for a person."""
        limits = limits_for(self._state, self._setup)
        marks = marks_for(self._state.model, name=self._spelling, ttl=self._setup.settings.model.cache_ttl)
        return status_of(self.name, self._state, limits, policy=self._setup.policy.name, marks=marks)

    def reset(self) -> None:
        """Clear counters, warned levels and what was learned of compactions; the messages stay."""
        with self._lock:
            self._state = reset(self._state)

    def _incoming(
        self,
        messages: Sequence[object] | None,
        system: object,
        tools: Sequence[object] | None,
        max_tokens: int | None,
        *,
        offers_recall: bool,
    ) -> Incoming:
        return Incoming(
            messages=None if messages is None else tuple(self._decode(messages)),
            system=None if system is None else write_json(system),
            tools=None if tools is None else write_json(tools),
            max_tokens=max_tokens,
            offers_recall=offers_recall,
        )

    def _decode(self, messages: Sequence[object]) -> list[Message]:
        """Read messages in the format they tell, else in the session's, else in that of the model's provider."""
        raws = raw_messages(messages)
        told = told_format(raws)
        if told is not None:
            self._format = told
        return decode_messages(raws, self._format or self._native)

    @property
    def _native(self) -> Format:
        return "anthropic" if self._state.model.provider == "anthropic" else "openai_chat"

    def _prepared(self, prepared: Prepared) -> PreparedRequest:
        self._adopt(prepared.state)
        self._warn()
        state = self._state
        return PreparedRequest(
            messages=prepared.messages,
            format=self._format or self._native,
            system=state.ledger.view.system,
            tools=state.ledger.view.tools,
            marks=marks_for(state.model, name=self._spelling, ttl=self._setup.settings.model.cache_ttl),
            tokens=state.prompt,
            decision=state.decision,
        )

    def _compressed(self, state: State) -> Compaction | None:
        known = len(self._state.events)
        self._adopt(state)
        return next((event for event in state.events[known:] if isinstance(event, Compaction)), None)

    def _adopt(self, state: State) -> None:
        known = len(self._state.events)
        self._state = state
        for event in state.events[known:]:
            tell(list(self._outside.sinks), self.name, event)

    def _warn(self) -> None:
        state = self._state
        limits = limits_for(state, self._setup)
        due = warn(self._setup.settings.output.warning_levels, state.warned, state.prompt, limits.threshold)
        self._state = msgspec.structs.replace(state, warned=due.warned)
        for warning in due.warnings:
            _log.log(_SEVERITY[warning.level], "%s: %s", self.name, warning.sentence)
            if self._outside.on_warning is not None:
                self._outside.on_warning(warning)

    def _encoded(self, messages: Sequence[Message]) -> list[Any]:
        return [msgspec.json.decode(raw) for raw in encode_messages(messages, self._format or self._native)]
