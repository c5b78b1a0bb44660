"""Runs Hermes' own ContextCompressor; started by `bench.hermes` with the interpreter of Hermes' environment.

It is given messages, a window and the text that stands in for a summary, and compresses once for every line it reads. All
of it is Hermes' code but for the call of a model: `call_llm`, as the compressor's module imported it, returns the text.
"""

import gc
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["HERMES_HOME"] = tempfile.mkdtemp(prefix="hermes-home-")

import agent.context_compressor as module  # type: ignore[import-not-found]  # only there


def answering(text: str) -> Any:  # noqa: ANN401  # what Hermes expects of a provider's client
    """Return a stand-in for `call_llm` that answers at once."""
    message = SimpleNamespace(content=text)
    answer = SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")])
    return lambda **_: answer


def compress_once(messages: list[dict[str, Any]], context: int) -> dict[str, Any]:
    """Return what one compression by a new compressor took and left; its own estimate of the size is not timed."""
    compressor = module.ContextCompressor(model="stand-in", config_context_length=context, quiet_mode=True)
    size = module.estimate_messages_tokens_rough(messages)
    gc.collect()
    start = time.process_time()
    left = compressor.compress(messages, current_tokens=size, force=True)
    seconds = time.process_time() - start
    summarised = not compressor._last_summary_fallback_used and not compressor._last_compress_aborted
    return {
        "seconds": seconds,
        "messages": left,
        "tail": compressor.tail_token_budget,
        "summarised": summarised,
    }


def main(given: Path) -> None:
    """Answer every line on standard input with a compression of the messages in `given`."""
    asked = json.loads(given.read_bytes())
    messages = json.dumps(asked["messages"])
    module.call_llm = answering(asked["summary"])
    for _ in sys.stdin:
        print(json.dumps(compress_once(json.loads(messages), asked["context"])), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
