"""Packages of others add policies, mechanisms, stores and summarizers by name; ours stay ours, and mistakes are one sentence."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lowwater import Lowwater, Settings, open_store
from lowwater.cli.app import app
from lowwater.errors import BadSetting
from lowwater.gateway.credentials import summarizers_of
from lowwater.gateway.options import GatewayOptions
from lowwater.session import plugins
from lowwater.session.factories import installed_writer
from lowwater.session.internals import internals
from lowwater.settings import CompressionSettings
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.fakes import ScriptedClock
from tests.session.installed_packages import (
    PATH,
    add_example,
    add_package,
    look_again,
    put_on_path,
    take_off_path,
)

RUNNER = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"})
COMMAND = Path(sys.executable).with_name("lowwater")
OPUS = "claude-opus-5-5"


def writes(files: int, lines: int = 120) -> list[Any]:
    """A conversation in which the model writes long files, of which tools say next to nothing."""
    told: list[Any] = [{"role": "user", "content": "Write the pages of the manual."}]
    for page in range(files):
        body = "\n".join(f"line {page}-{line} is about item {1000 * page + line}" for line in range(lines))
        call = {"name": "write_file", "arguments": json.dumps({"path": f"pages/{page}.md", "content": body})}
        told.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{page}", "type": "function", "function": call}],
            }
        )
        told.append({"role": "tool", "tool_call_id": f"c{page}", "content": "written"})
    return told


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example package, installed."""
    add_example(tmp_path / "site")
    put_on_path(monkeypatch, tmp_path / "site", PATH)
    yield
    look_again()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder on the path, to install packages in."""
    (tmp_path / "site").mkdir(exist_ok=True)
    put_on_path(monkeypatch, tmp_path / "site")
    yield tmp_path / "site"
    look_again()


def test_nothing_is_looked_for_while_all_names_are_ours() -> None:
    look_again()
    Lowwater(model=OPUS, policy="runway", store="memory:").session().prepare(writes(1))
    assert installed_writer(OPUS) is None
    assert RUNNER.invoke(app, ["config", "--policy", "never"]).exit_code == 0
    assert plugins.installed.cache_info().currsize == 0


@pytest.mark.usefixtures("example")
def test_a_policy_is_given_by_name_or_set() -> None:
    clock = ScriptedClock(1_000.0)
    by_name = Lowwater(model=OPUS, policy="when-cold", store="memory:", clock=clock)
    settings = Settings(compression=CompressionSettings(policy="when-cold"))
    for library in (by_name, Lowwater(model=OPUS, settings=settings, store="memory:", clock=clock)):
        session = library.session()
        session.prepare(writes(2))
        assert (decision := internals(session).decision)
        assert decision.because.code == "cold-and-nothing-due"
        assert internals(session).last_policy == "when-cold"


@pytest.mark.usefixtures("example")
def test_the_example_policy_compacts_when_the_cache_has_gone_cold_and_not_before() -> None:
    clock = ScriptedClock(1_000.0)
    session = Lowwater(
        model="gpt-6.1-sol", policy="when-cold", mechanisms=["arguments"], store="memory:", clock=clock
    ).session()
    talk = writes(20)
    session.prepare(talk[:3])
    session.record(_answer(talk[3]))
    clock.advance(30)
    session.prepare(talk)
    assert (decision := internals(session).decision)
    assert decision.because.code == "cache-is-warm"
    session.record(_answer({"role": "assistant", "content": "All pages are written."}))
    clock.advance(7_200)
    session.prepare([*talk, {"role": "assistant", "content": "All pages are written."}, talk[0]])
    assert (decision := internals(session).decision)
    assert decision.because.code == "cache-is-cold"
    event = internals(session).last_compaction
    assert event is not None
    assert event.mechanisms == ("arguments",)
    assert event.after < event.before


def _answer(message: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 3_000, "completion_tokens": 2_000, "total_tokens": 5_000}
    return {"id": "r", "object": "chat.completion", "choices": [{"message": message}], "usage": usage}


@pytest.mark.usefixtures("example")
def test_the_command_line_takes_an_installed_policy_wherever_a_setting_can_be_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lowwater.yaml"
    file.write_text("compression:\n  policy: when-cold\n")
    asked = ["config", "policy", "--json"]
    by_flag = RUNNER.invoke(app, [*asked, "--policy", "when-cold"])
    by_file = RUNNER.invoke(app, [*asked, "--config", str(file)])
    monkeypatch.setenv("LOWWATER_POLICY", "when-cold")
    by_variable = RUNNER.invoke(app, asked)
    for shown in (by_flag, by_file, by_variable):
        assert shown.exit_code == 0, shown.exception
        assert json.loads(shown.stdout)["value"] == "when-cold"
    schema = json.loads(RUNNER.invoke(app, ["config", "--schema"]).stdout)
    assert "when-cold" in schema["$defs"]["CompressionSettings"]["properties"]["policy"]["enum"]


@pytest.mark.usefixtures("example")
def test_an_unknown_policy_is_one_sentence_with_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"^there is no policy when-colt; did you mean when-cold\?$"):
        Lowwater(model=OPUS, policy="when-colt")
    with pytest.raises(BadSetting, match=r"there are rent-or-buy, .*, threshold, when-cold$"):
        Lowwater(model=OPUS, policy="xyz")
    file = tmp_path / "lowwater.yaml"
    file.write_text("compression:\n  policy: when-colt\n")
    refused = RUNNER.invoke(app, ["config", "--config", str(file)])
    assert str(refused.exception).startswith(f"policy ({file}:2) must be one of ")
    assert str(refused.exception).endswith(", when-cold, not when-colt; did you mean when-cold?")


@pytest.mark.usefixtures("example")
def test_explain_says_what_an_installed_policy_does_with_installed_mechanisms(tmp_path: Path) -> None:
    source = tmp_path / "talk.json"
    source.write_text(json.dumps(writes(60)))
    asked = ["inspect", "--explain", str(source), "--model", OPUS, "--mechanisms", "arguments", "--policy"]
    shown = RUNNER.invoke(app, [*asked, "when-cold"])
    assert shown.exit_code == 0, shown.exception
    assert "cache-is-cold: prompt" in shown.stdout
    assert "1. Cut long texts out of the arguments" in " ".join(shown.stdout.split())
    assert "On sale: placeholders for long arguments" in shown.stdout


@pytest.mark.usefixtures("example")
def test_a_summarizer_is_given_by_name_or_set() -> None:
    named = Settings(compression=CompressionSettings(summary_model="minutes"))
    for given in (
        {"summarizer": "minutes"},
        {"summarizer": ["plugin:minutes"]},
        {"settings": named},
    ):
        session = Lowwater(model="gpt-4o", policy="threshold", store="memory:", **given).session()
        session.append(writes(60))
        event = session.compress()
        assert event is not None
        assert (event.mechanisms, event.summarizer) == (("summarize",), "minutes")
        assert "- called write_file:" in json.dumps(session.view())


@pytest.mark.usefixtures("example")
def test_the_name_of_a_model_means_the_model_and_plugin_means_what_is_installed(site: Path) -> None:
    add_package(site, "greedy", {"lowwater.summarizers": {"gpt-4o": "nowhere:Nothing"}})
    look_again()
    assert installed_writer("gpt-4o") is None
    assert installed_writer("a-model-nobody-knows") is None
    with pytest.raises(
        BadSetting, match=r"^no installed package adds a summarizer minute; did you mean minutes\?"
    ):
        installed_writer("plugin:minute")


@pytest.mark.usefixtures("example")
def test_the_gateway_asks_an_installed_summarizer() -> None:
    (writer,) = summarizers_of(GatewayOptions(summary_model="minutes"), OPUS, base_url="", client_pays=False)
    assert type(writer).__name__ == "Minutes"
    (model,) = summarizers_of(
        GatewayOptions(summary_model="claude-haiku-5"), OPUS, base_url="", client_pays=False
    )
    assert type(model).__name__ == "AsyncModelSummarizer"


@pytest.mark.usefixtures("example")
def test_a_store_is_given_by_its_address_in_every_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"jsonl:///{tmp_path / 'kept'}"
    with_address = Lowwater(model="gpt-4o", policy="never", store=address)
    with_address.session("by hand").prepare(writes(2))
    with_address.close()
    monkeypatch.setenv("LOWWATER_STORE", address)
    by_variable = Lowwater(model="gpt-4o", policy="never")
    by_variable.session("by variable").prepare(writes(2))
    by_variable.close()
    listed = RUNNER.invoke(app, ["sessions", "list", "--store", address])
    assert listed.exit_code == 0, listed.exception
    assert "by hand" in listed.stdout
    assert "by variable" in listed.stdout
    told = subprocess.run(
        [COMMAND, "recall", "by hand", "pages/1.md"], capture_output=True, check=False, text=True
    )
    assert told.returncode == 0, told.stderr
    assert "pages/1.md" in told.stdout


@pytest.mark.usefixtures("example")
def test_an_unknown_address_is_told_what_can_be_opened() -> None:
    with pytest.raises(BadSetting, match=r"postgresql://… or jsonl:…$"):
        open_store("json:///folder")
    with pytest.raises(BadSetting, match="named by jsonl:///FOLDER"):
        open_store("jsonl:folder")


def test_ours_cannot_be_replaced(site: Path, tmp_path: Path) -> None:
    points = {
        "lowwater.policies": {"runway": "nowhere:POLICY"},
        "lowwater.mechanisms": {"elide": "nowhere:MECHANISM"},
        "lowwater.stores": {"sqlite": "nowhere:open", "memory": "nowhere:open"},
        "lowwater.summarizers": {OPUS: "nowhere:Summarizer"},
    }
    add_package(site, "greedy", points)
    look_again()
    library = Lowwater(model=OPUS, policy="runway", store=f"sqlite:///{tmp_path / 's.db'}")
    assert isinstance(library.store, SqliteStore)
    library.session().prepare(writes(1))
    library.close()
    assert plugins.policy_names() == ()
    with pytest.raises(
        BadSetting, match=r"^elide is one of Lowwater's own mechanisms, which are always asked"
    ):
        Lowwater(model=OPUS, mechanisms=["elide"])


BROKEN = """
from lowwater.core.mechanisms.registry import Mechanism
from lowwater.core.policies.registry import Policy
from lowwater.core.proposals import Preset

def fail(*args, **kwargs):
    raise ValueError("the user's secret words")

NUMBER = 7
FAILING = Mechanism(name="failing", propose=fail, apply=fail, loses=0.1)
POLICY = Policy(name="failing", decide=fail, preset=Preset())
LOSING = Mechanism(name="losing", propose=fail, apply=fail, loses=7)
"""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"policy": "gone"}, "the policy gone of broken-one cannot be loaded (ModuleNotFoundError: No module named 'nowhere')"),
        ({"policy": "number"}, "the policy number of broken-one is a int and not a lowwater.core.policies.registry.Policy"),
        ({"mechanisms": ["number"]}, "the mechanism number of broken-one is a int and not a lowwater.core.mechanisms.registry.Mechanism"),
        ({"mechanisms": ["losing"]}, "the mechanism losing of broken-one says that it loses 7, which is no share from 0 to 1"),
        ({"mechanisms": ["failin"]}, "no installed package adds a mechanism failin; did you mean failing?"),
        ({"store": "number:here"}, "the store number of broken-one is a int, and cannot be called to open a store"),
        ({"store": "failing:here"}, "the store failing of broken-one failed (ValueError)"),
        ({"summarizer": "failing"}, "the summarizer failing of broken-one failed (ValueError)"),
        ({"summarizer": "object"}, "the summarizer object of broken-one made a object, which has no method `summarize`"),
        ({"policy": "both"}, "broken-one and broken-two each add a policy both: uninstall all of them but one"),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_what_is_broken_is_one_sentence_that_names_it(site: Path, options: dict[str, Any], says: str) -> None:
    points = {
        "lowwater.policies": {"gone": "nowhere:POLICY", "number": "broken_plugins:NUMBER", "both": "b:B"},
        "lowwater.mechanisms": {
            "number": "broken_plugins:NUMBER",
            "failing": "broken_plugins:FAILING",
            "losing": "broken_plugins:LOSING",
        },
        "lowwater.stores": {"number": "broken_plugins:NUMBER", "failing": "broken_plugins:fail"},
        "lowwater.summarizers": {"failing": "broken_plugins:fail", "object": "builtins:object"},
    }
    add_package(site, "broken-one", points, {"broken_plugins": BROKEN})
    add_package(site, "broken-two", {"lowwater.policies": {"both": "b:B"}})
    look_again()
    with pytest.raises(BadSetting) as refused:
        Lowwater(model="gpt-4o", **options)
    assert str(refused.value) == says


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("mechanism", {"policy": "runway", "mechanisms": ["failing"]}),
        ("policy", {"policy": "failing"}),
    ],
    ids=["mechanism", "policy"],
)
def test_what_fails_in_a_turn_is_named_and_what_it_said_is_not_repeated(
    site: Path, kind: str, options: dict[str, Any]
) -> None:
    points = {
        "lowwater.mechanisms": {"failing": "broken_plugins:FAILING"},
        "lowwater.policies": {"failing": "broken_plugins:POLICY"},
    }
    add_package(site, "broken-one", points, {"broken_plugins": BROKEN})
    look_again()
    session = Lowwater(model="gpt-4o", store="memory:", **options).session()
    with pytest.raises(BadSetting, match=rf"^the {kind} failing of broken-one failed \(ValueError\)$"):
        session.prepare(writes(60))


def test_a_session_outlives_the_package_whose_policy_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_example(tmp_path / "site")
    put_on_path(monkeypatch, tmp_path / "site", PATH)
    address = f"sqlite:///{tmp_path / 's.db'}"
    library = Lowwater(model=OPUS, policy="when-cold", mechanisms=["arguments"], store=address)
    session = library.session("kept")
    session.prepare(writes(60))
    assert internals(session).last_compaction is not None
    library.close()
    take_off_path(tmp_path / "site")
    shown = RUNNER.invoke(app, ["status", "kept", "--store", address])
    assert shown.exit_code == 0, shown.exception
    found = RUNNER.invoke(app, ["recall", "kept", "lw:2", "--store", address])
    assert "line 0-119 is about item 119" in found.stdout
