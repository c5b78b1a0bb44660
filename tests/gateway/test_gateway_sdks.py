"""The official SDKs through the gateway: tools, several at once, thinking and pictures, in every colour, over many turns."""

from collections.abc import Callable
from typing import Any

import pytest

from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.provider import Answer, Call, CallTools, Say, Seen, Think
from tests.gateway.conftest import Starting
from tests.gateway.request_prefixes import moves
from tests.gateway.sdk_conversations import ChatTalk, Colour, MessagesTalk, ResponsesTalk, Talk

COLOURS = pytest.mark.parametrize(
    "colour",
    [Colour(waits=waits, streams=streams) for waits in (False, True) for streams in (False, True)],
    ids=["sync", "sync streamed", "async", "async streamed"],
)
APIS = pytest.mark.parametrize(
    ("made", "options"),
    [
        pytest.param(
            MessagesTalk,
            {"model": "claude-opus-4-5", "thinking": {"type": "enabled", "budget_tokens": 1_024}},
            id="messages",
        ),
        pytest.param(
            MessagesTalk,
            {"model": "claude-opus-5-5", "thinking": {"type": "adaptive"}},
            id="messages, thinking bound to the prefix",
        ),
        pytest.param(ChatTalk, {"model": "gpt-5.5", "reasoning_effort": "low"}, id="chat completions"),
        pytest.param(ResponsesTalk, {"model": "gpt-5.5", "reasoning": {"effort": "low"}}, id="responses"),
    ],
)
CEILING = Settings(compression=CompressionSettings(max_view_tokens=12_000, protect_last_n=4))
Made = Callable[..., Talk]


class Investigation:
    """Thinks and reads, then reads and looks at three things at once, then says what it found; for every question."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, seen: Seen) -> Answer:
        step, self.asked = self.asked % 3, self.asked + 1
        one = Call(name="read", arguments={"path": f"src/part_{self.asked}.py"})
        match step:
            case 0:
                return Think(text=f"Thought {self.asked}.", then=CallTools(calls=(one,), text="Reading. "))
            case 1:
                others = (Call(name="look", arguments={"path": "a"}), Call(name="look", arguments={}))
                return CallTools(calls=(one, *others))
            case _:
                return Think(text="So it is.", then=Say(text=f"It is in part {self.asked}."))


@APIS
def test_a_conversation_goes_through_as_it_is(start: Starting, made: Made, options: dict[str, Any]) -> None:
    through = start(Investigation())
    talk = made(through.url, Colour(waits=True, streams=True), **options)
    assert talk.work(3, said="nothing here") == 9
    assert through.provider.refusals == ()
    (session,) = through.store.sessions()
    assert (session.turns, session.compactions) == (9, 0)
    assert moves(through.provider.requests) == 0


@APIS
@COLOURS
@pytest.mark.moves_prefix(reason="a ceiling compacts")
def test_a_conversation_is_compacted_in_between_and_the_program_never_notices(
    start: Starting, made: Made, options: dict[str, Any], colour: Colour
) -> None:
    through = start(Investigation(), settings=CEILING)
    talk = made(through.url, colour, **options)
    assert talk.work(5, said="line of the file\n" * 500) == 15
    assert through.provider.refusals == ()
    (session,) = through.store.sessions()
    assert session.turns == 15
    assert session.compactions >= 1
    assert moves(through.provider.requests) == session.compactions
    kept = through.store.messages(session.name, 1, 1_000, version=session.version)
    assert len({one.message.digest for one in kept}) == session.messages
