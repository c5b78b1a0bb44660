"""Somebody else's o200k tokenizer: the npm package `tiktoken`, run by node in a temporary folder."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

_PROGRAM = """
const { get_encoding } = require("tiktoken");
const lines = require("readline").createInterface({ input: require("fs").createReadStream("texts.jsonl"), crlfDelay: Infinity });
const encoding = get_encoding("o200k_base");
lines.on("line", (line) => console.log(encoding.encode_ordinary(JSON.parse(line)).length));
"""


class Unavailable(Exception):
    """Node or the package cannot be had on this machine; the text says which."""


def independent_counts(texts: Iterable[str]) -> list[int]:
    """Return the o200k count of each text by npm's `tiktoken`, or raise Unavailable."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise Unavailable("node and npm are needed for the independent tokenizer: apt install nodejs npm")
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder)
        install = [npm, "install", "--silent", "--no-audit", "--no-fund", "tiktoken@1"]
        done = subprocess.run(install, cwd=there, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(f"npm cannot install tiktoken: {done.stderr.strip()[-200:]}")
        encode = msgspec.json.Encoder().encode
        with (there / "texts.jsonl").open("wb") as file:
            file.writelines(encode(text) + b"\n" for text in texts)
        (there / "count.js").write_text(_PROGRAM)
        run = subprocess.run([node, "count.js"], cwd=there, capture_output=True, text=True, check=True)
        return [int(line) for line in run.stdout.split()]
