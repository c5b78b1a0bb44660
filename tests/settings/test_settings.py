import math
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from lowwater.errors import BadSetting
from lowwater.settings import (
    EVERYDAY,
    CompressionSettings,
    FallbackProvider,
    OutputSettings,
    Settings,
    ToolResultSettings,
    WarningLevels,
)
from lowwater.settings.resolve import (
    Resolved,
    SettingSource,
    catalogue,
    resolve,
    sections,
    settings_in,
)

NUMBERS = [
    setting for setting in catalogue() if isinstance(setting.options[0], inspect.IntType | inspect.FloatType)
]

DEFAULTS: dict[str, Any] = {
    "compression.enabled": True,
    "compression.policy": "rent-or-buy",
    "compression.mechanisms": (),
    "compression.threshold": 0.50,
    "compression.target_ratio": 0.20,
    "compression.protect_last_n": 20,
    "compression.protect_first_n": 3,
    "compression.disturbed_calls": 1.0,
    "compression.hygiene": False,
    "compression.max_view_tokens": None,
    "compression.summary_model": None,
    "compression.summary_ratio": 0.20,
    "compression.summary_min_tokens": 2_000,
    "compression.summary_max_tokens": 12_000,
    "compression.summary_context_share": 0.05,
    "compression.summary_instructions": None,
    "compression.weak_summaries": "accept",
    "compression.competing_summaries": False,
    "compression.split": False,
    "tool_results.elide_limit_chars": None,
    "tool_results.never_prune": None,
    "tool_results.pinned": None,
    "tool_results.digest_ratio": 0.15,
    "tool_results.insertion_limit_ratio": 0.10,
    "tool_results.insertion_limit_tokens": 25_000,
    "leaf.leaf_chunk_tokens": 20_000,
    "leaf.leaf_target_tokens": 2_400,
    "leaf.leaf_budget_headroom_factor": 0.8,
    "leaf.leaf_skip_reduction_threshold": 0.05,
    "leaf.context_threshold": 0.75,
    "model.cache_ttl": "auto",
    "model.native_compaction": False,
    "model.bound_thinking": "strip",
    "output.quiet": False,
    "output.session_logs": None,
    "output.warning_levels": WarningLevels(info=0.60, notice=0.75, warning=0.85, critical=0.95),
    "privacy.redact": True,
    "fallback_providers": (),
}


def given_by(**values: object) -> Resolved:
    return resolve([SettingSource(name="file", values=values)])


def test_the_defaults_are_those_of_the_specification() -> None:
    assert {setting.path: setting.default for setting in catalogue()} == DEFAULTS
    assert resolve([]).settings == Settings()


def test_fifteen_settings_are_for_everybody_and_the_others_for_experts() -> None:
    assert {setting.name for setting in catalogue() if not setting.is_expert} == EVERYDAY
    assert len(EVERYDAY) == 15


def test_names_variables_and_flags_are_unique_over_all_sections() -> None:
    for attribute in ("name", "variable", "flag", "path"):
        found = [getattr(setting, attribute) for setting in catalogue()]
        assert len(set(found)) == len(found)
    assert not {setting.name for setting in catalogue()} & set(sections())


def test_every_setting_says_what_it_is_and_its_default_fits_it() -> None:
    for setting in catalogue():
        assert setting.description.endswith("."), setting.path
        assert setting.expected
        assert setting.variable == "LOWWATER_" + setting.name.upper()
        assert setting.flag == "--" + setting.name.replace("_", "-")
        found = given_by(**{setting.name: msgspec.to_builtins(setting.default)}).of(setting.name)
        assert (found.value, found.clamped_from) == (setting.default, None)


@pytest.mark.parametrize(
    ("name", "raw", "used"),
    [
        pytest.param("threshold", 1.7, 1.0, id="share above"),
        pytest.param("threshold", -0.1, 0.0, id="share below"),
        pytest.param("threshold", 10**50, 1.0, id="share far above"),
        pytest.param("threshold", "1e300", 1.0, id="share spelled"),
        pytest.param("target_ratio", 0.05, 0.10, id="below its own range"),
        pytest.param("target_ratio", 0.95, 0.80, id="above its own range"),
        pytest.param("protect_last_n", 0, 1, id="count below its minimum"),
        pytest.param("leaf_budget_headroom_factor", 2, 1.0, id="factor above"),
        pytest.param("leaf_skip_reduction_threshold", -3, 0.0, id="factor below"),
    ],
)
def test_a_number_out_of_range_is_clamped_and_says_so(name: str, raw: object, used: float) -> None:
    resolved = given_by(**{name: raw})
    found = resolved.of(name)
    assert found.value == used
    assert type(found.value) is type(used)
    assert found.clamped_from is not None
    assert len(resolved.warnings) == 1
    assert name in resolved.warnings[0]


def test_a_clamp_says_what_was_given_and_where() -> None:
    source = SettingSource(name="file", values={"threshold": 1.7}, places={"threshold": "lowwater.yaml:3"})
    resolved = resolve([source])
    assert resolved.of("threshold").clamped_from == "1.7"
    assert resolved.warnings == ("threshold (lowwater.yaml:3) is out of range: 1.7 became 1",)


def test_a_level_inside_the_warning_levels_is_clamped_too() -> None:
    found = given_by(warning_levels={"critical": 1.5}).of("warning_levels")
    assert found.value == WarningLevels(critical=1.0)
    assert found.clamped_from == "critical 1.5"


@pytest.mark.parametrize(
    "raw",
    [math.nan, math.inf, -math.inf, "nan", ".nan", "inf", "1e999", 10**400],
    ids=["nan", "inf", "-inf", "'nan'", "'.nan'", "'inf'", "'1e999'", "10**400"],
)
def test_no_number_is_ever_infinite_or_nan(raw: object) -> None:
    for setting in NUMBERS:
        with pytest.raises(BadSetting, match=f"^{setting.name} must be a"):
            given_by(**{setting.name: raw})


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        pytest.param("protect_last_n", -1, "a whole number of at least 1, not -1", id="negative count"),
        pytest.param("protect_last_n", 2.5, "a whole number of at least 1, not 2.5", id="half a message"),
        pytest.param("protect_last_n", True, "a whole number of at least 1, not true", id="bool for number"),
        pytest.param("summary_max_tokens", 10**16, "not 10000000000000000", id="absurd count"),
        pytest.param("enabled", "perhaps", "true or false, not perhaps", id="no bool"),
        pytest.param("enabled", 1, "true or false, not 1", id="number for bool"),
        pytest.param("threshold", "high", "a number from 0 to 1 or auto, not high", id="word for number"),
        pytest.param("threshold", None, "a number from 0 to 1 or auto, not null", id="null"),
        pytest.param("threshold", [0.5], "not a list of 1", id="list for number"),
        pytest.param("max_view_tokens", "much", "of at least 1 or null, not much", id="word for count"),
        pytest.param("summary_model", 4, "text or null, not 4", id="number for text"),
        pytest.param("summary_model", " ", "text, not empty", id="blank text"),
        pytest.param("summary_model", "\ud800", "text in UTF-8", id="half a character"),
        pytest.param("cache_ttl", "5min", "1h, 5m, auto, not 5min; did you mean 5m?", id="literal"),
        pytest.param("policy", "runaway", "did you mean runway?", id="policy"),
        pytest.param("never_prune", "todo", "a list of words or null, not todo", id="text for list"),
        pytest.param("never_prune", {"todo"}, "a list of words or null, not a set", id="set for list"),
        pytest.param("never_prune", ["todo", 3], "never_prune[1] must be text, not 3", id="list item"),
        pytest.param(
            "warning_levels", {"inf": 1}, "warning_levels has no inf; did you mean info?", id="level"
        ),
        pytest.param("warning_levels", {"info": 0.99}, "must rise from info", id="levels that fall"),
        pytest.param("fallback_providers", [{}], "fallback_providers[0] must have model", id="no model"),
        pytest.param("fallback_providers", ["x"], "must be a mapping with model", id="name for mapping"),
        pytest.param("summary_min_tokens", 13_000, "(13,000) must not be above", id="minimum above maximum"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(name: str, raw: object, said: str) -> None:
    with pytest.raises(BadSetting) as refused:
        given_by(**{name: raw})
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_key_pasted_by_mistake_is_not_repeated_in_the_error() -> None:
    with pytest.raises(BadSetting, match="has no api_key; did you mean api_key_env") as refused:
        given_by(fallback_providers=[{"model": "m", "api_key": "sk-secret"}])
    assert "sk-secret" not in str(refused.value)


@pytest.mark.parametrize("raw", [" 7", "7_0", "٧", "0x7", "7 tokens"], ids=repr)
def test_only_plain_numerals_count_as_numbers(raw: str) -> None:
    with pytest.raises(BadSetting, match="protect_last_n"):
        given_by(protect_last_n=raw)


def test_whole_floats_and_numerals_are_whole_numbers() -> None:
    assert given_by(protect_last_n=7.0).settings.compression.protect_last_n == 7
    assert given_by(protect_last_n="7").settings.compression.protect_last_n == 7


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda: CompressionSettings(threshold=math.nan), id="nan"),
        pytest.param(lambda: CompressionSettings(threshold=1.5), id="out of range"),
        pytest.param(lambda: CompressionSettings(protect_last_n=0), id="below its minimum"),
        pytest.param(lambda: CompressionSettings(summary_max_tokens=10), id="maximum below minimum"),
        pytest.param(lambda: WarningLevels(info=0.9, notice=0.9), id="equal levels"),
        pytest.param(lambda: FallbackProvider(model=""), id="empty name"),
    ],
)
def test_settings_that_make_no_sense_cannot_be_constructed(wrong: Any) -> None:
    with pytest.raises(BadSetting):
        wrong()


def test_settings_constructed_from_plain_lists_and_mappings_are_the_same_values() -> None:
    plain: Any = {"never_prune": ["todo"]}
    assert ToolResultSettings(**plain) == ToolResultSettings(never_prune=("todo",))
    plain = {"warning_levels": {"info": 0.5}}
    assert OutputSettings(**plain) == OutputSettings(warning_levels=WarningLevels(info=0.5))
    hash(ToolResultSettings(never_prune=("todo",)))


def test_a_stronger_source_wins_and_a_covered_mistake_is_still_found() -> None:
    weak = SettingSource(name="file", values={"threshold": 0.3, "quiet": True}, places={"quiet": "f:1"})
    strong = SettingSource(name="flag", values={"threshold": 0.4}, places={"threshold": "--threshold"})
    resolved = resolve([weak, strong])
    found = {item.setting.name: (item.value, item.source, item.place) for item in resolved.effective}
    assert found["threshold"] == (0.4, "flag", "--threshold")
    assert found["quiet"] == (True, "file", "f:1")
    assert found["policy"] == ("rent-or-buy", "default", "")
    with pytest.raises(BadSetting):
        resolve([SettingSource(name="file", values={"threshold": "x"}), strong])


@pytest.mark.parametrize(
    ("document", "said"),
    [
        pytest.param([], "sections such as `compression:`, not a list", id="list"),
        pytest.param({"compression": 3}, "compression must hold settings, not 3", id="scalar section"),
        pytest.param({"compresion": {}}, "no setting compresion; did you mean compression?", id="section"),
        pytest.param({"compression": {"treshold": 1}}, "did you mean threshold?", id="name"),
        pytest.param({"threshold": 1}, "it belongs under compression", id="outside its section"),
        pytest.param({"leaf": {"quiet": True}}, "it belongs under output", id="other section"),
        pytest.param({"leaf": {"fallback_providers": []}}, "it belongs to no section", id="inside a section"),
        pytest.param({1: 2}, "no setting 1", id="number for key"),
    ],
)
def test_an_unknown_key_is_refused_with_the_place_it_belongs(document: object, said: str) -> None:
    with pytest.raises(BadSetting) as refused:
        settings_in(document, place=lambda path: f"here {path}")
    assert said in str(refused.value)
    assert str(refused.value).startswith("here")


def test_an_empty_document_or_section_sets_nothing() -> None:
    assert settings_in(None, place=str) == {}
    assert settings_in({"compression": None, "model": {}}, place=str) == {}


def test_asking_for_an_unknown_setting_names_the_closest() -> None:
    assert resolve([]).of("leaf.context_threshold").value == 0.75
    with pytest.raises(BadSetting, match="there is no setting polcy; did you mean policy"):
        resolve([]).of("polcy")


def test_levels_can_be_switched_off_one_by_one() -> None:
    settings = given_by(warning_levels={"info": None, "notice": None}).settings
    assert settings.output == OutputSettings(warning_levels=WarningLevels(info=None, notice=None))
