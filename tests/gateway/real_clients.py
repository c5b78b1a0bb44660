"""How each real client is run without a person: its program, its variables, its words for going on."""

import os
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path

import msgspec

from tests.gateway.installed_clients import CLAUDE, CODEX, OPENCODE, hermes, program_of

KEY = "sk-of-a-test"


class Client(ABC):
    """One client with a home of its own; nothing of the user's is read or written."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.work = home / "work"
        self.work.mkdir(parents=True)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "ANTHROPIC_API_KEY": KEY,
            "OPENAI_API_KEY": KEY,
        }

    @abstractmethod
    def asks(self, question: str, *, goes_on: bool) -> list[str]:
        """Return the command that asks, in a new conversation or in the last one."""

    @abstractmethod
    def points_at(self, url: str, *, access: str = "") -> None:
        """Set it up for a gateway as the guide tells, with the gateway's own key if it wants one."""

    def behind_run(self, url: str) -> dict[str, str]:
        """Return the variables that say where it would go by itself, for `lowwater run`; nothing if no URL is given."""
        if not url:
            return {}
        return {"ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": f"{url}/v1"}

    def ask(self, question: str, *, goes_on: bool = False) -> str:
        """Ask by itself, and return what it prints."""
        return self._run(self.asks(question, goes_on=goes_on), self.env)

    def ask_behind_run(
        self, question: str, url: str, store: str, *options: str, goes_on: bool = False
    ) -> str:
        """Ask through `lowwater run` with a provider at `url`, and return what both print."""
        command = [sys.executable, "-m", "lowwater", "run", "--store", store, *options, "--"]
        # The gateway is the one under test, wherever that lies.
        ours = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        return self._run(
            [*command, *self.asks(question, goes_on=goes_on)],
            self.env | ours | self.behind_run(url),
            both=True,
        )

    def _run(self, command: list[str], env: dict[str, str], *, both: bool = False) -> str:
        done = subprocess.run(
            command,
            env=env,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout[-2_000:]}\n{done.stderr[-2_000:]}"
        return done.stdout + (done.stderr if both else "")


class ClaudeCode(Client):
    """Claude Code, which speaks Messages."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
        self.options: list[str] = ["--allowedTools", "Bash,Agent"]

    def asks(self, question: str, *, goes_on: bool) -> list[str]:
        return [
            str(program_of(CLAUDE)),
            "-p",
            question,
            *(["--continue"] if goes_on else []),
            *["--output-format", "json"],
            *self.options,
        ]

    def points_at(self, url: str, *, access: str = "") -> None:
        self.env["ANTHROPIC_BASE_URL"] = url
        self.env["ANTHROPIC_CUSTOM_HEADERS"] = f"x-lowwater-key: {access}" if access else ""


class Codex(Client):
    """Codex, which speaks Responses; its models take tools as fields or, the newest, as an item."""

    def __init__(self, home: Path, model: str = "gpt-5.5") -> None:
        super().__init__(home)
        self.options = ["-m", model, "--skip-git-repo-check"]

    def asks(self, question: str, *, goes_on: bool) -> list[str]:
        going = ["resume", "--last"] if goes_on else []
        return [str(program_of(CODEX)), "exec", *self.options, *going, question]

    def points_at(self, url: str, *, access: str = "") -> None:
        (self.home / ".codex").mkdir()
        (self.home / ".codex" / "config.toml").write_text(
            'model_provider = "lowwater"\n'
            "[model_providers.lowwater]\n"
            'name = "lowwater"\n'
            f'base_url = "{url}/v1"\n'
            'wire_api = "responses"\n'
            'env_key = "OPENAI_API_KEY"\n'
            f'http_headers = {{ "x-lowwater-key" = "{access}" }}\n'
        )


class OpenCode(Client):
    """opencode, which speaks whatever its model's provider does."""

    def __init__(self, home: Path, model: str) -> None:
        super().__init__(home)
        self.env |= {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
        self.model = model

    def asks(self, question: str, *, goes_on: bool) -> list[str]:
        going = ["--continue"] if goes_on else []
        return [str(program_of(OPENCODE)), "run", "-m", self.model, *going, question]

    def points_at(self, url: str, *, access: str = "") -> None:
        options = {"baseURL": f"{url}/v1", "headers": {"x-lowwater-key": access}}
        told = {"provider": {self.model.partition("/")[0]: {"options": options}}}
        (self.work / "opencode.json").write_bytes(msgspec.json.encode(told))


class Hermes(Client):
    """Hermes, which speaks Chat Completions to any server."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.env["HERMES_HOME"] = str(home / ".hermes")
        (home / ".hermes").mkdir()

    def asks(self, question: str, *, goes_on: bool) -> list[str]:
        program = str(hermes())
        if goes_on:
            return [program, "--yolo", "chat", "--continue", "-q", question]
        return [program, "--yolo", "-z", question]

    def points_at(self, url: str, *, access: str = "") -> None:
        extra = f"  default_headers:\n    x-lowwater-key: {access}\n" if access else ""
        (self.home / ".hermes" / "config.yaml").write_text(
            f"model:\n  default: gpt-5.5\n  provider: custom\n  base_url: {url}/v1\n  api_key: {KEY}\n{extra}"
        )

    def behind_run(self, url: str) -> dict[str, str]:
        self.points_at(url)
        return {}
