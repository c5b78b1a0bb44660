"""Specification I: warnings on the way to the threshold."""

import logging
from typing import Any

import pytest

from lowwater import UsageWarning
from lowwater.settings import OutputSettings, Settings, WarningLevels
from lowwater.testing.views import Script

LEVELS = ["info", "notice", "warning", "critical"]


@pytest.fixture
def warned(opened) -> Any:
    """A session at 128K, where the threshold is 64,000, and the warnings it gave."""

    def open_session(script: Script | None = None, **options: Any) -> tuple[Any, list[UsageWarning]]:
        heard: list[UsageWarning] = []
        return opened(script, policy="threshold", on_warning=heard.append, **options), heard

    return open_session


@pytest.mark.parametrize(
    ("level", "tokens"),
    [("info", 38_400), ("notice", 48_000), ("warning", 54_400), ("critical", 60_800)],
    ids=["60 %", "75 %", "85 %", "95 %"],
)
def test_i_a_level_warns_at_its_share_of_the_threshold_to_the_token(warned, reported, level, tokens) -> None:
    said = {}
    for prompt in (tokens - 1, tokens):
        session, heard = warned()
        reported(session, prompt)
        session.prepare()
        said[prompt] = [warning.level for warning in heard]
    assert said[tokens - 1] == LEVELS[: LEVELS.index(level)]
    assert said[tokens] == [*said[tokens - 1], level]


def test_i_each_level_warns_once(warned, reported) -> None:
    session, heard = warned()
    reported(session, 61_000)
    for _ in range(4):
        session.prepare()
        session.append([{"role": "assistant", "content": "ok"}, {"role": "user", "content": "go on"}])
    assert [warning.level for warning in heard] == LEVELS


def test_i_a_warning_has_percent_and_tokens_of_the_threshold(warned, reported) -> None:
    session, heard = warned()
    reported(session, 40_000)
    session.prepare()
    assert heard == [UsageWarning(level="info", percent=62, tokens=40_000, threshold=64_000)]
    assert heard[0].sentence == "The prompt has 40,000 of 64,000 tokens, 62 % of the threshold."


def grow(session: Any, tokens: int) -> None:
    """Have the user say so much that the next prompt has about so many tokens, and prepare it."""
    said = {"role": "user", "content": " word" * (tokens - session.status().prompt)}
    session.append([{"role": "assistant", "content": "ok"}, said])
    session.prepare()


def test_i_it_goes_to_the_log_too(warned, reported, caplog) -> None:
    session, heard = warned(settings=Settings())
    with caplog.at_level(logging.INFO, "lowwater"):
        reported(session, 39_000)
        session.prepare()
        for tokens in (49_000, 55_000, 61_500):
            grow(session, tokens)
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in said] == ["INFO", "INFO", "WARNING", "CRITICAL"]
    assert [message for _, message in said] == [f"spec: {warning.sentence}" for warning in heard]


def test_i_levels_that_are_reached_at_once_are_one_line_in_the_log(warned, reported, caplog) -> None:
    session, heard = warned(settings=Settings())
    with caplog.at_level(logging.INFO, "lowwater"):
        reported(session, 49_000)
        session.prepare()
        grow(session, 61_500)
        session.prepare()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "spec: The prompt has 49,000 of 64,000 tokens, 76 % of the threshold."),
        ("CRITICAL", f"spec: {heard[-1].sentence}"),
    ]
    assert [warning.level for warning in heard] == LEVELS, "a program hears each level once"


def test_i_the_status_line_has_percent_and_tokens_of_the_threshold(warned, reported) -> None:
    session, _ = warned()
    reported(session, 56_000)
    session.prepare()
    assert "prompt 56,000 of 64,000 tokens to the threshold (88 %), level warning" in str(session.status())


@pytest.fixture
def shrunk(warned, loop, reported) -> Any:
    """A session that warned of everything and was then compacted to between 48,000 and 54,400 tokens."""
    session, heard = warned(loop(40))
    reported(session, 62_000)
    session.prepare()
    assert [warning.level for warning in heard] == LEVELS
    session.compress()
    session.append({"role": "user", "content": " word" * (50_000 - session.status().prompt)})
    session.prepare()
    assert 48_000 < session.status().prompt < 54_400
    return session, heard


def test_i_a_level_stays_if_a_compaction_did_not_get_below_it(shrunk) -> None:
    _, heard = shrunk
    assert len(heard) == 4, "info and notice were said and are still true"


def test_i_a_level_re_arms_when_usage_falls_below_it(shrunk) -> None:
    session, heard = shrunk
    session.append(
        [
            {"role": "assistant", "content": "ok"},
            {"role": "user", "content": " word" * (62_000 - session.status().prompt)},
        ]
    )
    session.prepare()
    assert [warning.level for warning in heard[4:]] == ["warning", "critical"]


def test_i_levels_are_settings_and_null_switches_one_off(warned, reported) -> None:
    levels = WarningLevels(info=None, notice=0.5)
    session, heard = warned(settings=Settings(output=OutputSettings(quiet=True, warning_levels=levels)))
    reported(session, 32_000)
    session.prepare()
    assert [(warning.level, warning.percent) for warning in heard] == [("notice", 50)]


def test_i_it_does_not_go_into_the_models_prompt(warned, reported, told) -> None:
    session, heard = warned(Script().system("Be brief.").user("Hello.").says("Hello yourself."))
    reported(session, 63_000)
    request = session.prepare()
    assert heard
    assert request.as_openai()["messages"] == session.history()
