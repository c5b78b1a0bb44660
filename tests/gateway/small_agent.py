"""A client as `lowwater run` starts them: it knows the gateway by its variables only."""

import os
import sys
from typing import Any

import anthropic

client = anthropic.Anthropic(api_key="sk-test")
messages: list[Any] = [{"role": "user", "content": " ".join(sys.argv[1:]) or "hello"}]
for turn in range(3):
    answer = client.messages.create(model="claude-opus-4-5", max_tokens=99, messages=messages)
    messages += [
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": f"more {turn}"},
    ]
sys.stdout.write(f"asked {os.environ['ANTHROPIC_BASE_URL']}\n")
sys.exit(3)
