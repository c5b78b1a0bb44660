"""The session that `lowwater demo` plays, turn by turn, as an agent's loop would, and what each call is billed."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.events import Compaction
from lowwater.core.formats.codec import as_message
from lowwater.core.messages import texts_of
from lowwater.core.policies.warnings import UsageWarning
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.logs.demo_session import DemoSession
from lowwater.protocols import Tokenizer
from lowwater.session.factories import FORGETFUL, ManualClock, counter_for
from lowwater.session.library import Lowwater
from lowwater.session.request import PreparedRequest
from lowwater.session.session import Session
from lowwater.settings import CompressionSettings, OutputSettings, Settings

_CHARACTERS_PER_TOKEN = 4
_INSTRUCTION = 400
_LIFETIME = 300.0
"""Seconds for which the provider's cache keeps a prefix."""


class Frame(Struct, frozen=True, kw_only=True):
    """The session after one turn."""

    turn: int
    prompt: int
    untouched: int
    """What the prompt would be if nothing had ever been compacted."""
    event: Compaction | None
    warnings: tuple[UsageWarning, ...]


class Exchange(Struct, frozen=True, kw_only=True):
    """What led to one answer, the answer's content, when, and what the answer names that stood in earlier messages."""

    new: list[Any]
    answer: Any
    at: float
    names: tuple[str, ...]


class StandIn:
    """Writes what the extractive summarizer would, and is billed as a model that rides the cached prefix."""

    NAME = "stand-in"

    def __init__(self, model: str, tokenizer: Tokenizer) -> None:
        self.model = model
        self._tokenizer = tokenizer
        self.read = self.fresh = 0
        """What of the prompt it follows is in the cache, and what is not."""

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return the extractive summary, with the usage of a call that would have written it."""
        text = extract(request, self._tokenizer)
        usage = Usage(
            cache_read=self.read, uncached=self.fresh + _INSTRUCTION, output=self._tokenizer.count(text)
        )
        return Written(text=text, by=self.NAME, usage=usage, model=self.model)


class Played(Struct, kw_only=True):
    """One way to run the session: the library's session, at its own clock."""

    session: Session
    clock: ManualClock
    writer: StandIn
    called: float = 0.0
    named: int = 0
    in_view: int = 0
    """How much of what the answers name still stood in the prompt."""

    def call(self, exchange: Exchange, system: object) -> int:
        """Take one turn at the time it was recorded, billed as the provider's cache rules say; return its prompt."""
        self.clock.advance(max(0.0, exchange.at - self.clock.now()))
        before = self.session.status().prompt
        self.session.append(exchange.new)
        grown = self.session.status().prompt - before
        warm = exchange.at - self.called <= _LIFETIME
        self.writer.read, self.writer.fresh = (before, grown) if warm else (0, before + grown)
        self.called = exchange.at
        request = self.session.prepare(system=system)
        self._look_for(exchange.names, request)
        output = len(msgspec.json.encode(exchange.answer)) // _CHARACTERS_PER_TOKEN
        usage = replace(self.session.expected_usage(), output=output)
        self.session.record(as_message(exchange.answer, usage, self.session.status().model))
        return request.tokens

    def _look_for(self, names: Sequence[str], request: PreparedRequest) -> None:
        if names:
            shown = "\0".join(text for message in request.messages for text in texts_of(message))
            self.named += len(names)
            self.in_view += sum(name in shown for name in names)


def opened(
    model: str,
    policy: str,
    *,
    compacts: bool = True,
    ceiling: int | None = None,
    on_warning: Callable[[UsageWarning], object] | None = None,
) -> Played:
    """Return a session to play, under a policy or without any compaction; never above a ceiling if there is one."""
    clock = ManualClock()
    settings = Settings(
        output=OutputSettings(quiet=True),
        compression=CompressionSettings(enabled=compacts, max_view_tokens=ceiling),
    )
    writer = StandIn(model, counter_for(model))
    library = Lowwater(
        store=FORGETFUL,
        model=model,
        policy=policy,
        summarizer=writer,
        settings=settings,
        on_warning=on_warning,
        clock=clock,
    )
    return Played(session=library.session("demo"), clock=clock, writer=writer)


def play(
    recorded: DemoSession,
    watched: Played,
    others: Sequence[Played],
    take_warnings: Callable[[], tuple[UsageWarning, ...]],
) -> Iterator[Frame]:
    """Play the session on all of them, the last of `others` untouched, and yield what became of the prompt."""
    system = recorded.system
    for turn, exchange in enumerate(_exchanges(recorded), start=1):
        known = watched.session.last_compaction()
        prompt = watched.call(exchange, system)
        event = watched.session.last_compaction()
        untouched = [other.call(exchange, system) for other in others][-1]
        yield Frame(
            turn=turn,
            prompt=prompt,
            untouched=untouched,
            event=None if event is known else event,
            warnings=take_warnings(),
        )


def _exchanges(recorded: DemoSession) -> Iterator[Exchange]:
    told = zip(recorded.recording.messages, recorded.mentions, strict=True)
    answers = ((each.at or 0.0, names) for each, names in told if each.message.role == "assistant")
    new: list[Any] = []
    for message in recorded.as_anthropic():
        if message["role"] != "assistant":
            new.append(message)
            continue
        at, names = next(answers)
        yield Exchange(new=new, answer=message["content"], at=at, names=names)
        new = []
