"""Runs Hermes' own ContextCompressor over a session; started with the interpreter of Hermes' environment.

It is asked when its agent's loop asks it: after an answer with tool calls, by the tokens the provider reported, and
before a request, by its rough estimate. Only its call of a model is replaced.
"""

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

os.environ["HERMES_HOME"] = tempfile.mkdtemp(prefix="hermes-home-", dir=Path.cwd())

import agent.context_compressor as module  # type: ignore[import-not-found]  # only there

from bench.peers.serving import Messages, Opening, Peer, Reported, serve
from bench.peers.stand_in import StandIn

SMALL_WINDOW_SHARE = 0.75
"""Hermes raises its threshold to this share of windows below 512K; its window is chosen so that it is the trigger."""
MOST_ATTEMPTS = 3


def answering(summariser: StandIn) -> Any:  # noqa: ANN401  # what Hermes expects of a provider's client
    """Return a stand-in for `call_llm`."""

    def call(**asked: Any) -> Any:  # noqa: ANN401
        text = summariser("\n".join(str(message["content"]) for message in asked["messages"]))
        choice = SimpleNamespace(message=SimpleNamespace(content=text), finish_reason="stop")
        return SimpleNamespace(choices=[choice])

    return call


class Compressing:
    """A session's messages under the compressor."""

    def __init__(self, opening: Opening, summariser: StandIn) -> None:
        module.call_llm = answering(summariser)
        context = round(opening.trigger / SMALL_WINDOW_SHARE)
        self._compressor = module.ContextCompressor(
            model="stand-in", config_context_length=context, quiet_mode=True
        )
        assert abs(self._compressor.threshold_tokens - opening.trigger) <= 1, "it starts elsewhere"
        self._messages: Messages = []

    def request(self, new: Messages, reported: Reported | None) -> Messages:
        """Compress where the loop would."""
        self._messages += new
        compressor = self._compressor
        if reported is not None:
            compressor.update_from_response(
                {
                    "prompt_tokens": reported.prompt,
                    "completion_tokens": reported.output,
                    "total_tokens": reported.prompt + reported.output,
                }
            )
            if new[0].get("tool_calls") and compressor.should_compress(compressor.last_prompt_tokens):
                self._compress(compressor.last_prompt_tokens)
        for _ in range(MOST_ATTEMPTS):
            rough = module.estimate_messages_tokens_rough(self._messages)
            if compressor.should_defer_preflight_to_real_usage(rough) or not compressor.should_compress(
                rough
            ):
                break
            self._compress(rough)
        return self._messages

    def _compress(self, tokens: int) -> None:
        """Compress, and note what its agent notes then."""
        compressor = self._compressor
        before = self._messages
        self._messages = cast(Messages, compressor.compress(before, current_tokens=tokens))
        compressor.last_compression_rough_tokens = module.estimate_messages_tokens_rough(self._messages)
        compressor.last_prompt_tokens = -1
        compressor.awaiting_real_usage_after_compression = True
        if compressor._last_compression_made_progress:
            compressor.record_completed_compaction(used_fallback=compressor._last_summary_fallback_used)


def make(opening: Opening, summariser: StandIn) -> Peer:
    """Return the compressor."""
    return Compressing(opening, summariser)


def main() -> None:
    """Serve."""
    serve(make)
