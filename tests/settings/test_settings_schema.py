import math
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from lowwater.errors import BadSetting
from lowwater.settings import Settings
from lowwater.settings.resolve import Setting, SettingSource, catalogue, resolve, sections
from lowwater.settings.schema import settings_schema

ALL = [pytest.param(setting, id=setting.path) for setting in catalogue()]
VALIDATOR = Draft202012Validator(settings_schema())


def as_json(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def properties(path: str) -> Any:
    schema = settings_schema()
    section, _, name = path.rpartition(".")
    node = schema["$defs"]["Settings"]["properties"]
    if section:
        node = schema["$defs"][node[section]["$ref"].rpartition("/")[2]]["properties"]
    return node[name]


def branches(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from node.get("anyOf", [node])


@pytest.mark.parametrize("setting", ALL)
def test_the_schema_has_type_range_default_and_description_of_every_setting(setting: Setting) -> None:
    node = properties(setting.path)
    assert node["description"] == setting.description
    assert node["default"] == as_json(setting.default)
    for branch in branches(node):
        assert {"type", "enum", "$ref"} & branch.keys()
        if branch.get("type") == "number":
            assert {"minimum", "maximum"} <= branch.keys()
        if branch.get("type") == "integer":
            assert "minimum" in branch


def test_the_schema_knows_no_setting_that_does_not_exist() -> None:
    schema = settings_schema()
    top = schema["$defs"]["Settings"]
    found = {name for name, node in top["properties"].items() if "$ref" not in node}
    for section in sections():
        inner = schema["$defs"][top["properties"][section]["$ref"].rpartition("/")[2]]
        assert inner["additionalProperties"] is False
        found |= {f"{section}.{name}" for name in inner["properties"]}
    assert found == {setting.path for setting in catalogue()}


def test_another_validator_accepts_the_schema_and_the_defaults() -> None:
    Draft202012Validator.check_schema(settings_schema())
    VALIDATOR.validate(as_json(Settings()))


@pytest.mark.parametrize(
    "document",
    [
        {"compression": {"threshold": 1.5}},
        {"compression": {"threshold": "high"}},
        {"compression": {"target_ratio": 0.05}},
        {"compression": {"protect_last_n": 0}},
        {"compression": {"protect_last_n": 2.5}},
        {"compression": {"treshold": 0.5}},
        {"model": {"cache_ttl": "2h"}},
        {"tool_results": {"never_prune": "todo"}},
        {"output": {"warning_levels": {"info": 2}}},
        {"fallback_providers": [{"base_url": "x"}]},
        {"threshold": 0.5},
    ],
    ids=str,
)
def test_the_schema_rejects_what_lowwater_would_clamp_or_refuse(document: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(document)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 30_000),
    st.floats(),
    st.sampled_from(["auto", "5m", "runway", "0.5", "null", " ", "nan"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["info", "notice", "model", "provider", "x"]), inner, max_size=3),
    ),
    max_leaves=6,
)


@given(setting=st.sampled_from(catalogue()), raw=VALUES)
def test_any_value_fits_or_is_refused_and_the_schema_is_never_laxer(setting: Setting, raw: object) -> None:
    document = {setting.section: {setting.name: raw}} if setting.section else {setting.name: raw}
    allowed = VALIDATOR.is_valid(document)
    try:
        resolved = resolve([SettingSource(name="file", values={setting.name: raw})])
    except BadSetting as refused:
        # Two rules a schema cannot state: levels rise, and NaN, which JSON does not have.
        assert (
            not allowed or "must rise" in str(refused) or "must not be above" in str(refused) or has_nan(raw)
        )
        return
    if allowed:
        assert resolved.of(setting.name).clamped_from is None
    VALIDATOR.validate(as_json(resolved.settings))


def has_nan(raw: object) -> bool:
    if isinstance(raw, dict):
        return any(has_nan(value) for value in raw.values())
    return isinstance(raw, float) and math.isnan(raw)
