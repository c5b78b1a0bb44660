"""What a session is made of, and what only Lowwater's own programs do with it: gateway, integrations, command line and lab.

Users of the library hold a `Session` and never see any of this.
"""

from collections.abc import Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.decisions import Decision
from lowwater.core.events import Compaction
from lowwater.core.ledger import Ledger
from lowwater.core.legality import mend
from lowwater.core.policies.explanations import explain
from lowwater.core.stored import About, Hit
from lowwater.core.summary.pins import explain_left_out
from lowwater.core.turns.arrival import drop_pictures, sync_messages
from lowwater.core.turns.cache import marks_of
from lowwater.core.turns.decision_context import limits_for
from lowwater.core.turns.effects import Steps
from lowwater.core.turns.pins import pins_left_out, propose
from lowwater.core.turns.rewind import forked, position_of, reset
from lowwater.core.turns.state import Route, Setup, State
from lowwater.core.turns.turn import Prepared, compress, dry_run, record_side_call, record_untouched
from lowwater.core.view import View
from lowwater.errors import BadInput
from lowwater.session.answer_recorder import AnswerRecorder
from lowwater.session.dependencies import Dependencies
from lowwater.session.recall_tally import RecallTally
from lowwater.session.repository import SessionRepository, SharedState, StateChange, load_state, new_name
from lowwater.session.request import PreparedRequest, RequestBuilder
from lowwater.session.status import Status, status_of
from lowwater.session.turn_input import (
    TurnInput,
    refuse_unsendable,
    require_count,
    require_place,
    require_text,
)
from lowwater.session.turns import SummaryPrefetch, TurnRunner, WorkedOutTurn

if TYPE_CHECKING:
    from lowwater.core.costs.idle import IdleMode
    from lowwater.core.recall.recalled import Expansion
    from lowwater.core.recall.search import RecallRoom
    from lowwater.core.turns.idle import PausePlan
    from lowwater.session.recall_tools import RecallTools
    from lowwater.session.session import Session


def internals(session: "Session") -> "SessionInternals":
    """Return what is behind a session."""
    return session._internals


class OfferedTurn(Struct, frozen=True, kw_only=True):
    """The request for a turn that was worked out; nothing of the turn is stored before it is accepted."""

    turn_input: TurnInput
    worked_out: WorkedOutTurn
    request: PreparedRequest


class SessionInternals:
    """The parts of one session, its facts as values, and a turn in two steps for programs that read the client's request themselves."""

    def __init__(self, name: str, route: Route, setup: Setup, dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self.shared = SharedState(
            SessionRepository(name, dependencies.store),
            setup,
            load=lambda repository, seen: load_state(repository, seen, route, setup, dependencies),
        )
        self.recall_tally = RecallTally()
        self.recorder = AnswerRecorder(self.shared, dependencies, self.recall_tally)
        self.requests = RequestBuilder(self.shared, dependencies.clock, opened_as=name)
        prefix = self.requests.cached_prefix
        self.turns = TurnRunner(self.shared, setup, dependencies, cached_prefix=prefix)
        self.prefetch = SummaryPrefetch(self.shared, setup, dependencies, cached_prefix=prefix)
        self._making_tools = Lock()
        # One object for all calls: answers to several calls in one message share the room that is left.
        self._recall_tools: RecallTools | None = None

    @property
    def ledger(self) -> Ledger:
        """Everything that happened so far, as an immutable value."""
        return self.shared.state.ledger

    @property
    def route(self) -> Route:
        """The model and the URL that calls go to."""
        return self.shared.state.route

    @property
    def scale(self) -> float:
        """How many of the model's tokens one counted token stands for, learned from reported usage."""
        return self.shared.state.calibration.scale

    @property
    def last_policy(self) -> str:
        """The policy that decided last, in whichever process; empty before the first turn."""
        return self.shared.state.policy

    @property
    def expected_usage(self) -> Usage:
        """What the provider should bill for the input of the request prepared last; zero if there is none."""
        call = self.shared.state.call
        return Usage() if call is None else call.expected

    @property
    def about(self) -> About:
        """Title, source and lineage."""
        return self.shared.repository.about

    @property
    def decision(self) -> Decision | None:
        """The last decision, with its reason; None before the first."""
        return self.shared.state.decision

    @property
    def last_compaction(self) -> Compaction | None:
        """The newest compaction; None if there was none."""
        return self.shared.state.last_compaction

    def status(self) -> Status:
        """Return the session in numbers."""
        state, setup = self._state_now(self.shared.state), self._setup_now(self.shared.state)
        return status_of(
            self.shared.repository.name,
            self.about,
            state,
            limits_for(state, setup),
            setup,
            marks=marks_of(state, setup),
        )

    def should_compress(self, tokens: int | None = None) -> bool:
        """Return whether a prompt of this many tokens would be compacted because of its size; None means the session's own.

        The limit is the policy's threshold or, for a policy without one, the size at which it acts: at the latest the wall.
        """
        if tokens is not None:
            require_count(tokens, "tokens", least=0)
        state, setup = self._state_now(self.shared.state), self._setup_now(self.shared.state)
        point = setup.policy.acts_at(limits_for(state, setup), setup.settings)
        is_due = point.is_reached(state.prompt if tokens is None else tokens)
        return setup.settings.compression.enabled and is_due

    def dry_run(self) -> Decision:
        """Return what would be decided before a call now, without doing it; `explain` then says why."""

        def decided(state: State) -> State:
            return replace(
                dry_run(self._state_now(state), self._setup_now(state), self.now()), model=state.model
            )

        self.shared.change_unstored(decided)
        decision = self.decision
        assert decision is not None
        return decision

    def explain(self) -> str:
        """Say why the last decision was taken, with its numbers."""
        decision, state = self.decision, self.shared.state
        if decision is None:
            return "Nothing was decided yet: call prepare first."
        why = explain(
            decision,
            scale=self.scale,
            candidates=state.candidates,
            rejected=state.rejected,
            mechanisms=self.shared.setup.mechanisms,
        )
        left_out = pins_left_out(self._state_now(state), self._setup_now(state))
        return f"{why}\n\n{explain_left_out(left_out)}" if left_out else why

    def expand(self, handle: str) -> "Expansion":
        """Return what a summary or a range of messages, named by a handle such as `lw:12-408`, was made of: one level down."""
        from lowwater.core.recall.expand import expand  # noqa: PLC0415 - loaded when it is asked for

        require_text(handle, "a handle")
        return self.shared.read(lambda state: expand(state.ledger, handle))

    @property
    def recall_tools(self) -> "RecallTools":
        """The tools with which the model itself can search and expand."""
        from lowwater.session.recall_tools import RecallTools  # noqa: PLC0415 - loaded when it is asked for

        if self._recall_tools is None:
            made = RecallTools(
                lambda: self.ledger,
                tokenizer=self.shared.setup.tokenizer,
                room=self._room,
                search=self.search,
                tally=self.recall_tally,
                propose=self.propose_pin,
                compact=self.compact_now,
            )
            with self._making_tools:
                self._recall_tools = self._recall_tools or made
        return self._recall_tools

    def compact_now(self, focus: str) -> Compaction | None:
        """Compact because the model asks for it; return what was done, None if nothing helps."""
        return self.turns.run(partial(compress, focus=focus)).compaction

    def propose_pin(self, text: str) -> None:
        """Remember what the model proposes to pin; it stands in no view before the user pins it."""
        self.shared.change(lambda state: propose(state, text))

    def search(self, words: str, limit: int) -> list[Hit]:
        """Return the session's messages in the store that match words best."""
        return self.dependencies.store.search(words, session=self.shared.repository.name, limit=limit)

    def reset(self) -> None:
        """Forget every compaction: summaries, counters, warnings given and what was learned; the messages stay."""
        self.shared.change(lambda state: reset(state, self.shared.setup, self.now()))

    @property
    def last_prompt(self) -> int:
        """The size of the request sent last, in the model's tokens: as expected while it is under way, then as reported."""
        state = self.shared.state
        return state.reported_prompt if state.call is None else state.call.expected.prompt

    def begin(self, about: About, *, parent: "Session | None" = None, upto: int = 0) -> None:
        """Describe a session that is not stored yet; its first change stores it.

        With a `parent`, it starts with the first `upto` entries of the parent's ledger and nothing that happened there later.
        """
        state = self.shared.state
        if parent is not None and upto:
            state = forked(state, internals(parent).shared.state, upto=upto, at=self.now())
        self.shared.begin(state, about)

    def describe(self, *, title: str = "", source: str = "") -> None:
        """Give the session a title or a source; an empty argument leaves the old value."""

        def described(state: State) -> StateChange:
            about = self.shared.repository.about
            new = replace(about, title=title or about.title, source=source or about.source)
            return StateChange(state=state, about=new)

        if title or source:
            self.shared.transact(described)

    def set_budget(self, tokens: int) -> None:
        """Limit the requests of this session to so many tokens; 0 lifts the limit."""
        if self.shared.state.budget != tokens:
            self.shared.change(lambda state: replace(state, budget=tokens))

    def split(self) -> str:
        """End the session under its name and continue in a child that has all of it; return the child's name.

        The child has this session as its parent and gets the next numbered title of the lineage.
        """
        child = new_name(self.now())
        self.shared.split(child, self.now())
        return child

    def learn_prompt_limit(self, tokens: int) -> int:
        """Learn that the provider refuses prompts larger than `tokens`, for a program that read the refusal itself."""
        require_window(tokens)
        # A refusal alone does not put a session into the store: it is stored with the session's first change.
        is_stored = bool(self.shared.repository.last_seen.version)
        learn = self.shared.change if is_stored else self.shared.change_unstored
        learn(lambda state: self.dependencies.windows.learn(state, tokens))
        return tokens

    def drop_images(self) -> bool:
        """Replace older images by placeholders, after a provider refused so many; returns whether there were any.

        Images of the newest exchange are replaced only if there are no others.
        """
        return self.turns.run(drop_pictures).compaction is not None

    def record_side_call(self, response: object, *, others: Sequence[Usage] = ()) -> None:
        """Bill a call that used this conversation but is not part of it, such as a client's own request for a summary.

        The answer is not appended, and the call does not change what is believed about the provider's cache.
        """
        self.recorder.record(
            response, others, lambda state, answer: record_side_call(state, answer, self.now()), appends=False
        )

    def pause_plan(self, mode: "IdleMode", *, lasts: float) -> "PausePlan | None":
        """Return what to do about the cached prefix before it expires; None if nothing is known of the prefix or of the prices."""
        from lowwater.core.turns.idle import pause_plan  # noqa: PLC0415 - loaded when it is asked for

        state = self.shared.state
        return pause_plan(self._state_now(state), self._setup_now(state), mode=mode, lasts=lasts)

    def record_untouched(self, response: object, *, others: Sequence[Usage] = ()) -> None:
        """Append and bill the answer to a client's own request, which was sent as it was instead of the session's.

        What it cost says nothing about the session's view and what is cached of that, so nothing is learned from it.
        """
        self.recorder.record(
            response,
            others,
            lambda state, answer: record_untouched(state, answer, self.shared.setup, self.now()),
            offers_recall=False,
        )

    def sync_messages(
        self,
        messages: Sequence[object],
        *,
        system: object = None,
        tools: Sequence[object] | None = None,
        max_tokens: int | None = None,
    ) -> None:
        """Bring the ledger up to date with the whole list a client keeps, without deciding anything."""
        self.sync_turn_input(
            TurnInput(messages=messages, system=system, tools=tools, max_tokens=max_tokens, starts_over=True)
        )

    def sync_turn_input(self, turn_input: TurnInput) -> None:
        """Do what `sync_messages` does, for a program that has read the client's request itself."""

        def synced(state: State) -> State:
            after = self._synced(state, turn_input)
            refuse_unsendable(state, after)
            return after

        self.shared.change(synced)

    def offer_turn(self, turn_input: TurnInput, *, fewer_images: bool = False) -> OfferedTurn:
        """Work out what `Session.prepare` would return, and store nothing until `accept_turn`.

        No summarizer is asked: a summary has to be prefetched before it can be used here. Until then the view stays as it
        is or, if it does not fit, is made to fit without a model. With `fewer_images`, placeholders replace older images first.
        """
        turn = partial(_with_fewer_images, turn_input) if fewer_images else turn_input.turn
        worked_out = self.turns.work_out(turn)
        request = self.requests.build(worked_out.result, turn_input)
        return OfferedTurn(turn_input=turn_input, worked_out=worked_out, request=request)

    def accept_turn(self, offered: OfferedTurn, *, body: bytes) -> None:
        """Store a turn that was offered, once its provider has taken the request; `body` is what was sent.

        If the session has changed since, the client's messages are stored and the turn's compaction is not.
        """
        state = offered.worked_out.result.state

        def synced(current: State) -> State:
            return replace(self._synced(current, offered.turn_input), call=state.call)

        is_current = self.turns.accept(offered.worked_out, synced)
        self.requests.remember(offered.request if is_current else None, state, body=body)

    def preview_request(self, turn_input: TurnInput) -> PreparedRequest:
        """Return the request that `offer_turn` would offer; nothing is stored, and hooks are not called."""
        return self.requests.build(self.turns.preview(turn_input.turn), turn_input)

    def uncompacted_request(self, turn_input: TurnInput) -> PreparedRequest:
        """Return the request as it would be without a compaction; nothing is decided or stored."""

        def request(state: State) -> PreparedRequest:
            after = self._synced(state, turn_input)
            return self.requests.build_for(after, tuple(mend(after.ledger.view.messages)), turn_input)

        return self.shared.read(request)

    def now(self) -> float:
        """Return the time by the session's clock."""
        return self.dependencies.clock.now()

    def _room(self) -> "RecallRoom":
        from lowwater.core.recall.search import room_in  # noqa: PLC0415 - loaded when it is asked for

        return room_in(self._state_now(self.shared.state), self._setup_now(self.shared.state))

    def _state_now(self, state: State) -> State:
        """Return a state with the context lengths that were learned up to now."""
        return self.dependencies.windows.applied(state)

    def _setup_now(self, state: State) -> Setup:
        """Return the setup with the context lengths that were learned up to now."""
        return self.dependencies.windows.applied_to(self.shared.setup, state)

    def _synced(self, state: State, turn_input: TurnInput) -> State:
        return sync_messages(state, turn_input.incoming(state), self.shared.setup, self.now())


def view_at(ledger: Ledger, place: str | int | None) -> View:
    """Return the view at a checkpoint or position; None is the current view."""
    if place is None:
        return ledger.view
    require_place(place, "`after`")
    return ledger.view_at(place if isinstance(place, int) else position_of(ledger, place))


def require_window(tokens: int) -> None:
    """Raise BadInput for a context length that no model has."""
    if tokens < 1:
        raise BadInput(f"a context length of {tokens} makes no sense")


def _with_fewer_images(turn_input: TurnInput, state: State, setup: Setup, at: float) -> Steps[Prepared]:
    """Take in the client's messages, replace older images by placeholders, and run the turn on the result."""
    dropped = yield from drop_pictures(sync_messages(state, turn_input.incoming(state), setup, at), setup, at)
    prepared = yield from turn_input.turn(dropped.state, setup, at)
    return replace(prepared, events=(*dropped.events, *prepared.events))
