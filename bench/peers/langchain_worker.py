"""Runs LangChain's own middleware; started with the interpreter of its environment.

`defaults` and `untrimmed` are the summarization middleware, whose update of the state is kept as the agent keeps it;
`editing` is the context editing middleware, which edits a copy for each request and keeps nothing.
"""

from typing import Any, Literal, cast

from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware, SummarizationMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.language_models.base import LangSmithParams
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    RemoveMessage,
    SystemMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.outputs import ChatGeneration, ChatResult

from bench.peers.serving import Messages, Opening, Peer, Reported, serve
from bench.peers.stand_in import StandIn

PROVIDER = "openai"
CLEAR_AT_LEAST = 20_000


class StandInModel(BaseChatModel):
    """A chat model that hands its prompt to the stand-in."""

    summariser: Any

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def _get_ls_params(self, *_: Any, **__: Any) -> LangSmithParams:  # noqa: ANN401
        return LangSmithParams(ls_provider=PROVIDER, ls_model_type="chat")

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:  # noqa: ANN401
        text = self.summariser("\n".join(str(message.content) for message in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])


class State:
    """The messages of an agent's state; the system prompt is not among them."""

    def __init__(self) -> None:
        self.system: list[BaseMessage] = []
        self.messages: list[AnyMessage] = []

    def add(self, new: Messages, reported: Reported | None) -> None:
        """Take in what is new; the answer carries what the provider reported."""
        for message in convert_to_messages(new):
            if isinstance(message, AIMessage) and reported is not None:
                total = reported.prompt + reported.output
                message.usage_metadata = {
                    "input_tokens": reported.prompt,
                    "output_tokens": reported.output,
                    "total_tokens": total,
                }
                message.response_metadata = {"model_provider": PROVIDER}
            if isinstance(message, SystemMessage) and not self.messages:
                self.system.append(message)
            else:
                self.messages.append(cast(AnyMessage, message))

    def sent(self, messages: list[AnyMessage]) -> Messages:
        """Return a request with these messages."""
        return convert_to_openai_messages([*self.system, *messages])


class Summarizing:
    """The summarization middleware, with its defaults but for the trigger, or with trimming off."""

    def __init__(self, opening: Opening, summariser: StandIn) -> None:
        model = StandInModel(summariser=summariser, profile={"max_input_tokens": opening.window})
        trigger: tuple[Literal["tokens"], int] = ("tokens", opening.trigger)
        given: dict[str, Any] = {"keep": ("messages", opening.keep)} if opening.keep else {}
        if opening.variant == "untrimmed":
            given["trim_tokens_to_summarize"] = None
        self._middleware = SummarizationMiddleware(model, trigger=trigger, **given)
        self._state = State()

    def request(self, new: Messages, reported: Reported | None) -> Messages:
        """Let the middleware look at the state before the model does."""
        self._state.add(new, reported)
        update = self._middleware.before_model({"messages": self._state.messages}, cast(Any, None))
        if update:
            kept = [each for each in update["messages"] if not isinstance(each, RemoveMessage)]
            self._state.messages = kept
        return self._state.sent(self._state.messages)


class Editing:
    """The context editing middleware, told to clear at least so much."""

    def __init__(self, opening: Opening) -> None:
        edit = ClearToolUsesEdit(trigger=opening.trigger, clear_at_least=CLEAR_AT_LEAST)
        if opening.keep:
            edit = ClearToolUsesEdit(trigger=opening.trigger, keep=opening.keep)
        self._middleware = ContextEditingMiddleware(edits=[edit])
        self._state = State()

    def request(self, new: Messages, reported: Reported | None) -> Messages:
        """Let the middleware wrap a call of the model."""
        self._state.add(new, reported)
        sent: list[AnyMessage] = []

        def call(request: ModelRequest[Any]) -> ModelResponse[Any]:
            sent.extend(request.messages)
            return ModelResponse(result=[])

        request: ModelRequest[Any] = ModelRequest(model=cast(Any, None), messages=self._state.messages)
        self._middleware.wrap_model_call(request, call)
        return self._state.sent(sent)


def make(opening: Opening, summariser: StandIn) -> Peer:
    """Return the middleware of a variant."""
    return Editing(opening) if opening.variant == "editing" else Summarizing(opening, summariser)


def main() -> None:
    """Serve."""
    serve(make)
