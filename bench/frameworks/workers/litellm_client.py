"""OpenAI's client in a loop of its own, through a real LiteLLM proxy; the client keeps the whole list."""

import json
import os
import sys
from importlib.metadata import version
from typing import Any

from bench.frameworks.task import SYSTEM, TOOL, TOOL_WORDS, facts_until, log_of, question
from bench.frameworks.worker import Report, Told, run
from bench.frameworks.workers.litellm_proxy import KEY, Proxy

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": TOOL,
            "description": TOOL_WORDS,
            "parameters": {
                "type": "object",
                "properties": {"service": {"type": "string"}, "day": {"type": "integer"}},
                "required": ["service", "day"],
            },
        },
    }
]


def models_for(told: Told) -> list[dict[str, Any]]:
    """Return the proxy's list: one alias for the model."""
    params = {"model": f"openai/{told.model}", "api_base": told.openai_url, "api_key": "k", "max_retries": 0}
    info = {"max_input_tokens": told.window}
    return [{"model_name": "agent", "litellm_params": params, "model_info": info}]


def fitted(told: Told, messages: list[Any]) -> list[Any]:
    """Return what the client sends: with LiteLLM's own compaction, what that makes of the list."""
    if told.compaction != "own":
        return messages
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    from litellm.compression.compress import compress  # type: ignore[import-not-found]  # noqa: PLC0415 - only there

    made = compress(messages=messages, model="gpt-4o", compression_trigger=int(0.7 * told.window))
    return list(made["messages"])


def play(told: Told, report: Report) -> None:
    from openai import OpenAI  # noqa: PLC0415 - that of LiteLLM's environment

    report.version = version("litellm")
    report.how = {"lowwater": "LowwaterHook", "own": "litellm.compress, trigger 70 %", "none": "none"}[
        told.compaction
    ]
    messages: list[Any] = [{"role": "system", "content": SYSTEM}]
    with Proxy(sys.executable, models_for(told), hook=told.compaction == "lowwater") as proxy:
        client = OpenAI(base_url=f"{proxy.url}/v1", api_key=KEY, max_retries=0)
        for step in range(1, told.turns + 1):
            messages.append({"role": "user", "content": question(step)})
            while answer(client, told, messages):
                pass
            report.turns = step
            report.kept = sum(fact in str(messages) for fact in facts_until(step))


def answer(client: Any, told: Told, messages: list[Any]) -> bool:  # noqa: ANN401 - an OpenAI client
    """Let the model answer once, carry its calls out, and return whether there were any."""
    done = client.chat.completions.create(
        model="agent",
        messages=fitted(told, messages),
        tools=TOOLS,
        max_tokens=2_000,
        extra_headers={"x-litellm-session-id": "bench"},
    )
    said = done.choices[0].message
    calls = said.tool_calls or []
    kept = said.model_dump(exclude_none=True, include={"role", "content", "tool_calls"})
    messages.append({"content": None, **kept})
    for call in calls:
        arguments = json.loads(call.function.arguments)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": log_of(**arguments)})
    return bool(calls)


if __name__ == "__main__":
    run(play)
