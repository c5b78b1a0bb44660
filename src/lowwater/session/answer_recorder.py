"""Recording a model's answer: it is decoded, stored with its bill, and reported to the sinks."""

import logging
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from lowwater.core.api_calls import Response, Usage
from lowwater.core.formats.codec import decode_response
from lowwater.core.reconcile import says_the_same
from lowwater.core.strict_json import write_answer
from lowwater.core.turns.state import State
from lowwater.core.turns.turn import Recorded
from lowwater.observe.sinks import log_implausible_usage, log_unread_fields, send_turn
from lowwater.session.dependencies import Dependencies
from lowwater.session.recall_tally import RecallTally
from lowwater.session.repository import SharedState, StateChange
from lowwater.session.turn_input import refuse_unsendable

_log = logging.getLogger("lowwater")


class AnswerRecorder:
    """Records the answers of one session."""

    def __init__(self, shared: SharedState, dependencies: Dependencies, recall_tally: RecallTally) -> None:
        self._shared = shared
        self._dependencies = dependencies
        self._recall_tally = recall_tally
        self._has_doubted = False
        self._has_left_out = False

    def record(
        self,
        response: object,
        others: Sequence[Usage],
        step: Callable[[State, Response], Recorded],
        *,
        appends: bool = True,
        offers_recall: bool = True,
    ) -> None:
        """Store what `step` makes of an answer (an SDK's response, a dict or raw bytes); `others` are billed with it.

        `offers_recall` is False if the model was not sent the recall tools, although the session was prepared with them.
        An answer recorded a second time, with no call in between, is neither appended nor billed again.
        """
        answer = decode_response(response if isinstance(response, bytes) else write_answer(response))
        answer = replace(answer, others=(*answer.others, *others))

        doubts: list[str] = []

        def recorded(state: State) -> StateChange:
            if appends and _is_repeated(state, answer):
                raise _Repeated
            done = step(state, answer)
            refuse_unsendable(state, done.state)
            doubts[:] = [done.doubt] if done.doubt else []
            is_other = state.call is not None and state.call.model.name != state.model.name
            # A prompt that another model accepted says nothing about the window of the one in use now.
            prompt = 0 if done.doubt or is_other else answer.prompt
            record = done.record
            if appends and offers_recall:
                use = self._recall_tally.before(answer.message, offered=state.offers_recall)
                record = replace(record, recall=use)
            return StateChange(state=self._dependencies.windows.accepted(done.state, prompt), record=record)

        try:
            done = self._shared.transact(recorded)
        except _Repeated:
            _log.warning(
                "%s: this answer was recorded before and is not billed again", self._shared.repository.name
            )
            return
        if appends:
            self._recall_tally.clear(answer.message)
        if done.record is not None:
            send_turn(self._dependencies.sinks, self._shared.repository.name, done.record)
        self._say_once(doubts, answer.unread)

    def _say_once(self, doubts: Sequence[str], unread: Sequence[str]) -> None:
        """Log what of an answer is left out, the first time that its usage is, and the first time that something else is."""
        name, quiet = self._shared.repository.name, self._dependencies.quiet
        if doubts and not self._has_doubted:
            self._has_doubted = True
            log_implausible_usage(doubts[0], name, quiet=quiet)
        if unread and not self._has_left_out:
            self._has_left_out = True
            log_unread_fields(unread, name, quiet=quiet)


class _Repeated(Exception):
    """The answer is the one that was recorded last."""


def _is_repeated(state: State, answer: Response) -> bool:
    """Return whether no call is under way and the conversation ends with this very answer."""
    shown = state.ledger.view.messages
    return state.call is None and bool(shown) and says_the_same(shown[-1], answer.message)
