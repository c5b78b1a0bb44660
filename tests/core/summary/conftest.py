"""A conversation written down line by line, for tests that need an exact one."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from lowwater.core.messages import AnyPart, Message, Text, ToolCall, ToolResult
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest
from lowwater.core.summary.template import SummaryOutline, parse
from lowwater.testing.fakes import WordTokenizer


class Talk:
    """Grows by what is said and done in it."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def user(self, text: str) -> "Talk":
        self.messages.append(Message(role="user", parts=(Text(text=text),)))
        return self

    def says(self, text: str) -> "Talk":
        self.messages.append(Message(role="assistant", parts=(Text(text=text),)))
        return self

    def calls(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        output: str = "ok",
        *,
        failed: bool = False,
        text: str = "",
    ) -> "Talk":
        call_id = f"call_{len(self.messages)}"
        spoken: tuple[AnyPart, ...] = (Text(text=text),) if text else ()
        call = ToolCall(id=call_id, name=tool, arguments=msgspec.json.encode(dict(arguments)).decode())
        result = ToolResult(call_id=call_id, parts=(Text(text=output),), is_error=failed)
        self.messages.append(Message(role="assistant", parts=(*spoken, call)))
        self.messages.append(Message(role="tool", parts=(result,)))
        return self

    def runs(self, command: str, output: str = "", *, failed: bool = False, text: str = "") -> "Talk":
        return self.calls("Bash", {"command": command}, output, failed=failed, text=text)

    def request(self, *, max_tokens: int = 10_000, first: int = 1, **more: Any) -> SummaryRequest:
        numbers = tuple(range(first, first + len(self.messages)))
        return SummaryRequest(messages=tuple(self.messages), numbers=numbers, max_tokens=max_tokens, **more)


@pytest.fixture
def talk() -> Talk:
    return Talk()


@pytest.fixture
def summarised(tokenizer: WordTokenizer) -> Callable[[SummaryRequest], SummaryOutline]:
    return lambda request: parse(extract(request, tokenizer))


@pytest.fixture
def tokenizer() -> WordTokenizer:
    return WordTokenizer()
