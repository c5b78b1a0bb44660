"""A session played through Lowwater's own engine, with the summariser that the peers have."""

from collections.abc import Callable
from importlib.metadata import version
from time import perf_counter

import msgspec

from bench.peers.stand_in import summary_of
from bench.real_peers_billing import Biller, Sizes
from bench.real_peers_cases import Case
from bench.real_peers_play import Played, Progress
from bench.real_peers_sent import Asked, Sent, text_of
from lowwater.core.formats.codec import as_completion, decode_messages, raw_messages
from lowwater.core.models.model import Model
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.lab.replay.script import ScriptedCall
from lowwater.session.library import Lowwater
from lowwater.settings import OutputSettings, Settings
from lowwater.testing.fakes import ScriptedClock

POLICY = "rent-or-buy"
_INSTRUCTION = " the" * 400
"""As long as what asks for a summary; the request before stands in front of it."""


class RidingStandIn:
    """The stand-in as a summarizer that extends the request before; it remembers what it answered."""

    name = "stand-in"

    def __init__(self, model: str) -> None:
        self.model = model
        self.answers: list[str] = []

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return a summary of the size that all get."""
        text = summary_of(f"{request.previous}\n{text_of(request.messages)}")
        self.answers.append(text)
        return Written(text=text, by=self.name)


def play_ours(case: Case, model: Model, *, fixed: int, sizes: Sizes, progress: Progress) -> Played:
    """Play a session through the engine under `rent-or-buy`; what each call is billed, it is told."""
    ours = _Ours(case, model, Biller(model, fixed, "extended", sizes))
    return ours.play(progress)


class _Ours:
    def __init__(self, case: Case, model: Model, biller: Biller) -> None:
        self._case, self._model, self._biller = case, model, biller
        self._summarizer = RidingStandIn(model.name)
        self._clock = ScriptedClock()
        self._library = Lowwater(
            store="memory:",
            model=model.name,
            policy=POLICY,
            clock=self._clock,
            summarizer=self._summarizer,
            settings=Settings(output=OutputSettings(quiet=True)),
        )
        self._session = self._library.session("bench")
        self._sents: list[Sent] = []

    def play(self, progress: Progress) -> Played:
        """Play every call."""
        for exchange in self._case.script.exchanges:
            self._clock.advance(max(0.0, exchange.at - self._clock.now()))
            sent = self._sent(exchange)
            usage, _ = self._biller.call(sent)
            recorded = as_completion(msgspec.Raw(exchange.answer), usage, self._model.name)
            wall = _seconds(lambda recorded=recorded: self._session.record(recorded))  # type: ignore[misc]  # binds
            self._sents.append(msgspec.structs.replace(sent, wall=sent.wall + wall))
            progress(f"{len(self._sents)} of {len(self._case.script.exchanges)}")
        self._library.close()
        return Played(sents=tuple(self._sents), versions={"lowwater": version("lowwater")})

    def _sent(self, exchange: ScriptedCall) -> Sent:
        """Return the request that the engine makes, with what it asked for it."""
        answered, first = len(self._summarizer.answers), not self._sents
        tools = self._case.script.tools
        started = perf_counter()
        self._session.append([msgspec.Raw(raw) for raw in exchange.new])
        request = self._session.prepare(
            system=self._case.system if first and self._case.system else None,
            tools=msgspec.json.decode(tools) if first and tools else None,
            offers_recall=True,
        )
        wall = perf_counter() - started
        before = text_of(self._sents[-1].messages) if self._sents else ""
        return Sent(
            messages=tuple(decode_messages(raw_messages(request.as_openai()["messages"]), "openai_chat")),
            answer=decode_messages([exchange.answer], "openai_chat")[0],
            at=exchange.at,
            asked=tuple(
                Asked(prompt=before + _INSTRUCTION, answer=text)
                for text in self._summarizer.answers[answered:]
            ),
            wall=wall,
        )


def _seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started
