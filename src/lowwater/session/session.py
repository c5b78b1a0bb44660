"""`Session`: one conversation, as the user of the library holds it in their agent's loop."""

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
from lowwater.session.answer_recorder import AnswerRecorder
from lowwater.session.dependencies import Dependencies, set_by_caller
from lowwater.session.factories import calibration_for
from lowwater.session.history import SessionHistory
from lowwater.session.repository import SessionRepository, SharedState, load_state
from lowwater.session.request import LastSent, PreparedRequest, build_compaction_request, build_request
from lowwater.session.status import Status, status_of
from lowwater.session.turn_input import (
    TurnInput,
    format_of_session,
    read_messages,
    refuse_unsendable,
    require_count,
    require_text,
)
from lowwater.session.turns import IdleWork, TurnRunner, WorkedOutTurn

_log = logging.getLogger("lowwater")
_MOST_NAMED = 5
"""How many tool results without a call are named in the log; the others are counted."""


class OfferedTurn(Struct, frozen=True, kw_only=True):
    """The request for a turn that was worked out; nothing of the turn is stored before it is accepted."""

    turn_input: TurnInput
    worked_out: WorkedOutTurn
    request: PreparedRequest


class Session(SessionHistory):
    """A conversation that is kept within the model's window; every original message stays in its ledger.

    In a loop: `prepare` the request, send it, `record` the response. All methods may be called from any thread, and several
    processes may have the same session open: each sees what the others did when it next changes something, or after
    `refresh`. Methods that may wait have an async twin, such as `aprepare`.
    """

    def __init__(self, name: str, route: Route, setup: Setup, dependencies: Dependencies) -> None:
        shared = SharedState(
            SessionRepository(name, dependencies.store),
            setup,
            load=lambda repository, seen: load_state(repository, seen, route, setup, dependencies),
        )
        super().__init__(shared, dependencies)
        self._opened_as = name
        self._last_sent: LastSent | None = None
        self._reported_orphans: set[str] = set()
        self._recorder = AnswerRecorder(shared, dependencies)
        self._turns = TurnRunner(shared, setup, dependencies, cached_prefix=self._cached_prefix)
        self._idle = IdleWork(shared, setup, dependencies, cached_prefix=self._cached_prefix)

    def __repr__(self) -> str:
        """Return its name, model and sizes; never a word of a message."""
        state = self._shared.state
        return (
            f"<Session {self.name!r}, {state.route.model!r}, {len(state.ledger.messages):,} messages, "
            f"a prompt of {state.prompt:,} of {state.model.context_length:,} tokens, "
            f"{state.totals.compactions:,} compactions>"
        )

    def append(self, messages: object) -> None:
        """Add one message or several to the end: dicts as the provider's API takes them, or objects of its SDK."""

        def appended(state: State) -> State:
            read = read_messages(messages, state)
            after = append(
                with_detected_format(state, read.detected_format, read.format),
                read.messages,
                self._shared.setup,
                self._at(),
            )
            refuse_unsendable(state, after)
            return after

        self._shared.change(appended)

    def sync_messages(
        self,
        messages: Sequence[object],
        *,
        system: object = None,
        tools: Sequence[object] | None = None,
        max_tokens: int | None = None,
    ) -> None:
        """Bring the ledger up to date with the whole list a client keeps, without deciding anything."""
        turn_input = TurnInput(
            messages=messages, system=system, tools=tools, max_tokens=max_tokens, starts_over=True
        )
        self.sync_turn_input(turn_input)

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

        `messages` is the whole list a client keeps; leave it out if messages were appended. Where the list differs from
        earlier messages, the list wins, and the ledger keeps what was there before. A list of new messages alone would drop
        the history from the view, so it is refused unless `starts_over` is set.

        Give `thinking` and `tool_choice` here rather than to the client: the provider's cache depends on them too. They
        become part of the request. If a compaction removed the thinking that a tool loop began with, Anthropic would refuse
        a thinking budget, so `as_anthropic()` disables thinking for the rest of that loop; the log and `status()` say so.

        Recall is offered if the `recall_tools` are among the `tools`, or if `offers_recall` is set.
        """
        turn_input = TurnInput(
            messages=messages,
            system=system,
            tools=tools,
            max_tokens=max_tokens,
            offers_recall=offers_recall,
            thinking=thinking,
            tool_choice=tool_choice,
            starts_over=starts_over,
        )
        return self._prepared_request(self._turns.run(turn_input.turn), turn_input)

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
        """Do what `prepare` does without blocking the event loop; a session runs one turn at a time."""
        turn_input = TurnInput(
            messages=messages,
            system=system,
            tools=tools,
            max_tokens=max_tokens,
            offers_recall=offers_recall,
            thinking=thinking,
            tool_choice=tool_choice,
            starts_over=starts_over,
        )
        return self._prepared_request(await self._turns.arun(turn_input.turn), turn_input)

    def record(self, response: object, *, others: Sequence[Usage] = ()) -> None:
        """Append the model's answer and learn from its usage; takes an SDK's response, a dict or the raw bytes.

        `others` is the usage of further calls that led to the answer and are not part of the conversation: they are billed
        with it. An answer that is recorded twice is billed once.
        """
        self._recorder.record(
            response, others, lambda state, answer: record(state, answer, self._shared.setup, self._at())
        )

    async def arecord(self, response: object) -> None:
        """Do what `record` does without blocking the event loop."""
        import asyncio  # noqa: PLC0415 - those who await have it loaded

        await asyncio.to_thread(self.record, response)

    def record_side_call(self, response: object, *, others: Sequence[Usage] = ()) -> None:
        """Bill a call that used this conversation but is not part of it, such as a client's own request for a summary.

        The answer is not appended, and the call does not change what is believed about the provider's cache.
        """
        self._recorder.record(
            response, others, lambda state, answer: record_side_call(state, answer, self._at()), appends=False
        )

    def compress(self, focus: str | None = None) -> Compaction | None:
        """Compact now; `focus` names a topic to keep in more detail. Returns what was done, None if nothing helps."""
        return self._turns.run(partial(compress, focus=_focus(focus))).compaction

    async def acompress(self, focus: str | None = None) -> Compaction | None:
        """Do what `compress` does without blocking the event loop."""
        return (await self._turns.arun(partial(compress, focus=_focus(focus)))).compaction

    def prefetch_summary(self) -> bool:
        """Prepare a summary while the user is away, if one will be needed soon; returns whether one is ready now.

        The view changes only when a later turn uses the summary. If the messages it covers change first, it is never used.
        """
        return self._idle.prefetch_summary()

    async def aprefetch_summary(self) -> bool:
        """Do what `prefetch_summary` does without blocking the event loop."""
        return await self._idle.aprefetch_summary()

    def drop_images(self) -> bool:
        """Replace older images by placeholders, after a provider refused so many; returns whether there were any.

        Images of the newest exchange are replaced only if there are no others.
        """
        return self._turns.run(drop_pictures).compaction is not None

    def reset(self) -> None:
        """Forget every compaction: summaries, counters, warnings given and what was learned; the messages stay."""
        self._shared.change(lambda state: reset(state, self._shared.setup, self._at()))

    def use(self, model: str, *, base_url: str | None = None) -> None:
        """Switch to another model: window, prices, cache rules and counts follow at once.

        Without a `base_url`, the one of the fallback with this name is used, or else the provider's own.
        """
        require_text(model, "model")
        if base_url is None:
            base_url = next(
                (route.base_url for route in self._shared.setup.routes if route.model == model), ""
            )
        route = Route(model=model, base_url=base_url)
        self._dependencies.doubt(model, base_url=base_url)
        found, prior = self._dependencies.registry.find(model), calibration_for(model).prior
        self._shared.change(lambda state: switch(state, route, found, prior=prior, at=self._at()))

    def learn_context_length(self, told: int | str | Exception) -> int:
        """Take the context length of this model at this URL from a provider's error, or set it as a number; return it.

        What an error says holds in every session, until a larger prompt is accepted or a larger limit is reported. A number
        holds for this session only. Raises BadInput if the error names no context length.
        """
        if isinstance(told, int) and not isinstance(told, bool):
            _check_window(told)
            self._shared.change(lambda state: set_by_caller(state, told))
            return told
        tokens = context_length_in(str(told))
        if tokens is None:
            raise BadInput("the error names no context length: give the number of tokens instead")
        return self.learn_prompt_limit(tokens)

    def learn_prompt_limit(self, tokens: int) -> int:
        """Learn that the provider refuses prompts larger than `tokens`, for a program that read the refusal itself."""
        _check_window(tokens)
        # A refusal alone does not put a session into the store: it is stored with the session's first change.
        is_stored = bool(self._shared.repository.last_seen.version)
        learn = self._shared.change if is_stored else self._shared.change_unstored
        learn(lambda state: self._dependencies.windows.learn(state, tokens))
        return tokens

    def dry_run(self) -> Decision:
        """Return what would be decided before a call now, without doing it; `explain` then says why."""
        windows = self._dependencies.windows

        def decided(state: State) -> State:
            setup = windows.applied_to(self._shared.setup, state)
            return replace(dry_run(windows.applied(state), setup, self._at()), model=state.model)

        self._shared.change_unstored(decided)
        decision = self.decision
        assert decision is not None
        return decision

    def should_compress(self, tokens: int | None = None) -> bool:
        """Return whether a prompt of this many tokens would be compacted because of its size; None means the session's own.

        The limit is the policy's threshold or, for a policy without one, the size at which it acts: at the latest the wall.
        """
        if tokens is not None:
            require_count(tokens, "tokens", least=0)
        windows = self._dependencies.windows
        state = windows.applied(self._shared.state)
        setup = windows.applied_to(self._shared.setup, self._shared.state)
        point = setup.policy.acts_at(limits_for(state, setup), setup.settings)
        is_due = point.is_reached(state.prompt if tokens is None else tokens)
        return setup.settings.compression.enabled and is_due

    @property
    def decision(self) -> Decision | None:
        """The last decision, with its reason; None before the first."""
        return self._shared.state.decision

    def explain(self) -> str:
        """Say why the last decision was taken, with its numbers."""
        decision, state = self.decision, self._shared.state
        if decision is None:
            return "Nothing was decided yet: call prepare first."
        return explain(
            decision,
            scale=self.scale,
            candidates=state.candidates,
            rejected=state.rejected,
            mechanisms=self._shared.setup.mechanisms,
        )

    def last_compaction(self) -> Compaction | None:
        """Return the newest compaction, or None if there was none."""
        return self._shared.state.last_compaction

    def status(self) -> Status:
        """Return the session in numbers; printed, it is a few lines for a person."""
        windows = self._dependencies.windows
        state = windows.applied(self._shared.state)
        setup = windows.applied_to(self._shared.setup, self._shared.state)
        return status_of(
            self.name,
            state,
            limits_for(state, setup),
            policy=setup.policy,
            settings=setup.settings,
            marks=marks_of(state, setup),
        )

    def expected_usage(self) -> Usage:
        """Return what the provider should bill for the input of the request prepared last; zero if there is none."""
        call = self._shared.state.call
        return Usage() if call is None else call.expected

    @property
    def scale(self) -> float:
        """How many of the model's tokens one counted token stands for, learned from reported usage."""
        return self._shared.state.calibration.scale

    @property
    def route(self) -> Route:
        """The model and the URL that calls go to."""
        return self._shared.state.route

    @property
    def last_policy(self) -> str:
        """The policy that decided last, in whichever process; empty before the first turn."""
        return self._shared.state.policy

    # For programs that read the client's request themselves, such as the gateway: a turn in two steps.

    def begin(self, about: About, *, parent: "Session | None" = None, upto: int = 0) -> None:
        """Describe a session that is not stored yet; its first change stores it.

        With a `parent`, it starts with the first `upto` entries of the parent's ledger and nothing that happened there later.
        """
        state = self._shared.state
        if parent is not None and upto:
            state = forked(state, parent._shared.state, upto=upto, at=self._at())  # one of its own kind
        self._shared.begin(state, about)

    def sync_turn_input(self, turn_input: TurnInput) -> None:
        """Do what `sync_messages` does, for a program that has read the client's request itself."""

        def synced(state: State) -> State:
            after = self._synced(state, turn_input)
            refuse_unsendable(state, after)
            return after

        self._shared.change(synced)

    def offer_turn(self, turn_input: TurnInput, *, fewer_images: bool = False) -> OfferedTurn:
        """Work out what `prepare` would return, and store nothing until `accept_turn`.

        No summarizer is asked: a summary has to be prefetched before it can be used here. Until then the view stays as it
        is or, if it does not fit, is made to fit without a model. With `fewer_images`, placeholders replace older images first.
        """
        turn = partial(_with_fewer_images, turn_input) if fewer_images else turn_input.turn
        worked_out = self._turns.work_out(turn)
        request = self._build_request(worked_out.result, turn_input)
        return OfferedTurn(turn_input=turn_input, worked_out=worked_out, request=request)

    def accept_turn(self, offered: OfferedTurn, *, body: bytes) -> None:
        """Store a turn that was offered, once its provider has taken the request; `body` is what was sent.

        If the session has changed since, the client's messages are stored and the turn's compaction is not.
        """
        state = offered.worked_out.result.state

        def synced(current: State) -> State:
            return replace(self._synced(current, offered.turn_input), call=state.call)

        is_current = self._turns.accept(offered.worked_out, synced)
        sent = LastSent(request=offered.request, model=state.route.model, ledger=state.ledger, body=body)
        self._last_sent = sent if is_current else None

    def uncompacted_request(self, turn_input: TurnInput) -> PreparedRequest:
        """Return the request as it would be without a compaction; nothing is decided or stored."""

        def request(state: State) -> PreparedRequest:
            after = self._synced(state, turn_input)
            messages = tuple(mend(after.ledger.view.messages))
            return build_request(after, messages, turn_input, self._shared.setup, session=self._opened_as)

        return self._shared.read(request)

    def preview_request(self, turn_input: TurnInput) -> PreparedRequest:
        """Return the request that `offer_turn` would offer; nothing is stored, and hooks are not called."""
        return self._build_request(self._turns.preview(turn_input.turn), turn_input)

    def _synced(self, state: State, turn_input: TurnInput) -> State:
        return sync_messages(state, turn_input.incoming(state), self._shared.setup, self._at())

    def _build_request(self, prepared: Prepared, turn_input: TurnInput) -> PreparedRequest:
        return build_request(
            prepared.state, prepared.messages, turn_input, self._shared.setup, session=self._opened_as
        )

    def _prepared_request(self, prepared: Prepared, turn_input: TurnInput) -> PreparedRequest:
        """Return the request and remember it: the next summary may be asked for by extending it."""
        state = prepared.state
        self._warn_of_orphans(state, prepared.messages)
        request = self._build_request(prepared, turn_input)
        self._last_sent = LastSent(request=request, model=state.route.model, ledger=state.ledger)
        return request

    def _warn_of_orphans(self, state: State, sent: Sequence[Message]) -> None:
        """Log, once each, which tool results are left out of the request because no message makes their call."""
        shown = state.ledger.view.messages
        if len(shown) == len(sent) and all(map(is_, shown, sent)):
            return
        new = sorted(_answered_calls(shown) - _answered_calls(sent) - self._reported_orphans)
        self._reported_orphans.update(new)
        for call in new[:_MOST_NAMED]:
            _log.warning(
                "%s: a tool result for the call %r is left out of the request: no message makes that call",
                self.name,
                call,
            )
        if len(new) > _MOST_NAMED:
            _log.warning("%s: so are %s further tool results", self.name, f"{len(new) - _MOST_NAMED:,}")

    def _cached_prefix(self, ledger: Ledger | None, upto: int) -> CachedPrefix | None:
        """Return the request that a summary is asked for by extending it: the one sent last, or the first `upto` items."""
        state, last = self._shared.state, self._last_sent
        if upto:
            return build_compaction_request(
                state, ledger or state.ledger, upto, self._shared.setup, self._at()
            )
        return None if last is None else last.as_prefix(ledger or state.ledger, format_of_session(state))


def _with_fewer_images(turn_input: TurnInput, state: State, setup: Setup, at: float) -> Steps[Prepared]:
    """Take in the client's messages, replace older images by placeholders, and run the turn on the result."""
    dropped = yield from drop_pictures(sync_messages(state, turn_input.incoming(state), setup, at), setup, at)
    prepared = yield from turn_input.turn(dropped.state, setup, at)
    return replace(prepared, events=(*dropped.events, *prepared.events))


def _focus(given: str | None) -> str:
    return "" if given is None or given == "" else require_text(given, "focus")


def _answered_calls(messages: Iterable[Message]) -> set[str]:
    return {result.call_id for message in messages for result in message.results}


def _check_window(tokens: int) -> None:
    if tokens < 1:
        raise BadInput(f"a context length of {tokens} makes no sense")
