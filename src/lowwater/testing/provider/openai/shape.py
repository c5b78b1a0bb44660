"""Chat rules about the form of a request: headers, JSON, required fields, types, names."""

import re
from collections.abc import Iterator

from lowwater.testing.provider.openai.body import calls_of, invalid, wrong_type
from lowwater.testing.provider.rule import Incoming, Json, Violation

ROLES = ("system", "assistant", "user", "tool", "developer")
LONGEST_NAME = 64


def api_key(incoming: Incoming) -> Iterator[Violation]:
    """A request carries a key."""
    if not incoming.headers.get("authorization"):
        yield Violation(
            status=401,
            message="You didn't provide an API key. You need to provide your API key in an Authorization header "
            "using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
        )


def readable_json(incoming: Incoming) -> Iterator[Violation]:
    """The body is one JSON object."""
    if incoming.problem:
        yield invalid(f"We could not parse the JSON body of your request: {incoming.problem}")


def model_given(incoming: Incoming) -> Iterator[Violation]:
    """A request names a model."""
    if not isinstance(incoming.body.get("model"), str) or not incoming.body["model"]:
        yield invalid("you must provide a model parameter")


def messages_given(incoming: Incoming) -> Iterator[Violation]:
    """There is something to answer."""
    messages = incoming.body.get("messages")
    if messages is None:
        yield invalid("Missing required parameter: 'messages'.", "messages", "missing_required_parameter")
    elif not isinstance(messages, list):
        yield wrong_type("messages", "an array of objects", messages)
    elif not messages:
        yield _empty_array("messages")


def message_shape(incoming: Incoming) -> Iterator[Violation]:
    """A message is an object with a role."""
    for at, message in enumerate(incoming.body["messages"]):
        if not isinstance(message, dict):
            yield wrong_type(f"messages[{at}]", "an object", message)
        elif "role" not in message:
            where = f"messages[{at}].role"
            yield invalid(f"Missing required parameter: '{where}'.", where, "missing_required_parameter")


def known_roles(incoming: Incoming) -> Iterator[Violation]:
    """A message's role is one of five."""
    for at, message in enumerate(incoming.messages):
        if message["role"] not in ROLES:
            supported = ", ".join(f"'{role}'" for role in ROLES[:-1]) + f", and '{ROLES[-1]}'"
            yield invalid(
                f"Invalid value: '{message['role']}'. Supported values are: {supported}.",
                f"messages[{at}].role",
                "invalid_value",
            )


def content_given(incoming: Incoming) -> Iterator[Violation]:
    """Only an assistant message with calls or a refusal may be without content."""
    for at, message in enumerate(incoming.messages):
        spoken = message["role"] == "assistant" and ("tool_calls" in message or message.get("refusal"))
        if message.get("content") is None and not spoken:
            yield invalid(
                "Invalid value for 'content': expected a string, got null.", f"messages.[{at}].content"
            )


def content_shape(incoming: Incoming) -> Iterator[Violation]:
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


def tool_calls_not_empty(incoming: Incoming) -> Iterator[Violation]:
    """A list of calls has calls in it."""
    for at, message in enumerate(incoming.messages):
        calls = message.get("tool_calls")
        if calls == []:
            yield _empty_array(f"messages[{at}].tool_calls")
        elif calls is not None and not isinstance(calls, list):
            yield wrong_type(f"messages[{at}].tool_calls", "an array of objects", calls)


def tool_call_shape(incoming: Incoming) -> Iterator[Violation]:
    """A call has an id, a function's name and its arguments as a string."""
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


def tool_message_shape(incoming: Incoming) -> Iterator[Violation]:
    """A tool message says which call it answers."""
    for at, message in enumerate(incoming.messages):
        if message["role"] == "tool" and not isinstance(message.get("tool_call_id"), str):
            yield invalid(
                "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
                f"messages.[{at}].tool_call_id",
            )


def tools_not_empty(incoming: Incoming) -> Iterator[Violation]:
    """A list of tools has tools in it."""
    tools = incoming.body.get("tools")
    if tools == []:
        yield _empty_array("tools")
    elif tools is not None and not isinstance(tools, list):
        yield wrong_type("tools", "an array of objects", tools)
    for at, tool in enumerate(tools or []):
        if not isinstance(tool, dict):
            yield wrong_type(f"tools[{at}]", "an object", tool)


def tool_names(incoming: Incoming) -> Iterator[Violation]:
    """Names of functions are 1 to 64 letters, digits, underscores and hyphens, offered or called."""
    for where, name in _names(incoming.body):
        if not isinstance(name, str):
            yield wrong_type(where, "a string", name)
        elif len(name) > LONGEST_NAME:
            yield invalid(
                f"Invalid '{where}': string too long. Expected a string with maximum length {LONGEST_NAME}, "
                f"but got a string with length {len(name)} instead.",
                where,
                "string_above_max_length",
            )
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


def _empty_array(where: str) -> Violation:
    return invalid(
        f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        where,
        "empty_array",
    )
