"""The gateway as operators run it: `lowwater serve`, a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

_LIMITED = """
import resource, sys
limit = int(sys.argv.pop(1))
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
from lowwater.cli import main
main()
"""


class Served(Struct, frozen=True, kw_only=True):
    """A gateway that runs."""

    url: str
    process: "subprocess.Popen[str]"

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def served_process(upstream: str, store: str, *options: str, file_limit: int = 0) -> Iterator[Served]:
    """Run a gateway in front of an upstream until the block ends; no file it writes grows beyond `file_limit` bytes."""
    command = [sys.executable, "-c", _LIMITED, str(file_limit), "serve", "--port", "0", "--store", store]
    command += ["--anthropic-upstream", upstream, "--openai-upstream", upstream, *options]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env={**os.environ}
    )
    try:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if "serving on http://" in line:
                break
        assert "serving on http://" in said, said
        url = said.split("serving on ")[1].split(": set")[0]
        yield Served(url=url, process=process)
    finally:
        process.terminate()
        assert process.stderr is not None
        process.stderr.read()
        process.wait(timeout=60)
        process.stderr.close()
