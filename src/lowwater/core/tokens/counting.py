"""Counting messages, system prompts and tools, by the rules of each family of models."""

import re
from typing import Literal, TypeVar

import msgspec
from msgspec import Raw, Struct

from lowwater.core.messages import (
    AnyPart,
    Document,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from lowwater.core.models.names import is_boundary, read_name
from lowwater.core.tokens.media import count_document, count_picture
from lowwater.protocols import Tokenizer


class Framing(Struct, frozen=True, kw_only=True):
    """The tokens around content, and how arguments and pictures are rendered."""

    message: int
    """Around one message: its start, role and end."""
    call: int
    """Around one tool call."""
    result: int
    """Around one tool result, beyond its message."""
    argument: int
    """Around one argument, where arguments are rendered one by one."""
    arguments: Literal["text", "values"]
    """Rendered as the JSON text the model wrote, or as a list of names and bare values."""
    pictures: Literal["tiles", "area"]
    """Counted in tiles of 512 pixels, or by width × height."""


CHAT = Framing(message=4, call=11, result=5, argument=0, arguments="text", pictures="tiles")
"""OpenAI's, assumed of every model that is not Claude.

What Codex's models write beyond text, names, arguments and reasoning is nearly always 4 for a text, 11 for a call, 18 for
both and 7 n more than 20 for n parallel calls; a result adds 9 to the next prompt. `python -m bench.counting framing`.
"""

CLAUDE = Framing(message=4, call=24, result=8, argument=18, arguments="values", pictures="area")
"""Claude's: a call is spelled out with a start and an end for each argument, which costs more than its JSON."""


def framing_of(message: Message) -> Framing:
    """Return the framing of the format a message came in, for callers that do not know the model."""
    return CLAUDE if message.wire is not None and message.wire.format == "anthropic" else CHAT


SIGNATURE_TOKENS = 0.18
"""Tokens of thinking per character of its signature beyond the first 200.

A signature grows with the thinking it vouches for, of which the text beside it may be a digest or nothing. On recorded
Claude Code sessions (Opus 4.5 and 4.6, Sonnet 4.5) the prompt grows by 0.20 to 0.21 tokens per character, which is 0.18
in o200k; the median miss on answers of Opus 4.6 with thinking falls from 136 tokens by the text to 71.
"""
SIGNATURE_ENVELOPE = 200
DATA_TOKENS = 1_600
"""What a stretch of base64 inside a block of unknown type counts: media are not read as text."""

_BASE64 = re.compile(r"[A-Za-z0-9+/=_-]{2000,}")


def count_message(message: Message, tokenizer: Tokenizer, *, framing: Framing | None = None) -> int:
    """Return how many tokens `message` is in a prompt; every text in it is given to `tokenizer` once.

    Without a framing it is that of the format the message came in. Thinking counts, whether or not the provider will
    leave it out of later prompts: see `count_thinking`.
    """
    around = framing_of(message) if framing is None else framing
    name = 1 + tokenizer.count(message.name) if message.name and message.role == "user" else 0
    return around.message + name + sum(_count_part(part, tokenizer, around) for part in message.parts)


def count_thinking(message: Message, tokenizer: Tokenizer) -> int:
    """Return how many tokens of `count_message` are thinking, which some models drop at the user's next message."""
    return sum(_count_thought(part, tokenizer) for part in message.thinking)


def _count_part(part: AnyPart, tokenizer: Tokenizer, around: Framing) -> int:
    match part:
        case Text():
            return tokenizer.count(part.text)
        case ToolCall():
            arguments = _count_arguments(part.arguments, tokenizer, around)
            return around.call + tokenizer.count(part.name) + arguments
        case ToolResult():
            return around.result + sum(_count_part(inner, tokenizer, around) for inner in part.parts)
        case Thinking():
            return _count_thought(part, tokenizer)
        case Image():
            return count_picture(part, around.pictures)
        case Document():
            return count_document(part, tokenizer)
        case Opaque():
            return _count_opaque(part.body, tokenizer)


def _count_thought(part: Thinking, tokenizer: Tokenizer) -> int:
    signed = int((len(part.signature) - SIGNATURE_ENVELOPE) * SIGNATURE_TOKENS)
    return max(signed, tokenizer.count(part.text))


def _count_arguments(arguments: str, tokenizer: Tokenizer, around: Framing) -> int:
    values = _bare_values(arguments) if around.arguments == "values" else None
    if values is None:
        return tokenizer.count(arguments)
    return sum(around.argument + tokenizer.count(value) for value in values)


def _bare_values(arguments: str) -> list[str] | None:
    """Return the values of a JSON object, strings without their quotes; None if `arguments` is no such object."""
    try:
        values = msgspec.json.decode(arguments, type=dict[str, Raw])
        return [_bare(bytes(value)) for value in values.values()]
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None


def _bare(value: bytes) -> str:
    return msgspec.json.decode(value, type=str) if value.startswith(b'"') else value.decode()


def _count_opaque(body: str, tokenizer: Tokenizer) -> int:
    text, media = _BASE64.subn("", body)
    return tokenizer.count(text) + media * DATA_TOKENS


def count_parts(message: Message, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the size of every part; what stands around the message counts with its first, so the sum is the message's."""
    around = count_message(message.with_parts(()), tokenizer)
    sizes = [count_message(message.with_parts((part,)), tokenizer) - around for part in message.parts]
    return (sizes[0] + around, *sizes[1:]) if sizes else ()


class CountingRules(Struct, frozen=True, kw_only=True):
    """What is known about counting for one family before its first usage comes in."""

    prefix: str
    """In one spelling: lower case, versions with dashes."""
    vocabulary: str
    framing: Framing = CHAT
    scale: float = 1.0
    """By how much the reported prompt grows when the count grows by one: where a session's calibration starts."""
    thinking: Literal["kept", "turn"] = "kept"
    """Whether thinking stays in later prompts, or only until the user's next message."""
    source: str = ""


_CLAUDE_4 = (
    "bench.counting framing: prompts of recorded sessions grow 1.17 to 1.20 times the count on Opus 4.5 and 4.6 and Sonnet 4.5;"
    " Sonnet 4.5 drops thinking at the user's next message, Opus 4.5 and 4.6 do not"
)
_CLAUDE_NEW = (
    "derived: prompts of Opus 4.7 and later grow 2.1 times the visible text where those of Opus 4.5 and 4.6 grow 1.3"
    " times in recorded sessions, with the latter's 1.19 on counts with framing; not measured"
)
_OPENAI = (
    "between what recorded Codex sessions show within a turn, 1.06 (bench.counting framing), where reasoning stays in the"
    " prompt, and the loss of it at the user's next message"
)
_OWN = "the maker's own vocabulary; scale not measured"

DEFAULT = CountingRules(
    prefix="",
    vocabulary="o200k",
    source="assumed of a model that no row knows: a vocabulary of the usual size",
)

RULES: tuple[CountingRules, ...] = (
    DEFAULT,
    CountingRules(prefix="gpt", vocabulary="o200k", scale=1.03, source=_OPENAI),
    CountingRules(prefix="codex", vocabulary="o200k", scale=1.03, source=_OPENAI),
    CountingRules(prefix="gpt-4", vocabulary="cl100k", source="OpenAI's published vocabulary for GPT-4"),
    CountingRules(prefix="gpt-4o", vocabulary="o200k", source="OpenAI's published vocabulary for GPT-4o"),
    CountingRules(prefix="gpt-4-1", vocabulary="o200k", source="OpenAI's published vocabulary for GPT-4.1"),
    CountingRules(prefix="gpt-4-5", vocabulary="o200k", source="OpenAI's published vocabulary for GPT-4.5"),
    CountingRules(prefix="gpt-3-5", vocabulary="cl100k", source="OpenAI's published vocabulary for GPT-3.5"),
    CountingRules(prefix="claude", vocabulary="o200k", framing=CLAUDE, scale=1.9, source=_CLAUDE_NEW),
    *(
        CountingRules(
            prefix=prefix, vocabulary="o200k", framing=CLAUDE, scale=1.18, thinking="turn", source=_CLAUDE_4
        )
        for prefix in (
            "claude-2",
            "claude-3",
            "claude-opus-4",
            "claude-sonnet-4",
            "claude-haiku-4",
        )
    ),
    *(
        CountingRules(prefix=prefix, vocabulary="o200k", framing=CLAUDE, scale=1.18, source=_CLAUDE_4)
        for prefix in ("claude-opus-4-5", "claude-opus-4-6", "claude-sonnet-4-6")
    ),
    *(
        CountingRules(prefix=prefix, vocabulary="o200k", framing=CLAUDE, scale=1.9, source=_CLAUDE_NEW)
        for prefix in ("claude-opus-4-7", "claude-opus-4-8", "claude-opus-4-9")
    ),
    *(
        CountingRules(prefix=prefix, vocabulary=vocabulary, source=_OWN)
        for prefix, vocabulary in (
            ("qwen", "qwen3"),
            ("qwq", "qwen3"),
            ("llama", "llama3"),
            ("meta-llama", "llama3"),
            ("deepseek", "deepseek"),
            ("glm", "glm"),
            ("kimi", "kimi"),
            ("moonshot", "kimi"),
            ("mistral", "mistral"),
            ("magistral", "mistral"),
            ("ministral", "mistral"),
            ("codestral", "mistral"),
            ("devstral", "mistral"),
            ("pixtral", "mistral"),
        )
    ),
)


def rules_for(model: str) -> CountingRules:
    """Return how `model` is counted, however its name is spelled; an unknown one gets the default."""
    name = read_name(model).name
    fitting = [
        rules for rules in RULES if name.startswith(rules.prefix) and is_boundary(name, len(rules.prefix))
    ]
    return max(fitting, key=lambda rules: len(rules.prefix))


T = TypeVar("T")

CLAUDE_TOOL_PROMPT = 346
"""The instructions for tool use that Anthropic adds once to a request with tools."""
TOOLS_END = 12
TOOL_START = 7
PROPERTIES_START = 3
PROPERTY = 3
CHOICE = 3
"""OpenAI's arithmetic for tools, which its models are shown as declarations rather than as JSON: 12 once, 7 for each
tool, 3 where it takes arguments, 3 for each argument, 3 for each value it is limited to but the first."""
BLOCK = 4
"""Around the system prompt, or one block of it."""


class _Block(Struct):
    type: str = ""
    text: str = ""


class _Schema(Struct):
    type: str | list[str] = ""
    description: str = ""
    enum: list[Raw] = []
    properties: "dict[str, _Schema]" = {}
    items: "_Schema | bool | None" = None


class _Function(Struct):
    name: str
    description: str = ""
    parameters: _Schema | None = None


class _Tool(Struct):
    function: _Function


class _Flat(_Function, kw_only=True):
    type: Literal["function"]


def count_preamble(system: bytes, tools: bytes, tokenizer: Tokenizer) -> int:
    """Return how many tokens system prompt and tools are, given as JSON bytes, empty where there are none.

    Functions of OpenAI's formats count by OpenAI's arithmetic, every other tool by its JSON text. Bytes of an unexpected
    shape count as the text they are.
    """
    return _count_system(system, tokenizer) + _count_tools(tools, tokenizer)


def _count_system(system: bytes, tokenizer: Tokenizer) -> int:
    blocks = _blocks(system)
    return sum(BLOCK + tokenizer.count(text) for text in blocks if text)


def _blocks(system: bytes) -> list[str]:
    """Return the texts of a system prompt: a string, or a list of blocks of which the unknown ones are JSON."""
    if not system:
        return []
    try:
        match msgspec.json.decode(system, type=str | list[Raw] | None):
            case None:
                return []
            case str() as text:
                return [text]
            case blocks:
                return [_text(bytes(block)) for block in blocks]
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return [system.decode("utf-8", "replace")]


def _text(block: bytes) -> str:
    try:
        known = msgspec.json.decode(block, type=_Block)
    except msgspec.MsgspecError:
        return block.decode()
    return known.text if known.type == "text" else block.decode()


def _count_tools(tools: bytes, tokenizer: Tokenizer) -> int:
    if not tools:
        return 0
    try:
        listed = msgspec.json.decode(tools, type=list[Raw] | None) or []
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return tokenizer.count(tools.decode("utf-8", "replace"))
    functions = [_function(bytes(tool)) for tool in listed]
    total = 0
    for tool, function in zip(listed, functions, strict=True):
        if function is not None:
            total += _count_function(function, tokenizer)
        else:
            total += tokenizer.count(_compact(bytes(tool)))
    if any(function is not None for function in functions):
        total += TOOLS_END
    if any(function is None for function in functions):
        total += CLAUDE_TOOL_PROMPT
    return total


def _function(tool: bytes) -> _Function | None:
    """Return the function a chat or Responses tool declares, or None for another tool or one with an unusual schema."""
    nested = _declared(tool, _Tool)
    return nested.function if nested is not None else _declared(tool, _Flat)


def _declared(tool: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(tool, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None


def _compact(tool: bytes) -> str:
    try:
        return msgspec.json.format(tool, indent=0).decode()
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return tool.decode("utf-8", "replace")


def _count_function(function: _Function, tokenizer: Tokenizer) -> int:
    line = tokenizer.count(f"{function.name}:{function.description.removesuffix('.')}")
    return TOOL_START + line + (_count_schema(function.parameters, tokenizer) if function.parameters else 0)


def _count_schema(schema: _Schema, tokenizer: Tokenizer) -> int:
    total = PROPERTIES_START if schema.properties else 0
    for name, value in schema.properties.items():
        kind = value.type if isinstance(value.type, str) else "|".join(value.type)
        total += PROPERTY + tokenizer.count(f"{name}:{kind}:{value.description.removesuffix('.')}")
        total += max(0, len(value.enum) - 1) * CHOICE
        total += sum(tokenizer.count(bytes(choice).decode().strip('"')) for choice in value.enum)
        total += _count_schema(value, tokenizer)
    if isinstance(schema.items, _Schema):
        total += _count_schema(schema.items, tokenizer)
    return total
