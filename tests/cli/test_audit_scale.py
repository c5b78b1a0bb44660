"""A large folder of recordings is audited in bounded memory, one session at a time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_audit_command import START, claude_code

MEASURED = """
import resource, sys, typer
from lowwater.cli.audit import audit
app = typer.Typer(pretty_exceptions_enable=False)
app.command("audit")(audit)
app(sys.argv[1:], standalone_mode=False)
kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print("peak", kilobytes // 1024)
"""


def peak(folder: Path) -> int:
    """Return how many megabytes an audit of a folder takes at most."""
    command = [sys.executable, "-c", MEASURED, str(folder), "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"TZ": "UTC"})
    return int(done.stdout.rsplit("peak ", 1)[1])


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is measured in Linux's unit")
def test_ten_times_the_sessions_take_hardly_more_memory(tmp_path):
    small, large = tmp_path / "small", tmp_path / "large"
    for folder, sessions in ((small, 10), (large, 100)):
        folder.mkdir()
        for number in range(sessions):
            text = claude_code(f"session-{number}", calls=150, at=START + 3_600 * number, step=800)
            (folder / f"{number}.jsonl").write_text(text)
    assert sum(path.stat().st_size for path in large.iterdir()) > 60_000_000
    assert peak(large) < peak(small) + 40
