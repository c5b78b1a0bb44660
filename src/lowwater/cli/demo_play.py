"""The session that `lowwater demo` plays, turn by turn, as an agent's loop would."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Raw, Struct

from lowwater.decide.warnings import UsageWarning
from lowwater.testing.sessions import GeneratedSession
from lowwater.values.events import Compaction
from lowwater.wiring.session import Session


class Frame(Struct, frozen=True, kw_only=True):
    """The session after one turn."""

    turn: int
    prompt: int
    untouched: int
    """What the prompt would be if nothing had ever been compacted."""
    event: Compaction | None
    warnings: tuple[UsageWarning, ...]


def play(
    generated: GeneratedSession, session: Session, take_warnings: Callable[[], tuple[UsageWarning, ...]]
) -> Iterator[Frame]:
    """Append what leads to each answer, prepare the request, and yield what became of the prompt."""
    form = generated.as_anthropic()
    sent = untouched = 0
    for turn, leading in enumerate(_leading(form.messages), start=1):
        session.append(leading)
        untouched += session.status().prompt - sent
        known = session.last_compaction()
        request = session.prepare(system=Raw(form.system))
        event = session.last_compaction()
        sent = request.tokens
        yield Frame(
            turn=turn,
            prompt=sent,
            untouched=max(untouched, sent),
            event=None if event is known else event,
            warnings=take_warnings(),
        )


def _leading(messages: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Yield, for each answer, the messages that came since the one before it, that one first."""
    waiting: list[bytes] = []
    for raw in messages:
        if raw.startswith(b'{"role":"assistant"') and waiting:
            yield waiting
            waiting = []
        waiting.append(raw)
