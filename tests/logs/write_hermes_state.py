"""Makes a state.db with Hermes' own code; run by the interpreter of an environment that has it.

Its path is given; what it holds is printed: of each session that was compacted, the messages of its history, those that
compactions left, and where these begin.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["HERMES_HOME"] = tempfile.mkdtemp(prefix="hermes-home-")

import agent.context_compressor as module  # type: ignore[import-not-found]  # only there
from hermes_state import SessionDB  # type: ignore[import-not-found]  # only there

Messages = list[dict[str, Any]]
MORE: Messages = [{"role": "user", "content": "go on"}, {"role": "assistant", "content": "gone on"}]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def conversation(name: str, calls: int) -> Messages:
    """Return a user's request, some tool calls with their results, and an answer."""
    messages: Messages = [{"role": "user", "content": f"{name}: do the work"}]
    for at in range(calls):
        function = {"name": "terminal", "arguments": json.dumps({"command": f"ls {at}"})}
        call = {"id": f"{name}-{at}", "type": "function", "function": function}
        messages.append(
            {"role": "assistant", "content": "", "reasoning_content": f"thought {at}", "tool_calls": [call]}
        )
        result = f"output {name} {at} " + "word " * 400
        messages.append(
            {"role": "tool", "tool_call_id": f"{name}-{at}", "tool_name": "terminal", "content": result}
        )
    return [*messages, {"role": "assistant", "content": "done"}]


def compressed(messages: Messages) -> Messages:
    """Return what Hermes' compressor leaves."""
    answer = SimpleNamespace(message=SimpleNamespace(content="## Goal\nwork"), finish_reason="stop")
    module.call_llm = lambda **_: SimpleNamespace(choices=[answer])
    compressor = module.ContextCompressor(model="stand-in", config_context_length=20_000, quiet_mode=True)
    size = module.estimate_messages_tokens_rough(messages)
    left: Messages = compressor.compress(messages, current_tokens=size, force=True)
    return left


class Maker:
    """A database, written as Hermes' agent writes it."""

    def __init__(self, path: Path) -> None:
        self.db = SessionDB(path)

    def append(self, session: str, messages: Messages, **created: object) -> None:
        """Append messages to a session, which is made if something is said of it."""
        if created:
            self.db.create_session(session, source="cli", **created)
        names = ("role", "content", "tool_name", "tool_calls", "tool_call_id", "reasoning_content")
        for message in messages:
            self.db.append_message(session_id=session, **{name: message.get(name) for name in names})

    def split(self) -> dict[str, object]:
        """Make a session that a compaction split in two."""
        first = conversation("a", 40)
        left = compressed(first)
        self.append("split", first, model="m1")
        self.db.end_session("split", "compression")
        self.append("split-2", left + MORE, model="m1", parent_session_id="split")
        self.db.update_token_counts("split", input_tokens=1000, output_tokens=70, api_call_count=41)
        self.db.update_token_counts("split-2", input_tokens=300, output_tokens=5, api_call_count=1)
        return {"history": len(first + MORE), "left": len(left), "at": [len(first)]}

    def in_place(self) -> dict[str, object]:
        """Make a session that was compacted twice and kept its name."""
        first, second = conversation("b", 40), conversation("c", 40)
        left = compressed(first)
        again = compressed(left + second)
        self.append("in-place", first, model="m1")
        self.db.archive_and_compact("in-place", left)
        self.append("in-place", second)
        self.db.archive_and_compact("in-place", again)
        self.append("in-place", MORE)
        at = [len(first), len(first + left + second)]
        return {"history": len(first + second + MORE), "left": len(left + again), "at": at}

    def others(self) -> None:
        """Make a session of one call, a sub-agent, a branch, one with a part taken back, and one without messages."""
        asked = [{"role": "user", "content": [{"type": "text", "text": "look"}, PICTURE]}]
        self.append("plain", [*asked, MORE[1]], model="m1", system_prompt="You are Hermes.")
        figures = {"input_tokens": 100, "output_tokens": 7, "cache_read_tokens": 50, "cache_write_tokens": 3}
        self.db.update_token_counts("plain", api_call_count=1, **figures)
        delegated = {"_delegate_from": "plain"}
        self.append("child", conversation("d", 2), parent_session_id="plain", model_config=delegated)
        branched = {"_branched_from": "in-place"}
        shared = conversation("b", 40)[:5]
        self.append("branch", shared + MORE, parent_session_id="in-place", model_config=branched)
        self.append("rewound", MORE + MORE, model="m1")
        self.db.rewind_to_message("rewound", self.db.get_messages("rewound")[2]["id"])
        self.db.create_session("empty", source="cli")


def main(path: Path) -> None:
    """Make the database."""
    maker = Maker(path)
    sys.stdout.write(json.dumps({"split": maker.split(), "in-place": maker.in_place()}))
    maker.others()
    maker.db.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
