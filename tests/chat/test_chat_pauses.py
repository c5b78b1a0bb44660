"""The chat at its prompt: what is sent while nobody types, by a clock that the test moves."""

import time
from functools import partial
from pathlib import Path

import pytest

from lowwater.chat.pauses import PauseKeeper
from lowwater.core.costs.idle import IdleMode
from lowwater.settings import ModelSettings, Settings
from lowwater.testing.fakes import ScriptedClock
from tests.chat.chat_harness import Watched, chat_with
from tests.gateway.conftest import eventually


def paused(tmp_path: Path, mode: IdleMode, *, dollars: float = 1.0) -> tuple[int, Watched]:
    """Wait for ten minutes and a half at the prompt of a chat; return the calls made."""
    watched, clock = Watched(), ScriptedClock(time.time())
    settings = Settings(model=ModelSettings(cache_ttl="5m"))
    chat = chat_with(tmp_path, watched, settings=settings, clock=clock)
    chat.say("work for 12 steps")
    keeper = PauseKeeper(
        mode, dollars=dollars, note=watched.on_notice, clock=clock, monotonic=clock.now, looks=0.01
    )
    with keeper.waiting(chat.session, chat.agent.keep_warm):
        for done in (1, 2):
            clock.advance(281)
            eventually(partial(_has_sent, keeper, done), seconds=2)
    return keeper.pings, watched


def _has_sent(keeper: PauseKeeper, calls: int) -> bool:
    return keeper.pings >= calls


def test_nothing_is_sent_unless_it_was_asked_for(tmp_path: Path) -> None:
    assert paused(tmp_path, "off")[0] == 0


def test_a_prompt_is_kept_warm_while_nobody_types(tmp_path: Path) -> None:
    pings, watched = paused(tmp_path, "keep-warm")
    assert (pings, watched.notes) == (2, [])


def test_a_limit_is_kept_and_said(tmp_path: Path) -> None:
    pings, watched = paused(tmp_path, "keep-warm", dollars=0.0)
    assert pings == 0
    assert any("limit" in note for note in watched.notes)


def test_the_last_prompt_is_read_once_more(tmp_path: Path) -> None:
    chat = chat_with(tmp_path, Watched())
    with pytest.raises(KeyError):
        chat.agent.keep_warm()
    chat.say("hello")
    assert chat.agent.has_sent
    assert b'"output_tokens":1' in chat.agent.keep_warm()
