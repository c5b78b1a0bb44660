"""Error lines are found by the words in them, the same as by their signs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.references import ERRORS, ERRORS_AND_FRAMES, LinePattern, signed_lines

SIGNS = [
    "ValueError: no",
    "java.lang.IllegalStateException",
    "FAILED tests/a.py",
    "panic: nil",
    "fatal: not a repository",
    "error[E0308]: mismatched",
    "error TS2304: Cannot",
    "ERROR while",
    "2026-11-15 12:59:59 ERROR worker-3 quota exceeded",
    "npm ERR! code",
    "✗ one",
    "❌ two",
    "sh: foo: command not found",
    "cat: x: No such file or directory",
    "x: Permission denied",
    "a.go:3: undefined: y",
    "cannot find module",
    "z does not exist",
    "old text not found in file",
    "CONFLICT (content)",
    "! [rejected] main",
]
HEADER, FRAME = "Traceback (most recent call last):", '  File "a.py", line 3'
NO_SIGNS = [
    "0 errors",
    "HTTP_ERROR = 3",
    "DEFAULT_FAIL",
    "terror: none",
    "a mirror",
    "raise KeyErrors",
    "not found",
]
BOTH = pytest.mark.parametrize("signs", [ERRORS, ERRORS_AND_FRAMES], ids=["header", "frames"])


def lines(text: str, signs: LinePattern = ERRORS) -> list[str]:
    return [text[line.start : line.end] for line in signed_lines(text, signs)]


@pytest.mark.parametrize("line", SIGNS)
def test_a_line_with_a_sign_is_found_whole(line: str) -> None:
    for signs in (ERRORS, ERRORS_AND_FRAMES):
        assert lines(f"before\n  {line}\nafter", signs) == [f"  {line}"]


@pytest.mark.parametrize("line", NO_SIGNS)
def test_a_line_that_only_looks_like_one_is_not(line: str) -> None:
    assert lines(line, ERRORS) == lines(line, ERRORS_AND_FRAMES) == []


def test_of_a_traceback_it_is_the_first_line_or_the_frames() -> None:
    text = f"{HEADER}\n{FRAME}\n    x()\nKeyError: 1"
    assert lines(text) == [HEADER, "KeyError: 1"]
    assert lines(text, ERRORS_AND_FRAMES) == [FRAME, "KeyError: 1"]


def test_lines_come_in_order_and_once_whatever_words_they_have() -> None:
    text = "rejected by peer\nfine\nValueError: no, FAILED, fatal: too\nmore\n❌ two\nlast Error: here"
    assert lines(text) == [text.split("\n")[at] for at in (0, 2, 4, 5)]


PIECES = st.sampled_from([*SIGNS, *NO_SIGNS, HEADER, FRAME, "fine", ""])


@BOTH
@given(pieces=st.lists(PIECES))
def test_no_sign_is_overlooked_by_looking_for_words(pieces: list[str], signs: LinePattern) -> None:
    text = "\n".join(pieces)
    assert lines(text, signs) == [line for line in text.split("\n") if signs.pattern.search(line)]
