"""What the tests of all frameworks share: a provider that plays the bench's session, and what must hold afterwards."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from bench.frameworks.billing import Biller, standing
from bench.frameworks.scripted import ScriptedModel, messages_in
from bench.frameworks.task import facts_until
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.api_calls import Usage, together
from lowwater.core.events import TurnRecord
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.fakes import RecordingSink
from lowwater.testing.provider import Answer, CallTools, Provider, Say, Seen, Think

WINDOW = 24_000
TURNS = 12
SETTINGS = Settings(compression=CompressionSettings(protect_last_n=6))
"""A short tail, so that placeholders have room beside it and stay in the view for a while."""
COUNT = tokenizer_for("o200k").count
_MARKS = ("cache_control", "prompt_cache_breakpoint")


class Sink(RecordingSink):
    """Keeps turns too."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[tuple[str, TurnRecord]] = []

    def turn(self, session: str, record: TurnRecord, /) -> None:
        self.turns.append((session, record))


class Played:
    """A provider with the scripted model, a library that is watched, and how often it had compacted before each request."""

    def __init__(
        self,
        model: str,
        *,
        thinks: bool = False,
        learned: bool = True,
        script: Callable[[Seen], Answer] | None = None,
    ) -> None:
        self.model = model
        self.sink = Sink()
        # Whoever is to learn how small the window is must not compact before it is full.
        policy = None if learned else "never"
        self.lowwater = Lowwater(model=model, policy=policy, sinks=[self.sink], settings=SETTINGS)
        self.compacted: list[int] = []
        self._script = script or ScriptedModel()
        self._thinks = thinks
        self._learned = learned
        self.provider = Provider(
            self._answer, count=COUNT, default_context=WINDOW, context_lengths={model: WINDOW}, now=standing
        )

    def session(self, name: str) -> Session:
        """The session of this name, told how small the window is unless it is to learn that itself."""
        session = self.lowwater.session(name)
        if self._learned:
            session.learn_context_length(WINDOW)
        return session

    def _answer(self, seen: Seen) -> Answer:
        self.compacted.append(sum(event.mode != "shorten" for event in self.sink.compactions))
        answer = self._script(seen)
        if self._thinks and isinstance(answer, CallTools | Say):
            return Think(f"Request {len(self.compacted)}: let me see.", answer)
        return answer

    def check(self, *, kept: str, session: str, turns: int = TURNS, keyed: bool = True) -> None:
        """All requests were legal, the prefix moved only where it was compacted, nothing was lost, the books are right."""
        requests = self.provider.requests
        assert self.provider.refusals == ()
        assert self.compacted[-1] > 0, "nothing was compacted: the session is too short for its window"
        compacted = [b"chars elided" in seen.raw or b"summary of earlier" in seen.raw for seen in requests]
        assert sum(compacted) > len(requests) / 4, "hardly a request shows a placeholder or a summary"
        moved = [
            at for at, (old, new) in enumerate(pairwise(requests), start=1) if not extends(old.body, new.body)
        ]
        steps = enumerate(pairwise(self.compacted), start=1)
        assert moved == [at for at, (before, now) in steps if now > before]
        keys = {seen.body.get("prompt_cache_key") for seen in requests}
        assert len(keys) == 1
        assert (keys != {None}) == keyed, "OpenAI finds a conversation's cache by a key"
        facts = facts_until(turns)
        assert [fact for fact in facts if fact not in kept] == []
        history = json.dumps(self.lowwater.session(session).history())
        assert [fact for fact in facts if fact not in history] == []
        assert self.recorded(session) == self.billed()

    def recorded(self, session: str) -> Usage:
        """What Lowwater recorded."""
        return together(record.usage for name, record in self.sink.turns if name == session and record.usage)

    def billed(self) -> Usage:
        """What the provider reported."""
        biller = Biller(COUNT, WINDOW)
        return together(usage for seen in self.provider.requests if (usage := biller.usage_of(seen)))


@contextmanager
def played(model: str, **options: Any) -> Iterator[Played]:
    """Serve the scripted model for as long as the block lasts."""
    play = Played(model, **options)
    with play.provider:
        yield play


def extends(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether a request begins with all that another sent, spelled in the same way, but for cache marks."""
    old, new = messages_in(before), messages_in(after)
    preamble = ("system", "instructions", "tools")
    same = all(spelled(before.get(name)) == spelled(after.get(name)) for name in preamble)
    return same and [*map(spelled, old)] == [*map(spelled, new[: len(old)])]


def spelled(value: Any) -> str:
    """JSON without cache marks; a text and the one block that it becomes to carry a mark are the same."""
    return json.dumps(_unmarked(value))


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(each) for each in value]
    if not isinstance(value, dict):
        return value
    bare = {key: _unmarked(each) for key, each in value.items() if key not in _MARKS}
    content = bare.get("content")
    if isinstance(content, list) and len(content) == 1 and set(content[0]) == {"type", "text"}:
        bare["content"] = content[0]["text"]
    return bare
