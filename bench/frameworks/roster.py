"""The frameworks that are compared: each one's worker, where it runs, and what it brings along to compact."""

import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from bench.peers.environment import python_with

WORKERS = Path(__file__).parent / "workers"


class Framework(Struct, frozen=True, kw_only=True):
    """One framework."""

    name: str
    worker: str
    """The program in `workers/`."""
    own: str
    """What it brings along to compact, for the table."""
    python: Callable[[str], str | Path] = lambda _: sys.executable
    """Returns the interpreter for its worker under `lowwater`, `own` or `none`, or raises Unavailable."""
    speaks_anthropic: bool = True
    """Whether its worker can ask a Claude."""


def _harness() -> Path:
    """Its compactions are a package of their own, which pins an older pydantic-ai."""
    python_with("pydantic-ai-harness", "pydantic-ai-harness==0.62.0")
    return python_with("pydantic-ai-harness", "pydantic-ai-slim[openai,anthropic]==2.62.0")


_NEEDED = (
    "msgspec>=0.21",
    "splintr-rs>=0.22",
    "genai-prices>=0.2",
    "platformdirs>=4",
    "httpx2>=2",
    "typer>=0.20",
)
"""What Lowwater needs beside LiteLLM's proxy, whose pins leave no room for the whole of it."""

FRAMEWORKS = (
    Framework(name="LangChain", worker="langchain_agent.py", own="SummarizationMiddleware"),
    Framework(
        name="OpenAI Agents",
        worker="openai_agents_runner.py",
        own="ToolOutputTrimmer",
        speaks_anthropic=False,
    ),
    Framework(
        name="OpenAI Agents, Responses",
        worker="openai_agents_responses.py",
        own="OpenAIResponsesCompactionSession",
        speaks_anthropic=False,
    ),
    Framework(
        name="pydantic-ai",
        worker="pydantic_ai_agent.py",
        own="pydantic-ai-harness",
        python=lambda compaction: _harness() if compaction == "own" else sys.executable,
    ),
    Framework(
        name="Hermes",
        worker="hermes_agent.py",
        own="ContextCompressor",
        python=lambda _: python_with("hermes", "hermes-agent==0.19.0", lowwater=True),
        speaks_anthropic=False,
    ),
    Framework(
        name="Strands",
        worker="strands_agent.py",
        own="SlidingWindowConversationManager",
        python=lambda _: python_with("strands", "strands-agents[anthropic,openai]==1.62.0", lowwater=True),
    ),
    Framework(
        name="LiteLLM",
        worker="litellm_client.py",
        own="litellm.compress",
        python=lambda _: python_with("litellm", "litellm[proxy]==1.106.2", *_NEEDED),
        speaks_anthropic=False,
    ),
)
