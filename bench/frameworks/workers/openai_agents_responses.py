"""The OpenAI Agents SDK's `Runner` over the Responses API, which is what it speaks unless told otherwise."""

from functools import partial

from bench.frameworks.worker import run
from bench.frameworks.workers.openai_agents_runner import play

if __name__ == "__main__":
    run(partial(play, responses=True))
