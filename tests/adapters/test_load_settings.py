import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from lowwater.adapters.settings import OTHER_VARIABLES, find_config, load_settings, user_config
from lowwater.errors import BadSetting, UnreadableFile
from lowwater.settings import FallbackProvider, WarningLevels
from lowwater.settings.resolve import Resolved, Setting, catalogue

ALL = [pytest.param(setting, id=setting.path) for setting in catalogue()]
BLOCK = """\
compression:
  enabled: true
  threshold: 0.50        # of the context length, 0.0–1.0; "auto": from measured growth and content mix
  target_ratio: 0.20     # of the threshold: the tail's token budget, 0.10–0.80
  protect_last_n: 20     # at least this many newest messages, ≥ 1
  protect_first_n: 3     # system + first exchange
  summary_model: null    # null: the cheapest by arithmetic
model:
  cache_ttl: "5m"        # "1h"; "auto" picks by the measured gaps and prices
fallback_providers: [{model: …, base_url: …, provider: …, api_key_env: …}]
"""
"""Specification B as it stands."""


def load(
    *,
    file: str | None = None,
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Resolved:
    config = Path("given.yaml")
    config.write_text(file or "", encoding="utf-8")
    return load_settings(config=config, env=env or {}, flags=flags or {})


@pytest.fixture(autouse=True)
def in_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def others(setting: Setting) -> list[Any]:
    """Three values of the setting that are neither its default nor each other, as YAML would give them."""
    kind = setting.options[0]
    match kind:
        case inspect.BoolType():
            return [not setting.default, setting.default, not setting.default]
        case inspect.IntType():
            base = setting.default if isinstance(setting.default, int) else 5_000
            return [base + 1, base + 2, base + 3]
        case inspect.FloatType():
            return [0.31, 0.32, 0.33]
        case inspect.LiteralType():
            found = [choice for choice in setting.choices if choice != setting.default]
            return [found[0], found[1] if len(found) > 1 else setting.default, found[0]]
        case inspect.StrType():
            return ["one", "two", "three"]
        case inspect.VarTupleType(item_type=inspect.StrType()):
            return [["one"], ["one", "two"], []]
        case inspect.VarTupleType():
            return [[{"model": "one"}], [{"model": "two", "provider": "p"}], [{"model": "three"}]]
        case inspect.StructType():
            return [{"info": 0.1}, {"info": 0.2, "notice": None}, {"info": 0.3}]
        case _:
            raise AssertionError(f"{setting.path}: say here what other values a {type(kind).__name__} has")


def as_yaml(setting: Setting, value: object) -> str:
    return yaml.safe_dump(
        {setting.section: {setting.name: value}} if setting.section else {setting.name: value}
    )


def as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("setting", ALL)
def test_each_setting_is_taken_from_the_strongest_source(setting: Setting) -> None:
    in_file, in_env, in_flag = others(setting)
    file = as_yaml(setting, in_file)
    env = {setting.variable: as_text(in_env)}
    flags = {setting.name: as_text(in_flag)}
    layered = {
        "default": load(),
        "file": load(file=file),
        "environment": load(file=file, env=env),
        "flag": load(file=file, env=env, flags=flags),
    }
    values = {
        "default": setting.default,
        "file": in_file,
        "environment": in_env,
        "flag": in_flag,
    }
    places = {
        "default": "",
        "file": f"given.yaml:{file.count(chr(10), 0, file.index(setting.name)) + 1}",
        "environment": setting.variable,
        "flag": setting.flag,
    }
    for source, resolved in layered.items():
        found = resolved.of(setting.name)
        expected = msgspec.convert(values[source], _annotation(setting), strict=True)
        assert (found.value, found.source, found.place) == (expected, source, places[source])
        assert resolved.warnings == ()
        holder = getattr(resolved.settings, setting.section) if setting.section else resolved.settings
        assert getattr(holder, setting.name) == expected


def _annotation(setting: Setting) -> Any:
    match setting.options[0]:
        case inspect.VarTupleType(item_type=inspect.StructType()):
            return tuple[FallbackProvider, ...]
        case inspect.VarTupleType():
            return tuple[str, ...] | None
        case inspect.StructType(cls=cls):
            return cls
        case _:
            return Any


def test_the_block_of_the_specification_is_accepted_as_it_stands() -> None:
    resolved = load(file=BLOCK)
    assert resolved.warnings == ()
    assert resolved.settings.compression.threshold == 0.5
    assert resolved.settings.model.cache_ttl == "5m"
    assert resolved.settings.fallback_providers == (
        FallbackProvider(model="…", base_url="…", provider="…", api_key_env="…"),
    )
    assert {found.source for found in resolved.effective} == {"default", "file"}
    assert resolved.of("cache_ttl").place == "given.yaml:9"


@pytest.mark.parametrize("name", ["threshold", "protect_last_n"])
@pytest.mark.parametrize(
    ("source", "text"),
    [("file", ".nan"), ("file", "-.inf"), ("environment", "nan"), ("environment", "inf"), ("flag", "1e999")],
)
def test_nan_and_infinity_are_refused_in_every_source(name: str, source: str, text: str) -> None:
    with pytest.raises(BadSetting, match=name):
        load(
            file=f"compression:\n  {name}: {text}\n" if source == "file" else None,
            env={f"LOWWATER_{name.upper()}": text} if source == "environment" else None,
            flags={name: text} if source == "flag" else None,
        )


@pytest.mark.parametrize("value", [float("nan"), float("inf")], ids=str)
def test_nan_and_infinity_are_refused_as_numbers_too(value: float) -> None:
    with pytest.raises(BadSetting, match=r"threshold \(--threshold\) must be a number"):
        load(flags={"threshold": value})


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        pytest.param("LOWWATER_QUIET", "1", True, id="1 is true"),
        pytest.param("LOWWATER_QUIET", "no", False, id="no is false"),
        pytest.param("LOWWATER_THRESHOLD", "auto", "auto", id="word or number: the word"),
        pytest.param("LOWWATER_THRESHOLD", " 3e-1 ", 0.3, id="exponent"),
        pytest.param("LOWWATER_PROTECT_LAST_N", "", 20, id="empty is not set"),
        pytest.param("LOWWATER_LEAF_CHUNK_TOKENS", "30_000", 30_000, id="digits grouped"),
        pytest.param("LOWWATER_SUMMARY_MODEL", "null", None, id="null"),
        pytest.param("LOWWATER_SUMMARY_MODEL", "4", "4", id="a name that looks like a number"),
        pytest.param("LOWWATER_SUMMARY_MODEL", "a: b", "a: b", id="a name that looks like YAML"),
        pytest.param("LOWWATER_NEVER_PRUNE", "todo, Read  Write", ("todo", "Read", "Write"), id="bare list"),
        pytest.param("LOWWATER_NEVER_PRUNE", "[todo, Read]", ("todo", "Read"), id="YAML list"),
        pytest.param("LOWWATER_NEVER_PRUNE", "[]", (), id="empty list"),
        pytest.param("LOWWATER_NEVER_PRUNE", "null", None, id="no list"),
        pytest.param("LOWWATER_WARNING_LEVELS", "{info: 0.5}", WarningLevels(info=0.5), id="mapping"),
        pytest.param(
            "LOWWATER_FALLBACK_PROVIDERS",
            "gpt-6.1-sol, haiku",
            (FallbackProvider(model="gpt-6.1-sol"), FallbackProvider(model="haiku")),
            id="models by name",
        ),
    ],
)
def test_text_in_the_environment_means_what_a_person_means(variable: str, text: str, value: object) -> None:
    assert load(env={variable: text}).of(variable.removeprefix("LOWWATER_").lower()).value == value


def test_an_unknown_variable_is_warned_of_and_not_an_error() -> None:
    known = dict.fromkeys(OTHER_VARIABLES - {"LOWWATER_CONFIG"}, "x")
    resolved = load(env={"LOWWATER_TRESHOLD": "1", "LOWWATER_ZZZ": "1", "PATH": "x", **known})
    assert resolved.warnings == (
        "the environment variable LOWWATER_TRESHOLD is no setting; did you mean LOWWATER_THRESHOLD?",
        "the environment variable LOWWATER_ZZZ is no setting",
    )
    assert OTHER_VARIABLES.isdisjoint(setting.variable for setting in catalogue())


@pytest.mark.parametrize(
    ("file", "said"),
    [
        pytest.param("compression:\n  treshold: 1\n", "given.yaml:2: there is no setting", id="unknown key"),
        pytest.param("compression:\n  threshold: x\n", "threshold (given.yaml:2) must be", id="wrong type"),
        pytest.param("- compression\n", "given.yaml must hold sections", id="list"),
        pytest.param("compression\n", "given.yaml must hold sections", id="scalar"),
        pytest.param("a: &a\n  b: *a\n", "given.yaml:1: there is no setting a", id="endless alias"),
        pytest.param(
            "fallback_providers: &a [*a]\n", "fallback_providers[0] (given.yaml:1)", id="endless list"
        ),
    ],
)
def test_an_error_in_the_file_names_file_and_line(file: str, said: str) -> None:
    with pytest.raises(BadSetting) as refused:
        load(file=file)
    assert str(refused.value).startswith(said)


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    assert load(file="\ufeffmodel: {cache_ttl: 1h}\n").of("cache_ttl").place == "given.yaml:1"


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"none\.yaml: no such file"):
        load_settings(config=Path("none.yaml"), env={}, flags={})
    with pytest.raises(UnreadableFile, match="directory"):
        load_settings(config=tmp_path, env={}, flags={})
    Path("latin.yaml").write_bytes(b"model: \xff\n")
    with pytest.raises(UnreadableFile, match=r"latin\.yaml is not UTF-8"):
        load_settings(config=Path("latin.yaml"), env={}, flags={})


def test_the_file_is_looked_for_from_the_nearest_to_the_farthest(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path / "home")}
    xdg = {**env, "XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    named = {**xdg, "LOWWATER_CONFIG": "named.yaml"}
    assert user_config(env) == tmp_path / "home" / ".config" / "lowwater" / "lowwater.yaml"
    assert user_config({**env, "XDG_CONFIG_HOME": "relative"}) == user_config(env)
    assert find_config(xdg) is None
    for place in (user_config(env), user_config(xdg)):
        place.parent.mkdir(parents=True)
        place.write_text("output: {quiet: true}")
    assert find_config(env) == user_config(env)
    assert find_config(xdg) == user_config(xdg)
    Path("lowwater.yaml").write_text("compression: {threshold: 0.3}")
    assert find_config(xdg) == Path("lowwater.yaml")
    assert find_config(named) == Path("named.yaml")
    resolved = load_settings(config=None, env=xdg, flags={})
    assert (resolved.of("threshold").place, resolved.settings.output.quiet) == ("lowwater.yaml:1", False)
    with pytest.raises(UnreadableFile, match=r"named\.yaml"):
        load_settings(config=None, env=named, flags={})
    assert load_settings(config=Path("/dev/null"), env=named, flags={}).of("threshold").source == "default"


TEXTS = st.one_of(
    st.text(st.characters(exclude_characters="\0"), max_size=20),
    st.text(st.sampled_from("01.:-[]{},&*!#'\" \n\tenulatrf~"), max_size=20),
)


@given(setting=st.sampled_from(catalogue()), text=TEXTS)
def test_any_text_in_environment_or_flag_holds_or_is_refused(setting: Setting, text: str) -> None:
    for given_as in ({"env": {setting.variable: text}}, {"flags": {setting.name: text}}):
        try:
            resolved = load(**given_as)  # type: ignore[arg-type] # one of two keywords
        except BadSetting as refused:
            assert str(refused).splitlines() == [str(refused)]
        else:
            msgspec.json.encode(resolved.settings)


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.dates(), st.binary()
)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["compression", "threshold", "model", "output", "quiet", "fallback_providers"])
            | LEAVES,
            inner,
            max_size=3,
        ),
    ),
    max_leaves=8,
)


@given(DOCUMENTS)
def test_any_yaml_document_holds_or_is_refused(document: object) -> None:
    try:
        load(file=yaml.safe_dump(document, allow_unicode=True))
    except (BadSetting, UnreadableFile) as refused:
        assert str(refused).splitlines() == [str(refused)]
