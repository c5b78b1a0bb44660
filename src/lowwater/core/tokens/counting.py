"""Counting the tokens of messages, system prompts and tools, and learning from reported usage how far the counts are off.

Counting follows the rules of each family of models. Calibration converts a session's counts into the provider's tokens:

    prompt = hidden + scale × counted

`hidden` is what was not counted (a system prompt and tools that the client does not pass on, reminders it injects), and
`scale` is the difference between vocabularies. The scale is learned from the growth between calls, which does not depend
on the hidden part, and starts at what is known about the model's family.
"""

import re
from functools import cached_property
from typing import Literal, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

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
from lowwater.core.stored_form import stored_as
from lowwater.core.tokens.media import count_document, count_picture
from lowwater.protocols import Tokenizer

T = TypeVar("T")
SIGNATURE_TOKENS = 0.18
"""Tokens of thinking per character of its signature beyond the first 200.

A signature grows with the thinking that it signs, of which the text may be only a digest or nothing. In recorded Claude
Code sessions (Opus 4.5 and 4.6, Sonnet 4.5) the prompt grows by 0.20 to 0.21 tokens per character, which is 0.18 in
o200k. On answers of Opus 4.6 with thinking, the median error falls from 136 tokens (counting the text) to 71.
"""
SIGNATURE_ENVELOPE = 200
"""Characters that every signature has, whatever it signs."""
DATA_TOKENS = 1_600
"""The tokens of a run of base64 inside a block of unknown type, which is not read as text."""
CLAUDE_TOOL_PROMPT = 346
"""The tokens of the instructions that Anthropic adds to a request with tools."""
TOOLS_END = 12
TOOL_START = 7
PROPERTIES_START = 3
PROPERTY = 3
CHOICE = 3
"""How OpenAI's tools are counted, which its models see as declarations rather than JSON: 12 once, 7 for each tool, 3 if it
takes arguments, 3 for each argument, 3 for each value of an enumeration but the first."""
BLOCK = 4
"""Around the system prompt, or one block of it."""

_BASE64 = re.compile(r"[A-Za-z0-9+/=_-]{2000,}")
LOWEST_SCALE = 0.5
HIGHEST_SCALE = 4.0
"""No two vocabularies in use differ by more; a larger ratio has another cause."""
PRIOR_TOKENS = 16_000
"""The family's scale weighs as much as this many counted tokens of growth in the session."""
STRANGEST_GROWTH = 2.0
"""The growth of one call counts as at most this factor away from what the family's scale predicts."""
_MEASURED = 500
"""Counted tokens of growth from which the ratio measured in a session is meaningful."""
REMEMBERED = 10
"""The hidden part is the median over this many of the newest calls."""
LARGEST_REPORT = 1e12
"""No prompt has this many tokens; a report of more is ignored."""


class Framing(Struct, frozen=True, kw_only=True):
    """The tokens that a model's prompt format adds around content, and how arguments and images are counted."""

    message: int
    """Around one message: its start, role and end."""
    call: int
    """Around one tool call."""
    result: int
    """Around one tool result, beyond its message."""
    argument: int
    """Around one argument, if arguments are rendered one by one."""
    arguments: Literal["text", "values"]
    """Whether arguments are rendered as the JSON text the model wrote, or as names and bare values."""
    pictures: Literal["tiles", "area"]
    """Whether images are counted in tiles of 512 pixels or by width × height."""


CHAT = Framing(message=4, call=11, result=5, argument=0, arguments="text", pictures="tiles")
"""OpenAI's, which is assumed for every model that is not Claude.

Measured by `python -m bench.counting framing`: beyond text, names, arguments and reasoning, Codex's models nearly always
write 4 tokens for a text, 11 for a call, 18 for both and 20 + 7 n for n parallel calls; a result adds 9 to the next prompt.
"""
CLAUDE = Framing(message=4, call=24, result=8, argument=18, arguments="values", pictures="area")
"""Claude's: in a call each argument has a start and an end tag, which takes more tokens than JSON."""


def framing_of(message: Message) -> Framing:
    """Return the framing for the format a message came in, for callers that do not know the model."""
    return CLAUDE if message.wire is not None and message.wire.format == "anthropic" else CHAT


def count_message(message: Message, tokenizer: Tokenizer, *, framing: Framing | None = None) -> int:
    """Return how many tokens `message` takes in a prompt; each text in it is passed to `tokenizer` once.

    Without `framing`, that of the message's format is used. Thinking is counted, whether or not the provider drops it
    from later prompts (`count_thinking`).
    """
    around = framing_of(message) if framing is None else framing
    name = 1 + tokenizer.count(message.name) if message.name and message.role == "user" else 0
    return around.message + name + sum(_count_part(part, tokenizer, around) for part in message.parts)


def count_thinking(message: Message, tokenizer: Tokenizer) -> int:
    """Return how many of the tokens in `count_message` are thinking, which some models drop at the user's next message."""
    return sum(_count_thinking_part(part, tokenizer) for part in message.thinking)


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
            return _count_thinking_part(part, tokenizer)
        case Image():
            return count_picture(part, around.pictures)
        case Document():
            return count_document(part, tokenizer)
        case Opaque():
            return _count_opaque(part.body, tokenizer)


def _count_thinking_part(part: Thinking, tokenizer: Tokenizer) -> int:
    signed = int((len(part.signature) - SIGNATURE_ENVELOPE) * SIGNATURE_TOKENS)
    return max(signed, tokenizer.count(part.text))


def _count_arguments(arguments: str, tokenizer: Tokenizer, around: Framing) -> int:
    values = _bare_values(arguments) if around.arguments == "values" else None
    if values is None:
        return tokenizer.count(arguments)
    return sum(around.argument + tokenizer.count(value) for value in values)


def _bare_values(arguments: str) -> list[str] | None:
    """Return the values of a JSON object, strings without their quotes; None if `arguments` is not an object."""
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
    """Return the size of each part; the message's framing counts with the first part, so that the sum is the message's size."""
    around = count_message(message.with_parts(()), tokenizer)
    sizes = [count_message(message.with_parts((part,)), tokenizer) - around for part in message.parts]
    return (sizes[0] + around, *sizes[1:]) if sizes else ()


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
    """Return how many tokens system prompt and tools take; both are JSON bytes, empty if there are none.

    Functions in OpenAI's formats are counted as OpenAI renders them, every other tool by its JSON text. Bytes of an
    unexpected shape are counted as text.
    """
    return _count_system(system, tokenizer) + _count_tools(tools, tokenizer)


def _count_system(system: bytes, tokenizer: Tokenizer) -> int:
    blocks = _blocks(system)
    return sum(BLOCK + tokenizer.count(text) for text in blocks if text)


def _blocks(system: bytes) -> list[str]:
    """Return the texts of a system prompt, which is a string or a list of blocks; unknown blocks are returned as JSON."""
    if not system:
        return []
    try:
        match msgspec.json.decode(system, type=str | list[Raw] | None):
            case None:
                return []
            case str() as text:
                return [text]
            case blocks:
                return [_block_text(bytes(block)) for block in blocks]
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return [system.decode("utf-8", "replace")]


def _block_text(block: bytes) -> str:
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
    """Return the function that a chat or Responses tool declares; None for any other tool or an unusual schema."""
    nested = _decode_as(tool, _Tool)
    return nested.function if nested is not None else _decode_as(tool, _Flat)


def _decode_as(tool: bytes, kind: type[T]) -> T | None:
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


class CountingRules(Struct, frozen=True, kw_only=True):
    """How the tokens of one family of models are counted before any usage is reported."""

    prefix: str
    """The prefix of the models' names, normalised: lower case, versions with dashes."""
    vocabulary: str
    framing: Framing = CHAT
    scale: float = 1.0
    """The initial scale of a session's calibration: the provider's tokens per counted token."""
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
_DEFAULT_RULES = CountingRules(
    prefix="",
    vocabulary="o200k",
    source="assumed of an unknown model: a vocabulary of the usual size",
)

RULES: tuple[CountingRules, ...] = (
    _DEFAULT_RULES,
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
    """Return the rules for the model, however its name is spelled; the rules with the longest matching prefix apply."""
    name = read_name(model).name
    fitting = [
        rules for rules in RULES if name.startswith(rules.prefix) and is_boundary(name, len(rules.prefix))
    ]
    return max(fitting, key=lambda rules: len(rules.prefix))


# Calibration


class Observation(
    Struct, frozen=True, kw_only=True, rename=stored_as("observation"), forbid_unknown_fields=True
):
    """One call: the counted size of its prompt, and the size the provider reported."""

    counted: int
    reported: int


class Calibration(
    Struct, frozen=True, kw_only=True, dict=True, rename=stored_as("calibration"), forbid_unknown_fields=True
):
    """What was learned from a session's usage; an immutable value, replaced after each call."""

    prior: float = 1.0
    """The family's scale."""
    grown_counted: float = 0.0
    grown_reported: float = 0.0
    recent: tuple[Observation, ...] = ()
    """The newest calls since the prompt last shrank."""

    @cached_property
    def scale(self) -> float:
        """The provider's tokens per counted token."""
        start = _clamp(self.prior, LOWEST_SCALE, HIGHEST_SCALE)
        learned = (start * PRIOR_TOKENS + self.grown_reported) / (PRIOR_TOKENS + self.grown_counted)
        return _clamp(learned, LOWEST_SCALE, HIGHEST_SCALE)

    @property
    def hidden(self) -> float:
        """The provider's tokens in every prompt that were not counted; negative if the count is too high."""
        if not self.recent:
            return 0.0
        scale = self.scale
        hidden = sorted(seen.reported - scale * seen.counted for seen in self.recent)
        middle = len(hidden) // 2
        return hidden[middle] if len(hidden) % 2 else (hidden[middle - 1] + hidden[middle]) / 2

    def unsure(self, counted_now: int) -> int:
        """Return by how many tokens the next prompt may exceed `next_prompt`.

        The scale follows slowly, so that outliers do not move it. Where a limit must hold, what was counted since the last
        report is assumed to have the measured ratio in full.
        """
        if not self.recent or counted_now <= self.recent[-1].counted:
            return 0
        last = self.recent[-1]
        if self.grown_counted >= _MEASURED:
            measured = self.grown_reported / self.grown_counted
        else:
            measured = last.reported / max(1, last.counted)
            measured = measured if measured <= STRANGEST_GROWTH * self.scale else 0.0
        return round(max(0.0, measured - self.scale) * (counted_now - last.counted))

    def observe(self, *, counted: int, reported: float) -> "Calibration":
        """Return the calibration after a call whose prompt was `counted` by us and `reported` by the provider.

        An impossible report is ignored. If the prompt shrank, the client or Lowwater has rewritten it: the scale stays,
        and the hidden part is learned again.
        """
        if not 1 <= reported <= LARGEST_REPORT or counted < 0:
            return self
        now = Observation(counted=counted, reported=int(reported))
        if not self.recent:
            return replace(self, recent=(now,))
        last = self.recent[-1]
        counted_growth, reported_growth = now.counted - last.counted, now.reported - last.reported
        if counted_growth < 0 or reported_growth < 0:
            return replace(self, recent=(now,))
        expected = _clamp(self.prior, LOWEST_SCALE, HIGHEST_SCALE) * counted_growth
        plausible = _clamp(reported_growth, expected / STRANGEST_GROWTH, expected * STRANGEST_GROWTH)
        return replace(
            self,
            grown_counted=self.grown_counted + counted_growth,
            grown_reported=self.grown_reported + plausible,
            recent=(*self.recent, now)[-REMEMBERED:],
        )

    def restart(self) -> "Calibration":
        """Return the calibration for a conversation that was rewritten: only the scale stays."""
        return replace(self, recent=())

    def predict(self, counted: int) -> int:
        """Return the size that will be reported for a prompt of `counted` tokens, regardless of the last report."""
        scaled = self.scale * counted
        return round(max(self.hidden + scaled, scaled / 2))

    def next_prompt(self, counted_now: int) -> int:
        """Return the expected size of the next prompt: the last reported one plus what was counted since.

        Before the first report it is `predict`.
        """
        if not self.recent:
            return self.predict(counted_now)
        last = self.recent[-1]
        grown = last.reported + self.scale * (counted_now - last.counted)
        return round(max(grown, self.scale * counted_now / 2))


def _clamp(value: float, lowest: float, highest: float) -> float:
    """Return `value` clamped to two bounds; NaN becomes the lower one."""
    return min(max(value, lowest), highest) if value == value else lowest  # noqa: PLR0124  # NaN is not itself
