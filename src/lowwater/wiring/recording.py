"""Recording what a call gave: the answer is read, kept with its bill, and the sinks are told."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from lowwater.engine.state import State
from lowwater.engine.turn import Recorded
from lowwater.observe.sinks import tell_turn
from lowwater.observe.usage_warnings import tell_doubt
from lowwater.values.response import Response
from lowwater.values.usage import Usage
from lowwater.wire.reading import write_json
from lowwater.wire.response import decode_response
from lowwater.wiring.home import Step
from lowwater.wiring.kept import Kept
from lowwater.wiring.outside import Outside


class Recording:
    """The answers of one session."""

    def __init__(self, kept: Kept, outside: Outside) -> None:
        self._kept = kept
        self._outside = outside
        self._has_doubted = False

    def take(
        self, response: object, others: Sequence[Usage], record: Callable[[State, Response], Recorded]
    ) -> None:
        """Keep what `record` makes of an answer: an SDK's response, a dict or the raw bytes; `others` are billed with it."""
        answer = decode_response(response if isinstance(response, bytes) else write_json(response))
        answer = replace(answer, others=(*answer.others, *others))

        doubts: list[str] = []

        def recorded(state: State) -> Step:
            done = record(state, answer)
            doubts[:] = [done.doubt] if done.doubt else []
            prompt = 0 if done.doubt else answer.prompt
            return Step(state=self._outside.windows.accepted(done.state, prompt), record=done.record)

        if (done := self._kept.take(recorded)).record is not None:
            tell_turn(self._outside.sinks, self._kept.home.name, done.record)
        if doubts and not self._has_doubted:
            self._has_doubted = True
            tell_doubt(doubts[0], self._kept.home.name, quiet=self._outside.quiet)
