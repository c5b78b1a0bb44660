"""Runs the summarization middleware of LangChain's Deep Agents with its defaults; started in its environment.

It starts at 85 % of the window that the model's profile names: the window is chosen so that this is where all are let start. What it
removes goes into files, which its agent may read again; here nobody does.
"""

import tempfile
from typing import Any, cast

from deepagents.backends import FilesystemBackend  # type: ignore[import-not-found]  # only there
from deepagents.middleware.summarization import (  # type: ignore[import-not-found]  # only there
    create_summarization_middleware,
)
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage

from bench.peers.langchain_worker import StandInModel, State
from bench.peers.serving import Messages, Opening, Peer, Reported, serve
from bench.peers.stand_in import StandIn

_STARTS_AT = 0.85


class Summarizing:
    """The middleware around a call of the model; its update of the state is kept as the agent keeps it."""

    def __init__(self, opening: Opening, summariser: StandIn) -> None:
        window = round(opening.trigger / _STARTS_AT)
        self._model = StandInModel(summariser=summariser, profile={"max_input_tokens": window})
        backend = FilesystemBackend(root_dir=tempfile.mkdtemp(), virtual_mode=True)
        self._middleware = create_summarization_middleware(self._model, backend)
        self._state = State()
        self._kept: dict[str, Any] = {}

    def request(self, new: Messages, reported: Reported | None) -> Messages:
        """Let the middleware wrap a call of the model."""
        self._state.add(new, reported)
        sent: list[AnyMessage] = []

        def call(request: ModelRequest[Any]) -> ModelResponse[Any]:
            sent.extend(request.messages)
            return ModelResponse(result=[])

        state = {**self._kept, "messages": self._state.messages}
        request: ModelRequest[Any] = ModelRequest(
            model=self._model, messages=self._state.messages, state=cast(Any, state)
        )
        done = self._middleware.wrap_model_call(request, call)
        command = getattr(done, "command", None)
        if command is not None:
            self._kept |= {name: value for name, value in command.update.items() if name != "messages"}
        return self._state.sent(sent)


def make(opening: Opening, summariser: StandIn) -> Peer:
    """Return the middleware."""
    return Summarizing(opening, summariser)


def main() -> None:
    """Serve."""
    serve(make)
