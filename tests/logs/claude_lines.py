"""Claude Code sessions written line by line, as its client would."""

import json
from datetime import UTC, datetime
from pathlib import Path

USAGE = {
    "input_tokens": 3,
    "cache_creation_input_tokens": 700,
    "cache_read_input_tokens": 9000,
    "cache_creation": {"ephemeral_5m_input_tokens": 500, "ephemeral_1h_input_tokens": 200},
    "output_tokens": 40,
    "service_tier": "standard",
}
START = 1_770_000_000


class ClaudeLines:
    """Lines that each hang on the one before, unless told otherwise; uuids are u1, u2 and so on."""

    def __init__(self, session="s1", *, prefix="u", **always):
        self.lines = []
        self._always = {"sessionId": session, "isSidechain": False, **always}
        self._prefix = prefix
        self.last = None

    def add(self, type, **fields):
        uuid = f"{self._prefix}{len(self.lines) + 1}"
        at = datetime.fromtimestamp(START + len(self.lines), UTC).isoformat().replace("+00:00", "Z")
        line = {"parentUuid": self.last, **self._always, "type": type, "uuid": uuid, "timestamp": at}
        self.lines.append(line | fields)
        self.last = uuid
        return uuid

    def user(self, content, **fields):
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def block(self, message, block, *, usage=None, model="claude-opus-5-5", **fields):
        said = {"id": message, "model": model, "role": "assistant", "content": [block]}
        said["usage"] = USAGE if usage is None else usage
        return self.add("assistant", **{"requestId": f"r-{message}", "message": said, **fields})

    def text(self, message, text, **fields):
        return self.block(message, {"type": "text", "text": text}, **fields)

    def tool(self, message, id, **fields):
        use = {"type": "tool_use", "id": id, "name": "read", "input": {"path": id}}
        return self.block(message, use, **fields)

    def result(self, id, text="the result", **fields):
        return self.user([{"type": "tool_result", "tool_use_id": id, "content": text}], **fields)

    def at(self, uuid):
        """Go on from there."""
        self.last = uuid
        return self

    def write(self, path: Path) -> Path:
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return path
