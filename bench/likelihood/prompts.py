"""One chat template for everything that is compared: conversations and actions as the scoring model's tokens.

The template is the one that Qwen2.5 was trained on, without definitions of tools, which recordings do not have. The tokens of an
action do not depend on what stands before it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct
from splintr import Tokenizer as Vocabulary

from bench.real_peers_cases import plain_message
from lowwater.core.references import NAME, reference_kind

VOCABULARY = "qwen3"
"""Its tokens of plain text are those of Qwen2.5; `verify` compares them with the model file's own."""
BEGIN, END, CALL, END_OF_CALL = 151_644, 151_645, 151_657, 151_658
"""`<|im_start|>`, `<|im_end|>`, `<tool_call>` and `</tool_call>`."""
PLAIN = 151_643
"""How many tokens stand for plain text."""
SYSTEM = "You are a helpful assistant that works with tools."
"""Where no system prompt was recorded."""

Chat = Mapping[str, Any]
Kind = Literal["name", "path", "number", "code", "prose", "frame"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""What a token of an action belongs to; `frame` are the keys and brackets around the rest."""
_CODE_KEYS = frozenset(
    "command cmd script code content contents new_string old_string new_str old_str patch diff edits pattern regex input".split()
)
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?')
_BARE = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")


class Reference(Struct, frozen=True, kw_only=True):
    """A name, path or number in an action: which of its tokens, and the text itself."""

    kind: Kind
    text: str
    tokens: tuple[int, ...]


class Action(Struct, frozen=True, kw_only=True):
    """A tool call as tokens, each with its kind, and what it refers to."""

    text: str
    tokens: tuple[int, ...]
    kinds: tuple[Kind, ...]
    references: tuple[Reference, ...]


@lru_cache(maxsize=1)
def _vocabulary() -> Any:  # noqa: ANN401  # it has no types
    return Vocabulary.from_pretrained(VOCABULARY)


@lru_cache(maxsize=50_000)
def encode(text: str) -> tuple[int, ...]:
    """Return the tokens of plain text; what looks like a special token is plain text too."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return tuple(_vocabulary().encode_ordinary(whole))


def decode(tokens: Sequence[int]) -> str:
    """Return the text of plain tokens; others are left out."""
    plain = [token for token in tokens if token < PLAIN]
    return bytes(_vocabulary().decode_bytes(plain)).decode(errors="replace")


def other_tokens(spelled: Sequence[str]) -> list[int]:
    """Return the plain tokens that are not what a model file spells them as, byte by byte in GPT-2's alphabet."""
    alphabet = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in alphabet]
    letters = {chr(byte): byte for byte in alphabet} | {chr(256 + at): byte for at, byte in enumerate(others)}
    return [
        token
        for token, text in enumerate(spelled[:PLAIN])
        if bytes(letters[letter] for letter in text) != _vocabulary().decode_bytes([token])
    ]


def call_text(name: str, arguments: str) -> str:
    """Return a call as the template writes it; arguments that are no JSON stay as they are."""
    with suppress(msgspec.DecodeError):
        arguments = _spaced(msgspec.json.decode(arguments))
    return f'{{"name": {_spaced(name)}, "arguments": {arguments}}}'


def prompt_pieces(messages: Sequence[Chat], *, for_call: bool = True) -> Iterator[tuple[int, ...]]:
    """Yield a conversation as the prompt for a tool call, in pieces; it ends where the call's name is about to be written.

    For an answer in words it ends where that begins.
    """
    plain = [{**plain_message(dict(each)), "role": _role(each)} for each in messages]
    if not plain or plain[0]["role"] != "system":
        plain.insert(0, {"role": "system", "content": SYSTEM})
    for at, message in enumerate(plain):
        if message["role"] == "tool":
            is_first = plain[at - 1]["role"] != "tool"
            is_last = at + 1 == len(plain) or plain[at + 1]["role"] != "tool"
            yield _result(_text(message), is_first=is_first, is_last=is_last)
        elif message["role"] == "assistant":
            yield _answer(message)
        else:
            yield (BEGIN, *encode(f"{message['role']}\n{_text(message)}"), END, *encode("\n"))
    yield (BEGIN, *encode("assistant\n"), *((CALL, *encode("\n")) if for_call else ()))


def prompt_tokens(messages: Sequence[Chat], *, for_call: bool = True) -> tuple[int, ...]:
    """Return the tokens of that prompt."""
    return tuple(chain.from_iterable(prompt_pieces(messages, for_call=for_call)))


def action_of(name: str, arguments: str) -> Action:
    """Return a call as an action, its tokens told apart."""
    text = call_text(name, arguments)
    tokens = encode(text)
    spans = [*_spans(text)]
    starts, at = [], 0
    for token in tokens:
        starts.append(at)
        at += len(_bytes_of(token))
    return Action(
        text=text,
        tokens=tokens,
        kinds=tuple(
            _kind_at(spans, start, end) for start, end in zip(starts, [*starts[1:], at], strict=True)
        ),
        references=tuple(_references(spans, [*starts, at])),
    )


def _spaced(value: object) -> str:
    """Return JSON with a space behind commas and colons, as the template's filter writes it."""
    match value:
        case dict():
            inner = ", ".join(f"{_spaced(str(key))}: {_spaced(each)}" for key, each in value.items())
            return f"{{{inner}}}"
        case list():
            return f"[{', '.join(map(_spaced, value))}]"
        case _:
            return msgspec.json.encode(value).decode()


def _role(message: Chat) -> str:
    """Return who speaks, as the template has it; developers' reminders are the user's."""
    return message["role"] if message["role"] in ("system", "assistant", "tool") else "user"


def _result(text: str, *, is_first: bool, is_last: bool) -> tuple[int, ...]:
    """Return a result; results that follow each other are one message of the user's."""
    begin = (BEGIN, *encode("user\n")) if is_first else encode("\n")
    end = (END, *encode("\n")) if is_last else ()
    return (*begin, *encode(f"<tool_response>\n{text}\n</tool_response>"), *end)


def _answer(message: Chat) -> tuple[int, ...]:
    tokens: list[int] = [BEGIN]
    text = "assistant" + (f"\n{_text(message)}" if message.get("content") else "")
    for call in message.get("tool_calls") or ():
        function = call["function"]
        tokens += [*encode(f"{text}\n"), CALL]
        tokens += [*encode(f"\n{call_text(function['name'], function['arguments'])}\n"), END_OF_CALL]
        text = ""
    if text:
        tokens += encode(text)
    return (*tokens, END, *encode("\n"))


def _text(message: Chat) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""


@lru_cache(maxsize=50_000)
def _bytes_of(token: int) -> bytes:
    return bytes(_vocabulary().decode_bytes([token]))


def _spans(text: str) -> Iterator[tuple[int, int, Kind, str]]:
    """Yield the parts of a call's text that are no frame, in bytes: each with its kind, and the text where it is a reference."""
    key = ""
    depth_of_arguments = text.find('"arguments": ') + len('"arguments": ')
    for match in re.finditer(f"{_STRING.pattern}|({_BARE.pattern})", text):
        if match[2] is not None:
            key = match[1]
        elif match[3] is not None:
            if match.start() >= depth_of_arguments:
                yield (
                    *_in_bytes(text, match.start(), match.end()),
                    "number",
                    match[3] if match[3].lstrip("-").isdigit() else "",
                )
        elif match.start() < depth_of_arguments:
            yield (*_in_bytes(text, match.start(1), match.end(1)), "name", match[1])
        else:
            yield from _value(text, match.start(1), match[1], key)


def _value(text: str, start: int, inner: str, key: str) -> Iterator[tuple[int, int, Kind, str]]:
    plain = _ESCAPE.sub(lambda escape: " " * len(escape[0]), inner)
    rest: Kind = "code" if key in _CODE_KEYS else "prose"
    at = 0
    for name in NAME.finditer(plain):
        if name.start() > at:
            yield (*_in_bytes(text, start + at, start + name.start()), rest, "")
        kinds: dict[str, Kind] = {"path": "path", "number": "number"}
        kind = kinds.get(reference_kind(name[0]), "name")
        yield (*_in_bytes(text, start + name.start(), start + name.end()), kind, name[0])
        at = name.end()
    if at < len(inner):
        yield (*_in_bytes(text, start + at, start + len(inner)), rest, "")


def _in_bytes(text: str, start: int, end: int) -> tuple[int, int]:
    before = len(text[:start].encode())
    return before, before + len(text[start:end].encode())


def _kind_at(spans: Sequence[tuple[int, int, Kind, str]], start: int, end: int) -> Kind:
    """Return the kind that most of a token's bytes belong to."""
    shares: dict[Kind, int] = {"frame": end - start}
    for first, last, kind, _ in spans:
        common = min(end, last) - max(start, first)
        if common > 0:
            shares[kind] = shares.get(kind, 0) + common
            shares["frame"] -= common
    return max(shares, key=lambda kind: (shares[kind], kind))


def _references(spans: Sequence[tuple[int, int, Kind, str]], starts: Sequence[int]) -> Iterator[Reference]:
    for first, last, kind, named in spans:
        if named:
            inside = tuple(
                at for at in range(len(starts) - 1) if starts[at] < last and starts[at + 1] > first
            )
            yield Reference(kind=kind, text=named, tokens=inside)
