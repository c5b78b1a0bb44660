"""OpenAI's Chat Completions API for the test provider: which requests it refuses, and how it answers."""

import re
from collections.abc import Iterator, Mapping

from lowwater.core.models.model import ALIBABA, UNKNOWN, Router, router_of
from lowwater.testing.provider.answers import CallTools, CutOff, DropConnection, Refuse, Say, Spoken, Think
from lowwater.testing.provider.caches import Machines, Reports, Used
from lowwater.testing.provider.prompt import (
    BREAKPOINT,
    Ids,
    Json,
    Prompt,
    PromptPiece,
    ReceivedRequest,
    RequestRule,
    Violation,
    prompt_tokens,
    slices,
    write,
)

_VERSION = re.compile(r"^gpt-(?P<major>\d+)(?:\.(?P<minor>\d+))?")
_MARK = "cache_control"
_MARKS = ("prompt_cache_breakpoint", "cache_control")
"""Fields that mark a place in the prompt for the cache: OpenAI's; Qwen's and, behind a router, Claude's."""


def version(model: str) -> tuple[int, int] | None:
    """Return the major and minor version of a GPT model, or None for other models."""
    found = _VERSION.match(model)
    return (int(found["major"]), int(found["minor"] or 0)) if found else None


def calls_of(message: Json) -> list[Json]:
    """Return the tool calls of a message; only assistant messages have any."""
    return list(message.get("tool_calls") or []) if message["role"] == "assistant" else []


def parts_of(message: Json) -> list[Json]:
    """Return a message's content as parts; a string is one text part, an empty string none."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or [])


def breakpoints(body: Json) -> Iterator[str]:
    """Yield the paths of the parts that carry an explicit cache breakpoint."""
    for at, message in enumerate(body["messages"]):
        for index, part in enumerate(parts_of(message)):
            if part.get("prompt_cache_breakpoint") is not None:
                yield f"messages[{at}].content[{index}]"


def pieces(body: Json) -> list[PromptPiece]:
    """Return the prompt in the order the model reads it; cache marks are kept apart from the content."""
    found = [
        PromptPiece(section="tools", path=f"tools[{at}]", value=tool)
        for at, tool in enumerate(body.get("tools") or [])
    ]
    for at, message in enumerate(body["messages"]):
        found += message_pieces(message, at)
    return found


def message_pieces(message: Json, at: int) -> list[PromptPiece]:
    """Return the pieces of the message at index `at`: its parts, then its calls."""
    role = f"{message['role']} {message.get('tool_call_id', '')}".strip()
    return [
        PromptPiece(
            section="messages",
            path=f"messages[{at}].{index}",
            role=role,
            value={key: held for key, held in value.items() if key not in _MARKS},
            mark=_mark(value),
        )
        for index, value in enumerate([*parts_of(message), *calls_of(message)])
    ]


def _mark(value: Json) -> str:
    if value.get("prompt_cache_breakpoint") is not None:
        return BREAKPOINT
    control = value.get("cache_control")
    return str(control.get("ttl") or "5m") if isinstance(control, dict) else ""


def output_limit(body: Json) -> int | None:
    """Return the request's limit of output tokens, or None if it sets none."""
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    return limit if isinstance(limit, int) else None


# The rules, in the order in which they are checked


def rules() -> tuple[RequestRule, ...]:
    """Return all rules; each may rely on the ones before it."""
    return (
        api_key,
        readable_json,
        model_given,
        messages_given,
        message_shape,
        known_roles,
        content_given,
        content_shape,
        tool_calls_not_empty,
        tool_call_shape,
        tool_message_shape,
        tools_not_empty,
        tool_names,
        call_ids_unique,
        calls_answered,
        answers_called,
        one_answer_per_call,
        output_limit_positive,
        stream_options_need_stream,
        mark_not_on_message,
        mark_on_text,
        mark_where_router_looks,
        at_most_four_chat_marks,
        breakpoints_supported,
        at_most_four_breakpoints,
        lifetime_sold,
        prompt_fits,
        output_fits,
    )


# Errors that several rules return

# What the API's errors call a type.
_KINDS = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a decimal",
    dict: "an object",
    list: "an array",
    type(None): "null",
}


def invalid(message: str, param: str | None = None, code: str | None = None) -> Violation:
    """Return the ordinary 400 of this API."""
    return Violation(message=message, param=param, code=code)


def wrong_type(where: str, expected: str, value: object) -> Violation:
    """Return the 400 for a value of the wrong type."""
    got = _KINDS.get(type(value), "something else")
    return invalid(
        f"Invalid type for '{where}': expected {expected}, but got {got} instead.", where, "invalid_type"
    )


def missing(where: str) -> Violation:
    """Return the 400 for a field that is missing."""
    return invalid(f"Missing required parameter: '{where}'.", where, "missing_required_parameter")


def not_among(value: object, allowed: tuple[str, ...], where: str) -> Violation:
    """Return the 400 for a value that is none of those allowed."""
    listed = ", ".join(f"'{one}'" for one in allowed[:-1]) + f", and '{allowed[-1]}'"
    return invalid(f"Invalid value: '{value}'. Supported values are: {listed}.", where, "invalid_value")


def name_too_long(where: str, name: str) -> Violation:
    """Return the 400 for the name of a function."""
    return invalid(
        f"Invalid '{where}': string too long. Expected a string with maximum length {LONGEST_NAME}, "
        f"but got a string with length {len(name)} instead.",
        where,
        "string_above_max_length",
    )


def below_minimum(name: str, least: int, value: int) -> Violation:
    """Return the 400 for a number that is too small."""
    return invalid(
        f"Invalid '{name}': integer below minimum value. Expected a value >= {least}, but got {value} instead.",
        name,
        "integer_below_min_value",
    )


def no_breakpoints_here() -> Violation:
    """Return the 400 for explicit cache breakpoints on a model that has none."""
    name = "prompt_cache_breakpoint"
    return invalid(f"{name} is not supported on this model", name, "invalid_parameter")


def too_many_breakpoints(found: list[str]) -> Violation:
    """Return the 400 for more explicit cache breakpoints than are allowed, whose paths are `found`."""
    return invalid(
        f"A maximum of {MOST_BREAKPOINTS} explicit prompt_cache_breakpoint blocks may be provided. "
        f"Found {len(found)}.",
        found[MOST_BREAKPOINTS],
        "invalid_value",
    )


def _empty_array(where: str) -> Violation:
    return invalid(
        f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        where,
        "empty_array",
    )


def _too_long(incoming: ReceivedRequest, however: str) -> Violation:
    return invalid(
        f"This model's maximum context length is {incoming.context_length} tokens. However, {however}",
        "messages",
        "context_length_exceeded",
    )


# Rules for the shape of the request

ROLES = ("system", "assistant", "user", "tool", "developer")
LONGEST_NAME = 64


def api_key(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request has an API key."""
    if not incoming.headers.get("authorization"):
        yield Violation(
            status=401,
            message="You didn't provide an API key. You need to provide your API key in an Authorization header "
            "using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
        )


def readable_json(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The body is one JSON object."""
    if incoming.problem:
        yield invalid(f"We could not parse the JSON body of your request: {incoming.problem}")


def model_given(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request names a model."""
    if not isinstance(incoming.body.get("model"), str) or not incoming.body["model"]:
        yield invalid("you must provide a model parameter")


def messages_given(incoming: ReceivedRequest) -> Iterator[Violation]:
    """There is at least one message."""
    messages = incoming.body.get("messages")
    if messages is None:
        yield missing("messages")
    elif not isinstance(messages, list):
        yield wrong_type("messages", "an array of objects", messages)
    elif not messages:
        yield _empty_array("messages")


def message_shape(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A message is an object with a role."""
    for at, message in enumerate(incoming.body["messages"]):
        if not isinstance(message, dict):
            yield wrong_type(f"messages[{at}]", "an object", message)
        elif "role" not in message:
            yield missing(f"messages[{at}].role")


def known_roles(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A message's role is one of five."""
    for at, message in enumerate(incoming.messages):
        if message["role"] not in ROLES:
            yield not_among(message["role"], ROLES, f"messages[{at}].role")


def content_given(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Only an assistant message with calls or a refusal may have no content."""
    for at, message in enumerate(incoming.messages):
        spoken = message["role"] == "assistant" and ("tool_calls" in message or message.get("refusal"))
        if message.get("content") is None and not spoken:
            yield invalid(
                "Invalid value for 'content': expected a string, got null.", f"messages.[{at}].content"
            )


def content_shape(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Content is a string or a list of typed parts."""
    for at, message in enumerate(incoming.messages):
        content, where = message.get("content"), f"messages[{at}].content"
        if not isinstance(content, str | list | None):
            yield wrong_type(where, "one of a string or array of objects", content)
        elif content == []:
            yield _empty_array(where)
        for index, part in enumerate(content if isinstance(content, list) else []):
            if not isinstance(part, dict):
                yield wrong_type(f"{where}[{index}]", "an object", part)
            elif part.get("type") == "text" and not isinstance(part.get("text"), str):
                yield wrong_type(f"{where}[{index}].text", "a string", part.get("text"))


def tool_calls_not_empty(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A list of calls is not empty."""
    for at, message in enumerate(incoming.messages):
        calls = message.get("tool_calls")
        if calls == []:
            yield _empty_array(f"messages[{at}].tool_calls")
        elif calls is not None and not isinstance(calls, list):
            yield wrong_type(f"messages[{at}].tool_calls", "an array of objects", calls)


def tool_call_shape(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A call has an id, the name of a function and its arguments as a string."""
    for at, message in enumerate(incoming.body["messages"]):
        for index, call in enumerate(message.get("tool_calls") or []):
            where = f"messages[{at}].tool_calls[{index}]"
            if not isinstance(call, dict):
                yield wrong_type(where, "an object", call)
                return
            if not isinstance(call.get("id"), str):
                yield wrong_type(f"{where}.id", "a string", call.get("id"))
            if call.get("type", "function") != "function":
                continue
            function = call.get("function")
            if not isinstance(function, dict):
                yield wrong_type(f"{where}.function", "an object", function)
                return
            for name in ("name", "arguments"):
                if not isinstance(function.get(name), str):
                    yield wrong_type(f"{where}.function.{name}", "a string", function.get(name))


def tool_message_shape(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A tool message says which call it answers."""
    for at, message in enumerate(incoming.messages):
        if message["role"] == "tool" and not isinstance(message.get("tool_call_id"), str):
            yield invalid(
                "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
                f"messages.[{at}].tool_call_id",
            )


def tools_not_empty(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A list of tools is not empty, and each tool is an object."""
    tools = incoming.body.get("tools")
    if tools == []:
        yield _empty_array("tools")
    elif tools is not None and not isinstance(tools, list):
        yield wrong_type("tools", "an array of objects", tools)
    for at, tool in enumerate(tools or []):
        if not isinstance(tool, dict):
            yield wrong_type(f"tools[{at}]", "an object", tool)


def tool_names(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The names of offered and called functions have 1 to 64 letters, digits, underscores and hyphens."""
    for where, name in _names(incoming.body):
        if not isinstance(name, str):
            yield wrong_type(where, "a string", name)
        elif len(name) > LONGEST_NAME:
            yield name_too_long(where, name)
        elif not re.fullmatch(r"[a-zA-Z0-9_-]+", name):
            yield invalid(
                f"Invalid '{where}': string does not match pattern. "
                "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
                where,
                "invalid_value",
            )


def _names(body: Json) -> Iterator[tuple[str, object]]:
    for at, tool in enumerate(body.get("tools") or []):
        if isinstance(tool.get("function"), dict):
            yield f"tools[{at}].function.name", tool["function"].get("name")
    for at, message in enumerate(body["messages"]):
        for index, call in enumerate(calls_of(message)):
            if isinstance(call.get("function"), dict):
                yield f"messages[{at}].tool_calls[{index}].function.name", call["function"].get("name")


# Rules for tool calls and their results


def call_ids_unique(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The calls of one message have different ids."""
    for at, message in enumerate(incoming.messages):
        ids = [call["id"] for call in calls_of(message)]
        for call in sorted({call for call in ids if ids.count(call) > 1}):
            yield invalid(
                f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call}', in messages[{at}].",
                f"messages.[{at}].tool_calls",
            )


def calls_answered(incoming: ReceivedRequest) -> Iterator[Violation]:
    """An assistant message with calls is directly followed by tool messages that answer each of them."""
    for at, message in enumerate(incoming.messages):
        answered = {answer["tool_call_id"] for _, answer in _answers_behind(incoming.messages, at)}
        missing = [call["id"] for call in calls_of(message) if call["id"] not in answered]
        if missing:
            yield invalid(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                "'tool_call_id'. The following tool_call_ids did not have response messages: "
                f"{', '.join(missing)}",
                f"messages.[{at + 1}].role",
            )


def answers_called(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A tool message answers a call of the preceding assistant message."""
    called: set[str] = set()
    for at, message in enumerate(incoming.messages):
        if message["role"] != "tool":
            called = {call["id"] for call in calls_of(message)}
        elif message["tool_call_id"] not in called:
            yield invalid(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                "'tool_calls'.",
                f"messages.[{at}].role",
            )


def one_answer_per_call(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A call is answered only once."""
    for at, _ in enumerate(incoming.messages):
        first: dict[str, int] = {}
        for index, answer in _answers_behind(incoming.messages, at):
            call = answer["tool_call_id"]
            if call in first:
                yield invalid(
                    f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call}', "
                    f"in messages[{first[call]}] and messages[{index}].",
                    f"messages.[{index}].tool_call_id",
                )
            first.setdefault(call, index)


def _answers_behind(messages: list[Json], at: int) -> Iterator[tuple[int, Json]]:
    """Yield the tool messages directly after the message at `at`, with their indexes; none after a tool message."""
    if messages[at]["role"] == "tool":
        return
    for index in range(at + 1, len(messages)):
        if messages[index]["role"] != "tool":
            return
        yield index, messages[index]


# Rules for settings


def output_limit_positive(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The output limit is at least one token."""
    for name in ("max_completion_tokens", "max_tokens"):
        limit = incoming.body.get(name)
        if limit is not None and type(limit) is not int:
            yield wrong_type(name, "an integer", limit)
        elif limit is not None and limit < 1:
            yield below_minimum(name, 1, limit)


def stream_options_need_stream(incoming: ReceivedRequest) -> Iterator[Violation]:
    """`stream_options` are only allowed with `stream`."""
    options = incoming.body.get("stream_options")
    if options is not None and not isinstance(options, dict):
        yield wrong_type("stream_options", "an object", options)
    elif options is not None and not incoming.body.get("stream"):
        yield invalid(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options"
        )


# Rules for cache marks behind a router, and for Qwen's


def mark_not_on_message(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A cache mark is on a part, never on a message: with one on a tool message OpenRouter hangs; others ignore it."""
    for at, message in enumerate(incoming.messages):
        if message.get(_MARK) is not None:
            yield invalid(f"messages[{at}].cache_control: Extra inputs are not permitted", f"messages[{at}]")


def mark_on_text(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Only text parts that are not blank carry a cache mark."""
    for at, message in enumerate(incoming.messages):
        for index, part in enumerate(parts_of(message)):
            if part.get(_MARK) is None:
                continue
            where = f"messages[{at}].content[{index}]"
            if part.get("type") != "text":
                yield invalid(f"{where}: cache_control can only be set for text parts", where)
            elif not part["text"].strip():
                yield invalid(f"{where}: cache_control cannot be set for empty text blocks", where)


def mark_where_router_looks(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The text of a tool message carries a cache mark only if the router is known to move it to the tool result."""
    if _router(incoming).on_tools:
        return
    for at, message in enumerate(incoming.messages):
        if message["role"] == "tool" and any(part.get(_MARK) is not None for part in parts_of(message)):
            yield invalid(
                f"messages.{at}: cache_control may not be specified within tool_result.content. "
                "It may be specified on the tool_result itself."
            )


def at_most_four_chat_marks(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request has no more cache marks than the router allows."""
    found = sum(part.get(_MARK) is not None for message in incoming.messages for part in parts_of(message))
    most = _router(incoming).most
    if found > most:
        yield invalid(f"A maximum of {most} blocks with cache_control may be provided. Found {found}.")


def _router(incoming: ReceivedRequest) -> Router:
    """Return the router whose rules apply, by the way the model's name is spelled."""
    name = str(incoming.body["model"])
    return router_of(name) or (ALIBABA if incoming.model.startswith("qw") else UNKNOWN)


# Rules for OpenAI's cache

MOST_BREAKPOINTS = 4


def breakpoints_supported(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Explicit cache breakpoints exist from GPT-5.6 on."""
    known = version(incoming.model)
    if any(breakpoints(incoming.body)) and (known is None or known < (5, 6)):
        yield no_breakpoints_here()


def at_most_four_breakpoints(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request has at most four explicit breakpoints."""
    found = list(breakpoints(incoming.body))
    if len(found) > MOST_BREAKPOINTS:
        yield too_many_breakpoints(found)


def lifetime_sold(incoming: ReceivedRequest) -> Iterator[Violation]:
    """From GPT-5.6 on, 30 minutes is the only cache lifetime; the Responses API has a longer one."""
    known, options = version(incoming.model), incoming.body.get("prompt_cache_options")
    if options is not None and not isinstance(options, dict):
        yield wrong_type("prompt_cache_options", "an object", options)
    elif options and known is not None and known >= (5, 6) and options.get("ttl", "30m") != "30m":
        yield invalid(
            f"Invalid value: '{options['ttl']}'. Supported values are: '30m'.",
            "prompt_cache_options.ttl",
            "invalid_value",
        )


# Rules for the size


def prompt_fits(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The prompt fits the context length."""
    size = prompt_tokens(pieces(incoming.body), incoming.count)
    if size > incoming.context_length:
        yield _too_long(
            incoming, f"your messages resulted in {size} tokens. Please reduce the length of the messages."
        )


def output_fits(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The prompt and the output asked for fit the context length together."""
    size, output = prompt_tokens(pieces(incoming.body), incoming.count), output_limit(incoming.body)
    if output is not None and size + output > incoming.context_length:
        yield _too_long(
            incoming,
            f"you requested {size + output} tokens ({size} in the messages, {output} in the completion). "
            "Please reduce the length of the messages or completion.",
        )


# Answers

CREATED = 1_794_700_800
"""The creation time of every answer: fixed, so that the same script gives the same bytes."""
LONG = ("12h", "1h")
"""The longer cache lifetimes that a request may ask for."""


class ChatDialect:
    """Answers in the format of the Chat Completions API."""

    request_id_header = "x-request-id"

    def __init__(self, *, ids: Ids, machines: Machines | None = None) -> None:
        self._ids = ids
        self._machines = machines or Machines()
        self.rules = rules()

    def error(self, violation: Violation, request_id: str) -> Json:  # noqa: ARG002 - the id is in a header here
        """Return the body of an error."""
        return {
            "error": {
                "message": violation.message,
                "type": violation.type,
                "param": violation.param,
                "code": violation.code,
            }
        }

    def models(self, context_lengths: Mapping[str, int]) -> Json:
        """Return the list of models."""
        listed = [
            {"id": name, "object": "model", "created": CREATED, "owned_by": "lowwater"}
            for name in context_lengths
        ]
        return {"object": "list", "data": listed}

    def reply(self, answer: Spoken, incoming: ReceivedRequest) -> Json:
        """Return the whole answer with its usage; from now on the cache knows the prompt."""
        thought = answer.text if isinstance(answer, Think) else ""
        message = self._message(answer.then if isinstance(answer, Think) else answer)
        choice = {"index": 0, "message": message, "finish_reason": _finish_reason(answer), "logprobs": None}
        return {
            "id": self._ids.new("chatcmpl"),
            "object": "chat.completion",
            "created": CREATED,
            "model": incoming.body["model"],
            "choices": [choice],
            "usage": self._usage(message, thought, incoming),
        }

    def events(self, reply: Json, incoming: ReceivedRequest) -> Iterator[bytes]:
        """Yield the same answer as server-sent events; with its usage if the request asks for it."""
        options = incoming.body.get("stream_options") or {}
        return stream(reply, include_usage=bool(options.get("include_usage")))

    def _message(self, answer: Say | CutOff | CallTools | Refuse | DropConnection) -> Json:
        match answer:
            case Say() | CutOff() | DropConnection():
                return {"role": "assistant", "content": answer.text, "refusal": None}
            case Refuse():
                return {"role": "assistant", "content": None, "refusal": answer.text}
            case CallTools():
                calls = [
                    {
                        "id": call.id or self._ids.new("call"),
                        "type": "function",
                        "function": {"name": call.name, "arguments": write(dict(call.arguments))},
                    }
                    for call in answer.calls
                ]
                return {
                    "role": "assistant",
                    "content": answer.text or None,
                    "refusal": None,
                    "tool_calls": calls,
                }

    def _usage(self, message: Json, thought: str, incoming: ReceivedRequest) -> Json:
        model = str(incoming.body["model"])
        caching = self._machines.caching(model, otherwise="openai-5.5")
        used = self._machines.use(prompt_of(incoming, message, thought), model, caching)
        texts = [message["content"] or "", message["refusal"] or ""]
        texts += [write(call["function"]) for call in message.get("tool_calls", [])]
        reasoning = incoming.count(thought) if thought else 0
        output = reasoning + sum(incoming.count(text) for text in texts if text)
        return {
            "prompt_tokens": used.prompt,
            "completion_tokens": output,
            "total_tokens": used.prompt + output,
            "completion_tokens_details": {"reasoning_tokens": reasoning, "audio_tokens": 0},
            **prompt_usage(used, caching.reports),
        }


def _finish_reason(answer: Spoken) -> str:
    match answer:
        case Think():
            return _finish_reason(answer.then)
        case CallTools():
            return "tool_calls"
        case CutOff():
            return "length"
        case Say() | Refuse() | DropConnection():
            return "stop"


def prompt_of(incoming: ReceivedRequest, message: Json, thought: str) -> Prompt:
    """Return a request with its answer as a cache sees it: hidden thinking comes before the message."""
    body = incoming.body
    options = body.get("prompt_cache_options") or {}
    answer = message_pieces(message, len(body["messages"]))
    if thought:
        unseen = {"type": "text", "text": thought}
        answer.insert(0, PromptPiece(section="messages", path="", role="thinking", value=unseen))
    return Prompt(
        pieces(body),
        incoming.count,
        answer=answer,
        long=options.get("ttl") in LONG or body.get("prompt_cache_retention") == "24h",
        implicit=options.get("mode") != "explicit",
        conversation=str(body.get("prompt_cache_key") or ""),
    )


def prompt_usage(used: Used, reports: Reports) -> Json:
    """Return the usage fields about the prompt, with the provider's names."""
    details = {"cached_tokens": used.read, "audio_tokens": 0}
    written = used.written + used.written_long
    match reports:
        case "reads":
            return {"prompt_tokens_details": details}
        case "writes":
            return {"prompt_tokens_details": {**details, "cache_write_tokens": written}}
        case "creation":
            return {"prompt_tokens_details": {**details, "cache_creation_input_tokens": written}}
        case "units":
            return {
                "prompt_tokens_details": details,
                "prompt_cache_hit_tokens": used.read,
                "prompt_cache_miss_tokens": used.prompt - used.read,
            }


# Answers as events


def stream(reply: Json, *, include_usage: bool) -> Iterator[bytes]:
    """Yield an answer as chunks, then its usage if that was asked for, then `[DONE]`."""
    choice = reply["choices"][0]
    head = {key: reply[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    tail = {"usage": None} if include_usage else {}
    for delta in _deltas(choice["message"]):
        yield _event({**head, "choices": [_choice(delta, None)], **tail})
    yield _event({**head, "choices": [_choice({}, choice["finish_reason"])], **tail})
    if include_usage:
        yield _event({**head, "choices": [], "usage": reply["usage"]})
    yield b"data: [DONE]\n\n"


def _deltas(message: Json) -> Iterator[Json]:
    yield {"role": "assistant", "content": None if message["content"] is None else "", "refusal": None}
    for name in ("content", "refusal"):
        for piece in slices(message[name] or ""):
            yield {name: piece}
    for index, call in enumerate(message.get("tool_calls", [])):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}
        for piece in slices(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _choice(delta: Json, finish_reason: str | None) -> Json:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _event(value: Json) -> bytes:
    return f"data: {write(value)}\n\n".encode()
