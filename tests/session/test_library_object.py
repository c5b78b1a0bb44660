"""`Lowwater` as an object: a context manager that closes its store, and texts for people that quote no message."""

import asyncio
import re

import pytest

import lowwater
from lowwater import Lowwater, LowwaterError, Settings
from lowwater.errors import BadSetting

SECRET = "the vault opens at noon"


def test_a_with_block_closes_the_store(tmp_path) -> None:
    address = f"sqlite:///{tmp_path}/kept.db"
    with Lowwater(model="claude-opus-5-5", store=address) as open_one:
        open_one.session("talk").append({"role": "user", "content": SECRET})
    with pytest.raises(LowwaterError, match="closed"):
        open_one.session("talk").append({"role": "user", "content": "again"})
    with Lowwater(model="claude-opus-5-5", store=address) as again:
        assert len(again.session("talk").history()) == 1


def test_an_async_with_block_closes_the_store(tmp_path) -> None:
    async def talk() -> Lowwater:
        async with Lowwater(model="claude-opus-5-5", store=f"sqlite:///{tmp_path}/kept.db") as opened:
            await opened.session("talk").aprepare([{"role": "user", "content": SECRET}])
            return opened

    closed = asyncio.run(talk())
    with pytest.raises(LowwaterError, match="closed"):
        closed.session("talk").append({"role": "user", "content": "again"})


def test_the_version_is_that_of_the_package() -> None:
    assert re.match(r"\d+\.\d+", lowwater.__version__)


def test_printing_an_object_shows_sizes_and_no_message() -> None:
    opened = Lowwater(model="claude-opus-5-5", store="memory:")
    session = opened.session("talk")
    request = session.prepare([{"role": "user", "content": SECRET}])
    assert repr(opened) == "<Lowwater 'claude-opus-5-5', rent-or-buy, MemoryStore, 1 sessions open>"
    assert repr(session).startswith("<Session 'talk', 'claude-opus-5-5', 1 messages, a prompt of ")
    assert repr(request).startswith("<PreparedRequest of 1 messages, ")
    assert not any(SECRET in repr(each) for each in (opened, session, request))


def test_settings_are_spelled_flat_nested_or_both() -> None:
    flat = Settings(max_view_tokens=60_000, quiet=True, redact=False)
    nested = Settings(
        compression={"max_view_tokens": 60_000}, output={"quiet": True}, privacy={"redact": False}
    )
    assert flat == nested == Settings(compression={"max_view_tokens": 60_000}, quiet=True, redact=False)
    assert Settings(compression=flat.compression, policy="never").compression.max_view_tokens == 60_000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_view_token": 1}, "there is no setting max_view_token; did you mean max_view_tokens?"),
        ({"compresion": {}}, "there is no setting compresion; did you mean compression?"),
        (
            {"max_view_tokens": -1},
            "compression.max_view_tokens must be a whole number of at least 1 or null, not -1",
        ),
        (
            {"compression": {"policy": "never"}, "policy": "runway"},
            "policy is given twice: by itself and in compression",
        ),
        ({"compression": 3, "policy": "never"}, "compression must be a mapping"),
    ],
    ids=["misspelled", "misspelled section", "out of range", "twice", "no section"],
)
def test_a_wrong_setting_gets_one_sentence(given: dict[str, object], said: str) -> None:
    with pytest.raises(BadSetting) as raised:
        Settings(**given)
    assert str(raised.value).startswith(said)
