"""What a session hands its user to send: the view in each provider's form, marked for its cache."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from lowwater.core.cache.marks import NOWHERE, Marks, Seams
from lowwater.core.decisions import Decision
from lowwater.core.formats.anthropic import betas_for, thinking_for
from lowwater.core.formats.codec import encode_messages, reread
from lowwater.core.formats.convert import tools_as
from lowwater.core.legality import begun_by_user
from lowwater.core.mechanisms.native import sent_from
from lowwater.core.messages import Format, Message, Text, newest_block
from lowwater.core.strict_json import read_plain, write_json
from lowwater.core.view import fold
from lowwater.wiring.marking import (
    with_breakpoints,
    with_chat_marks,
    with_item_breakpoints,
    with_marks,
    with_marks_left,
)

_NOTHING = frozenset({b"", b"[]", b'""', b"null"})
_INSTRUCTIONS = frozenset({"system", "developer"})


class PreparedRequest(Struct, frozen=True, kw_only=True):
    """A request ready to be sent; pass it on with `**request.as_anthropic()`, `as_openai()` or `as_responses()`."""

    messages: tuple[Message, ...]
    told: Format | None = None
    """The format that one of the messages told; None if they read the same in all."""
    assumed: Format | None = None
    """The format in which they were read before one did."""
    system: bytes = b""
    tools: bytes = b""
    thinking: bytes = b""
    """The request's `thinking` at Anthropic, if it was given to `prepare`."""
    tool_choice: bytes = b""
    """The request's `tool_choice`, if it was given to `prepare`."""
    marks: Marks | None = None
    """Which cache marks the provider takes; None where it takes none."""
    seams: Seams = NOWHERE
    """By what the marks are placed; without it they are those of `system_and_3` (docs/specification.md: F)."""
    cache_key: str = ""
    """What OpenAI routes requests of one conversation by, so that they find its cache; empty where it takes none."""
    tokens: int = 0
    """The size of the prompt, in the model's tokens, as far as can be told before sending."""
    decision: Decision | None = None
    whole: bool = False
    """Whether it shows every message of the client's list as it came."""
    folds: tuple[int, ...] = ()
    """The messages that are written into the user message before them, so that no two of ours stand in a row."""

    def as_anthropic(self) -> dict[str, Any]:
        """Return `messages`, and what else there is of the request, for the Anthropic SDK or API."""
        system, messages = self._split(self._read_as("anthropic"))
        raws = encode_messages(begun_by_user(messages[sent_from(messages) :]), "anthropic")
        tools = tools_as(self.tools, "anthropic")
        if self.marks is not None and not self.marks.breakpoints:
            seams = self.seams_in("anthropic", count=len(raws))
            marked = with_marks(raws, system, tools, marks=self.marks, seams=seams)
            raws, system, tools = marked.messages, marked.system, marked.tools
        else:
            raws = with_marks_left(raws, system, tools)
        thinking = thinking_for(self.thinking, raws) if self.thinking else b""
        return _fields(raws, system=system, tools=tools, tool_choice=self.tool_choice, thinking=thinking)

    @property
    def betas(self) -> tuple[str, ...]:
        """Anthropic's betas that a call needs: give them to `client.beta.messages.create(betas=…)`, or in `anthropic-beta`."""
        holding = [message for message in self.messages if newest_block([message]) is not None]
        return betas_for(encode_messages(holding, "anthropic"), self.thinking)

    def as_openai(self, *, cache_key: bool = True) -> dict[str, Any]:
        """Return `messages`, and `tools` where there are any, for the OpenAI SDK or a compatible API.

        For OpenAI's own models there is a `prompt_cache_key` too, unless `cache_key` is False: pass that to give your own.
        """
        messages = self._with_system(self._read_as("openai_chat"))
        raws = encode_messages(messages, "openai_chat")
        first = 1 if messages and messages[0].role in _INSTRUCTIONS else 0
        if self.marks is not None and (self.marks.breakpoints or self.marks.in_chat):
            put = with_breakpoints if self.marks.breakpoints else with_chat_marks
            raws = put(
                raws, first=first, marks=self.marks, seams=self.seams_in("openai_chat", count=len(raws))
            )
        fields = _fields(raws, tools=tools_as(self.tools, "openai_chat"), tool_choice=self.tool_choice)
        return fields | ({"prompt_cache_key": self.cache_key} if self.cache_key and cache_key else {})

    def as_responses(self, *, cache_key: bool = True) -> dict[str, Any]:
        """Return `input`, and `instructions` and `tools` where there are any, for the Responses API.

        An answer's items stand as they came, whichever message they are part of. For OpenAI's own models there is a
        `prompt_cache_key` too, unless `cache_key` is False.
        """
        messages = self._read_as("openai_responses")
        raws = encode_messages(messages, "openai_responses")
        if self.marks is not None and self.marks.breakpoints:
            first = 1 if messages and messages[0].role in _INSTRUCTIONS else 0
            seams = self.seams_in("openai_responses", count=len(raws))
            raws = with_item_breakpoints(raws, first=first, marks=self.marks, seams=seams)
        instructions = b"" if self.system in _NOTHING else _as_text(self.system)
        fields = _fields(
            raws,
            listed="input",
            instructions=instructions,
            tools=tools_as(self.tools, "openai_responses"),
            tool_choice=self.tool_choice,
        )
        return fields | ({"prompt_cache_key": self.cache_key} if self.cache_key and cache_key else {})

    @property
    def joined(self) -> list[Message]:
        """The messages as they are written, those that are folded into another in their place."""
        return fold(self.messages, self.folds)

    @property
    def lasts(self) -> list[int]:
        """For each message that is written, the index of the last of `messages` in it."""
        return [at for at in range(len(self.messages)) if at + 1 not in self.folds]

    def _read_as(self, format: Format, *, upto: int | None = None) -> list[Message]:
        read = reread(self.messages[:upto], assumed=self.assumed, format=self.told or format)
        if format == "openai_responses":
            # What reads the same in both of OpenAI's formats counts as chat until an item says otherwise.
            read = reread(read, assumed="openai_chat", format=format)
        return fold(read, self.folds)

    def _split(self, messages: Sequence[Message]) -> tuple[bytes, list[Message]]:
        """Return the system prompt and the messages as Anthropic wants them: apart.

        Only a system message that came in Anthropic's own format and stands right behind the user may stay in the list.
        """
        apart = [
            message.role in _INSTRUCTIONS and not _may_stay(messages[:at], message)
            for at, message in enumerate(messages)
        ]
        if not any(apart):
            return self.system, list(messages)
        told = [message.text for message, is_apart in zip(messages, apart, strict=True) if is_apart]
        others = [message for message, is_apart in zip(messages, apart, strict=True) if not is_apart]
        texts = [_text_of(self.system) if self.system not in _NOTHING else "", *told]
        said = "\n\n".join(text for text in texts if text)
        return (write_json(said) if said else b""), others

    def _with_system(self, messages: list[Message]) -> list[Message]:
        return messages if self.system in _NOTHING else [_system_message(self.system), *messages]

    def seams_in(self, format: Format, *, count: int) -> Seams:
        """Return the seams as places among the `count` encoded messages, of which there may be more or fewer."""
        if (count == len(self.messages) and not self.folds) or self.seams == NOWHERE:
            return self.seams
        messages = self._read_as(format)

        def place(at: int) -> int:
            before = self._read_as(format, upto=at + 1)
            if format == "openai_responses":
                return len(encode_messages(before, format)) - 1
            if format == "openai_chat":
                return len(encode_messages(self._with_system(before), format)) - 1
            left_out = sent_from(self._split(messages)[1])
            return len(encode_messages(begun_by_user(self._split(before)[1][left_out:]), format)) - 1

        return self.seams.moved(place)


def _fields(raws: Sequence[bytes], *, listed: str = "messages", **others: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = {listed: [read_plain(raw) for raw in raws]}
    return fields | {name: read_plain(value) for name, value in others.items() if value not in _NOTHING}


def _may_stay(before: Sequence[Message], message: Message) -> bool:
    """Return whether a system message is one of Anthropic's, which stand within a conversation, right behind the user."""
    is_own = message.wire is not None and message.wire.format == "anthropic"
    return is_own and bool(before) and before[-1].role == "user"


def _system_message(system: bytes) -> Message:
    return Message(role="system", parts=(Text(text=_text_of(system)),))


def _as_text(system: bytes) -> bytes:
    """Return a system prompt as one text; one that is a text already stays byte for byte."""
    return system if system.lstrip()[:1] == b'"' else write_json(_text_of(system))


def _text_of(system: bytes) -> str:
    value = msgspec.json.decode(system)
    return value if isinstance(value, str) else "\n\n".join(block.get("text", "") for block in value)
