"""From a seed to a session: picks the story and stops it at the wanted length."""

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Protocol

from lowwater.errors import BadSetting
from tests.generated.coding.story import CodingStory
from tests.generated.draw import Draw
from tests.generated.memory import Memory
from tests.generated.pauses import Pauses
from tests.generated.recorder import Recorder
from tests.generated.research.story import ResearchStory
from tests.generated.session import GeneratedSession, Kind, Tool, tools_json
from tests.generated.steps import Act, Step, Tell
from tests.generated.support.story import SupportStory

_DEFAULT_TURNS = 60
_MONDAY_MORNING = 1_778_486_520.0
"""2026-05-11, 08:02 UTC."""


class Story(Protocol):
    """A session that could go on for ever."""

    @property
    def system(self) -> str:
        """The system prompt."""
        ...

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools the model has."""
        ...

    def steps(self) -> Iterator[Step]:
        """Yield steps without end; the first is the user's, and after an answer the user comes next."""
        ...

    def closing(self) -> Tell:
        """Return an answer that can stand at the end, wherever the story is."""
        ...


_STORIES: MappingProxyType[Kind, Callable[[Draw, Memory], Story]] = MappingProxyType(
    {"coding": CodingStory, "research": ResearchStory, "support": SupportStory}
)


def count_characters(text: str) -> int:
    """Return about how many tokens `text` is: a token for 3.6 characters."""
    return -(-len(text) * 10 // 36)


def generate_session(
    kind: Kind = "coding",
    *,
    seed: int,
    turns: int | None = None,
    target_tokens: int | None = None,
    model: str = "claude-opus-5-5",
    start: float = _MONDAY_MORNING,
    pauses: Pauses = Pauses(),  # noqa: B008  # a frozen value
    count: Callable[[str], int] = count_characters,
) -> GeneratedSession:
    """Return a session that ends with an answer after `turns` calls of the model or at `target_tokens`, whichever is first.

    Sizes are of the whole prompt (tools, system, messages) by `count`; the last output may overshoot. Without either
    limit there are 60 turns.
    """
    if kind not in _STORIES:
        raise BadSetting(f"kind is {kind!r}: use one of {', '.join(_STORIES)}")
    if min(turns or 1, target_tokens or 1) < 1 or turns == 0 or target_tokens == 0:
        raise BadSetting(f"turns is {turns} and target_tokens {target_tokens}: both must be at least 1")
    draw = Draw(f"{kind}:{seed}")
    memory = Memory(draw.child("memory"))
    story = _STORIES[kind](draw.child("story"), memory)
    preamble = story.system + tools_json(story.tools, "anthropic").decode()
    recorder = Recorder(draw, memory, count=count, start=start, pauses=pauses, preamble=preamble)
    most_turns = turns or (_DEFAULT_TURNS if target_tokens is None else 1 << 40)
    _play(story, recorder, most_turns, target_tokens or 1 << 60)
    return GeneratedSession(
        id=f"{kind}-{seed}",
        kind=kind,
        model=model,
        system=story.system,
        tools=story.tools,
        messages=tuple(recorder.messages),
        times=tuple(recorder.times),
        usages=tuple(recorder.usages),
        references=tuple(memory.references()),
    )


def _play(story: Story, recorder: Recorder, turns: int, tokens: int) -> None:
    for told in story.steps():
        is_last = recorder.turns >= turns - 1 or recorder.tokens >= tokens
        step = story.closing() if is_last and isinstance(told, Act) else told
        recorder.record(step)
        if isinstance(step, Tell) and (recorder.turns >= turns or recorder.tokens >= tokens):
            return
