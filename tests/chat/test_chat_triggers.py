"""Where compaction happens in a chat: before sending, under pressure, after a switch, by hand, and on resume."""

from pathlib import Path
from typing import Any

import pytest

from lowwater.core.messages import Format
from lowwater.session.internals import internals
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.provider import Answer, Call, CallTools, Fail, Provider, Say, Seen
from tests.chat.chat_harness import FORMATS, Watched, chat_at, chat_with

BOTH = pytest.mark.parametrize("format", FORMATS)
WINDOW = 24_000
OTHERS: dict[Format, str] = {"anthropic": "claude-opus-4-5", "openai_chat": "gpt-4o-mini"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    for number in range(12):
        words = "\n".join(f"{number}.{line}: some words of a file, each line another" for line in range(300))
        (directory / f"part{number}.txt").write_text(words)
    return directory


def reader(*, rounds: int) -> Any:
    """A model that reads a file at each call, so many times, and then says so; its summaries are of no use."""
    left = [rounds]

    def answer(seen: Seen) -> Answer:
        if not seen.body.get("stream"):
            return Say("Much was done.")
        if left[0] == 0:
            return Say("I have read all of it.")
        left[0] -= 1
        return CallTools((Call("read_file", {"path": f"part{left[0] % 12}.txt"}),), "Reading on.")

    return answer


def turns(provider: Provider) -> int:
    """How often the model was asked to answer; summaries are not streamed."""
    return sum(bool(seen.body.get("stream")) for seen in provider.requests)


def never() -> Settings:
    return Settings(compression=CompressionSettings(policy="never"))


@BOTH
def test_before_sending_a_view_that_the_user_made_too_large_is_compacted(format: Format, place: Path) -> None:
    watched = Watched()
    with Provider(default=Say("I see."), default_context=WINDOW) as provider:
        chat = chat_at(provider, format, place, watched, context_length=WINDOW)
        for number in range(10):
            chat.say(f"Consider this, number {number}: " + "so many words " * 900)
        chat.close()
    assert provider.refusals == ()
    assert watched.sink.compactions
    assert chat.session.status().history == 20


@BOTH
def test_under_pressure_in_one_long_turn_the_loop_compacts_and_no_request_is_refused(
    format: Format, place: Path
) -> None:
    watched = Watched()
    with Provider(reader(rounds=25), default_context=WINDOW) as provider:
        chat = chat_at(provider, format, place, watched, context_length=WINDOW)
        chat.say("Read everything.")
        chat.close()
    # A summary that is refused costs nothing and is written in another way; an answer must never be.
    assert [seen.refusal for seen in provider.requests if seen.refusal and seen.body.get("stream")] == []
    assert turns(provider) == 26
    assert watched.sink.compactions
    assert watched.text.endswith("I have read all of it.")


@BOTH
def test_a_window_smaller_than_known_is_learned_from_the_refusal_and_the_request_sent_once_more(
    format: Format, place: Path
) -> None:
    watched = Watched()
    with Provider(reader(rounds=9), default_context=WINDOW) as provider:
        chat = chat_at(provider, format, place, watched, settings=never())
        chat.say("Read everything.")
        chat.close()
    assert [refusal.violation.status for refusal in provider.refusals] == [400]
    assert chat.session.status().context == WINDOW
    assert any(f"{WINDOW:,} tokens" in note for note in watched.notes)
    assert watched.text.endswith("I have read all of it.")


@BOTH
def test_a_refusal_that_names_no_limit_is_followed_by_a_compaction_by_hand(
    format: Format, place: Path
) -> None:
    watched, reading = Watched(), reader(rounds=14)

    def answer(seen: Seen) -> Answer:
        if seen.body.get("stream") and len(seen.raw) > 190_000:
            return Fail(status=413, type="request_too_large", message="Request exceeds the maximum size")
        return reading(seen)  # type: ignore[no-any-return]

    with Provider(answer) as provider:
        chat = chat_at(provider, format, place, watched, settings=never(), model=OTHERS[format])
        chat.say("Read everything.")
        chat.close()
    assert 413 in [seen.status for seen in provider.requests]
    assert watched.sink.compactions[0].because.code == "by-hand"
    assert watched.text.endswith("I have read all of it.")


@BOTH
def test_after_a_switch_to_a_smaller_window_what_no_longer_fits_is_compacted_before_anything_is_sent(
    format: Format, place: Path
) -> None:
    watched = Watched()
    lengths = {OTHERS[format]: 20_000}
    with Provider(reader(rounds=12), context_lengths=lengths) as provider:
        chat = chat_at(provider, format, place, watched, settings=never())
        chat.say("Read everything.")
        assert chat.session.status().prompt > 20_000
        chat.session.use(OTHERS[format], base_url=chat.agent.upstream.base_url)
        chat.session.learn_context_length(20_000)
        sent = turns(provider)
        chat.use(OTHERS[format])
        assert watched.sink.compactions
        assert chat.session.status().prompt <= chat.session.status().wall <= 20_000
        assert turns(provider) == sent
        chat.say("Where were we?")
        chat.close()
    assert provider.refusals == ()
    assert provider.requests[-1].body["model"] == OTHERS[format]


def test_after_a_switch_to_another_provider_the_same_talk_goes_on_in_its_format_and_back(place: Path) -> None:
    watched = Watched()
    with Provider(reader(rounds=3)) as provider:
        chat = chat_at(provider, "anthropic", place, watched)
        chat.say("Read.")
        other = chat_at(provider, "openai_chat", place, watched)
        back = chat.agent.upstream
        chat.agent.use(other.agent.upstream)
        chat.say("And you?")
        chat.agent.use(back)
        chat.say("And you again?")
        chat.close()
        other.close()
    assert provider.refusals == ()
    assert [seen.path for seen in provider.requests[-2:]] == ["/v1/chat/completions", "/v1/messages"]


@BOTH
def test_by_hand(format: Format, place: Path) -> None:
    watched = Watched()
    with Provider(reader(rounds=14)) as provider:
        chat = chat_at(provider, format, place, watched)
        chat.say("Read everything.")
        before = chat.session.status().prompt
        done = chat.session.compress("the third part")
        assert done is not None
        assert chat.session.status().prompt < before
        chat.say("And now?")
        chat.close()
    assert provider.refusals == ()


@BOTH
def test_on_resume_a_session_that_outgrew_the_window_is_compacted_by_hygiene_before_its_next_message(
    format: Format, place: Path, tmp_path: Path
) -> None:
    store, watched = f"sqlite:///{tmp_path / 'kept.db'}", Watched()
    with Provider(reader(rounds=12)) as provider:
        chat = chat_at(provider, format, place, watched, store=store, name="overnight", settings=never())
        chat.say("Read everything.")
        chat.close()
        chat.store.close()
        prompt = chat.session.status().prompt
        assert watched.sink.compactions == []
        window = int(prompt / 0.9)
        sent, warned = turns(provider), len(watched.warnings)
        # The policy in the loop would leave it alone: it is below the wall.
        again = chat_at(
            provider,
            format,
            place,
            watched,
            store=store,
            name="overnight",
            settings=Settings(compression=CompressionSettings(max_view_tokens=None)),
            context_length=window,
        )
        (event,) = watched.sink.compactions
        assert event.before >= 0.85 * window
        assert turns(provider) == sent
        # Tidying up tells no percentage of its own threshold beside that of the status line.
        assert len(watched.warnings) == warned
        assert again.session.status().history == chat.session.status().history
        again.say("Good morning.")
        again.close()
        again.store.close()
    assert provider.refusals == ()


def test_a_session_that_is_small_is_resumed_as_it_was_left(place: Path, tmp_path: Path) -> None:
    store, watched = f"sqlite:///{tmp_path / 'kept.db'}", Watched()
    chat = chat_with(place, watched, store=store, name="small")
    chat.say("read part0.txt")
    view, system = chat.session.view(), internals(chat.session).ledger.view.system
    chat.close()
    chat.store.close()
    (place.parent / "memory.md").write_text("- something new\n")
    again = chat_with(place, watched, store=store, name="small")
    assert watched.sink.compactions == []
    assert again.session.view() == view
    again.say("find words")
    assert internals(again.session).ledger.view.system == system
    again.close()
    again.store.close()
