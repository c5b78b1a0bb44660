"""Recorded sessions, where they are present, go in and come out unchanged."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.formats.files import decode_conversation, encode_conversation
from lowwater.core.messages import Format

TRANSCRIPTS = Path(__file__).parents[4] / "shared" / "transcripts"
pytestmark = pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="no recorded sessions beside the project")


def assert_survives(raws: list[bytes], format: Format) -> None:
    messages = decode_messages(raws, format)
    assert encode_messages(messages, format) == raws
    rebuilt = encode_messages([message.with_parts(message.parts) for message in messages], format)
    assert [_plain(raw) for raw in rebuilt] == [_plain(raw) for raw in raws]


def _plain(raw: bytes) -> object:
    """Return what a message says; a result may spell the same in several ways."""
    message = json.loads(raw)
    for block in message["content"] if isinstance(message["content"], list) else []:
        if block.get("type") == "tool_result":
            if not block.get("is_error"):
                block.pop("is_error", None)
            match block.get("content"):
                case None | "" | []:
                    block.pop("content", None)
                case [{"type": "text", "text": text}]:
                    block["content"] = text
    return message


def test_every_canonical_session_survives() -> None:
    paths = sorted(TRANSCRIPTS.glob("canonical/*/*.jsonl.gz"))
    assert len(paths) > 400
    for path in paths:
        data = gzip.decompress(path.read_bytes())
        assert encode_conversation(decode_conversation(data)) == data, path.name
        assert_survives(data.splitlines()[1:], "openai_chat")


def claude_code_messages(path: Path) -> Iterator[bytes]:
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry.get("type") in {"user", "assistant"} and isinstance(entry.get("message"), dict):
            yield json.dumps(entry["message"], ensure_ascii=False).encode()


def test_every_claude_code_session_survives() -> None:
    paths = sorted(TRANSCRIPTS.glob("claude-code/*.jsonl"))
    assert len(paths) > 40
    for path in paths:
        raws = list(claude_code_messages(path))
        if raws:
            assert_survives(raws, "anthropic")


def test_every_tau_bench_conversation_survives() -> None:
    lists = [
        trial["traj"]
        for path in TRANSCRIPTS.glob("message-lists/*.json")
        for trial in json.loads(path.read_bytes())
    ]
    assert len(lists) > 10
    for messages in lists:
        assert_survives([json.dumps(message).encode() for message in messages], "openai_chat")
