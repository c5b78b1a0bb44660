"""The context length a provider names when it refuses a prompt as too long."""

import re

_NUMBER = r"([\d,]+)"
_SAYINGS = (
    re.compile(rf"prompt is too long: {_NUMBER} tokens > (?P<limit>[\d,]+) maximum"),  # Anthropic
    re.compile(rf"exceed context limit: {_NUMBER} \+ {_NUMBER} > (?P<limit>[\d,]+)"),  # Anthropic
    re.compile(r"maximum context length (?:is|of) (?P<limit>[\d,]+)"),  # OpenAI, vLLM, OpenRouter
    re.compile(r"maximum number of tokens allowed \((?P<limit>[\d,]+)\)"),  # Gemini
    re.compile(r"available context size \((?P<limit>[\d,]+)"),  # llama.cpp
)


def context_length_in(text: str) -> int | None:
    """Return the context length that an error names, or None if it names none."""
    for saying in _SAYINGS:
        found = saying.search(text)
        if found:
            return int(found["limit"].replace(",", "")) or None
    return None
