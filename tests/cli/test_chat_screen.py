"""What `lowwater chat` shows: the load line, broken lines, questions; nothing foreign is obeyed by the terminal."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from lowwater.chat.tools import ToolOutcome
from lowwater.cli.chat import Screen, WordWrapper, status_line, usage_bar
from lowwater.core.messages import ToolCall
from lowwater.core.turns.state import Totals
from lowwater.session.library import Lowwater
from lowwater.session.status import Status
from lowwater.settings import WarningLevels
from tests.chat.chat_harness import Watched, chat_with

LEVELS = WarningLevels()


@pytest.fixture
def status() -> Status:
    return Lowwater(model="claude-haiku-4-5").session("talk").status()


@pytest.mark.parametrize(
    ("share", "bar"),
    [
        (0.0, "░░░░░░░░░┊░░┊┊░┊"),
        (0.5, "████████░┊░░┊┊░┊"),
        (0.7, "███████████░┊┊░┊"),
        (0.76, "████████████░┊░┊"),
        (0.9, "██████████████░┊"),
        (1.4, "████████████████"),
    ],
)
def test_the_bar_has_a_mark_at_each_level_that_is_ahead(share: float, bar: str) -> None:
    assert usage_bar(share, LEVELS, "green").plain == bar


def test_a_level_that_is_switched_off_has_no_mark() -> None:
    assert usage_bar(0.0, WarningLevels(info=None), "green").plain == "░░░░░░░░░░░░┊┊░┊"


def test_the_line_has_load_level_bill_model_and_cache(status: Status) -> None:
    full = replace(status, prompt=140_000, level="notice", totals=Totals(cost=1_234_500_000, compactions=2))
    line = status_line(full, LEVELS, is_scripted=False, width=200).plain
    assert line == (
        "████████████░┊░┊ 76% of 184K notice · $1.23 · claude-haiku-4-5 · cache on, 1h · 0 compactions · talk"
    )
    assert "as if" in status_line(full, LEVELS, is_scripted=True, width=200).plain


def test_a_bill_that_is_not_known_is_not_zero(status: Status) -> None:
    line = status_line(replace(status, totals=Totals(cost=None)), LEVELS, is_scripted=False, width=100).plain
    assert "· unknown ·" in line


@pytest.mark.parametrize("width", [40, 50, 60, 80, 100])
def test_the_line_is_no_longer_than_the_terminal(status: Status, width: int) -> None:
    assert status_line(status, LEVELS, is_scripted=True, width=width).cell_len <= width


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 1_000])
def test_lines_are_broken_between_words_however_the_pieces_were_cut(cut: int) -> None:
    text = "one two three four five\n  indented six seven eight\n\nlast averyverylongwordindeed end"
    wrapping = WordWrapper(12)
    pieces = [wrapping.feed(text[at : at + cut]) for at in range(0, len(text), cut)]
    shown = "".join(pieces) + wrapping.end()
    assert shown == (
        "one two\nthree four\nfive\n  indented\nsix seven\neight\n\nlast\naveryverylongwordindeed\nend"
    )


def test_nothing_that_a_model_or_a_tool_says_is_obeyed_by_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen = Screen()
    call = ToolCall(id="1", name="shell\x1b[2J", arguments='{"command": "printf \\u001b]0;title\\u0007"}')
    screen.on_text("\x1b[31mred\x07")
    screen.on_tool_call(call)
    screen.on_tool_result(call, ToolOutcome(text="\x1b[2Jgone", is_error=True))
    screen.on_notice("\x1b[1m")
    screen.failed("\x1b[1m")
    screen.allow("run: \x1b[2J")
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "red" in shown


@pytest.mark.parametrize(
    ("answers", "allowed"),
    [(["y"], [True]), (["no"], [False]), ([""], [False]), (["a"], [True, True]), (["y", "n"], [True, False])],
    ids=str,
)
def test_yes_no_and_always(answers: list[str], allowed: list[bool]) -> None:
    left = iter(answers)
    screen = Screen(ask=lambda _: next(left))
    assert [screen.allow("run: ls") for _ in allowed] == allowed


def test_where_nobody_can_be_asked_nothing_is_allowed_unless_everything_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not Screen().allow("run: ls")
    assert "--yes" in capsys.readouterr().out
    assert Screen(allows_all=True).allow("run: ls")


def test_a_compaction_is_shown_with_its_reason(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    watched = Watched()
    chat = chat_with(tmp_path, watched)
    chat.say("work for 30 steps")
    chat.session.compress()
    chat.close()
    Screen().happened("talk", watched.sink.compactions[-1])
    shown = capsys.readouterr().out
    assert "◆ compacted" in shown
    assert "Asked for by hand" in shown
