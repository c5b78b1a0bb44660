"""A recording as a script to be played: what was new before each call, the answer that came, and when."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.messages import Format, Message
from lowwater.errors import BadInput
from lowwater.logs.gathering import is_empty
from lowwater.logs.recording import RecordedMessage, Recording

FORMAT: Format = "openai_chat"
PAUSE = 20.0
"""Seconds to the next call where no time is recorded: long enough for tools, and short enough to find the cache warm."""
_REPLACED = "compact_summary"
"""What the recording agent put in place of history is left out: the history is still there."""


class Exchange(Struct, frozen=True, kw_only=True):
    """One call of the model: messages as raw JSON of the chat format."""

    new: tuple[bytes, ...]
    answer: bytes
    at: float
    """When it was made, in seconds."""


class Script(Struct, frozen=True, kw_only=True):
    """A session without its own compactions; `messages` are those of all exchanges, as a ledger numbers them."""

    name: str
    messages: tuple[Message, ...]
    exchanges: tuple[Exchange, ...]
    first_prompt: int = 0
    """What the provider reported for the first call, 0 if that is not recorded."""
    system: bytes = b""
    tools: bytes = b""
    """As JSON; empty where they are not recorded."""
    lacks_times: bool = False
    """Whether answers without a time got one: `PAUSE` after the one before."""

    def beginning(self, calls: int) -> "Script":
        """Return the script of its first calls."""
        kept = self.exchanges[:calls]
        return replace(
            self,
            exchanges=kept,
            messages=self.messages[: sum(len(exchange.new) + 1 for exchange in kept)],
        )

    def turn_of(self) -> list[int]:
        """Return for each message the exchange it belongs to."""
        return [turn for turn, exchange in enumerate(self.exchanges) for _ in range(len(exchange.new) + 1)]


class _Answer(Struct, frozen=True, kw_only=True):
    new: tuple[Message, ...]
    message: Message
    at: float | None
    prompt: int


def script_of(recording: Recording) -> Script:
    """Return what to play, or raise BadInput if there is no answer in it.

    Messages of the assistant that follow each other are one answer; those after the last answer belong to no call. What
    is empty cannot be sent and is left out.
    """
    told = [each for each in recording.messages if each.kind != _REPLACED and not is_empty(each.message)]
    answers = _answers(told)
    if not answers:
        raise BadInput("no call in it has an answer")
    exchanges = tuple(
        Exchange(
            new=tuple(encode_messages(answer.new, FORMAT)),
            answer=encode_messages([answer.message], FORMAT)[0],
            at=at,
        )
        for answer, at in zip(answers, _times(answers), strict=True)
    )
    raws = [raw for exchange in exchanges for raw in (*exchange.new, exchange.answer)]
    return Script(
        name=f"{recording.agent}/{recording.id}",
        messages=tuple(decode_messages(raws, FORMAT)),
        exchanges=exchanges,
        first_prompt=answers[0].prompt,
        system=recording.system,
        tools=recording.tools,
        lacks_times=any(answer.at is None for answer in answers),
    )


def _answers(messages: Sequence[RecordedMessage]) -> list[_Answer]:
    answers: list[_Answer] = []
    new: list[Message] = []
    for recorded in messages:
        message = recorded.message
        if message.role != "assistant":
            new.append(message)
        elif new:
            answers.append(
                _Answer(new=tuple(new), message=message, at=_at(recorded), prompt=_prompt(recorded))
            )
            new = []
        elif answers:
            last = answers[-1]
            together = Message(role="assistant", parts=(*last.message.parts, *message.parts))
            answers[-1] = replace(last, message=together)
    return answers


def _at(recorded: RecordedMessage) -> float | None:
    asked = recorded.call.asked_at if recorded.call is not None else None
    return recorded.at if asked is None else asked


def _times(answers: Sequence[_Answer]) -> Iterator[float]:
    """Yield when each call was made; one without a time is taken to have come a pause after the one before."""
    known = next((at for at, answer in enumerate(answers) if answer.at is not None), 0)
    at = (answers[known].at or 0.0) - PAUSE * (known + 1)
    for answer in answers:
        at = at + PAUSE if answer.at is None else answer.at
        yield at


def _prompt(recorded: RecordedMessage) -> int:
    usage = recorded.call.usage if recorded.call is not None else None
    return 0 if usage is None else usage.prompt
