"""Writes the session that is shipped for `lowwater demo` into the package again. `python -m tools.demo_session`."""

import lzma
from collections import defaultdict
from pathlib import Path

import msgspec
from msgspec import Raw

from lowwater.core.formats.codec import encode_messages
from lowwater.core.strict_json import read_fields
from lowwater.logs.demo_session import DemoLine, Header
from tests.generated import generate_session

FILE = Path(__file__).parents[1] / "src" / "lowwater" / "data" / "demo-session.jsonl.xz"
_SEED = 20261115
_MODEL = "claude-haiku-4-5"
_TOKENS = 330_000


def session_lines() -> bytes:
    """Return the session as lines of JSON: a header, then a message each."""
    made = generate_session("coding", seed=_SEED, model=_MODEL, target_tokens=_TOKENS)
    mentions: defaultdict[int, list[str]] = defaultdict(list)
    for reference in made.references:
        mentions[reference.used].append(reference.text)
    tools = Raw(made.tools_json("openai_chat"))
    lines: list[Header | DemoLine] = [Header(id=made.id, model=made.model, system=made.system, tools=tools)]
    for index, (message, at) in enumerate(zip(made.messages, made.times, strict=True)):
        content = Raw(read_fields(encode_messages([message], "anthropic")[0])["content"])
        told = tuple(mentions[index])
        lines.append(DemoLine(role=message.role, name=message.name, content=content, at=at, mentions=told))
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def main() -> None:
    """Write the file."""
    FILE.write_bytes(lzma.compress(session_lines(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()
