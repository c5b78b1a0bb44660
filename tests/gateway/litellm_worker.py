"""An agent on LiteLLM, in an environment of its own: asks, reads what it is told to, and goes on with its whole list."""

import json
import sys
from typing import Any

import litellm  # type: ignore[import-not-found]  # in an environment of its own

TOOL = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Reads a part of the program.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}


def asked(model: str, url: str, messages: list[Any], *, streams: bool) -> Any:
    base = url if model.startswith("anthropic/") else f"{url}/v1"
    given = {"model": model, "api_base": base, "api_key": "k", "messages": messages, "tools": [TOOL]}
    answer: Any = litellm.completion(**given, max_tokens=2_000, num_retries=0, stream=streams)
    return litellm.stream_chunk_builder(list(answer), messages=messages) if streams else answer


def main() -> None:
    model, url, questions, lines = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    messages: list[Any] = [{"role": "system", "content": "You read."}]
    said: list[str] = []
    for question in range(questions):
        messages.append({"role": "user", "content": f"Question {question}?"})
        while True:
            message = asked(model, url, messages, streams=question % 2 == 1).choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                path = json.loads(call.function.arguments)["path"]
                read = f"what stands in {path}\n" * lines
                messages.append({"role": "tool", "tool_call_id": call.id, "content": read})
        said.append(message.content)
    sys.stdout.write(json.dumps(said) + "\n")


main()
