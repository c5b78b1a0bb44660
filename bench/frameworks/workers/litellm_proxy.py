"""A real LiteLLM proxy as a process of its own, on loopback and without the network.

Standard library only: the worker in LiteLLM's environment starts it, and so do the tests.
"""

import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[3]
HOOK = ROOT / "examples" / "litellm_hook.py"
KEY = "sk-loopback-0123456789-0123456789-0123456789-0123456789"
_LONGEST = 120.0


class Proxy:
    """Serves `models`, a LiteLLM `model_list`, inside a `with` block; with Lowwater's hook if it is to compact."""

    def __init__(
        self, python: str | Path, models: list[dict[str, Any]], *, hook: bool, store: str = "memory:"
    ) -> None:
        self._program = Path(python).with_name("litellm")
        self._config: dict[str, Any] = {"model_list": models}
        if hook:
            self._config["litellm_settings"] = {"callbacks": "litellm_hook.proxy_handler_instance"}
        self._store = store

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="litellm-")
        folder = Path(self._folder.name)
        (folder / "config.yaml").write_text(json.dumps(self._config))
        (folder / HOOK.name).write_text(HOOK.read_text())
        self._port = _free_port()
        paths = (str(ROOT), str(ROOT / "src"))
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(paths),
            "LITELLM_MASTER_KEY": KEY,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LOWWATER_STORE": self._store,
        }
        command = [
            str(self._program),
            "--config",
            "config.yaml",
            "--host",
            "127.0.0.1",
            "--port",
            str(self._port),
        ]
        self._log = (folder / "log").open("w+")
        self._process = subprocess.Popen(
            [*command, "--telemetry", "False"],
            env=environment,
            cwd=folder,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        try:
            self._wait()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def log(self) -> str:
        """What it has printed."""
        self._log.flush()
        return Path(self._log.name).read_text()

    def _wait(self) -> None:
        """Return once it answers."""
        until = time.monotonic() + _LONGEST
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{self.url}/health/liveliness", timeout=2):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        raise RuntimeError(f"the proxy did not start: {self.log[-500:]}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait()
        self._log.close()
        self._folder.cleanup()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
