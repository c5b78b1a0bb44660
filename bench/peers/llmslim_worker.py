"""Runs LLMSlim's own middleware for LangChain agents with its defaults: results are shortened once, before a model sees them."""

from typing import Any, cast

from langchain_core.messages import AnyMessage
from llmslim.integrations.langchain_agents import (  # type: ignore[import-not-found]  # only there
    LLMSlimToolOutputMiddleware,
)

from bench.peers.langchain_worker import State
from bench.peers.serving import Messages, Opening, Peer, Reported, serve
from bench.peers.stand_in import StandIn


class Shortening:
    """The middleware, whose update of the state is kept as the agent keeps it: by the messages' ids."""

    def __init__(self) -> None:
        self._middleware = LLMSlimToolOutputMiddleware()
        self._state = State()

    def request(self, new: Messages, reported: Reported | None) -> Messages:
        """Let the middleware look at the state before the model does."""
        self._state.add(new, reported)
        for number, message in enumerate(self._state.messages):
            message.id = message.id or str(number)
        update = self._middleware.before_model({"messages": self._state.messages}, cast(Any, None))
        shorter: dict[str | None, AnyMessage] = {
            each.id: each for each in (update["messages"] if update else [])
        }
        self._state.messages = [shorter.get(each.id, each) for each in self._state.messages]
        return self._state.sent(self._state.messages)


def make(_opening: Opening, _summariser: StandIn) -> Peer:
    """Return the middleware."""
    return Shortening()


def main() -> None:
    """Serve."""
    serve(make)
