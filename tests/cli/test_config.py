import json
import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

from lowwater.cli.app import app
from lowwater.errors import BadSetting
from lowwater.settings.resolve import Setting, catalogue, sections
from lowwater.settings.schema import settings_schema

ONE_OF_EACH_KIND = list({type(setting.default): setting for setting in catalogue()}.values())


@pytest.fixture(autouse=True)
def in_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("LOWWATER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")


def config(*args: str) -> Result:
    return CliRunner().invoke(app, ["config", *args], catch_exceptions=False)


def config_json(*args: str) -> Any:
    return json.loads(config("--json", *args).stdout)


def test_the_table_shows_every_setting_with_where_it_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("lowwater.yaml").write_text("compression:\n  protect_last_n: 7\n")
    monkeypatch.setenv("LOWWATER_CACHE_TTL", "1h")
    shown = config("--threshold", "0.4").stdout
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if line.strip()}
    assert rows["protect_last_n"] == ["7", "lowwater.yaml:2"]
    assert rows["cache_ttl"] == ["1h", "LOWWATER_CACHE_TTL"]
    assert rows["threshold"] == ["0.4", "--threshold"]
    assert rows["policy"] == ["rent-or-buy", "default"]
    assert {setting.name for setting in catalogue()} | set(sections()) <= rows.keys()
    assert max(map(len, shown.splitlines())) <= 80


def test_every_setting_has_a_flag_that_reaches_it() -> None:
    values = {name: origin["value"] for name, origin in config_json()["origins"].items()}
    flags: list[str] = []
    for setting in catalogue():
        if isinstance(setting.default, bool):
            flags.append(setting.flag if not setting.default else f"--no-{setting.flag[2:]}")
        else:
            flags += [setting.flag, json.dumps(values[setting.name]).strip('"')]
    origins = config_json(*flags)["origins"]
    assert {name: (origin["source"], origin["place"]) for name, origin in origins.items()} == {
        setting.name: ("flag", setting.flag) for setting in catalogue()
    }


def test_a_clamped_value_is_marked_and_warned_of() -> None:
    shown = config("threshold", "--threshold", "1.7")
    assert "1 (clamped from 1.7)" in shown.stdout
    assert shown.stderr == "lowwater: warning: threshold (--threshold) is out of range: 1.7 became 1\n"
    assert config_json("--threshold", "1.7")["origins"]["threshold"] == {
        "value": 1.0,
        "source": "flag",
        "place": "--threshold",
        "clamped_from": "1.7",
    }


def test_json_has_a_stable_shape_whose_settings_fit_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOWWATER_ZZZ", "1")
    report = config_json("--fallback-providers", "haiku")
    assert list(report) == ["settings", "origins", "warnings"]
    Draft202012Validator(settings_schema()).validate(report["settings"])
    assert report["settings"]["fallback_providers"][0]["model"] == "haiku"
    assert list(report["origins"]) == [setting.name for setting in catalogue()]
    assert report["warnings"] == ["the environment variable LOWWATER_ZZZ is no setting"]


@pytest.mark.parametrize("setting", ONE_OF_EACH_KIND, ids=lambda setting: setting.path)
def test_one_setting_says_what_it_means_and_how_to_set_it(setting: Setting) -> None:
    shown = " ".join(config(setting.path).stdout.split())
    for words in (setting.description, setting.expected, setting.path, setting.variable, setting.flag):
        assert words in shown
    card = config_json(setting.name)
    assert (card["path"], card["takes"], card["source"]) == (setting.path, setting.expected, "default")


def test_one_section_shows_its_settings_only() -> None:
    assert list(config_json("leaf")["settings"]) == ["leaf"]
    shown = config("leaf").stdout
    assert "leaf_chunk_tokens" in shown
    assert "threshold\n" not in shown
    assert "protect_last_n" not in shown


def test_the_schema_is_printed_even_when_the_settings_are_broken() -> None:
    Path("lowwater.yaml").write_text("[")
    assert json.loads(config("--schema").stdout) == settings_schema()


def test_a_name_that_looks_like_markup_is_shown_as_it_is() -> None:
    assert "[red]x[/red]" in config("summary_model", "--summary-model", "[red]x[/red]").stdout


def test_help_lists_a_flag_with_description_and_default_for_every_setting() -> None:
    shown = " ".join(config("--help").stdout.replace("│", " ").split())
    for setting in catalogue():
        assert setting.flag in shown
        assert setting.description in shown
    assert "[info 0.6, notice 0.75, warning 0.85, critical 0.95]" in shown


def test_a_flag_that_makes_no_sense_is_a_lowwater_error() -> None:
    with pytest.raises(BadSetting, match=r"protect_last_n \(--protect-last-n\) must be a whole number"):
        config("--protect-last-n", "many")
    with pytest.raises(BadSetting, match="did you mean policy"):
        config("polcy")


def test_the_file_can_be_named() -> None:
    Path("other.yaml").write_text("output: {quiet: true}\n")
    assert config_json("--config", "other.yaml", "quiet")["place"] == "other.yaml:1"
