"""Specification B: the settings, their defaults, their ranges, and everywhere they can be set."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lowwater.cli.app import app
from lowwater.core.view import Summary
from lowwater.errors import BadSetting
from lowwater.session.internals import internals
from lowwater.settings import CompressionSettings, Settings, ToolResultSettings
from lowwater.settings.resolve import catalogue
from lowwater.testing.fakes import ScriptedSummarizer
from lowwater.testing.views import Script


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`lowwater config` as a program runs it, in an empty directory and without anybody's own settings."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str, **env: str) -> Any:
        around = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), **env}
        shown = CliRunner().invoke(app, ["config", "--json", *args], env=around, catch_exceptions=False)
        return json.loads(shown.stdout)

    return run


def values_of(report: Any) -> dict[str, Any]:
    return {name: origin["value"] for name, origin in report["origins"].items()}


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("enabled", True),
        ("threshold", 0.5),
        ("target_ratio", 0.2),
        ("protect_last_n", 20),
        ("protect_first_n", 3),
        ("summary_model", None),
        ("cache_ttl", "auto"),
        ("fallback_providers", []),
        ("summary_ratio", 0.2),
        ("summary_min_tokens", 2_000),
        ("summary_max_tokens", 12_000),
        ("summary_context_share", 0.05),
        ("elide_limit_chars", None),
        ("never_prune", None),
        ("warning_levels", {"info": 0.6, "notice": 0.75, "warning": 0.85, "critical": 0.95}),
        ("insertion_limit_ratio", 0.1),
        ("insertion_limit_tokens", 25_000),
        ("leaf_budget_headroom_factor", 0.8),
        ("leaf_skip_reduction_threshold", 0.05),
        ("quiet", False),
    ],
)
def test_b_the_default_is_as_written_down(config, name, default) -> None:
    assert values_of(config())[name] == default


def test_b_the_settings_stand_in_the_sections_of_the_block(config) -> None:
    found = config()["settings"]
    listed = "enabled threshold target_ratio protect_last_n protect_first_n summary_model"
    assert set(listed.split()) <= set(found["compression"])
    assert "cache_ttl" in found["model"]


def test_b_a_fallback_has_model_url_provider_and_the_name_of_its_keys_variable(config) -> None:
    Path("lowwater.yaml").write_text(
        "fallback_providers: [{model: gpt-4o, base_url: 'http://here', provider: openai, api_key_env: KEY}]\n"
    )
    assert config()["settings"]["fallback_providers"] == [
        {"model": "gpt-4o", "base_url": "http://here", "provider": "openai", "api_key_env": "KEY"}
    ]


# Ranges


@pytest.mark.parametrize(
    ("name", "given", "used"),
    [
        ("threshold", "1.7", 1.0),
        ("threshold", "-0.2", 0.0),
        ("target_ratio", "0.05", 0.10),
        ("target_ratio", "0.9", 0.80),
        ("protect_last_n", "0", 1),
        ("leaf_budget_headroom_factor", "7", 1.0),
        ("leaf_skip_reduction_threshold", "-1", 0.0),
    ],
)
def test_b_out_of_range_numbers_are_clamped_where_a_range_is_given(config, name, given, used) -> None:
    report = config(f"--{name.replace('_', '-')}={given}")
    assert values_of(report)[name] == used
    assert report["origins"][name]["clamped_from"] == given


@pytest.mark.parametrize(
    "flag",
    [
        "--protect-last-n=-3",
        "--protect-first-n=many",
        "--summary-min-tokens=-1",
        "--cache-ttl=2h",
        "--threshold=half",
    ],
)
def test_b_what_makes_no_sense_is_refused_with_the_name_of_the_setting(config, flag) -> None:
    with pytest.raises(BadSetting, match=flag.partition("=")[0]):
        config(flag)


@pytest.mark.parametrize("word", ["threshold", "cache_ttl"])
def test_b_auto_is_a_value(config, word) -> None:
    assert values_of(config(f"--{word.replace('_', '-')}", "auto"))[word] == "auto"


def test_b_an_auto_threshold_follows_growth_and_content_mix(opened) -> None:
    settings = Settings(compression=CompressionSettings(threshold="auto"))
    found = {}
    for kind, growth in (("text", 2_000), ("text", 6_000), ("tools", 6_000)):
        session = opened(policy="runway", model="gpt-4.1", settings=settings)
        assert session.status().threshold == session.status().context // 2
        for turn in range(1, 14):
            script = (
                Script().user("go") if kind == "text" else Script().calls("bash", {"n": turn}, "ok " * 50)
            )
            session.append([message.wire.raw for message in script.messages() if message.wire])
            session.prepare()
            usage = {"prompt_tokens": growth * turn, "completion_tokens": 1}
            answer = {"role": "assistant", "content": "ok"}
            session.record({"choices": [{"message": answer, "finish_reason": "stop"}], "usage": usage})
        found[kind, growth] = session.status().threshold
    assert found["text", 2_000] < found["text", 6_000], "the faster it grows, the later"
    assert found["tools", 6_000] < found["text", 6_000], "tool output can be pruned, so the sooner"


# Every setting, everywhere


def test_b_every_setting_has_an_environment_variable(config) -> None:
    defaults = values_of(config())
    given = {
        setting.variable: value if isinstance(value, str) else json.dumps(value)
        for setting in catalogue()
        if (value := defaults[setting.name]) != []
    }
    origins = config(**given)["origins"]
    assert {origins[s.name]["place"] for s in catalogue()} - {"", *given} == set()
    assert [s.name for s in catalogue() if origins[s.name]["source"] != "environment"] == [
        "mechanisms",
        "fallback_providers",
    ]
    assert values_of(config(LOWWATER_MECHANISMS="one, two"))["mechanisms"] == ["one", "two"]
    assert (
        values_of(config(LOWWATER_FALLBACK_PROVIDERS="gpt-4o"))["fallback_providers"][0]["model"] == "gpt-4o"
    )


@pytest.mark.parametrize("name", ["leaf_skip_reduction_threshold", "leaf_budget_headroom_factor"])
def test_b_the_two_variables_the_spec_names_are_read(config, name) -> None:
    assert values_of(config(**{f"LOWWATER_{name.upper()}": "0.33"}))[name] == 0.33


def test_b_every_setting_has_a_flag(config) -> None:
    flags: list[str] = []
    values = values_of(config()) | {"fallback_providers": "gpt-4o"}
    for setting in catalogue():
        if isinstance(setting.default, bool):
            flags.append(setting.flag)
        else:
            value = values[setting.name]
            flags += [setting.flag, value if isinstance(value, str) else json.dumps(value)]
    assert {origin["source"] for origin in config(*flags)["origins"].values()} == {"flag"}


def test_b_the_json_schema_has_every_setting_with_type_range_and_description(config) -> None:
    schema = config("--schema")
    top = schema["$defs"]["Settings"]["properties"]
    for setting in catalogue():
        within = schema["$defs"][top[setting.section]["$ref"].rpartition("/")[2]] if setting.section else None
        node = within["properties"][setting.name] if within else top[setting.name]
        assert node["description"] == setting.description
        assert {"type", "anyOf", "enum", "$ref"} & set(node), setting.path
        if isinstance(setting.default, float):
            ranges = [each for each in node.get("anyOf", [node]) if each.get("type") == "number"]
            assert all({"minimum", "maximum"} <= set(each) for each in ranges), setting.path


# The numbers of a 200K model


def test_b_at_200k_the_threshold_is_100000(opened) -> None:
    assert opened(policy="runway", window=200_000).status().threshold == 100_000


def test_b_at_200k_the_tail_is_20000(opened, loop) -> None:
    settings = Settings(compression=CompressionSettings(protect_last_n=1))
    session = opened(loop(80), policy="threshold", window=200_000, settings=settings)
    assert session.compress() is not None
    items = list(internals(session).ledger.view.items)
    at = next(index for index, item in enumerate(items) if isinstance(item, Summary))
    group = sum(item.tokens for item in items[-2:])
    # Behind the summary stands the newest user message; alignment may have added the call before the first result.
    paid = sum(item.tokens for item in items[at + 3 :])
    assert 20_000 - group < paid <= 20_000


@pytest.mark.parametrize(
    ("window", "steps", "tokens"),
    [(200_000, 170, 10_000), (1_000_000, 330, 12_000), (200_000, 50, 2_000)],
    ids=["5 % of the context", "the cap", "the minimum"],
)
def test_b_a_summary_is_at_most_5_percent_and_12000_and_at_least_2000(
    opened, loop, faithful, window, steps, tokens
) -> None:
    summarizer = ScriptedSummarizer(faithful)
    session = opened(loop(steps), policy="threshold", window=window, summarizer=summarizer)
    session.compress()
    assert summarizer.requests[0].max_tokens == tokens


def test_b_a_summary_is_a_fifth_of_what_it_replaces(opened, loop, faithful, summaries) -> None:
    summarizer = ScriptedSummarizer(faithful)
    session = opened(loop(90), policy="threshold", window=200_000, summarizer=summarizer)
    originals = internals(session).ledger.view.items
    session.compress()
    (summary,) = summaries(session)
    replaced = sum(originals[number - 1].tokens for number in summarizer.requests[0].numbers)
    assert summarizer.requests[0].max_tokens == int(0.2 * replaced)
    assert summary.tokens < replaced


# The elide limit


def planned(session: Any) -> set[str]:
    """Return the mechanisms that the last decision was to carry out."""
    return {proposal.mechanism for proposal in session.status().decision.proposals}


def chats(chars: int) -> Script:
    script = Script().system("You are an agent.").user("Go through all of them.")
    for number in range(230):
        said = f"{number}: " + " ".join(f"w{number * 31 + word}" for word in range(chars))
        script.calls("terminal", {"command": f"cat {number}"}, said[:chars])
    return script


@pytest.mark.parametrize(
    ("policy", "chars", "elided"),
    [
        ("prune-naive", 200, False),
        ("prune-naive", 201, True),
        ("runway", 201, True),
        ("hermes-classic", 201, True),
        ("hygiene", 600, False),
        ("hygiene", 601, True),
    ],
)
def test_b_the_elide_limit_is_200_characters_in_the_seed_presets_and_600_elsewhere(
    opened, policy, chars, elided
) -> None:
    session = opened(chats(chars), policy=policy, window=24_000)
    session.prepare(max_tokens=500)
    assert ("elide" in planned(session)) is elided


def test_b_an_elide_limit_the_user_set_to_600_holds_in_the_seed_presets_too(opened) -> None:
    settings = Settings(tool_results=ToolResultSettings(elide_limit_chars=600))
    session = opened(chats(400), policy="prune-naive", window=24_000, settings=settings)
    session.prepare(max_tokens=500)
    assert planned(session) == {"summarize", "squeeze"}, "what does not fit is made to, but nothing is elided"
