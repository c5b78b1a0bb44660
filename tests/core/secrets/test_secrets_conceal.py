"""Concealing is idempotent, keeps everything else, and takes time in proportion to the text."""

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.secrets.detection import FAMILIES, STEMS
from lowwater.core.secrets.redaction import conceal

KEY = "sk-" + "ant-api03-a8F3kD92mNb4Qz71XyW5"
FRAGMENTS = (
    *("sk-", "sk-ant-", "AKIA", "ghp_", "xoxb-", "eyJ", ".eyJ", "Bearer ", "Authorization: Basic ", "://", "@h", ":"),
    *("password", "PASSWORD", "api_key", "token", "secret", "=", ": ", '"', "'", "\\", "\\n", "\n", " ", "--", "<", ">", "</"),
    *("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "MIIEowIBAAKCAQEAq7Vd8Zk3", "[redacted: key]"),
    *("a8F3kD92mNb4Qz71XyW5", "9f8e7d6c5b4a39281706", "hunter2!", "İ", "値", "ſ", "\ud800", "&", "?", ";", "[", "]", "{", "}", "$"),
)  # fmt: skip
REPEATED = {
    "prefix": "sk-",
    "token begins": "eyJ",
    "half a token": "eyJabcdefgh.",
    "header of a block": "-----BEGIN RSA PRIVATE KEY-----\n",
    "lines of a key": "MIIEowIBAAKCAQEAq7Vd8Zk3\n",
    "name": "token",
    "assignment": "token=",
    "opened quotes": "token=\"password='",
    "escaped quotes": 'secret=\\\\\\"',
    "address": "://",
    "user": "://a:",
    "bearer": "bearer ",
    "authorization": "authorization:",
    "key head": "api_key",
    "blanks": "password   ",
    "letters": "aB3",
    "marks": "[redacted: key]",
    "secrets": f"{KEY} ",
    "backslashes": "\\",
    "wide": "值İ",
    "capability": "lw-",
    "capability of letters": "lw-a",
    "zip": "zip ",
    "openssl": "openssl -k ",
    "htpasswd": "htpasswd -b ",
    "one-time password": "otpauth://",
}


def test_only_the_secret_changes() -> None:
    assert conceal(f"a\n  {KEY}, b") == "a\n  [redacted: Anthropic key], b"


def test_secrets_that_overlap_are_one() -> None:
    assert conceal(f'password = "{KEY}!x9"') == 'password = "[redacted: password]"'


@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=8), max_size=40).map("".join))
def test_what_was_concealed_once_stays_as_it_is(text: str) -> None:
    once = conceal(text)
    assert conceal(once) is once


@given(st.text(), st.text())
def test_what_stands_around_a_secret_stays(before: str, after: str) -> None:
    concealed = conceal(f"{before}\n{KEY}\n{after}")
    assert (
        concealed == f"{conceal(before)}\n[redacted: Anthropic key]\n{conceal(after)}" or KEY not in concealed
    )
    assert KEY not in concealed


def test_only_one_character_gets_longer_in_lower_case() -> None:
    longer = [chr(code) for code in range(sys.maxunicode + 1) if len(chr(code).lower()) != 1]
    assert longer == ["\u0130"]


@pytest.mark.parametrize("what", REPEATED)
def test_time_grows_with_the_length_and_not_with_its_square(what: str) -> None:
    piece = REPEATED[what]
    small, large = (piece * (size // len(piece)) for size in (20_000, 160_000))
    quick = min(_seconds(small) for _ in range(3))
    slow = min(_seconds(large) for _ in range(2))
    assert slow < 8 * 4 * max(quick, 0.002), f"{quick:.4f} s, eight times as much text {slow:.4f} s"


def test_no_beginning_of_a_secret_is_slow_when_it_is_repeated() -> None:
    for literal in sorted({each.literal for each in FAMILIES} | {each.word for each in STEMS}):
        piece = f"{literal}a"
        small, large = (piece * (size // len(piece)) for size in (24_000, 96_000))
        quick, slow = (min(_seconds(text) for _ in range(2)) for text in (small, large))
        assert slow < 4 * 2.5 * max(quick, 0.01), (
            f"{literal}: {quick:.4f} s, four times as much text {slow:.4f} s"
        )


@pytest.mark.full
@pytest.mark.parametrize("what", REPEATED)
def test_five_megabytes_of_the_worst_take_seconds(what: str) -> None:
    piece = REPEATED[what]
    assert _seconds(piece * (5_000_000 // len(piece))) < 12


def _seconds(text: str) -> float:
    began = time.process_time()
    conceal(text)
    return time.process_time() - began
