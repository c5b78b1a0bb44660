"""Summary text holds whole characters and only handles of messages that it stands for."""

import pytest

from lowwater.core.summary.sanitize import NO_SUCH_MESSAGE, as_label, whole_characters, with_known_handles

KNOWN = frozenset(range(10, 21))


@pytest.mark.parametrize(
    ("text", "checked"),
    [
        ("see lw:12 and lw:20.", "see lw:12 and lw:20."),
        ("lw:10 to lw:20, lw:11-14, lw:12–13, [lw:15]", "lw:10 to lw:20, lw:11-14, lw:12–13, [lw:15]"),
        ("recall lw:999999 now", f"recall {NO_SUCH_MESSAGE} now"),
        ("LW: 9 and lw:21", f"{NO_SUCH_MESSAGE} and {NO_SUCH_MESSAGE}"),
        ("lw:12,45,13", "lw:12,13"),
        ("lw:45,13", "lw:13"),
        ("lw:10-999999", NO_SUCH_MESSAGE),
        ("lw:9 to lw:12", NO_SUCH_MESSAGE),
        (f"lw:{'9' * 5_000}", NO_SUCH_MESSAGE),
        ("lw:12, 45 files and lw:12 to 45 files", "lw:12, 45 files and lw:12 to 45 files"),
        ("http://flw:999 slw:5 lw:x", "http://flw:999 slw:5 lw:x"),
    ],
    ids=[
        "known",
        "ranges",
        "invented",
        "spelled otherwise",
        "a list",
        "a list without its first",
        "a range beyond",
        "a range from before",
        "a huge one",
        "other numbers",
        "no handles",
    ],
)
def test_handles_of_other_messages_do_not_go_out(text: str, checked: str) -> None:
    assert with_known_handles(text, KNOWN) == checked
    assert with_known_handles(checked, KNOWN) == checked


def test_halves_of_characters_are_made_whole_or_shown_as_replaced() -> None:
    assert whole_characters("caf\u00e9 \U0001f600") == "caf\u00e9 \U0001f600"
    assert whole_characters("a\ud83db") == "a\ufffdb"
    assert whole_characters("\ud83d\ude00!") == "\U0001f600!"
    assert as_label("a\nb\udc00\0c") == "a b\ufffd c"
