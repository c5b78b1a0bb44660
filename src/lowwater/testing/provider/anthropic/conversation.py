"""Messages rules about the conversation: roles, content, and tool calls with their results."""

import re
from collections.abc import Iterator
from itertools import pairwise

from lowwater.testing.provider.anthropic.body import (
    THINKING,
    Turn,
    blocks,
    blocks_of,
    invalid,
    system_blocks,
    turns,
    version,
)
from lowwater.testing.provider.anthropic.compaction import is_asked_for
from lowwater.testing.provider.rule import Incoming, Json, Violation

_ROLE_OF = {"tool_use": "assistant", "tool_result": "user"} | dict.fromkeys(THINKING, "assistant")


def known_roles(incoming: Incoming) -> Iterator[Violation]:
    """Messages come from the user and the assistant; from Opus 4.8 on a system message may stand between them."""
    for at, message in enumerate(incoming.messages):
        role = message["role"]
        if role == "system" and not _allows_system_messages(incoming.model):
            yield invalid(f"messages.{at}: role 'system' is not supported on this model")
        elif role not in ("user", "assistant", "system"):
            yield invalid(f"messages.{at}.role: Input should be 'user' or 'assistant'")


def first_message_is_user(incoming: Incoming) -> Iterator[Violation]:
    """The user speaks first, unless a signed compaction block does."""
    first = blocks_of(incoming.messages[0], 0)[:1]
    compacted = any(block.type == "compaction" and block.value.get("signature") for block in first)
    if incoming.messages[0]["role"] != "user" and not compacted:
        yield invalid('messages: first message must use the "user" role')


def system_message_follows_user(incoming: Incoming) -> Iterator[Violation]:
    """A system message within the conversation stands right behind a user turn."""
    for before, turn in pairwise(turns(incoming.body)):
        if turn.role == "system" and before.role != "user":
            yield invalid(
                f"messages.{turn.message}: a 'system' message must immediately follow a 'user' message"
            )


def blocks_fit_roles(incoming: Incoming) -> Iterator[Violation]:
    """Calls and thinking are the assistant's, results the user's."""
    for block in blocks(incoming.body):
        role = _ROLE_OF.get(block.type, block.role)
        if role != block.role:
            yield invalid(f"{block.path}: `{block.type}` blocks can only be in `{role}` messages")


def prefill_supported(incoming: Incoming) -> Iterator[Violation]:
    """From version 4.6 on the assistant's answer cannot be begun for it; what is compacted may end with one."""
    known = None if is_asked_for(incoming.body) else version(incoming.model)
    if known and known.number >= (4, 6) and incoming.messages[-1]["role"] == "assistant":
        yield invalid(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


def content_not_empty(incoming: Incoming) -> Iterator[Violation]:
    """Every message says something, except a final one of the assistant's."""
    last = len(incoming.messages) - 1
    for at, message in enumerate(incoming.messages):
        if not blocks_of(message, at) and not (at == last and message["role"] == "assistant"):
            yield invalid(
                f"messages.{at}: all messages must have non-empty content "
                "except for the optional final assistant message"
            )


def text_not_empty(incoming: Incoming) -> Iterator[Violation]:
    """A text block has text; inside a tool result it may be empty."""
    if any(_is_text(block.value) and not block.value["text"] for block in blocks(incoming.body)):
        yield invalid("messages: text content blocks must be non-empty")


def text_not_blank(incoming: Incoming) -> Iterator[Violation]:
    """A message is more than white space."""
    for at, message in enumerate(incoming.messages):
        own = blocks_of(message, at)
        if own and all(_is_text(block.value) and not block.value["text"].strip() for block in own):
            yield invalid("messages: text content blocks must contain non-whitespace text")


def system_text_not_empty(incoming: Incoming) -> Iterator[Violation]:
    """A block of the system prompt has text."""
    if any(_is_text(block) and not block["text"] for block in system_blocks(incoming.body)):
        yield invalid("system: text content blocks must be non-empty")


def no_trailing_whitespace(incoming: Incoming) -> Iterator[Violation]:
    """What the assistant's answer begins with does not end in white space."""
    final = turns(incoming.body)[-1]
    if is_asked_for(incoming.body):
        return
    if final.role == "assistant" and final.blocks and _is_text(final.blocks[-1].value):
        text = final.blocks[-1].value["text"]
        if text != text.rstrip():
            yield invalid("messages: final assistant content cannot end with trailing whitespace")


def tools_defined(incoming: Incoming) -> Iterator[Violation]:
    """A conversation with calls or results names its tools."""
    used = any(block.type in ("tool_use", "tool_result") for block in blocks(incoming.body))
    if used and not incoming.body.get("tools"):
        yield invalid("Requests which include `tool_use` or `tool_result` blocks must define tools")


def tool_names_unique(incoming: Incoming) -> Iterator[Violation]:
    """No two tools have one name."""
    names = [tool["name"] for tool in incoming.body.get("tools") or [] if "name" in tool]
    if len(set(names)) < len(names):
        yield invalid("tools: Tool names must be unique.")


def tool_use_id_pattern(incoming: Incoming) -> Iterator[Violation]:
    """Ids of calls are letters, digits, underscores and hyphens."""
    for block in blocks(incoming.body):
        name = {"tool_use": "id", "tool_result": "tool_use_id"}.get(block.type)
        if name and not re.fullmatch(r"[a-zA-Z0-9_-]+", block.value[name]):
            yield invalid(f"{block.path}.{block.type}.{name}: String should match pattern '^[a-zA-Z0-9_-]+$'")


def tool_use_ids_unique(incoming: Incoming) -> Iterator[Violation]:
    """An id is used for one call in the whole conversation."""
    seen: set[str] = set()
    for block in blocks(incoming.body):
        if block.type == "tool_use":
            if block.value["id"] in seen:
                yield invalid(f"{block.path}: `tool_use` ids must be unique")
            seen.add(block.value["id"])


def calls_answered(incoming: Incoming) -> Iterator[Violation]:
    """Every call has its result in the next turn."""
    for turn, following in _with_next(turns(incoming.body)):
        answered = {block.value["tool_use_id"] for block in following.of_type("tool_result")}
        missing = [
            block.value["id"] for block in turn.of_type("tool_use") if block.value["id"] not in answered
        ]
        if missing:
            yield invalid(
                f"messages.{turn.message}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block "
                "in the next message."
            )


def results_first(incoming: Incoming) -> Iterator[Violation]:
    """Results stand before anything else in the turn that answers calls."""
    for turn, following in pairwise(turns(incoming.body)):
        calls = len(turn.of_type("tool_use"))
        if any(block.type != "tool_result" for block in following.blocks[:calls]):
            yield invalid(
                f"messages.{following.message}: Did not find {calls} `tool_result` block(s) at the beginning of this "
                "message. Messages following `tool_use` blocks must begin with a matching number of "
                "`tool_result` blocks."
            )


def results_called(incoming: Incoming) -> Iterator[Violation]:
    """Every result has its call in the previous turn."""
    nothing = Turn(role="", message=-1, blocks=())
    conversation = turns(incoming.body)
    for before, turn in zip([nothing, *conversation], conversation, strict=False):
        called = {block.value["id"] for block in before.of_type("tool_use")}
        for block in turn.of_type("tool_result"):
            if block.value["tool_use_id"] not in called:
                yield invalid(
                    f"{block.path}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{block.value['tool_use_id']}. Each `tool_result` block must have a corresponding `tool_use` "
                    "block in the previous message."
                )


def one_result_per_call(incoming: Incoming) -> Iterator[Violation]:
    """A call has one result."""
    for turn in turns(incoming.body):
        seen: set[str] = set()
        for block in turn.of_type("tool_result"):
            call = block.value["tool_use_id"]
            if call in seen:
                yield invalid(
                    f"{block.path}: each tool_use must have a single result. "
                    f"Found multiple `tool_result` blocks with id: {call}"
                )
            seen.add(call)


def _with_next(conversation: list[Turn]) -> Iterator[tuple[Turn, Turn]]:
    return pairwise([*conversation, Turn(role="user", message=len(conversation), blocks=())])


def _is_text(block: Json) -> bool:
    return bool(block["type"] == "text")


def _allows_system_messages(model: str) -> bool:
    known = version(model)
    return known is not None and known.number >= ((4, 8) if known.family == "opus" else (5, 0))
