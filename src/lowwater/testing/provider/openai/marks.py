"""Chat rules about Claude's cache marks behind routers: where each of them lets one stand (`values.routers`)."""

from collections.abc import Iterator

from lowwater.core.models.routers import ALIBABA, UNKNOWN, Router, router_of
from lowwater.testing.provider.openai.body import invalid, parts_of
from lowwater.testing.provider.rule import Incoming, Violation

_MARK = "cache_control"


def mark_not_on_message(incoming: Incoming) -> Iterator[Violation]:
    """A mark stands on a part, never on a message: OpenRouter hangs on one on a tool message, and others ignore it."""
    for at, message in enumerate(incoming.messages):
        if message.get(_MARK) is not None:
            yield invalid(f"messages[{at}].cache_control: Extra inputs are not permitted", f"messages[{at}]")


def mark_on_text(incoming: Incoming) -> Iterator[Violation]:
    """The part that carries a mark is a text that is not blank."""
    for at, message in enumerate(incoming.messages):
        for index, part in enumerate(parts_of(message)):
            if part.get(_MARK) is None:
                continue
            where = f"messages[{at}].content[{index}]"
            if part.get("type") != "text":
                yield invalid(f"{where}: cache_control can only be set for text parts", where)
            elif not part["text"].strip():
                yield invalid(f"{where}: cache_control cannot be set for empty text blocks", where)


def mark_where_router_looks(incoming: Incoming) -> Iterator[Violation]:
    """The text of a tool message carries a mark only where the router is known to take it to the tool result."""
    if _router(incoming).on_tools:
        return
    for at, message in enumerate(incoming.messages):
        if message["role"] == "tool" and any(part.get(_MARK) is not None for part in parts_of(message)):
            yield invalid(
                f"messages.{at}: cache_control may not be specified within tool_result.content. "
                "It may be specified on the tool_result itself."
            )


def at_most_four_chat_marks(incoming: Incoming) -> Iterator[Violation]:
    """A request carries four marks."""
    found = sum(part.get(_MARK) is not None for message in incoming.messages for part in parts_of(message))
    most = _router(incoming).most
    if found > most:
        yield invalid(f"A maximum of {most} blocks with cache_control may be provided. Found {found}.")


def _router(incoming: Incoming) -> Router:
    """Return whose rules hold, told by the model's name as a client of that router spells it."""
    name = str(incoming.body["model"])
    return router_of(name) or (ALIBABA if incoming.model.startswith("qw") else UNKNOWN)
