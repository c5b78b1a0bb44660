"""`Session`: one conversation, as the user of the library holds it in their agent's loop."""

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.decisions import Decision
from lowwater.core.events import Compaction
from lowwater.core.formats.refusals import context_length_in
from lowwater.core.policies.explanations import explain
from lowwater.core.turns.arrival import append, with_detected_format
from lowwater.core.turns.cache import marks_of
from lowwater.core.turns.decision_context import limits_for
from lowwater.core.turns.rewind import reset, switch
from lowwater.core.turns.state import Route, Setup, State
from lowwater.core.turns.turn import compress, dry_run, record
from lowwater.errors import BadInput
from lowwater.session.dependencies import Dependencies, set_by_caller
from lowwater.session.factories import calibration_for
from lowwater.session.history import SessionHistory
from lowwater.session.internals import SessionInternals, require_window
from lowwater.session.request import PreparedRequest
from lowwater.session.status import Status, status_of
from lowwater.session.turn_input import (
    TurnInput,
    read_messages,
    refuse_unsendable,
    require_count,
    require_text,
)


class Session(SessionHistory):
    """A conversation that is kept within the model's window; every original message stays in its ledger.

    In a loop: `prepare` the request, send it, `record` the response. All methods may be called from any thread, and several
    processes may have the same session open: each sees what the others did when it next changes something, or after
    `refresh`. Methods that may wait have an async twin, such as `aprepare`.
    """

    def __init__(self, name: str, route: Route, setup: Setup, dependencies: Dependencies) -> None:
        self._internals = SessionInternals(name, route, setup, dependencies)
        super().__init__(self._internals)

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
                self._internals.now(),
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
        self._internals.sync_turn_input(turn_input)

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
        return self._internals.prepared_request(self._internals.turns.run(turn_input.turn), turn_input)

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
        return self._internals.prepared_request(await self._internals.turns.arun(turn_input.turn), turn_input)

    def record(self, response: object, *, others: Sequence[Usage] = ()) -> None:
        """Append the model's answer and learn from its usage; takes an SDK's response, a dict or the raw bytes.

        `others` is the usage of further calls that led to the answer and are not part of the conversation: they are billed
        with it. An answer that is recorded twice is billed once.
        """
        self._internals.recorder.record(
            response,
            others,
            lambda state, answer: record(state, answer, self._shared.setup, self._internals.now()),
        )

    async def arecord(self, response: object) -> None:
        """Do what `record` does without blocking the event loop."""
        import asyncio  # noqa: PLC0415 - those who await have it loaded

        await asyncio.to_thread(self.record, response)

    def compress(self, focus: str | None = None) -> Compaction | None:
        """Compact now; `focus` names a topic to keep in more detail. Returns what was done, None if nothing helps."""
        return self._internals.turns.run(partial(compress, focus=_focus(focus))).compaction

    async def acompress(self, focus: str | None = None) -> Compaction | None:
        """Do what `compress` does without blocking the event loop."""
        return (await self._internals.turns.arun(partial(compress, focus=_focus(focus)))).compaction

    def prefetch_summary(self) -> bool:
        """Prepare a summary while the user is away, if one will be needed soon; returns whether one is ready now.

        The view changes only when a later turn uses the summary. If the messages it covers change first, it is never used.
        """
        return self._internals.idle.prefetch_summary()

    async def aprefetch_summary(self) -> bool:
        """Do what `prefetch_summary` does without blocking the event loop."""
        return await self._internals.idle.aprefetch_summary()

    def reset(self) -> None:
        """Forget every compaction: summaries, counters, warnings given and what was learned; the messages stay."""
        self._shared.change(lambda state: reset(state, self._shared.setup, self._internals.now()))

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
        self._shared.change(lambda state: switch(state, route, found, prior=prior, at=self._internals.now()))

    def learn_context_length(self, told: int | str | Exception) -> int:
        """Take the context length of this model at this URL from a provider's error, or set it as a number; return it.

        What an error says holds in every session, until a larger prompt is accepted or a larger limit is reported. A number
        holds for this session only. Raises BadInput if the error names no context length.
        """
        if isinstance(told, int) and not isinstance(told, bool):
            require_window(told)
            self._shared.change(lambda state: set_by_caller(state, told))
            return told
        tokens = context_length_in(str(told))
        if tokens is None:
            raise BadInput("the error names no context length: give the number of tokens instead")
        return self._internals.learn_prompt_limit(tokens)

    def dry_run(self) -> Decision:
        """Return what would be decided before a call now, without doing it; `explain` then says why."""
        windows = self._dependencies.windows

        def decided(state: State) -> State:
            setup = windows.applied_to(self._shared.setup, state)
            return replace(dry_run(windows.applied(state), setup, self._internals.now()), model=state.model)

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
            decision, scale=self._internals.scale, candidates=state.candidates, rejected=state.rejected
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


def _focus(given: str | None) -> str:
    return "" if given is None or given == "" else require_text(given, "focus")
