"""Times, money and texts of stored sessions in words."""

from datetime import datetime

import pytest

from lowwater.cli.wording import ago, amount, figure, fitted, on_one_line, printable, read_since, span
from lowwater.errors import BadInput

NOW = 1_790_000_000.0


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-5, "0 s"), (45, "45 s"), (60, "1 min"), (3_599, "59 min"), (7 * 3_600, "7 h"), (9 * 86_400, "9 days")],
)
def test_a_length_of_time_has_one_unit(seconds: float, said: str) -> None:
    assert span(seconds) == said


def test_a_moment_ago() -> None:
    assert ago(NOW - 90, NOW) == "1 min ago"
    assert ago(NOW + 9, NOW) == "just now"


@pytest.mark.parametrize(
    ("text", "seconds"), [("30d", 30 * 86_400), ("12h", 43_200), (" 2 W ", 14 * 86_400), ("90m", 5_400)]
)
def test_since_is_a_time_back_from_now(text: str, seconds: float) -> None:
    assert read_since(text, NOW) == NOW - seconds


def test_since_is_a_day_in_the_users_own_zone() -> None:
    assert read_since("2026-11-01", NOW) == datetime(2026, 11, 1).astimezone().timestamp()


@pytest.mark.parametrize("text", ["yesterday", "30", "", "3y", "\x1b[2J"])
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(BadInput, match="30d, 12h, 2w, or a day") as caught:
        read_since(text, NOW)
    assert "\x1b" not in str(caught.value)


def test_unknown_money_is_said_to_be() -> None:
    assert amount(None) == "unknown"
    assert amount(2_500_000_000) == "$2.50"
    assert figure(None) == "–"
    assert figure(1_234) == "1,234"
    assert figure(1_234.56) == "1,234.6"


def test_a_terminal_obeys_nothing_in_a_text() -> None:
    text = printable("a\x1b[2J\x07\x9b1m\r\u202eb\n\tc")
    assert text == "a␛[2J␇\ufffd1m␍\ufffdb\n\tc"


def test_a_text_on_one_line_is_no_longer_than_wanted() -> None:
    assert on_one_line("a\n  b", 10) == "a b"
    assert on_one_line("word " * 9_000, 10) == "word word…"


def test_wide_characters_take_two_columns() -> None:
    assert fitted("会話", 6) == "会話  "
    assert fitted("会話会話", 6) == "会話 …"
