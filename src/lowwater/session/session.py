"""`Session`: one conversation, as the user of the library holds it in their agent's loop."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lowwater.core.api_calls import Usage
from lowwater.core.events import Compaction
from lowwater.core.formats.refusals import context_length_in
from lowwater.core.legality import mend
from lowwater.core.summary.pins import Pin
from lowwater.core.turns import pins as pinning
from lowwater.core.turns import rewind as rewinding
from lowwater.core.turns.arrival import append, with_detected_format
from lowwater.core.turns.rewind import Checkpoint, switch
from lowwater.core.turns.state import Acted, Route, Setup, State
from lowwater.core.turns.turn import compress
from lowwater.core.turns.turn import record as record_answer
from lowwater.core.view import join_neighbours, neighbours_to_join
from lowwater.errors import BadInput
from lowwater.session.async_twins import async_twin
from lowwater.session.dependencies import Dependencies, set_by_caller
from lowwater.session.factories import calibration_for
from lowwater.session.internals import SessionInternals, require_window, view_at
from lowwater.session.request import PreparedRequest
from lowwater.session.status import Status
from lowwater.session.turn_input import (
    TurnInput,
    read_messages,
    refuse_unsendable,
    require_count,
    require_place,
    require_text,
    written_messages,
)
from lowwater.session.turns import Turn

if TYPE_CHECKING:
    from lowwater.core.accounts.difference import Difference
    from lowwater.core.costs.idle import IdleMode
    from lowwater.core.recall.recalled import Recalled
    from lowwater.session.idle import Idle
    from lowwater.session.recall_tools import RecallTools


class Session:
    """A conversation that is kept within the model's window; every original message stays in its ledger.

    In a loop: `prepare` the request, send it, `record` the response. All methods may be called from any thread, and several
    processes may have the same session open: each sees what the others did when it next changes something, or after
    `refresh`. Methods that may wait for a model, a disk or a long computation have an async twin, such as `aprepare`.
    """

    def __init__(self, name: str, route: Route, setup: Setup, dependencies: Dependencies) -> None:
        self._internals = SessionInternals(name, route, setup, dependencies)
        self._shared = self._internals.shared
        self._dependencies = dependencies

    def __repr__(self) -> str:
        """Return its name, model and sizes; never a word of a message."""
        state = self._shared.state
        return (
            f"<Session {self.name!r}, {state.route.model!r}, {len(state.ledger.messages):,} messages, "
            f"a prompt of {state.prompt:,} of {state.window:,} tokens, "
            f"{state.totals.compactions:,} compactions>"
        )

    @property
    def name(self) -> str:
        """The session's name in its store; it changes when the session is split."""
        return self._shared.repository.name

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
        prepared = self._internals.turns.run(turn_input.turn)
        return self._internals.requests.build_to_send(prepared, turn_input)

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
        """Do what `prepare` does and leave the event loop free; a session runs one turn at a time."""
        import asyncio  # noqa: PLC0415 - those who await have it loaded

        turn_input = TurnInput(
            # The caller's list may grow while a thread reads it.
            messages=list(messages) if isinstance(messages, list) else messages,
            system=system,
            tools=tools,
            max_tokens=max_tokens,
            offers_recall=offers_recall,
            thinking=thinking,
            tool_choice=tool_choice,
            starts_over=starts_over,
        )
        prepared = await self._internals.turns.arun(turn_input.turn)
        return await asyncio.to_thread(self._internals.requests.build_to_send, prepared, turn_input)

    def record(self, response: object, *, others: Sequence[Usage] = ()) -> None:
        """Append the model's answer and learn from its usage; takes an SDK's response, a dict or the raw bytes.

        `others` is the usage of further calls that led to the answer and are not part of the conversation: they are billed
        with it. An answer that is recorded twice is billed once.
        """
        self._internals.recorder.record(
            response,
            others,
            lambda state, answer: record_answer(state, answer, self._shared.setup, self._internals.now()),
        )

    def compress(self, focus: str | None = None, *, summary: str | None = None) -> Compaction | None:
        """Compact now; `focus` names a topic to keep in more detail. Returns what was done, None if nothing helps.

        With a `summary` nothing is compacted: that text replaces the last summary in view, as you wrote it. It is judged like a
        model's, and used in any case; `score` and `rejected` of what is returned say what it misses.
        """
        return self._internals.turns.run(_compressing(focus, summary)).compaction

    async def acompress(self, focus: str | None = None, *, summary: str | None = None) -> Compaction | None:
        """Do what `compress` does and leave the event loop free."""
        return (await self._internals.turns.arun(_compressing(focus, summary))).compaction

    def prefetch_summary(self) -> bool:
        """Prepare a summary while the user is away, if one will be needed soon; returns whether one is ready now.

        The view changes only when a later turn uses the summary. If the messages it covers change first, it is never used.
        """
        return self._internals.prefetch.prefetch_summary()

    async def aprefetch_summary(self) -> bool:
        """Do what `prefetch_summary` does and leave the event loop free."""
        return await self._internals.prefetch.aprefetch_summary()

    def idle(self, mode: "IdleMode" = "auto", *, kept_warm: object = None) -> "Idle":
        """Return what to do, and when, if the user does not come back before the cached prefix expires.

        `kept_warm` is the answer to a call that kept the prefix warm: it is billed, but does not become part of the conversation.
        This method only gives advice: the caller waits, acts, and asks again after each such call.
        """
        from lowwater.session.idle import idle  # noqa: PLC0415 - loaded when it is asked for

        return idle(self._internals, mode, kept_warm)

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

    def explain(self, *, dry_run: bool = False) -> str:
        """Say why the last decision was taken, with its numbers; with `dry_run`, what would be decided before a call now.

        A dry run changes nothing but `status().decision`.
        """
        if dry_run:
            self._internals.dry_run()
        return self._internals.explain()

    def status(self) -> Status:
        """Return the session in numbers; printed, it is a few lines for a person."""
        return self._internals.status()

    def view(self, *, apart: bool = False) -> list[Any]:
        """Return what the model is shown now, as messages in the conversation's format.

        A summary next to a user message is merged into it, as in a request; with `apart` each is a message of its own.
        """
        state = self._shared.state
        view = state.ledger.view
        messages = mend(view.messages)
        joined = messages if apart else join_neighbours(messages, neighbours_to_join(messages, view.items))
        return written_messages(joined, state)

    def history(self) -> list[Any]:
        """Return every message ever appended, in order, as it came."""
        return self._shared.read(lambda state: written_messages(state.ledger.history(), state))

    def refresh(self, *, anew: bool = False) -> None:
        """Read what other processes did to the session.

        If it was deleted, it starts over empty with `anew`; otherwise DeletedSession is raised.
        """
        self._shared.refresh(anew=anew)

    def checkpoints(self) -> list[Checkpoint]:
        """Return the positions the session can go back to, oldest first: before each compaction, and named ones."""
        return self._shared.read(lambda state: rewinding.checkpoints(state.ledger))

    def checkpoint(self, name: str) -> None:
        """Name the current position, to come back to it with `rewind`."""
        require_text(name, "a checkpoint's name")
        self._shared.change(lambda state: rewinding.mark(state, name, self._internals.now()))

    def rewind(self, to: str | int, *, discard_later: bool = False) -> None:
        """Undo the compactions since a checkpoint and keep the messages that came later, unless `discard_later` drops them too.

        A rewind is an entry in the ledger like any other: it can itself be undone.
        """
        require_place(to, "`to`")
        self._shared.change(
            lambda state: rewinding.rewind(
                state, to, self._shared.setup, discard_later=discard_later, at=self._internals.now()
            )
        )

    def diff(self, before: str | int, *, after: str | int | None = None) -> "Difference":
        """Return how the view at checkpoint `before` differs from the view at `after`, or from the current view."""
        from lowwater.core.accounts.difference import difference  # noqa: PLC0415 - loaded when it is asked for

        require_place(before, "`before`")
        return self._shared.read(
            lambda state: difference(view_at(state.ledger, before), view_at(state.ledger, after))
        )

    def pins(self) -> list[Pin]:
        """Return the user's standing instructions in the order in which they were said: recognised, pinned by hand, or proposed by the model.

        Those in force stand in every view: where they were said or, once a compaction removed that, in a block behind its summary.
        """
        return self._shared.read(lambda state: list(pinning.known_pins(pinning.with_instructions(state))))

    def pin(self, wanted: str) -> None:
        """Keep a text in every later view, or the message that a handle such as `lw:12` names; what the model proposed is confirmed."""
        require_text(wanted, "what to pin")
        self._shared.change(lambda state: pinning.pin(state, wanted))

    def unpin(self, wanted: str) -> None:
        """Let a pin go, by its text, the beginning of its text, or its handle; the model is told if it was in the block."""
        require_text(wanted, "what to unpin")
        self._shared.change(lambda state: pinning.unpin(state, wanted))

    def recall(self, wanted: str, *, limit: int = 5, near: int = 1) -> "list[Recalled]":
        """Return original messages: those that a handle such as `lw:412` or `lw:12-40` names, or the best matches for words.

        Each comes with its group and `near` messages before and after it.
        """
        from lowwater.core.recall.search import recall  # noqa: PLC0415 - loaded when it is asked for

        if wanted != "":
            require_text(wanted, "what to recall")
        require_count(limit, "limit", least=0)
        require_count(near, "near", least=0)
        return self._shared.read(
            lambda state: recall(state.ledger, wanted, search=self._internals.search, limit=limit, near=near)
        )

    def recall_tools(self) -> "RecallTools":
        """Return the tools with which the model itself can search and expand: add them to the request, and let them answer its calls."""
        return self._internals.recall_tools

    aappend = async_twin(append)
    arecord = async_twin(record)
    ause = async_twin(use)
    alearn_context_length = async_twin(learn_context_length)
    aexplain = async_twin(explain)
    aview = async_twin(view)
    ahistory = async_twin(history)
    arefresh = async_twin(refresh)
    acheckpoint = async_twin(checkpoint)
    acheckpoints = async_twin(checkpoints)
    arewind = async_twin(rewind)
    adiff = async_twin(diff)
    arecall = async_twin(recall)
    apins = async_twin(pins)
    aidle = async_twin(idle)
    apin = async_twin(pin)
    aunpin = async_twin(unpin)


def _compressing(focus: str | None, summary: str | None) -> Turn[Acted]:
    """Return the turn that compacts by hand, or raise BadInput."""
    if summary is None:
        return partial(compress, focus=_focus(focus))
    if focus:
        raise BadInput("give a focus for a summary that is to be written, or the summary itself, not both")
    return partial(compress, summary=require_text(summary, "summary"))


def _focus(given: str | None) -> str:
    return "" if given is None or given == "" else require_text(given, "focus")
