"""What the gateway's guide says can be typed, and its compose file is one that would start."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from lowwater.settings.resolve import catalogue

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "gateway.md").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((DOCS / "compose.yaml").read_text(encoding="utf-8"))
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)


def commands() -> list[str]:
    """Return the commands of our own that the guide shows, without what another program is given."""
    lines = [line for block in CONSOLE.findall(GUIDE) for line in block.splitlines()]
    typed = [line.removeprefix("$ ").partition("#")[0].strip() for line in lines]
    found = [match[1] for line in typed if (match := re.search(r"(?:^|-- )(lowwater [a-z].*)", line))]
    return sorted({line.partition(" -- ")[0] for line in found})


def is_understood(*arguments: str) -> bool:
    """Return whether the command line takes these arguments: help is shown only if all of them are known."""
    done = subprocess.run(
        [sys.executable, "-m", "lowwater", *arguments, "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode == 0


def test_every_command_in_the_guide_is_understood() -> None:
    assert {command.split()[1] for command in commands()} >= {"run", "serve"}
    assert [command for command in commands() if not is_understood(*shlex.split(command)[1:])] == []


def test_an_option_that_is_not_there_would_be_noticed() -> None:
    assert not is_understood("serve", "--no-such-option")


def test_every_option_in_the_guide_is_one_of_serve() -> None:
    named = set(re.findall(r"`(--[a-z-]+)", GUIDE)) - {"--continue", "--resume"}
    assert {"--recall", "--require-key", "--max-body"} <= named
    helped = subprocess.run(
        [sys.executable, "-m", "lowwater", "serve", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={"COLUMNS": "300", "TERM": "dumb"},
    ).stdout
    settings = {setting.flag for setting in catalogue()}
    assert {option for option in named - settings if not re.search(rf"{option}\b", helped)} == set()


@pytest.mark.parametrize(
    ("language", "reads"), [("json", json.loads), ("toml", tomllib.loads), ("yaml", yaml.safe_load)]
)
def test_settings_in_the_guide_can_be_read(language: str, reads: Any) -> None:
    (block,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert "http://127.0.0.1:4141/v1" in str(reads(block))


def test_the_compose_file_starts_replicas_as_they_are_started_by_hand() -> None:
    gateways = {name: one for name, one in COMPOSE["services"].items() if name.startswith("gateway")}
    assert len(gateways) == 2
    for service in gateways.values():
        assert is_understood(*service["command"])
        assert any(option.startswith("--store=postgresql://") for option in service["command"])
        assert (DOCS / service["build"]["context"] / service["build"]["dockerfile"]).is_file()


def test_the_balancer_asks_every_replica_on_the_port_it_listens_on() -> None:
    said = COMPOSE["configs"]["balancer"]["content"]
    for name, service in COMPOSE["services"].items():
        if name.startswith("gateway"):
            assert "--port=4141" in service["command"]
            assert f"{name}:4141" in said
    assert "/healthz" in said


def test_what_services_depend_on_is_there() -> None:
    services = COMPOSE["services"]
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        assert {one["source"] for one in service.get("configs", ())} <= set(COMPOSE["configs"])


def test_the_image_holds_what_the_gateway_needs() -> None:
    image = (DOCS / "Dockerfile").read_text(encoding="utf-8")
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (asked,) = re.findall(r"'\.\[([a-z,]+)\]'", image)
    assert set(asked.split(",")) <= set(project["optional-dependencies"])
    for source in ("pyproject.toml", project["readme"], *project["license-files"]):
        assert source.partition("/")[0].partition(".")[0] in image
    assert 'ENTRYPOINT ["lowwater"]' in image
