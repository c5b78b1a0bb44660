"""Scripted fakes for the protocols: clock, tokenizer, sink and summarizers that do what the test says."""

import asyncio
import re
import threading
from collections.abc import Callable, Iterable
from typing import TypeAlias

from lowwater.core.events import Compaction, Event, Skip
from lowwater.core.messages import texts_of
from lowwater.core.summary.critical import critical_references
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.errors import SummaryFailed
from lowwater.session.dependencies import ManualClock

_WORD = re.compile(r"\w+|[^\w\s]")
Act: TypeAlias = Callable[[SummaryRequest], Written]
"""What a scripted summarizer does when it is asked."""
_PATIENCE = 30.0


class ScriptedClock(ManualClock):
    """A clock that moves only when the test moves it.

    It returns `times` first, one at each call; then it stays at the last of them until `advance` moves it.
    """

    def __init__(self, start: float = 0.0, times: Iterable[float] = ()) -> None:
        super().__init__(start)
        self._times = iter(times)

    def now(self) -> float:
        """Return the next scripted time, or the last one if there is none left."""
        self._now = next(self._times, self._now)
        return self._now


class WordTokenizer:
    """A toy tokenizer: a token is a run of letters, digits and underscores, or any other visible character."""

    vocabulary = "words"

    def count(self, text: str, /) -> int:
        """Return the number of words and punctuation marks in `text`."""
        return sum(1 for _ in _WORD.finditer(text))


class RecordingSink:
    """Keeps every event with its session, and raises `error` if it is given."""

    def __init__(self, error: Exception | None = None) -> None:
        self.events: list[tuple[str, Event]] = []
        self._error = error

    def record(self, session: str, event: Event, /) -> None:
        """Keep the event."""
        self.events.append((session, event))
        if self._error is not None:
            raise self._error

    @property
    def compactions(self) -> list[Compaction]:
        """The events that are compactions."""
        return [event for _, event in self.events if isinstance(event, Compaction)]

    @property
    def skips(self) -> list[Skip]:
        """The events that are skips."""
        return [event for _, event in self.events if isinstance(event, Skip)]


class ScriptedSummarizer:
    """Performs one act for each request, the last act again and again; `requests` are those it got."""

    def __init__(self, *acts: Act) -> None:
        self.requests: list[SummaryRequest] = []
        self._acts = acts

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Perform the next act."""
        self.requests.append(request)
        return self._acts[min(len(self.requests), len(self._acts)) - 1](request)


class AsyncScriptedSummarizer(ScriptedSummarizer):
    """The async counterpart; it waits until `gate` is set, if there is one, and `waiting` tells that it has been asked."""

    def __init__(self, *acts: Act, gate: asyncio.Event | None = None) -> None:
        super().__init__(*acts)
        self.waiting = False
        self._gate = gate

    async def summarize(self, request: SummaryRequest, /) -> Written:  # type: ignore[override]  # the async port
        """Wait for the gate, then perform the next act."""
        if self._gate is not None:
            self.waiting = True
            await self._gate.wait()
        return super().summarize(request)


def write(text: str, by: str = "scripted") -> Act:
    """Answer with this text."""
    return lambda _: Written(text=text, by=by)


def refuse(_: SummaryRequest) -> Written:
    """Decline, as a model does."""
    text = (
        "I'm sorry, but I can't help with summarizing this conversation. If there is anything else I can do, "
    )
    return Written(text=text + "please let me know and I will be glad to try.", by="refusing")


def cut_off(_: SummaryRequest) -> Written:
    """Answer with a text that was cut off by its length limit."""
    return Written(text="## Goal\n- " + "The goal is to make the tests pass and " * 8, by="cut", cut_off=True)


def lie(_: SummaryRequest) -> Written:
    """Answer with a well-formed summary of something else."""
    text = "## Goal\n- Bake a cake.\n\n## Progress\n### Done\n- Bought flour, sugar and eggs at the market.\n"
    return Written(
        text=text + "- Whipped the cream until it was stiff and put it into the fridge.", by="lying"
    )


def tell_the_truth(request: SummaryRequest) -> Written:
    """Answer with a summary that names everything critical."""
    told = "\n".join(f"- {reference.text}" for reference in critical_references(request))
    opening = (
        request.previous or "## Goal\n- What the user asked for is what this is about, as it follows here."
    )
    return Written(text=f"{opening}\n\n## Critical Context\n{told}", by="truthful")


def speak_another_language(_: SummaryRequest) -> Written:
    """Answer with a fluent text in another language that names nothing."""
    text = (
        "作業はすべて順調に進んでいます。利用者の依頼どおりに修正を行い、確認も終わりました。残りの作業はありません。"
        * 3
    )
    return Written(text=text, by="foreign")


def grow(request: SummaryRequest) -> Written:
    """Answer with a text that is longer than the messages."""
    texts = "\n".join(text for message in request.messages for text in texts_of(message))
    return Written(text=f"Everything matters.\n{texts}\n{texts}", by="growing")


def fail(error: BaseException) -> Act:
    """Raise this error."""

    def failing(_: SummaryRequest) -> Written:
        raise error

    return failing


def hang(until: threading.Event) -> Act:
    """Wait until the event is set, or half a minute, and fail."""

    def hanging(_: SummaryRequest) -> Written:
        until.wait(_PATIENCE)
        raise SummaryFailed("waited for nothing")

    return hanging
