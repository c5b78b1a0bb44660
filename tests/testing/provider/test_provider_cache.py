"""What requests are billed: written and read at marks, or read by the longest common prefix."""

from typing import Any

import pytest

from lowwater.testing.provider import Provider
from lowwater.testing.provider.prefix_cache import MarkedCache, RunningCache, Used
from lowwater.testing.provider.prompt import Piece


def prompt(
    *weights: int, marks: dict[int, str] | None = None, texts: dict[int, str] | None = None
) -> list[Piece]:
    """Pieces of given weights, counted in characters, some of them marked or with other text."""
    return [
        Piece(
            section="messages",
            path=str(at),
            value={"type": "text", "text": (texts or {}).get(at, "x") * weight},
            mark=(marks or {}).get(at, ""),
        )
        for at, weight in enumerate(weights)
    ]


def bill(cache: MarkedCache | RunningCache, pieces: list[Piece], model: str = "m") -> Used:
    return cache.use(model, pieces, len)


def test_nothing_is_cached_without_marks() -> None:
    cache = MarkedCache()
    for _ in range(2):
        assert bill(cache, prompt(100, 50)) == Used(uncached=150)


def test_a_marked_prefix_is_written_then_read() -> None:
    cache = MarkedCache()
    marked = prompt(100, 50, 7, marks={1: "5m"})
    assert bill(cache, marked) == Used(written=150, uncached=7)
    assert bill(cache, marked) == Used(read=150, uncached=7)


def test_what_lies_between_an_old_mark_and_a_new_one_is_written() -> None:
    cache = MarkedCache()
    bill(cache, prompt(100, 50, marks={1: "5m"}))
    assert bill(cache, prompt(100, 50, 20, 5, marks={2: "5m"})) == Used(read=150, written=20, uncached=5)


def test_each_mark_writes_at_its_own_lifetime() -> None:
    used = bill(MarkedCache(), prompt(100, 50, 20, 5, marks={0: "1h", 2: "5m"}))
    assert used == Used(written_long=100, written=70, uncached=5)


def test_a_change_before_a_mark_loses_what_lies_behind_it() -> None:
    cache = MarkedCache()
    bill(cache, prompt(100, 50, 20, marks={0: "5m", 2: "5m"}))
    changed = prompt(100, 50, 20, marks={0: "5m", 2: "5m"}, texts={1: "y"})
    assert bill(cache, changed) == Used(read=100, written=70)


@pytest.mark.parametrize(("behind", "read"), [(20, 10), (21, 0)])
def test_a_mark_finds_what_was_written_up_to_twenty_blocks_before(behind: int, read: int) -> None:
    cache = MarkedCache()
    bill(cache, prompt(10, marks={0: "5m"}))
    later = prompt(10, *[1] * behind, marks={behind: "5m"})
    assert bill(cache, later).read == read


@pytest.mark.parametrize("cache", [MarkedCache(), RunningCache()], ids=["marked", "running"])
def test_models_do_not_share_a_cache(cache: MarkedCache | RunningCache) -> None:
    pieces = prompt(2_000, marks={0: "5m"})
    bill(cache, pieces)
    assert bill(cache, pieces, model="other").read == 0


@pytest.mark.parametrize(("weight", "read"), [(1_023, 0), (1_024, 1_024), (1_151, 1_024), (1_152, 1_152)])
def test_a_common_prefix_is_read_in_steps_of_128_from_1024_on(weight: int, read: int) -> None:
    cache = RunningCache()
    bill(cache, prompt(weight, 500))
    assert bill(cache, prompt(weight, 500, texts={1: "y"})) == Used(read=read, uncached=weight + 500 - read)


def test_a_common_prefix_ends_at_the_first_difference() -> None:
    cache = RunningCache()
    bill(cache, prompt(2_048, 128, 1_000))
    assert bill(cache, prompt(2_048, 128, 1_000, texts={1: "y"})).read == 2_048


def test_messages_report_their_cache(messages_draft: Any, send: Any) -> None:
    messages_draft.mark("system.0", ttl="1h")
    messages_draft.mark("messages.2.content.2")
    with Provider() as provider:
        for draft in range(2):
            if draft:
                messages_draft.body["messages"][2]["content"][2].pop("cache_control")
                messages_draft.mark("messages.1.content.0")
                messages_draft.mark("messages.2.content.2")
            got = send(provider, messages_draft.path, messages_draft.body, messages_draft.headers).body[
                "usage"
            ]
            if not draft:
                written = got
    total = written["input_tokens"] + written["cache_creation_input_tokens"]
    assert written["cache_read_input_tokens"] == 0
    assert sum(written["cache_creation"].values()) == written["cache_creation_input_tokens"]
    assert written["cache_creation"]["ephemeral_1h_input_tokens"] > 0
    assert got["cache_read_input_tokens"] == written["cache_creation_input_tokens"]
    assert got["cache_creation_input_tokens"] == 0
    assert got["input_tokens"] + got["cache_read_input_tokens"] == total


def test_chat_reports_its_cache(chat_draft: Any, send: Any) -> None:
    chat_draft.put("messages.1.content", "x" * 8_000)
    with Provider() as provider:
        first, second = (
            send(provider, chat_draft.path, chat_draft.body, chat_draft.headers).body["usage"]
            for _ in range(2)
        )
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    assert second["prompt_tokens_details"]["cached_tokens"] == second["prompt_tokens"] // 128 * 128


def test_a_refused_request_writes_nothing(messages_draft: Any, send: Any) -> None:
    messages_draft.mark("messages.2.content.2")
    with Provider() as provider:
        refused = messages_draft.body | {"max_tokens": 0}
        send(provider, messages_draft.path, refused, messages_draft.headers)
        got = send(provider, messages_draft.path, messages_draft.body, messages_draft.headers)
    assert got.body["usage"]["cache_read_input_tokens"] == 0
