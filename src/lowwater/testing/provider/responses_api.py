"""OpenAI's Responses API for the test provider: which requests it refuses, what it remembers, and how it answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from lowwater.testing.provider import openai as chat
from lowwater.testing.provider.answers import CallTools, CutOff, DropConnection, Refuse, Say, Spoken, Think
from lowwater.testing.provider.caches import Machines, Used
from lowwater.testing.provider.openai import (
    CREATED,
    LONGEST_NAME,
    MOST_BREAKPOINTS,
    ChatDialect,
    below_minimum,
    invalid,
    missing,
    name_too_long,
    no_breakpoints_here,
    not_among,
    too_many_breakpoints,
    version,
    wrong_type,
)
from lowwater.testing.provider.prompt import (
    BREAKPOINT,
    Ids,
    Json,
    Prompt,
    PromptPiece,
    ReceivedRequest,
    Refusal,
    RequestRule,
    Sealing,
    Violation,
    prompt_tokens,
    slices,
    write,
)

CALLS = ("function_call", "custom_tool_call", "local_shell_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
OF_MODEL = (*CALLS, "reasoning", "web_search_call", "file_search_call", "code_interpreter_call")
TYPES = (
    "message",
    *OF_MODEL,
    *OUTPUTS,
    "computer_call",
    "computer_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "compaction",
    "additional_tools",
    "item_reference",
)


class ResponseLog:
    """The responses that one provider has stored."""

    def __init__(self) -> None:
        self._conversations: dict[str, list[Json]] = {}
        self._items: dict[str, Json] = {}

    def keep(self, response_id: str, items: list[Json]) -> None:
        """Store the conversation that ends with this response."""
        self._conversations[response_id] = items
        self._items |= {str(item["id"]): item for item in items if item.get("id")}

    def conversation(self, response_id: object) -> list[Json] | None:
        """Return the conversation that ends with a response, or None if it was not stored."""
        return self._conversations.get(str(response_id)) if response_id is not None else None

    def item(self, item_id: object) -> Json | None:
        """Return an item by its id, or None if it was not stored."""
        return self._items.get(str(item_id))


def items_of(body: Json) -> list[Json]:
    """Return the items that were sent; an input that is a string is one user message."""
    sent = body.get("input")
    if isinstance(sent, str):
        return [{"type": "message", "role": "user", "content": sent}]
    return list(sent or [])


def kind_of(item: Json) -> str:
    """Return an item's type; messages and references may leave it out."""
    if "type" in item:
        return str(item["type"])
    return "message" if "role" in item else "item_reference"


def is_of_model(item: Json) -> bool:
    """Return whether the model wrote this item."""
    kind = kind_of(item)
    return kind in OF_MODEL or (kind == "message" and item.get("role") == "assistant")


def tools_in(body: Json) -> Iterator[Json]:
    """Yield every tool that the model may call: from the request, from `additional_tools` items, and inside namespaces."""
    brought = [item.get("tools") or [] for item in items_of(body) if kind_of(item) == "additional_tools"]
    for tool in [*(body.get("tools") or []), *(tool for tools in brought for tool in tools)]:
        yield from (tool.get("tools") or []) if tool.get("type") == "namespace" else [tool]


def resolved(body: Json, memory: ResponseLog) -> list[Json]:
    """Return the whole prompt as items: those of the previous response, then those sent, with references resolved."""
    found = list(memory.conversation(body.get("previous_response_id")) or [])
    for item in items_of(body):
        found.append((memory.item(item["id"]) or item) if kind_of(item) == "item_reference" else item)
    return found


def content_of(item: Json) -> list[Json]:
    """Return the content of a message or of a tool's output as parts; a string is one part, an empty string none."""
    kind = kind_of(item)
    content = item.get("content") if kind == "message" else item.get("output") if kind in OUTPUTS else None
    if isinstance(content, str):
        return [{"type": "input_text", "text": content}] if content else []
    return list(content) if isinstance(content, list) else []


def breakpoints(body: Json) -> Iterator[str]:
    """Yield the paths of the parts that carry an explicit cache breakpoint."""
    for at, item in enumerate(items_of(body)):
        for index, part in enumerate(content_of(item)):
            if part.get("prompt_cache_breakpoint") is not None:
                yield f"input[{at}].content[{index}]"


_KINDS = {"input_text": "text", "output_text": "text", "input_image": "image", "input_file": "file"}
_UNSEEN = ("id", "status", "annotations", "logprobs", "phase", "prompt_cache_breakpoint")
"""Fields of an item, or of its parts, that the model is not shown."""


def pieces(body: Json, items: Sequence[Json], sealing: Sealing) -> list[PromptPiece]:
    """Return the prompt in the order the model reads it."""
    found = [
        PromptPiece(section="tools", path=f"tools[{at}]", value=tool)
        for at, tool in enumerate(body.get("tools") or [])
    ]
    if body.get("instructions"):
        said = {"type": "text", "text": body["instructions"]}
        found.append(PromptPiece(section="system", path="instructions", value=said))
    for at, item in enumerate(items):
        found += item_pieces(item, at, sealing)
    return found


def item_pieces(item: Json, at: int, sealing: Sealing) -> list[PromptPiece]:
    """Return the pieces of one item: the parts of a message or output, the sealed text, or the item itself."""
    kind = kind_of(item)
    if kind == "message" or kind in OUTPUTS:
        role = f"{item.get('role', 'tool')} {item.get('call_id', '')}".strip()
        return [
            _piece(f"input[{at}].{index}", role, _shown(part), mark=_mark(part))
            for index, part in enumerate(content_of(item))
        ]
    if kind in ("reasoning", "compaction"):
        hidden = sealing.opened(str(item.get("encrypted_content") or "")) or ""
        return [_piece(f"input[{at}]", kind, {"type": "text", "text": hidden})]
    seen = {name: value for name, value in item.items() if name not in _UNSEEN}
    return [_piece(f"input[{at}]", "assistant", seen)]


def _piece(path: str, role: str, value: Json, mark: str = "") -> PromptPiece:
    return PromptPiece(section="messages", path=path, role=role, value=value, mark=mark)


def _shown(part: Json) -> Json:
    seen = {name: value for name, value in part.items() if name not in _UNSEEN}
    return {**seen, "type": _KINDS.get(str(part.get("type")), part.get("type"))}


def _mark(part: Json) -> str:
    return BREAKPOINT if part.get("prompt_cache_breakpoint") is not None else ""


# The rules, in the order in which they are checked


def rules(memory: ResponseLog, sealing: Sealing) -> tuple[RequestRule, ...]:
    """Return all rules; each may rely on the ones before it."""

    def prompt(incoming: ReceivedRequest) -> list[PromptPiece]:
        return pieces(incoming.body, resolved(incoming.body, memory), sealing)

    return (
        chat.api_key,
        chat.readable_json,
        chat.model_given,
        parameters_of_chat,
        input_given,
        item_shape,
        known_roles,
        content_given,
        content_shape,
        instructions_are_text,
        tool_shape,
        name_lengths,
        *ConversationRules(memory, sealing).rules,
        least_output,
        breakpoints_supported,
        lifetime_sold,
        input_fits(prompt),
    )


# Rules for the shape of the request

_MOVED = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
}
_REQUIRED = {
    "function_call": ("call_id", "name", "arguments"),
    "custom_tool_call": ("call_id", "name", "input"),
    "reasoning": ("id",),
    "item_reference": ("id",),
    "compaction": ("encrypted_content",),
}
ROLES = ("assistant", "system", "developer", "user")
SAID = ("input_text", "input_image", "input_file")
ANSWERED = ("output_text", "refusal")


def parameters_of_chat(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Parameters of the Chat Completions API that have another name here are refused."""
    for old, new in _MOVED.items():
        if old in incoming.body:
            yield invalid(
                f"Unsupported parameter: '{old}'. In the Responses API, this parameter has moved to '{new}'.",
                old,
                "unsupported_parameter",
            )


def input_given(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request has input, or continues a response or a conversation."""
    body = incoming.body
    sent = body.get("input")
    if sent is None and not (body.get("previous_response_id") or body.get("conversation")):
        yield missing("input")
    elif not isinstance(sent, str | list | None):
        yield wrong_type("input", "one of a string or array of input items", sent)


def item_shape(incoming: ReceivedRequest) -> Iterator[Violation]:
    """An item is an object of a known type with the fields that the type requires."""
    listed: list[Any] = list(items_of(incoming.body))
    for at, item in enumerate(listed):
        where = f"input[{at}]"
        if not isinstance(item, dict):
            yield wrong_type(where, "an input item", item)
            return
        kind = kind_of(item)
        if kind not in TYPES:
            yield not_among(kind, TYPES, where)
        required = ("call_id", "output") if kind in OUTPUTS else _REQUIRED.get(kind, ())
        for name in required:
            if item.get(name) is None:
                yield missing(f"{where}.{name}")
            elif name != "output" and not isinstance(item[name], str):
                yield wrong_type(f"{where}.{name}", "a string", item[name])
        if kind == "reasoning" and not isinstance(item.get("summary"), list):
            yield missing(f"{where}.summary")


def known_roles(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A message's role is one of four."""
    for at, item in enumerate(items_of(incoming.body)):
        if kind_of(item) == "message" and item.get("role") not in ROLES:
            yield not_among(item.get("role"), ROLES, f"input[{at}]")


def content_given(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Messages and outputs have content: a string or a list of parts."""
    for at, item in enumerate(items_of(incoming.body)):
        kind = kind_of(item)
        name = "content" if kind == "message" else "output" if kind in OUTPUTS else ""
        if not name:
            continue
        if name not in item:
            yield missing(f"input[{at}].{name}")
        elif not isinstance(item[name], str | list):
            yield wrong_type(f"input[{at}].{name}", "one of an array of objects or string", item[name])


def content_shape(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Parts have a type that is allowed in their item: the model's messages have other types than everything else."""
    for at, item in enumerate(items_of(incoming.body)):
        kind = kind_of(item)
        parts = item.get("content") if kind == "message" else item.get("output") if kind in OUTPUTS else None
        allowed = ANSWERED if kind == "message" and item["role"] == "assistant" else SAID
        for index, part in enumerate(parts if isinstance(parts, list) else []):
            where = f"input[{at}].{'content' if kind == 'message' else 'output'}[{index}]"
            if not isinstance(part, dict):
                yield wrong_type(where, "an object", part)
                return
            if part.get("type") not in allowed:
                yield not_among(part.get("type"), allowed, where)
            name = "refusal" if part.get("type") == "refusal" else "text"
            if part.get("type") in ("input_text", "output_text", "refusal") and not isinstance(
                part.get(name), str
            ):
                yield wrong_type(f"{where}.{name}", "a string", part.get(name))


def instructions_are_text(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Instructions are a string."""
    said = incoming.body.get("instructions")
    if not isinstance(said, str | None):
        yield wrong_type("instructions", "a string", said)


def tool_shape(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A tool has a type; a function's name is beside it, not in an object `function` as in Chat Completions."""
    tools = incoming.body.get("tools")
    if not isinstance(tools, list | None):
        yield wrong_type("tools", "an array of objects", tools)
        return
    for at, tool in enumerate(tools or []):
        if not isinstance(tool, dict):
            yield wrong_type(f"tools[{at}]", "an object", tool)
            return
        if not isinstance(tool.get("type"), str):
            yield missing(f"tools[{at}].type")
        if tool.get("type") in ("function", "custom") and not isinstance(tool.get("name"), str):
            yield missing(f"tools[{at}].name")


def name_lengths(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The names of offered and called functions have 1 to 64 characters."""
    for where, name in names(incoming.body):
        if not 0 < len(name) <= LONGEST_NAME:
            yield name_too_long(where, name)


def names(body: Json) -> Iterator[tuple[str, str]]:
    """Yield the path and the name of every function that is offered or called."""
    for at, tool in enumerate(body.get("tools") or []):
        if tool.get("type") in ("function", "custom"):
            yield f"tools[{at}].name", tool["name"]
    for at, item in enumerate(items_of(body)):
        if kind_of(item) in CALLS and isinstance(item.get("name"), str):
            yield f"input[{at}].name", item["name"]


# Rules that depend on earlier responses

_LED_BY = "_by_"
"""Separates an item's own id from the id of the reasoning that led to it."""


def led_by(item_id: str, reasoning_id: str) -> str:
    """Return an id for an item that names the reasoning that led to it."""
    return f"{item_id}{_LED_BY}{reasoning_id}" if reasoning_id else item_id


class ConversationRules:
    """The rules that need the earlier responses of this provider."""

    def __init__(self, memory: ResponseLog, sealing: Sealing) -> None:
        self._memory = memory
        self._sealing = sealing
        self.rules: tuple[RequestRule, ...] = (
            self.previous_response_known,
            self.references_known,
            self.item_ids_unique,
            self.sealed_here,
            self.outputs_called,
            self.calls_answered,
            self.reasoning_followed,
            self.reasoning_given,
        )

    def previous_response_known(self, incoming: ReceivedRequest) -> Iterator[Violation]:
        """The previous response was stored; conversations never are."""
        previous = incoming.body.get("previous_response_id")
        if previous is not None and self._memory.conversation(previous) is None:
            yield invalid(
                f"Previous response with id '{previous}' not found.",
                "previous_response_id",
                "previous_response_not_found",
            )
        if incoming.body.get("conversation") is not None:
            named = incoming.body["conversation"]
            yield Violation(status=404, message=f"Conversation with id '{named}' not found.")

    def references_known(self, incoming: ReceivedRequest) -> Iterator[Violation]:
        """A referenced item was stored; reasoning without encrypted content is a reference, too."""
        for item in items_of(incoming.body):
            bare = kind_of(item) == "reasoning" and not item.get("encrypted_content")
            if (bare or kind_of(item) == "item_reference") and self._memory.item(item["id"]) is None:
                yield Violation(
                    status=404,
                    message=f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to "
                    "false. Try again with `store` set to true, or remove this item from your input.",
                    param="input",
                )

    def item_ids_unique(self, incoming: ReceivedRequest) -> Iterator[Violation]:
        """No item is included twice."""
        seen: set[str] = set()
        for item in self._items(incoming):
            named = str(item.get("id") or "")
            if named and named in seen:
                yield invalid(
                    f"Duplicate item found with id {named}. Remove duplicate items from your input and try again.",
                    "input",
                )
            seen.add(named)

    def sealed_here(self, incoming: ReceivedRequest) -> Iterator[Violation]:
        """Encrypted content was issued by this provider and is unchanged."""
        for item in items_of(incoming.body):
            content = item.get("encrypted_content")
            if content and self._sealing.opened(str(content)) is None:
                yield invalid(
                    f"The encrypted content for item {item.get('id')} could not be verified. "
                    "Reason: Encrypted content could not be decrypted or parsed.",
                    code="invalid_encrypted_content",
                )

    def outputs_called(self, incoming: ReceivedRequest) -> Iterator[Violation]:
        """Every output belongs to an earlier call."""
        called: set[str] = set()
        for item in self._items(incoming):
            if kind_of(item) in CALLS:
                called.add(str(item.get("call_id")))
            elif kind_of(item) in OUTPUTS and str(item.get("call_id")) not in called:
                yield invalid(
                    f"No tool call found for {_words(kind_of(item))} with call_id {item.get('call_id')}.",
                    "input",
                )

    def calls_answered(self, incoming: ReceivedRequest) -> Iterator[Violation]:
        """Every call has an output."""
        answered = {str(item.get("call_id")) for item in self._items(incoming) if kind_of(item) in OUTPUTS}
        for item in self._items(incoming):
            if kind_of(item) in CALLS and str(item.get("call_id")) not in answered:
                yield invalid(
                    f"No tool output found for {_words(kind_of(item))} {item.get('call_id')}.", "input"
                )

    def reasoning_followed(self, incoming: ReceivedRequest) -> Iterator[Violation]:
        """Reasoning is directly followed by an item that the model wrote."""
        items = self._items(incoming)
        for at, item in enumerate(items):
            follows = items[at + 1] if at + 1 < len(items) else None
            if kind_of(item) == "reasoning" and (follows is None or not is_of_model(follows)):
                yield invalid(
                    f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
                    "input",
                )

    def reasoning_given(self, incoming: ReceivedRequest) -> Iterator[Violation]:
        """An item that reasoning led to comes after that reasoning; an item sent without its id is not checked."""
        given: set[str] = set()
        for item in self._items(incoming):
            named = str(item.get("id") or "")
            _, led, reasoning = named.partition(_LED_BY)
            if led and reasoning not in given:
                yield invalid(
                    f"Item '{named}' of type '{kind_of(item)}' was provided without its required 'reasoning' item: "
                    f"'{reasoning}'.",
                    "input",
                )
            given.add(named)

    def _items(self, incoming: ReceivedRequest) -> list[Json]:
        return resolved(incoming.body, self._memory)


def _words(kind: str) -> str:
    return kind.replace("_", " ")


# Rules for settings and for the size

LEAST_OUTPUT = 16
LIFETIMES = ("30m", "12h")


def least_output(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The output limit is at least sixteen tokens."""
    limit = incoming.body.get("max_output_tokens")
    if limit is not None and type(limit) is not int:
        yield wrong_type("max_output_tokens", "an integer", limit)
    elif limit is not None and limit < LEAST_OUTPUT:
        yield below_minimum("max_output_tokens", LEAST_OUTPUT, limit)


def breakpoints_supported(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Explicit cache breakpoints exist from GPT-5.6 on, at most four in a request."""
    found, known = list(breakpoints(incoming.body)), version(incoming.model)
    if found and (known is None or known < (5, 6)):
        yield no_breakpoints_here()
    if len(found) > MOST_BREAKPOINTS:
        yield too_many_breakpoints(found)


def lifetime_sold(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The cache lifetime is 30 minutes or 12 hours; Chat Completions has only the former."""
    options = incoming.body.get("prompt_cache_options")
    if options is not None and not isinstance(options, dict):
        yield wrong_type("prompt_cache_options", "an object", options)
    elif options and options.get("ttl", "30m") not in LIFETIMES:
        yield invalid(
            f"Invalid value: '{options['ttl']}'. Supported values are: '30m' and '12h'.",
            "prompt_cache_options.ttl",
            "invalid_value",
        )


def input_fits(prompt: Callable[[ReceivedRequest], list[PromptPiece]]) -> RequestRule:
    """Return the rule that the prompt fits the context length, unless the request allows truncation."""

    def input_fits(incoming: ReceivedRequest) -> Iterator[Violation]:
        """The prompt fits the context length."""
        size = prompt_tokens(prompt(incoming), incoming.count)
        if size > incoming.context_length and incoming.body.get("truncation") != "auto":
            yield invalid(
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
                "input",
                "context_length_exceeded",
            )

    return input_fits


# Answers

ENCRYPTED = "reasoning.encrypted_content"
_ECHOED: Json = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
}


class ResponsesDialect:
    """Answers in the format of the Responses API."""

    request_id_header = "x-request-id"

    def __init__(self, *, ids: Ids, key: bytes, machines: Machines | None = None) -> None:
        self._ids = ids
        self._machines = machines or Machines()
        self._memory = ResponseLog()
        self._sealing = Sealing(key)
        self._chat = ChatDialect(ids=ids)
        self.rules = rules(self._memory, self._sealing)

    def error(self, violation: Violation, request_id: str) -> Json:
        """Return the body of an error."""
        return self._chat.error(violation, request_id)

    def models(self, context_lengths: Mapping[str, int]) -> Json:
        """Return the list of models."""
        return self._chat.models(context_lengths)

    def count(self, incoming: ReceivedRequest) -> Json:
        """Return the answer to a request for a token count."""
        items = resolved(incoming.body, self._memory)
        size = prompt_tokens(pieces(incoming.body, items, self._sealing), incoming.count)
        return {"object": "response.input_tokens", "input_tokens": size}

    def reply(self, answer: Spoken, incoming: ReceivedRequest) -> Json:
        """Return the whole answer with its usage; the cache knows the prompt from now on and, with `store`, it is stored."""
        body = incoming.body
        output = self._output(answer, incoming)
        is_cut = isinstance(answer.then if isinstance(answer, Think) else answer, CutOff)
        reply: Json = {
            "id": self._ids.new("resp"),
            "object": "response",
            "created_at": CREATED,
            "status": "incomplete" if is_cut else "completed",
            "background": False,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            **{name: body.get(name, otherwise) for name, otherwise in _ECHOED.items()},
            "model": body["model"],
            "output": output,
            "service_tier": "default",
            "usage": self._usage(output, answer, incoming),
        }
        if body.get("store", True):
            self._memory.keep(reply["id"], [*resolved(body, self._memory), *output])
        return reply

    def compacted(self, answer: Spoken, incoming: ReceivedRequest) -> Json:
        """Return the answer to a request for a compaction: all messages but the assistant's, and one item for the rest."""
        users = [
            {
                "id": self._ids.new("msg"),
                "type": "message",
                "status": "completed",
                "role": item["role"],
                "content": content_of(item),
            }
            for item in items_of(incoming.body)
            if kind_of(item) == "message" and item["role"] != "assistant"
        ]
        said = answer.text if isinstance(answer, Say) else ""
        item = {
            "id": self._ids.new("cmp"),
            "type": "compaction",
            "encrypted_content": self._sealing.sealed(said),
        }
        return {
            "id": self._ids.new("resp"),
            "object": "response.compaction",
            "created_at": CREATED,
            "output": [*users, item],
            "usage": self._usage([item], answer, incoming),
        }

    def events(self, reply: Json, incoming: ReceivedRequest) -> Iterator[bytes]:  # noqa: ARG002 - the protocol has it
        """Yield the same answer as server-sent events."""
        return stream(reply)

    def refusing(self, refusal: Refusal, incoming: ReceivedRequest) -> Iterator[bytes] | None:
        """Return the events of a stream that begins and then fails, as it does if the prompt is too long; else None."""
        if not incoming.body.get("stream") or refusal.violation.code != "context_length_exceeded":
            return None
        begun = {"id": self._ids.new("resp"), "object": "response", "created_at": CREATED}
        return refused({**_ECHOED, **begun, "model": incoming.body["model"]}, refusal.violation)

    def _output(self, answer: Spoken, incoming: ReceivedRequest) -> list[Json]:
        if isinstance(answer, Think):
            thought = self._reasoning(answer, incoming)
            return [thought, *self._said(answer.then, incoming, thought["id"])]
        return self._said(answer, incoming, "")

    def _reasoning(self, answer: Think, incoming: ReceivedRequest) -> Json:
        said = [] if answer.redacted else [{"type": "summary_text", "text": answer.text}]
        item: Json = {"id": self._ids.new("rs"), "type": "reasoning", "summary": said}
        included = incoming.body.get("include")
        if isinstance(included, list) and ENCRYPTED in included:
            item["encrypted_content"] = self._sealing.sealed(answer.text)
        return item

    def _said(
        self,
        answer: Say | CutOff | CallTools | Refuse | DropConnection,
        incoming: ReceivedRequest,
        reasoning: str,
    ) -> list[Json]:
        match answer:
            case CallTools():
                said = [self._message(answer.text, reasoning)] if answer.text else []
                free = {tool["name"] for tool in tools_in(incoming.body) if tool["type"] == "custom"}
                calls = [
                    self._call(call.name, dict(call.arguments), call.id, reasoning, is_free=call.name in free)
                    for call in answer.calls
                ]
                return said + calls
            case Refuse():
                message = self._message("", reasoning)
                return [{**message, "content": [{"type": "refusal", "refusal": answer.text}]}]
            case CutOff():
                return [{**self._message(answer.text, reasoning), "status": "incomplete"}]
            case Say() | DropConnection():
                return [self._message(answer.text, reasoning)]

    def _message(self, text: str, reasoning: str) -> Json:
        content = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return {
            "id": led_by(self._ids.new("msg"), reasoning),
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [content],
        }

    def _call(self, name: str, arguments: Json, call_id: str, reasoning: str, *, is_free: bool) -> Json:
        kind, given = ("custom_tool_call", "input") if is_free else ("function_call", "arguments")
        written = str(arguments.get("input", "")) if is_free else write(arguments)
        return {
            "id": led_by(self._ids.new("ctc" if is_free else "fc"), reasoning),
            "type": kind,
            "status": "completed",
            given: written,
            "call_id": call_id or self._ids.new("call"),
            "name": name,
        }

    def _usage(self, output: list[Json], answer: Spoken, incoming: ReceivedRequest) -> Json:
        body, model = incoming.body, str(incoming.body["model"])
        items = resolved(body, self._memory)
        options = body.get("prompt_cache_options") or {}
        answered = [
            piece
            for at, item in enumerate(output)
            for piece in item_pieces(item, len(items) + at, self._sealing)
        ]
        prompt = Prompt(
            pieces(body, items, self._sealing),
            incoming.count,
            answer=answered,
            long=options.get("ttl") == "12h" or body.get("prompt_cache_retention") == "24h",
            implicit=options.get("mode") != "explicit",
            conversation=str(body.get("prompt_cache_key") or ""),
        )
        caching = self._machines.caching(model, otherwise="openai-5.5")
        used = self._machines.use(prompt, model, caching)
        reasoning = incoming.count(answer.text) if isinstance(answer, Think) else 0
        said = prompt_tokens(
            [piece for piece in answered if piece.role not in ("reasoning", "compaction")], incoming.count
        )
        return _told(used, output=reasoning + said, reasoning=reasoning)


def _told(used: Used, *, output: int, reasoning: int) -> Json:
    written = used.written + used.written_long
    return {
        "input_tokens": used.prompt,
        "input_tokens_details": {"cached_tokens": used.read, "cache_write_tokens": written},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": used.prompt + output,
    }


# Answers as events


def stream(reply: Json) -> Iterator[bytes]:
    """Yield an answer as server-sent events: its start, each item in pieces and then whole, and the whole answer."""
    number = count()
    begun = {**reply, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    for name in ("created", "in_progress"):
        yield _event(f"response.{name}", next(number), response=begun)
    for at, item in enumerate(reply["output"]):
        for event in _item(at, item):
            yield _event(event.pop("type"), next(number), **event)
    yield _event(f"response.{reply['status']}", next(number), response=reply)


def refused(begun: Json, violation: Violation) -> Iterator[bytes]:
    """Yield the events of an answer that fails after it has begun."""
    opened = {**begun, "status": "in_progress", "output": [], "error": None, "incomplete_details": None}
    for at, name in enumerate(("created", "in_progress")):
        yield _event(f"response.{name}", at, response=opened)
    said = {
        "type": violation.type,
        "code": violation.code,
        "message": violation.message,
        "param": violation.param,
    }
    yield _event("error", 2, error=said)
    error = {"code": violation.code, "message": violation.message}
    yield _event("response.failed", 3, response={**opened, "status": "failed", "error": error})


def _item(at: int, item: Json) -> Iterator[Json]:
    place = {"output_index": at, "item_id": item["id"]}
    opened: Json
    match item:
        case {"type": "message", "content": content}:
            opened = {**item, "content": [], "status": "in_progress"}
            pieces = [event for index, part in enumerate(content) for event in _content(place, index, part)]
        case {"type": "reasoning", "summary": summary}:
            opened = {**item, "summary": []}
            pieces = [event for index, part in enumerate(summary) for event in _summary(place, index, part)]
        case {"type": "function_call", "arguments": arguments}:
            opened = {**item, "arguments": "", "status": "in_progress"}
            ended = {"arguments": arguments, "name": item["name"]}
            pieces = list(_text("response.function_call_arguments", arguments, place, ended))
        case {"type": "custom_tool_call", "input": written}:
            opened = {**item, "input": "", "status": "in_progress"}
            pieces = list(_text("response.custom_tool_call_input", written, place, {"input": written}))
        case _:
            opened, pieces = item, []
    yield {"type": "response.output_item.added", "output_index": at, "item": opened}
    yield from pieces
    yield {"type": "response.output_item.done", "output_index": at, "item": item}


def _content(place: Json, index: int, part: Json) -> Iterator[Json]:
    place = {**place, "content_index": index}
    name = "text" if part["type"] == "output_text" else "refusal"
    yield {"type": "response.content_part.added", **place, "part": {**part, name: ""}}
    if name == "text":
        place = {**place, "logprobs": []}
    yield from _text(
        f"response.{'output_text' if name == 'text' else 'refusal'}", part[name], place, {name: part[name]}
    )
    place.pop("logprobs", None)
    yield {"type": "response.content_part.done", **place, "part": part}


def _summary(place: Json, index: int, part: Json) -> Iterator[Json]:
    place = {**place, "summary_index": index}
    yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
    yield from _text("response.reasoning_summary_text", part["text"], place, {"text": part["text"]})
    yield {"type": "response.reasoning_summary_part.done", **place, "part": part}


def _text(name: str, text: str, place: Json, ended: Json) -> Iterator[Json]:
    for piece in slices(text):
        yield {"type": f"{name}.delta", **place, "delta": piece}
    yield {"type": f"{name}.done", **place, **ended}


def _event(name: str, number: int, /, **fields: object) -> bytes:
    told = {"type": name, "sequence_number": number, **fields}
    return f"event: {name}\ndata: {write(told)}\n\n".encode()
