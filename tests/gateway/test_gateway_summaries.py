"""Summaries behind the gateway: only if the operator wants them, never in the way of the first byte, on a lent credential."""

from typing import Any

import pytest

from lowwater.testing.provider import Hang, Say, Seen
from lowwater.values.settings import CompressionSettings, Settings
from tests.gateway.conftest import MODEL, Starting, Through

CEILING = Settings(compression=CompressionSettings(max_view_tokens=12_000, protect_last_n=4))
TALK = "we spoke about the reader of files and its lexer, and what it does with blanks at the end of lines; "
SUMMARY = "## Goal\nMend the reader.\n## Constraints & Preferences\nLeave the lexer alone.\n" + "".join(
    f"- step {number}: talked about part {number} of the reader of files\n" for number in range(40)
)


def is_summary(seen: Seen) -> bool:
    """Return whether a request asks for a summary."""
    last = seen.body["messages"][-1]["content"]
    text = last if isinstance(last, str) else "".join(block.get("text", "") for block in last)
    return "summar" in text.lower()


def talking(through: Through, turns: int, key: str = "sk-one") -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": "Let us talk. " + TALK * 10}]
    for turn in range(turns):
        answer = through.post(
            {"model": MODEL, "max_tokens": 900, "system": "You talk.", "messages": messages, "stream": True},
            x_api_key=key,
        )
        assert answer.status_code == 200, answer.text
        messages += [
            {"role": "assistant", "content": f"answer {turn} " + TALK * 10},
            {"role": "user", "content": f"turn {turn} " + TALK * 10},
        ]
    return messages


def talks(seen: Seen) -> Say:
    return Say(text=SUMMARY) if is_summary(seen) else Say(text="answer " + TALK * 10)


@pytest.mark.moves_prefix(reason="a ceiling compacts")
def test_nobody_is_asked_for_a_summary_unless_the_operator_wants_it(start: Starting) -> None:
    through = start(talks, settings=CEILING)
    talking(through, 30)
    assert not any(is_summary(seen) for seen in through.provider.requests)
    assert through.provider.refusals == ()


@pytest.mark.moves_prefix(reason="a parked summary is published")
def test_a_summary_is_parked_on_the_clients_key_and_published_later(start: Starting) -> None:
    through = start(talks, settings=CEILING, summaries=True)
    talking(through, 30)
    asked = [seen for seen in through.provider.requests if is_summary(seen)]
    assert asked
    assert through.provider.refusals == ()
    (account,) = through.store.accounts()
    events = [event for event in account.events if type(event).__name__ == "Compaction"]
    assert any(getattr(event, "summarizer", "") == MODEL for event in events)
    assert account.session.turns == 30
    last = through.provider.requests[-1]
    assert b"Mend the reader." in last.raw


@pytest.mark.moves_prefix(reason="what no longer fits is made to fit without a model")
def test_a_summarizer_that_hangs_holds_nobody_up(start: Starting) -> None:
    through = start(
        lambda seen: Hang() if is_summary(seen) else talks(seen), settings=CEILING, summaries=True
    )
    talking(through, 30)
    assert any(is_summary(seen) for seen in through.provider.requests)
    (session,) = through.store.sessions()
    assert session.turns == 30


def test_one_clients_key_is_never_used_for_another(start: Starting) -> None:
    through = start(talks, settings=CEILING, summaries=True)
    for key in ("sk-one", "sk-two"):
        talking(through, 20, key=key)
    assert len(through.store.sessions()) == 2
    assert through.provider.refusals == ()
