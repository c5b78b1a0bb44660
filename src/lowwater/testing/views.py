"""Views for testing mechanisms: conversations written line by line, in any format, counted and numbered."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from lowwater.core.entries import Appended
from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.ledger import Ledger
from lowwater.core.limits import derive_limits
from lowwater.core.mechanisms.mechanism import EditContext, ProposalRequest
from lowwater.core.mechanisms.registry import propose
from lowwater.core.messages import AnyPart, Format, Image, Message, Text, Thinking, ToolCall, ToolResult
from lowwater.core.proposals import Preset, Proposal
from lowwater.core.tokens.counting import count_message
from lowwater.core.view import Item
from lowwater.settings import CompressionSettings, LeafSettings, Settings
from lowwater.testing.fakes import WordTokenizer

PICTURE = Image(source="base64", data="iVBORw0KGgo" * 400, media_type="image/png")

_words = WordTokenizer()


def size(message: Message) -> int:
    """Return the tokens of a message, counted by words, framing included."""
    return count_message(message, _words)


def making(**changes: Any) -> EditContext:  # noqa: ANN401  # the fields of EditContext, each with its own type
    """Return an edit context that counts by words."""
    fields: dict[str, Any] = {"size": size, "tokenizer": _words}
    return EditContext(**fields | changes)


def asked(
    items: Sequence[Item],
    preset: Preset = Preset(),  # noqa: B008  # a frozen value
    *,
    first: int = 1,
    last: int = 2,
    tail: int = 0,
    protect: int = 0,
    context: int = 128_000,
    leaf: LeafSettings = LeafSettings(),  # noqa: B008  # a frozen value
) -> ProposalRequest:
    """Return a request for proposals on a view: its `first` and `last` messages and `tail` tokens are protected.

    `protect` is how many tokens of tool output pruning leaves alone.
    """
    compression = CompressionSettings(protect_first_n=first, protect_last_n=last, summary_min_tokens=50)
    limits = replace(derive_limits(context, compression), tail=tail, protected_tool_output=protect)
    settings = Settings(compression=compression, leaf=leaf)
    return ProposalRequest(items=items, context=making(preset=preset), limits=limits, settings=settings)


def offer_of(mechanism: str, question: ProposalRequest) -> Proposal | None:
    """Return the proposal of one mechanism, or None if it has none."""
    return next((offer for offer in propose(question).proposals if offer.mechanism == mechanism), None)


def lines(count: int, word: str = "line") -> str:
    """Return a text of distinct lines, six tokens each."""
    return "\n".join(f"{word} {number} says nothing new" for number in range(count))


class Script:
    """A conversation that grows by one message with each call."""

    def __init__(self, format: Format = "openai_chat") -> None:
        self.format = format
        self._told: list[Message] = []
        self._calls = 0

    def system(self, text: str) -> "Script":
        """Add a system message to the list."""
        return self._add("system", Text(text=text))

    def user(self, text: str, *more: AnyPart) -> "Script":
        """Add a user message: text and, perhaps, other parts."""
        return self._add("user", *([Text(text=text)] if text else []), *more)

    def says(self, text: str, *, thinking: str = "") -> "Script":
        """Add an answer of the model without a call."""
        return self._add("assistant", *_thought(thinking), Text(text=text))

    def calls(
        self,
        tool: str,
        arguments: Mapping[str, object],
        output: str | Sequence[Any] = "ok",
        *,
        failed: bool = False,
        thinking: str = "",
    ) -> "Script":
        """Add a tool call and its result, which is text or parts."""
        self.asks((tool, arguments), thinking=thinking)
        return self.answers(f"call_{self._calls}", output, failed=failed)

    def asks(self, *calls: tuple[str, Mapping[str, object]], thinking: str = "") -> "Script":
        """Add an answer that calls tools, without their results."""
        parts: list[AnyPart] = [*_thought(thinking)]
        for tool, arguments in calls:
            self._calls += 1
            written = msgspec.json.encode(dict(arguments)).decode()
            parts.append(ToolCall(id=f"call_{self._calls}", name=tool, arguments=written))
        return self._add("assistant", *parts)

    def answers(self, call_id: str, output: str | Sequence[Any] = "ok", *, failed: bool = False) -> "Script":
        """Add the result of a call."""
        parts = (Text(text=output),) if isinstance(output, str) else tuple(output)
        return self._add("tool", ToolResult(call_id=call_id, parts=parts, is_error=failed))

    def messages(self) -> list[Message]:
        """Return the conversation as a client of its format would send it, each message with its bytes."""
        return decode_messages(encode_messages(self._told, self.format), self.format)

    def ledger(self) -> Ledger:
        """Return a ledger with the whole conversation in one entry."""
        messages = tuple(self.messages())
        tokens = tuple(size(message) for message in messages)
        return Ledger().append(Appended(at=0.0, messages=messages, tokens=tokens))

    def items(self) -> list[Item]:
        """Return the view of that ledger."""
        return list(self.ledger().view.items)

    def _add(self, role: Any, *parts: AnyPart) -> "Script":  # noqa: ANN401  # one of the roles
        self._told.append(Message(role=role, parts=parts))
        return self


def _thought(text: str) -> list[Thinking]:
    return [Thinking(text=text, signature="EqQBCkYIBhgC" * 3)] if text else []
