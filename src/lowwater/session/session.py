"""One conversation: what a user of the library holds in the loop."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from operator import is_

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.decisions import Decision
from lowwater.core.events import Compaction
from lowwater.core.formats.refusals import context_length_in
from lowwater.core.ledger import Ledger
from lowwater.core.legality import mend
from lowwater.core.messages import Message
from lowwater.core.policies.explanations import explain
from lowwater.core.stored import About
from lowwater.core.summary.request import CachedPrefix
from lowwater.core.turns.arrival import append, drop_pictures, sync_messages, with_detected_format
from lowwater.core.turns.cache import marks_of
from lowwater.core.turns.decision_context import limits_for
from lowwater.core.turns.effects import Steps
from lowwater.core.turns.rewind import forked, reset, switch
from lowwater.core.turns.state import Route, Setup, State
from lowwater.core.turns.turn import Prepared, compress, dry_run, record, record_side_call
from lowwater.errors import BadInput
from lowwater.session.dependencies import Dependencies
from lowwater.session.factories import calibration_for
from lowwater.session.history import SessionHistory
from lowwater.session.recording import AnswerRecorder
from lowwater.session.repository import SessionRepository, SharedState, entered
from lowwater.session.request import LastSent, PreparedRequest, build_request, compacting
from lowwater.session.status import Status, status_of
from lowwater.session.turn_input import (
    TurnInput,
    format_of,
    read_messages,
    refuse_unsendable,
    require_count,
    require_text,
)
from lowwater.session.turns import IdleWork, Offer, TurnRunner
from lowwater.session.windows import set_by_caller

_log = logging.getLogger("lowwater")


class OfferedTurn(Struct, frozen=True, kw_only=True):
    """A client's request worked out for sending; nothing of it is kept before it is accepted."""

    brought: TurnInput
    offer: Offer
    request: PreparedRequest


class Session(SessionHistory):
    """A conversation that fits its window; every original message stays in its ledger.

    All methods may be called from any thread, and several processes may have the same session open: what one of them did
    the others learn when they next change something, or by `refresh`. Methods that may wait have an async twin: `aprepare`.
    """

    def __init__(self, name: str, route: Route, setup: Setup, outside: Dependencies) -> None:
        kept = SharedState(
            SessionRepository(name, outside.store),
            enter=lambda home, seen: entered(home, seen, route, setup, outside),
        )
        super().__init__(kept, setup, outside)
        self._opened_as = name
        self._last_sent: LastSent | None = None
        self._orphans: set[str] = set()
        self._recording = AnswerRecorder(self._kept, outside)
        self._turns = TurnRunner(self._kept, setup, outside, riding=self._riding)
        self._idle = IdleWork(self._kept, setup, outside, riding=self._riding)

    def append(self, messages: object) -> None:
        """Add one message or several to the end: dicts as the provider's API takes them, or what its SDK returned."""

        def appended(state: State) -> State:
            read = read_messages(messages, state)
            after = append(
                with_detected_format(state, read.told, read.format), read.messages, self._setup, self._at()
            )
            refuse_unsendable(state, after)
            return after

        self._kept.change(appended)

    def sync_messages(
        self,
        messages: Sequence[object],
        *,
        system: object = None,
        tools: Sequence[object] | None = None,
        max_tokens: int | None = None,
    ) -> None:
        """Bring the ledger up to the whole list a client keeps, without deciding anything."""
        brought = TurnInput(
            messages=messages, system=system, tools=tools, max_tokens=max_tokens, starts_over=True
        )
        self.bring(brought)

    def bring(self, brought: TurnInput) -> None:
        """Do what `sync_messages` does, for a program that has read the client's request already."""

        def taken(state: State) -> State:
            after = sync_messages(state, brought.incoming(state), self._setup, self._at())
            refuse_unsendable(state, after)
            return after

        self._kept.change(taken)

    def prepare(
        self,
        messages: Sequence[object] | None = None,
        *,
        system: object = None,
        tools: Sequence[object] | None = None,
        max_tokens: int | None = None,
        offers_recall: bool = False,
        thinking: object = None,
        tool_choice: object = None,
        starts_over: bool = False,
    ) -> PreparedRequest:
        """Return the request to send, compacted if the policy says so.

        `messages` is the whole list a client keeps; leave it out where messages were appended. What the list changes
        about earlier messages is taken as the client's will, and the ledger keeps what was there before. New messages alone
        would drop the history from the view: they are refused, unless `starts_over` says that this is meant. `thinking`, if
        given, is part of `as_anthropic()`: a budget that the provider would refuse, because a compaction took away
        the thinking that a tool loop began with, is disabled there for the rest of that loop; the log and `status()` tell. The
        provider's cache depends on `thinking` and `tool_choice` too, so give them here rather than to the client. Recall is
        offered if `recall_tools` are among the `tools`, or `offers_recall` says so.
        """
        brought = TurnInput(
            messages=messages,
            system=system,
            tools=tools,
            max_tokens=max_tokens,
            offers_recall=offers_recall,
            thinking=thinking,
            tool_choice=tool_choice,
            starts_over=starts_over,
        )
        return self._request(self._turns.take(brought.turn), brought)

    async def aprepare(
        self,
        messages: Sequence[object] | None = None,
        *,
        system: object = None,
        tools: Sequence[object] | None = None,
        max_tokens: int | None = None,
        offers_recall: bool = False,
        thinking: object = None,
        tool_choice: object = None,
        starts_over: bool = False,
    ) -> PreparedRequest:
        """Do what `prepare` does without blocking the event loop; one turn of a session at a time."""
        brought = TurnInput(
            messages=messages,
            system=system,
            tools=tools,
            max_tokens=max_tokens,
            offers_recall=offers_recall,
            thinking=thinking,
            tool_choice=tool_choice,
            starts_over=starts_over,
        )
        return self._request(await self._turns.atake(brought.turn), brought)

    def offer_turn(self, brought: TurnInput, *, fewer_images: bool = False) -> OfferedTurn:
        """Work out what `prepare` would, for a program that has read the client's request already, and keep nothing of it.

        No summarizer is waited for: a summary that would be bought now has to be parked first; until then the view stays as it
        is, or is made to fit without a model. With `fewer_images`, placeholders take the place of older images first.
        """
        offer = self._turns.offer(partial(_with_fewer_images, brought) if fewer_images else brought.turn)
        prepared = offer.result
        request = build_request(
            prepared.state, prepared.messages, brought, self._setup, session=self._opened_as
        )
        return OfferedTurn(brought=brought, offer=offer, request=request)

    def accept_turn(self, offered: OfferedTurn, *, body: bytes) -> None:
        """Keep a turn that was offered, now that its provider takes it; `body` is what was sent.

        Where the session has changed since, the client's messages are kept and what the turn compacted is not.
        """
        call, brought, state = offered.offer.result.state.call, offered.brought, offered.offer.result.state

        def taken(state: State) -> State:
            return replace(sync_messages(state, brought.incoming(state), self._setup, self._at()), call=call)

        is_next = self._turns.accept(offered.offer, taken)
        sent = LastSent(request=offered.request, model=state.route.model, ledger=state.ledger, body=body)
        self._last_sent = sent if is_next else None

    def begin(self, about: About, *, parent: "Session | None" = None, upto: int = 0) -> None:
        """Tell what a session is that has not been kept yet: it is kept by what happens to it first.

        One that leaves another has the first `upto` entries of its ledger, and nothing of what happened there later.
        """
        state = self._kept.state
        if parent is not None and upto:
            state = forked(state, parent._kept.state, upto=upto, at=self._at())  # one of its own kind
        self._kept.begin(state, about)

    def shown(self, brought: TurnInput) -> PreparedRequest:
        """Return the request as it would be sent if nothing were compacted for it; nothing is decided and nothing kept."""

        def taken(state: State) -> PreparedRequest:
            then = sync_messages(state, brought.incoming(state), self._setup, self._at())
            messages = tuple(mend(then.ledger.view.messages))
            return build_request(then, messages, brought, self._setup, session=self._opened_as)

        return self._kept.read(taken)

    def foreseen(self, brought: TurnInput) -> PreparedRequest:
        """Return the request that `offer_turn` would offer, compacted if it would be; nothing is kept and nobody is told."""
        prepared = self._turns.foresee(brought.turn)
        return build_request(prepared.state, prepared.messages, brought, self._setup, session=self._opened_as)

    def dry_run(self) -> Decision:
        """Return what would be decided before a call now, without doing it; `explain` tells why."""
        windows = self._outside.windows

        def thought(state: State) -> State:
            setup = windows.applied_to(self._setup, state)
            return replace(dry_run(windows.applied(state), setup, self._at()), model=state.model)

        self._kept.think(thought)
        decision = self.decision
        assert decision is not None
        return decision

    def should_compress(self, tokens: int | None = None) -> bool:
        """Return whether a prompt of so many tokens is compacted for its size; None is the session's own, 0 is a count.

        That is the threshold of a policy that has one, and otherwise the size at which it really acts, at the latest the wall.
        """
        if tokens is not None:
            require_count(tokens, "tokens", least=0)
        windows = self._outside.windows
        state, setup = windows.applied(self._kept.state), windows.applied_to(self._setup, self._kept.state)
        point = setup.policy.acts_at(limits_for(state, setup), setup.settings)
        is_due = point.is_reached(state.prompt if tokens is None else tokens)
        return setup.settings.compression.enabled and is_due

    def record(self, response: object, *, others: Sequence[Usage] = ()) -> None:
        """Append the model's answer and learn from its usage; takes an SDK's response, a dict or the raw bytes.

        `others` are calls that led to it and are no part of the conversation: they are billed with it. Recording an answer
        twice bills it once.
        """
        self._recording.take(
            response, others, lambda state, answer: record(state, answer, self._setup, self._at())
        )

    async def arecord(self, response: object) -> None:
        """Do what `record` does without blocking the event loop."""
        await asyncio.to_thread(self.record, response)

    def record_side_call(self, response: object, *, others: Sequence[Usage] = ()) -> None:
        """Bill a call that was made with this conversation and is no part of it: a client's own question for a summary.

        Neither is the answer appended, nor does the call change what is believed of the provider's cache.
        """
        self._recording.take(
            response, others, lambda state, answer: record_side_call(state, answer, self._at()), appends=False
        )

    def compress(self, focus: str | None = None) -> Compaction | None:
        """Compact by hand; `focus` names a topic to keep in more detail. Returns what was done, None if nothing helps."""
        return self._turns.take(partial(compress, focus=_focus(focus))).compaction

    async def acompress(self, focus: str | None = None) -> Compaction | None:
        """Do what `compress` does without blocking the event loop."""
        return (await self._turns.atake(partial(compress, focus=_focus(focus)))).compaction

    def prefetch_summary(self) -> bool:
        """Prepare a summary while the user is away, if one will be needed soon; returns whether one is ready now.

        The view changes only when a later turn publishes it; one whose messages change meanwhile is never shown.
        """
        return self._idle.prefetch_summary()

    async def aprefetch_summary(self) -> bool:
        """Do what `prefetch_summary` does without blocking the event loop."""
        return await self._idle.aprefetch_summary()

    def use(self, model: str, *, base_url: str | None = None) -> None:
        """Switch to another model: window, prices, cache rules and counts follow at once.

        Without a `base_url` it is that of the fallback with this name, or the provider's own.
        """
        require_text(model, "model")
        if base_url is None:
            base_url = next((route.base_url for route in self._setup.routes if route.model == model), "")
        route = Route(model=model, base_url=base_url)
        self._outside.doubt(model, base_url=base_url)
        found, prior = self._outside.registry.find(model), calibration_for(model).prior
        self._kept.change(lambda state: switch(state, route, found, prior=prior, at=self._at()))

    @property
    def left_with(self) -> str:
        """The policy that decided last, in whichever process; empty before the first turn."""
        return self._kept.state.policy

    @property
    def route(self) -> Route:
        """Where its calls go."""
        return self._kept.state.route

    def learn_context_length(self, told: int | str | Exception) -> int:
        """Take the window's size from a provider's error, or set it as a number; it is that of this model at this URL.

        What an error says holds in every session, until a larger prompt is accepted or a larger limit reported. A number
        holds for this session alone. Returns it. Raises BadInput if the error names none.
        """
        if isinstance(told, int) and not isinstance(told, bool):
            _check_window(told)
            self._kept.change(lambda state: set_by_caller(state, told))
            return told
        tokens = context_length_in(str(told))
        if tokens is None:
            raise BadInput("the error names no context length: give the number of tokens instead")
        return self.refused_beyond(tokens)

    def refused_beyond(self, tokens: int) -> int:
        """Learn that the provider refuses larger prompts than this; a program says so that has read the refusal itself."""
        _check_window(tokens)
        # A session of which nothing is kept yet is not begun by a refusal: it learns with what happens to it first.
        learn = self._kept.change if self._kept.home.known.version else self._kept.think
        learn(lambda state: self._outside.windows.taught(state, tokens))
        return tokens

    def drop_images(self) -> bool:
        """Put placeholders in place of older images, after a provider refused so many; returns whether there were any.

        Those of the newest exchange go only if there are no others.
        """
        return self._turns.take(drop_pictures).compaction is not None

    @property
    def decision(self) -> Decision | None:
        """The last decision, with its reason; None before the first."""
        return self._kept.state.decision

    @property
    def scale(self) -> float:
        """How many of the model's tokens one counted token is, as far as usage has taught."""
        return self._kept.state.calibration.scale

    def last_compaction(self) -> Compaction | None:
        """Return the newest compaction, or None if there was none."""
        return self._kept.state.last

    def explain(self) -> str:
        """Say why the last decision was taken, with its numbers."""
        decision, state = self.decision, self._kept.state
        if decision is None:
            return "Nothing was decided yet: call prepare first."
        return explain(decision, scale=self.scale, market=state.market, rejected=state.rejected)

    def expected_usage(self) -> Usage:
        """Return what the provider should bill for the input of the request prepared last; nothing if none is."""
        call = self._kept.state.call
        return Usage() if call is None else call.expected

    def status(self) -> Status:
        """Return the session in numbers; printed, it is a few lines for a person."""
        windows = self._outside.windows
        state, setup = windows.applied(self._kept.state), windows.applied_to(self._setup, self._kept.state)
        return status_of(
            self.name,
            state,
            limits_for(state, setup),
            policy=setup.policy,
            settings=setup.settings,
            marks=marks_of(state, setup),
        )

    def reset(self) -> None:
        """Forget every compaction: summaries, counters, warned levels and what was learned; the messages stay."""
        self._kept.change(lambda state: reset(state, self._setup, self._at()))

    def _request(self, prepared: Prepared, brought: TurnInput) -> PreparedRequest:
        state = prepared.state
        self._tell_of_orphans(state, prepared.messages)
        request = build_request(state, prepared.messages, brought, self._setup, session=self._opened_as)
        self._last_sent = LastSent(request=request, model=state.route.model, ledger=state.ledger)
        return request

    def _tell_of_orphans(self, state: State, sent: Sequence[Message]) -> None:
        """Say, once each, which tool results are left out of the request because no message calls for them."""
        shown = state.ledger.view.messages
        if len(shown) == len(sent) and all(map(is_, shown, sent)):
            return
        for call in _answered_calls(shown) - _answered_calls(sent) - self._orphans:
            self._orphans.add(call)
            _log.warning(
                "%s: a tool result for the call %r is left out of the request: no message makes that call",
                self.name,
                call,
            )

    def _riding(self, ledger: Ledger | None, upto: int) -> CachedPrefix | None:
        state, last = self._kept.state, self._last_sent
        if upto:
            return compacting(state, ledger or state.ledger, upto, self._setup, self._at())
        return None if last is None else last.riding(ledger or state.ledger, format_of(state))


def _with_fewer_images(brought: TurnInput, state: State, setup: Setup, at: float) -> Steps[Prepared]:
    """Take in what the client brings, put placeholders in place of older images, and prepare what is left."""
    dropped = yield from drop_pictures(sync_messages(state, brought.incoming(state), setup, at), setup, at)
    prepared = yield from brought.turn(dropped.state, setup, at)
    return replace(prepared, events=(*dropped.events, *prepared.events))


def _focus(given: str | None) -> str:
    return "" if given is None or given == "" else require_text(given, "focus")


def _answered_calls(messages: Iterable[Message]) -> set[str]:
    return {result.call_id for message in messages for result in message.results}


def _check_window(tokens: int) -> None:
    if tokens < 1:
        raise BadInput(f"a context length of {tokens} makes no sense")
