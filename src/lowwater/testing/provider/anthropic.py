"""Anthropic's Messages API for the test provider: which requests it refuses, what it signs, and how it answers."""

import hmac
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.testing.provider.answers import CallTools, CutOff, DropConnection, Refuse, Say, Spoken, Think
from lowwater.testing.provider.caches import Machines
from lowwater.testing.provider.prompt import (
    Ids,
    Json,
    Prompt,
    PromptPiece,
    ReceivedRequest,
    RequestRule,
    Sealing,
    Section,
    Violation,
    prefix_digests,
    prompt_tokens,
    slices,
    tokens,
    write,
)

THINKING = ("thinking", "redacted_thinking")
"""Types of thinking blocks."""
_VERSION = re.compile(r"^claude-(?P<family>[a-z]+)-(?P<major>\d)(?:[-.](?P<minor>\d))?(?!\d)")


class ContentBlock(Struct, frozen=True, kw_only=True):
    """One content block and its place in the request."""

    path: str
    role: str
    message: int
    value: Json

    @property
    def type(self) -> str:
        """The block's type."""
        return str(self.value["type"])


class MergedTurn(Struct, frozen=True, kw_only=True):
    """Consecutive messages of one role, which the API reads as one turn."""

    role: str
    message: int
    """The index of its first message."""
    blocks: tuple[ContentBlock, ...]

    def of_type(self, kind: str) -> list[ContentBlock]:
        """Return its blocks of one type, in order."""
        return [block for block in self.blocks if block.type == kind]


class CacheControl(Struct, frozen=True, kw_only=True):
    """One `cache_control` and the tool, block or request that carries it."""

    path: str
    holder: Json
    value: object

    @property
    def ttl(self) -> str:
        """Its lifetime; five minutes if it names none."""
        return _ttl(self.value)


class Version(Struct, frozen=True, kw_only=True):
    """The family and the version number of a Claude model."""

    family: str
    number: tuple[int, int]


def version(model: str) -> Version | None:
    """Return the version of a model named like `claude-opus-4-8`, else None."""
    found = _VERSION.match(model)
    if found is None:
        return None
    return Version(family=found["family"], number=(int(found["major"]), int(found["minor"] or 0)))


def invalid(message: str) -> Violation:
    """Return the ordinary 400 of this API."""
    return Violation(message=message)


def blocks_of(message: Json, at: int) -> tuple[ContentBlock, ...]:
    """Return the blocks of the message at index `at`; a string is one text block, an empty string none."""
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    return tuple(
        ContentBlock(path=f"messages.{at}.content.{index}", role=message["role"], message=at, value=value)
        for index, value in enumerate(content)
    )


def blocks(body: Json) -> Iterator[ContentBlock]:
    """Yield every block of every message."""
    for at, message in enumerate(body["messages"]):
        yield from blocks_of(message, at)


def turns(body: Json) -> list[MergedTurn]:
    """Return the conversation with consecutive messages of one role merged, without a signed compaction block."""
    merged: list[MergedTurn] = []
    for at, message in enumerate(body["messages"]):
        own = blocks_of(message, at)
        if at == 0 and own and own[0].type == "compaction" and own[0].value.get("signature"):
            own = own[1:]
            if not own and len(body["messages"]) > 1:
                continue
        if merged and merged[-1].role == message["role"]:
            last = merged.pop()
            merged.append(MergedTurn(role=last.role, message=last.message, blocks=(*last.blocks, *own)))
        else:
            merged.append(MergedTurn(role=message["role"], message=at, blocks=own))
    return merged


def system_blocks(body: Json) -> list[Json]:
    """Return the system prompt as blocks."""
    system = body.get("system") or []
    return [{"type": "text", "text": system}] if isinstance(system, str) else list(system)


def inner_blocks(block: Json) -> list[Json]:
    """Return the blocks inside a tool result; other blocks hold none."""
    content = block.get("content") if block.get("type") == "tool_result" else None
    return content if isinstance(content, list) else []


def marks(body: Json) -> list[CacheControl]:
    """Return every cache mark in the order in which the API processes them: tools, system, messages, the whole request."""
    holders = [(f"tools.{at}", tool) for at, tool in enumerate(body.get("tools") or [])]
    holders += [(f"system.{at}", block) for at, block in enumerate(system_blocks(body))]
    for block in blocks(body):
        holders += [
            (f"{block.path}.content.{at}", inner) for at, inner in enumerate(inner_blocks(block.value))
        ]
        holders.append((block.path, block.value))
    holders.append(("", body))
    return [
        CacheControl(
            path=f"{path}.cache_control".removeprefix("."), holder=holder, value=holder["cache_control"]
        )
        for path, holder in holders
        if holder.get("cache_control") is not None
    ]


def pieces(body: Json) -> list[PromptPiece]:
    """Return the prompt in the order the model reads it; a mark on the whole request counts as one on the last piece."""
    found = [_piece("tools", f"tools.{at}", "", tool) for at, tool in enumerate(body.get("tools") or [])]
    found += [_piece("system", f"system.{at}", "", block) for at, block in enumerate(system_blocks(body))]
    for at, message in enumerate(body["messages"]):
        found += message_pieces(message, at)
    if body.get("cache_control") and found and not found[-1].mark:
        found[-1] = replace(found[-1], mark=_ttl(body["cache_control"]))
    return found


def message_pieces(message: Json, at: int) -> list[PromptPiece]:
    """Return the pieces of the message at index `at`."""
    return [_piece("messages", block.path, block.role, block.value) for block in blocks_of(message, at)]


def _piece(section: Section, path: str, role: str, value: Json) -> PromptPiece:
    inner = inner_blocks(value)
    control = [held["cache_control"] for held in (value, *inner) if held.get("cache_control") is not None]
    bare = _bare(value)
    if inner:
        bare["content"] = [_bare(block) for block in inner]
    elif value.get("type") == "tool_result" and isinstance(value.get("content"), str):
        bare["content"] = [{"type": "text", "text": value["content"]}]
    return PromptPiece(
        section=section, path=path, role=role, value=bare, mark=_ttl(control[0]) if control else ""
    )


def _bare(value: Json) -> Json:
    # Clients send an unused field as null or leave it out; the API treats both alike.
    return {key: held for key, held in value.items() if key != "cache_control" and held is not None}


def _ttl(control: object) -> str:
    return str(control.get("ttl") or "5m") if isinstance(control, dict) else "5m"


# Signatures of thinking and of compaction blocks

BINDING_MODELS = ("claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5")
"""Models that accept a thinking block only behind the prompt that it was written for."""
T = TypeVar("T")
Prefix: TypeAlias = dict[Section, str]
"""Digests of the tools, of the system prompt and of the messages before a block."""


class Claim(Struct, frozen=True, kw_only=True):
    """The content of a thinking signature."""

    model: str
    text: str
    prefix: Prefix


class BlockClaim(Struct, frozen=True, kw_only=True):
    """The content of the signature of a compaction block."""

    model: str
    text: str
    tools: str
    system: str
    stands: tuple[str, ...]
    """Digests of the messages that the block replaces: as they were sent, and as they were before an earlier compaction."""
    role: str
    """The role of the last replaced message."""


class Signer:
    """Issues signatures, and reads those that were issued with the same key."""

    def __init__(self, key: bytes) -> None:
        self._sealing = Sealing(key)

    def sign(self, model: str, text: str, prompt: Sequence[PromptPiece]) -> str:
        """Return the signature of the thinking `text` in an answer to `prompt`."""
        return self._sealing.sealed(write(Claim(model=model, text=digest(text), prefix=prefixes(prompt)[""])))

    def sign_block(self, model: str, text: str, prompt: Sequence[PromptPiece]) -> str:
        """Return the signature of a compaction block with this `text`, which replaces all messages of `prompt`."""
        ends = [each[""] for each in self.known_prefixes(prompt)]
        messages = [piece for piece in prompt if piece.section == "messages"]
        claim = BlockClaim(
            model=model,
            text=digest(text),
            tools=ends[0]["tools"],
            system=ends[0]["system"],
            stands=tuple(end["messages"] for end in ends),
            role=messages[-1].role if messages else "",
        )
        return self._sealing.sealed(write(claim))

    def read(self, signature: str) -> Claim | None:
        """Return the claim in a thinking signature, or None if it was not issued here."""
        return self._opened(signature, Claim)

    def read_block(self, signature: str) -> BlockClaim | None:
        """Return the claim in the signature of a compaction block, or None if it was not issued here."""
        return self._opened(signature, BlockClaim)

    def known_prefixes(self, prompt: Sequence[PromptPiece]) -> list[dict[str, Prefix]]:
        """Return the accepted prefixes before each block: those of the prompt as sent, then those from before a compaction.

        A compaction block is equivalent to the messages it replaces if a model that binds thinking wrote it behind the same
        tools and system prompt, and if the message after it has another role than the last message that it replaces.
        """
        as_sent = prefixes(prompt)
        messages = [piece for piece in prompt if piece.section == "messages"]
        first, behind = (messages[0], messages[1:]) if messages else (None, [])
        if first is None or first.value.get("type") != "compaction":
            return [as_sent]
        claim = self.read_block(str(first.value.get("signature") or ""))
        now = as_sent[""]
        if (
            claim is None
            or not claim.model.startswith(BINDING_MODELS)
            or (claim.tools, claim.system) != (now["tools"], now["system"])
            or (behind and behind[0].role in (claim.role, "system"))
        ):
            return [as_sent]
        return [as_sent, *(prefixes(prompt, behind=stands) for stands in claim.stands)]

    def _opened(self, signature: str, kind: type[T]) -> T | None:
        """Return the claim if it is of this kind, else None: thinking and compaction blocks have different claims."""
        claim = self._sealing.opened(signature)
        try:
            return None if claim is None else msgspec.json.decode(claim, type=kind)
        except msgspec.ValidationError:
            return None


def prefixes(prompt: Sequence[PromptPiece], *, behind: str | None = None) -> dict[str, Prefix]:
    """Return the prefix before each block of the messages, by the block's path; that of the whole prompt is under "".

    Cache marks make no difference, and neither does the division of one role's blocks into messages. `behind` is the digest
    of the messages that the first block replaces.
    """
    tools = _identity([piece for piece in prompt if piece.section == "tools"])
    system = _identity([piece for piece in prompt if piece.section == "system"])
    messages = [piece for piece in prompt if piece.section == "messages"]
    ends = _chain(messages) if behind is None else ["", *_chain(messages[1:], behind)]
    paths = [*(piece.path for piece in messages), ""]
    return {
        path: {"tools": tools, "system": system, "messages": end}
        for path, end in zip(paths, ends, strict=True)
    }


def _chain(pieces: Sequence[PromptPiece], start: str = "") -> list[str]:
    """Return a digest of everything before each piece, then one of all pieces; `start` is the digest before the first."""
    ends = [start]
    for piece in pieces:
        ends.append(blake2b(ends[-1].encode() + b"\0" + piece.content, digest_size=16).hexdigest())
    return ends


def _identity(pieces: Sequence[PromptPiece]) -> str:
    digests = prefix_digests("section", pieces)
    return digests[-1].hex() if digests else ""


def digest(text: str) -> str:
    """Return the digest of a signed text."""
    return hmac.digest(b"text", text.encode(), "sha256").hex()


# The rules, in the order in which they are checked


def rules(signer: Signer) -> tuple[RequestRule, ...]:
    """Return all rules; each may rely on the ones before it."""
    return (
        body_size,
        api_key,
        version_header,
        readable_json,
        required_fields,
        max_tokens_positive,
        messages_given,
        message_shape,
        block_shape,
        system_shape,
        tool_shape,
        tool_name_pattern,
        compaction_needs_beta,
        compaction_shape,
        block_needs_beta,
        block_as_returned,
        compaction_supported,
        compaction_stands_alone,
        one_signed_block_first,
        no_threshold_behind_block,
        *block_rules(signer),
        known_roles,
        first_message_is_user,
        system_message_follows_user,
        blocks_fit_roles,
        mark_shape,
        at_most_four_marks,
        no_mark_on_thinking,
        no_mark_on_empty_text,
        long_marks_first,
        content_not_empty,
        text_not_empty,
        text_not_blank,
        system_text_not_empty,
        prefill_supported,
        no_trailing_whitespace,
        tools_defined,
        tool_names_unique,
        tool_use_id_pattern,
        tool_use_ids_unique,
        calls_answered,
        results_first,
        results_called,
        one_result_per_call,
        thinking_config,
        binding_controls_need_beta,
        thinking_leads_message,
        thinking_opens_tool_loop,
        *thinking_rules(signer),
        prompt_fits,
        output_fits,
    )


# Rules for the headers and the shape of the body

MAX_BYTES = 32 * 1024 * 1024
# What the API's errors call a type.
_EXPECTED = {
    str: "a valid string",
    int: "a valid integer",
    dict: "a valid dictionary",
    list: "a valid list",
    bool: "a valid boolean",
}
# The required fields of each type of block, with their types.
_FIELDS: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "image": {"source": dict},
    "document": {"source": dict},
    "tool_use": {"id": str, "name": str, "input": dict},
    "tool_result": {"tool_use_id": str},
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
}


def body_size(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request has at most 32 MB."""
    if incoming.size > MAX_BYTES:
        yield Violation(status=413, type="request_too_large", message="Request exceeds the maximum size")


def api_key(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request has an API key in `x-api-key` or `authorization`."""
    if not (incoming.headers.get("x-api-key") or incoming.headers.get("authorization")):
        yield Violation(status=401, type="authentication_error", message="x-api-key header is required")


def version_header(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request names the version of the API in a header."""
    if "anthropic-version" not in incoming.headers:
        yield invalid("anthropic-version: header is required")


def readable_json(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The body is one JSON object."""
    if incoming.problem:
        yield invalid(f"The request body is not valid JSON: {incoming.problem}")


def required_fields(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request has a model, messages and, unless it only asks for a token count, an output limit."""
    yield from _field("", incoming.body, "model", str)
    yield from _field("", incoming.body, "messages", list)
    if not incoming.counting:
        yield from _field("", incoming.body, "max_tokens", int)


def max_tokens_positive(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The output limit is at least one token."""
    if not incoming.counting and incoming.body["max_tokens"] < 1:
        yield invalid("max_tokens: Input should be greater than or equal to 1")


def messages_given(incoming: ReceivedRequest) -> Iterator[Violation]:
    """There is at least one message."""
    if not incoming.messages:
        yield invalid("messages: at least one message is required")


def message_shape(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A message has a role, and content that is a string or a list of typed blocks."""
    for at, message in enumerate(incoming.body["messages"]):
        path = f"messages.{at}"
        if not isinstance(message, dict):
            yield invalid(f"{path}: Input should be a valid dictionary")
            return
        yield from _field(path, message, "role", str)
        content = message.get("content")
        if "content" not in message:
            yield invalid(f"{path}.content: Field required")
        elif isinstance(content, list):
            yield from _typed(f"{path}.content", content)
        elif not isinstance(content, str):
            yield invalid(f"{path}.content: Input should be a valid list")


def block_shape(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A block of a known type has the fields of that type; blocks of unknown types are accepted."""
    for block in blocks(incoming.body):
        yield from _fields(block.path, block.value)
        content = block.value.get("content") if block.type == "tool_result" else None
        if content is not None and not isinstance(content, str | list):
            yield invalid(f"{block.path}.tool_result.content: Input should be a valid list")
        yield from _typed(f"{block.path}.tool_result.content", inner_blocks(block.value))
        for at, inner in enumerate(inner_blocks(block.value)):
            yield from _fields(f"{block.path}.tool_result.content.{at}", inner)


def system_shape(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The system prompt is a string or a list of text blocks."""
    system = incoming.body.get("system")
    if isinstance(system, list):
        yield from _typed("system", system)
        for at, block in enumerate(system):
            yield from _fields(f"system.{at}", block)
    elif system is not None and not isinstance(system, str):
        yield invalid("system: Input should be a valid list")


def tool_shape(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A tool that the client defines has a name and a schema; a tool of the provider needs neither."""
    tools = incoming.body.get("tools")
    if tools is not None and not isinstance(tools, list):
        yield invalid("tools: Input should be a valid list")
        return
    for at, tool in enumerate(tools or []):
        if not isinstance(tool, dict):
            yield invalid(f"tools.{at}: Input should be a valid dictionary")
            return
        custom = tool.get("type", "custom") == "custom"
        if custom or "name" in tool:
            yield from _field(f"tools.{at}.custom", tool, "name", str)
        if custom:
            yield from _field(f"tools.{at}.custom", tool, "input_schema", dict)


def tool_name_pattern(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A tool's name has 1 to 128 letters, digits, underscores and hyphens."""
    for at, tool in enumerate(incoming.body.get("tools") or []):
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", str(tool.get("name", "unnamed"))):
            yield invalid(f"tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")


def _typed(path: str, values: Sequence[object]) -> Iterator[Violation]:
    for at, value in enumerate(values):
        if not isinstance(value, dict):
            yield invalid(f"{path}.{at}: Input should be a valid dictionary")
        elif not isinstance(value.get("type"), str):
            yield invalid(f"{path}.{at}.type: Field required")


def _fields(path: str, block: Json) -> Iterator[Violation]:
    for name, kind in _FIELDS.get(block["type"], {}).items():
        yield from _field(f"{path}.{block['type']}", block, name, kind)


def _field(path: str, holder: Json, name: str, kind: type) -> Iterator[Violation]:
    where = f"{path}.{name}".removeprefix(".")
    value = holder.get(name)
    if name not in holder:
        yield invalid(f"{where}: Field required")
    elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        yield invalid(f"{where}: Input should be {_EXPECTED[kind]}")


# Rules for compaction by the provider

ON_DEMAND_BETA = "compact-2026-09-04"
THRESHOLD_BETA = "compact-2026-01-12"
MODELS = (
    *("claude-fable-5", "claude-mythos-5", "claude-mythos-preview", "claude-opus-5", "claude-sonnet-5"),
    *("claude-haiku-5-5", "claude-opus-4-8", "claude-opus-4-7", "claude-opus-4-6", "claude-sonnet-4-6"),
)
"""Prefixes of the names of models that support compaction."""
MOST_INSTRUCTIONS = 16_384
"""Characters."""
# The fields that a compaction block may have.
_COMPACTION_FIELDS = frozenset(
    {"type", "content", "encrypted_content", "signature", "tool_changes", "cache_control"}
)


def compaction_needs_beta(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request for a compaction needs the header of the beta."""
    if _asked(incoming) is not None and ON_DEMAND_BETA not in _betas(incoming):
        yield invalid(f"compaction: requires anthropic-beta: {ON_DEMAND_BETA}")


def compaction_shape(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request for a compaction has the type `summarize`, and its instructions are not too long."""
    asked = _asked(incoming)
    if asked is None:
        return
    if not isinstance(asked, dict) or asked.get("type") != "summarize":
        yield invalid(
            "compaction: Input tag found using 'type' does not match any of the expected tags: 'summarize'"
        )
        return
    told = asked.get("instructions")
    if told is not None and not isinstance(told, str):
        yield invalid("compaction.summarize.instructions: Input should be a valid string")
    elif told is not None and len(told) > MOST_INSTRUCTIONS:
        yield invalid(
            f"compaction.summarize.instructions: String should have at most {MOST_INSTRUCTIONS} characters"
        )
    for name in asked.keys() - {"type", "instructions"}:
        yield invalid(f"compaction.summarize.{name}: Extra inputs are not permitted")


def block_needs_beta(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A compaction block needs a beta header; a signed one needs that of compaction on demand."""
    for block in _blocks(incoming):
        allowed = {ON_DEMAND_BETA} if _is_signed(block) else {ON_DEMAND_BETA, THRESHOLD_BETA}
        if not allowed & _betas(incoming):
            yield invalid(
                f"{block.path}: Input tag 'compaction' found using 'type' does not match any of the expected tags"
            )


def block_as_returned(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A compaction block has only the fields that the API returns, and its content is not empty."""
    for block in _blocks(incoming):
        for name in sorted(block.value.keys() - _COMPACTION_FIELDS):
            yield invalid(f"{block.path}.compaction.{name}: Extra inputs are not permitted")
        content = block.value.get("content")
        if content is not None and not isinstance(content, str):
            yield invalid(f"{block.path}.compaction.content: Input should be a valid string")
        elif content == "":
            yield invalid(f"{block.path}.compaction.content: String should have at least 1 character")


def compaction_supported(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Only some models can compact and read signed compaction blocks."""
    carries = any(map(_is_signed, _blocks(incoming)))
    if (_asked(incoming) is not None or carries) and not incoming.model.startswith(MODELS):
        yield invalid(f"compaction: not supported on {incoming.model}")


def compaction_stands_alone(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request for a compaction has no settings that would shape a reply, because there is no reply."""
    if _asked(incoming) is None:
        return
    body = incoming.body
    output = body.get("output_config") or {}
    choice = body.get("tool_choice") or {}
    beside = {
        "context_management": body.get("context_management"),
        "stop_sequences": body.get("stop_sequences"),
        "output_config.format": output.get("format"),
        "output_config.task_budget.remaining": (output.get("task_budget") or {}).get("remaining"),
        "tool_choice": choice if choice.get("type") in ("any", "tool") else None,
    }
    for name, value in beside.items():
        if value is not None:
            yield invalid(f"{name}: cannot be combined with `compaction`")


def one_signed_block_first(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request has at most one signed compaction block, at the very start of the messages."""
    signed = [block for block in _blocks(incoming) if _is_signed(block)]
    if len(signed) > 1:
        yield invalid("messages: a request may carry one signed `compaction` block, the newest")
    for block in signed:
        if block.path != "messages.0.content.0":
            yield _coded(
                "compaction_block_misplaced",
                f"{block.path}: messages remain in front of the `compaction` block",
            )


def no_threshold_behind_block(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request with a signed compaction block does not also ask for compaction at a threshold."""
    managed = incoming.body.get("context_management")
    edits = managed.get("edits") or [] if isinstance(managed, dict) else []
    at_threshold = any(isinstance(edit, dict) and edit.get("type") == "compact_20260112" for edit in edits)
    if at_threshold and any(map(_is_signed, _blocks(incoming))):
        yield invalid(
            "context_management: `compact_20260112` cannot run on a request with a signed `compaction` block"
        )


def block_rules(signer: Signer) -> tuple[RequestRule, ...]:
    """Return the rules that check the signatures of compaction blocks."""

    def block_signed(incoming: ReceivedRequest) -> Iterator[Violation]:
        """A signed compaction block comes back with the signature and the text it was issued with."""
        for block in filter(_is_signed, _blocks(incoming)):
            claim = signer.read_block(str(block.value["signature"]))
            if claim is None:
                yield _coded("compaction_signature_invalid", f"{block.path}: Invalid `signature`")
            elif claim.text != digest(str(block.value.get("content") or "")):
                yield _coded("compaction_content_mismatch", f"{block.path}: `content` is not what was signed")

    return (block_signed,)


def is_asked_for(body: Json) -> bool:
    """Return whether a request asks for a compaction rather than a reply."""
    return body.get("compaction") is not None


def _asked(incoming: ReceivedRequest) -> object:
    return None if incoming.counting else incoming.body.get("compaction")


def _blocks(incoming: ReceivedRequest) -> list[ContentBlock]:
    return [block for block in blocks(incoming.body) if block.type == "compaction"]


def _is_signed(block: ContentBlock) -> bool:
    return bool(block.value.get("signature"))


def _betas(incoming: ReceivedRequest) -> set[str]:
    return {beta.strip() for beta in incoming.headers.get("anthropic-beta", "").split(",")}


def _coded(code: str, message: str) -> Violation:
    return Violation(message=message, code=code)


# Rules for roles

# The only role in which a type of block is allowed.
_ROLE_OF = {"tool_use": "assistant", "tool_result": "user"} | dict.fromkeys(THINKING, "assistant")


def known_roles(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Messages have the role `user` or `assistant`; `system` is allowed from Opus 4.8 on, and from version 5 of other families."""
    for at, message in enumerate(incoming.messages):
        role = message["role"]
        if role == "system" and not _allows_system_messages(incoming.model):
            yield invalid(f"messages.{at}: role 'system' is not supported on this model")
        elif role not in ("user", "assistant", "system"):
            yield invalid(f"messages.{at}.role: Input should be 'user' or 'assistant'")


def first_message_is_user(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The first message is the user's, unless it begins with a signed compaction block."""
    first = blocks_of(incoming.messages[0], 0)[:1]
    compacted = any(block.type == "compaction" and block.value.get("signature") for block in first)
    if incoming.messages[0]["role"] != "user" and not compacted:
        yield invalid('messages: first message must use the "user" role')


def system_message_follows_user(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A system message within the conversation directly follows a user turn."""
    for before, turn in pairwise(turns(incoming.body)):
        if turn.role == "system" and before.role != "user":
            yield invalid(
                f"messages.{turn.message}: a 'system' message must immediately follow a 'user' message"
            )


def blocks_fit_roles(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Tool calls and thinking are in assistant messages, tool results in user messages."""
    for block in blocks(incoming.body):
        role = _ROLE_OF.get(block.type, block.role)
        if role != block.role:
            yield invalid(f"{block.path}: `{block.type}` blocks can only be in `{role}` messages")


def _allows_system_messages(model: str) -> bool:
    known = version(model)
    return known is not None and known.number >= ((4, 8) if known.family == "opus" else (5, 0))


# Rules for cache marks

MOST_MARKS = 4


def mark_shape(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A cache mark has the type `ephemeral` and a lifetime of five minutes or an hour."""
    for mark in marks(incoming.body):
        if not isinstance(mark.value, dict) or mark.value.get("type") != "ephemeral":
            yield invalid(
                f"{mark.path}: Input tag found using 'type' does not match any of the expected tags: 'ephemeral'"
            )
        elif mark.ttl not in ("5m", "1h"):
            yield invalid(f"{mark.path}.ephemeral.ttl: Input should be '5m' or '1h'")


def at_most_four_marks(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request has at most four cache marks; a mark on the whole request counts."""
    found = len(marks(incoming.body))
    if found > MOST_MARKS:
        yield invalid(f"A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {found}.")


def no_mark_on_thinking(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Thinking blocks carry no cache mark."""
    for mark in marks(incoming.body):
        kind = mark.holder.get("type")
        if kind in THINKING:
            where = mark.path.removesuffix(".cache_control")
            yield invalid(f"{where}.{kind}.cache_control: Extra inputs are not permitted")


def no_mark_on_empty_text(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Empty text blocks carry no cache mark."""
    for mark in marks(incoming.body):
        if mark.holder.get("type") == "text" and not mark.holder["text"]:
            where = mark.path.removesuffix(".cache_control")
            yield invalid(f"{where}.text: cache_control cannot be set for empty text blocks")


def long_marks_first(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Cache marks of an hour come before those of five minutes."""
    short = False
    for mark in marks(incoming.body):
        if mark.ttl == "1h" and short:
            yield invalid(
                f"{mark.path}.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
                "Note that blocks are processed in the following order: `tools`, `system`, `messages`."
            )
        short = short or mark.ttl == "5m"


# Rules for text


def content_not_empty(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Every message has content; only a final assistant message may be empty."""
    last = len(incoming.messages) - 1
    for at, message in enumerate(incoming.messages):
        if not blocks_of(message, at) and not (at == last and message["role"] == "assistant"):
            yield invalid(
                f"messages.{at}: all messages must have non-empty content "
                "except for the optional final assistant message"
            )


def text_not_empty(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A text block has text; inside a tool result it may be empty."""
    if any(_is_text(block.value) and not block.value["text"] for block in blocks(incoming.body)):
        yield invalid("messages: text content blocks must be non-empty")


def text_not_blank(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A message does not consist of white space only."""
    for at, message in enumerate(incoming.messages):
        own = blocks_of(message, at)
        if own and all(_is_text(block.value) and not block.value["text"].strip() for block in own):
            yield invalid("messages: text content blocks must contain non-whitespace text")


def system_text_not_empty(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A block of the system prompt has text."""
    if any(_is_text(block) and not block["text"] for block in system_blocks(incoming.body)):
        yield invalid("system: text content blocks must be non-empty")


def prefill_supported(incoming: ReceivedRequest) -> Iterator[Violation]:
    """From version 4.6 on the last message is not the assistant's (a prefill), except where a compaction is asked for."""
    known = None if is_asked_for(incoming.body) else version(incoming.model)
    if known and known.number >= (4, 6) and incoming.messages[-1]["role"] == "assistant":
        yield invalid(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


def no_trailing_whitespace(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A final assistant message (a prefill) does not end with white space."""
    final = turns(incoming.body)[-1]
    if is_asked_for(incoming.body):
        return
    if final.role == "assistant" and final.blocks and _is_text(final.blocks[-1].value):
        text = final.blocks[-1].value["text"]
        if text != text.rstrip():
            yield invalid("messages: final assistant content cannot end with trailing whitespace")


def _is_text(block: Json) -> bool:
    return bool(block["type"] == "text")


# Rules for tool calls and their results


def tools_defined(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A request with tool calls or results defines tools."""
    used = any(block.type in ("tool_use", "tool_result") for block in blocks(incoming.body))
    if used and not incoming.body.get("tools"):
        yield invalid("Requests which include `tool_use` or `tool_result` blocks must define tools")


def tool_names_unique(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Tool names are unique."""
    names = [tool["name"] for tool in incoming.body.get("tools") or [] if "name" in tool]
    if len(set(names)) < len(names):
        yield invalid("tools: Tool names must be unique.")


def tool_use_id_pattern(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Call ids consist of letters, digits, underscores and hyphens."""
    for block in blocks(incoming.body):
        name = {"tool_use": "id", "tool_result": "tool_use_id"}.get(block.type)
        if name and not re.fullmatch(r"[a-zA-Z0-9_-]+", block.value[name]):
            yield invalid(f"{block.path}.{block.type}.{name}: String should match pattern '^[a-zA-Z0-9_-]+$'")


def tool_use_ids_unique(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Call ids are unique in the whole conversation."""
    seen: set[str] = set()
    for block in blocks(incoming.body):
        if block.type == "tool_use":
            if block.value["id"] in seen:
                yield invalid(f"{block.path}: `tool_use` ids must be unique")
            seen.add(block.value["id"])


def calls_answered(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Every call has a result in the next turn."""
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


def results_first(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The turn after calls begins with their results."""
    for turn, following in pairwise(turns(incoming.body)):
        calls = len(turn.of_type("tool_use"))
        if any(block.type != "tool_result" for block in following.blocks[:calls]):
            yield invalid(
                f"messages.{following.message}: Did not find {calls} `tool_result` block(s) at the beginning of this "
                "message. Messages following `tool_use` blocks must begin with a matching number of "
                "`tool_result` blocks."
            )


def results_called(incoming: ReceivedRequest) -> Iterator[Violation]:
    """Every result belongs to a call in the previous turn."""
    nothing = MergedTurn(role="", message=-1, blocks=())
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


def one_result_per_call(incoming: ReceivedRequest) -> Iterator[Violation]:
    """A call has no more than one result."""
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


def _with_next(conversation: list[MergedTurn]) -> Iterator[tuple[MergedTurn, MergedTurn]]:
    return pairwise([*conversation, MergedTurn(role="user", message=len(conversation), blocks=())])


# Rules for thinking

SECTIONS: tuple[Section, ...] = ("tools", "system", "messages")
BINDING_BETA = "thinking-binding-controls-2026-08-01"
LEAST_BUDGET = 1024
"""Tokens of thinking."""
# What the error adds, by the first section that has changed.
_PLACES = {
    "tools": "The `tools` differ from those this block was created with.",
    "system": "The `system` prompt differs from the one this block was created with.",
    "messages": "The `messages` before this block differ from those it was created with.",
}


class Signed(Struct, frozen=True, kw_only=True):
    """A thinking block and the claim in its signature; None if the signature was not issued here."""

    block: ContentBlock
    claim: Claim | None

    @property
    def genuine(self) -> bool:
        """Whether the signature is ours and the text is the one that was signed."""
        return self.claim is not None and self.claim.text == digest(self.block.value.get("thinking", ""))


class Unbound(Struct, frozen=True, kw_only=True):
    """A thinking block and the first section before it that has changed."""

    block: ContentBlock
    section: Section


class Dropped(Struct, frozen=True, kw_only=True):
    """A thinking block that the model is not shown, and the reason that the API reports."""

    path: str
    reason: str


def thinking_config(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The `thinking` setting has a known type; `enabled` needs a budget below the output limit."""
    config = incoming.body.get("thinking")
    if config is None:
        return
    kind = config.get("type") if isinstance(config, dict) else None
    if kind not in ("enabled", "adaptive", "between_tools", "disabled"):
        yield invalid(
            "thinking: Input tag found using 'type' does not match any of the expected tags: "
            "'enabled', 'adaptive', 'between_tools', 'disabled'"
        )
        return
    if kind == "enabled":
        yield from _budget(config, incoming)
    yield from _binding(config)


def _budget(config: Json, incoming: ReceivedRequest) -> Iterator[Violation]:
    budget = config.get("budget_tokens")
    if not isinstance(budget, int) or budget < LEAST_BUDGET:
        yield invalid(
            f"thinking.enabled.budget_tokens: Input should be greater than or equal to {LEAST_BUDGET}"
        )
    elif not incoming.counting and incoming.body["max_tokens"] <= budget:
        yield invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")


def _binding(config: Json) -> Iterator[Violation]:
    binding = config.get("block_binding")
    where = f"thinking.{config['type']}.block_binding"
    if binding is not None and not isinstance(binding, dict):
        yield invalid(f"{where}: Input should be a valid dictionary")
    elif binding and binding.get("prefix_mismatch_behavior") not in (None, "error", "drop_block"):
        yield invalid(f"{where}.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'")


def binding_controls_need_beta(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The setting `block_binding` needs the header of the beta."""
    config = _config(incoming)
    if config.get("block_binding") is not None and BINDING_BETA not in incoming.headers.get(
        "anthropic-beta", ""
    ):
        yield invalid(f"thinking.{config['type']}.block_binding: Extra inputs are not permitted")


def thinking_leads_message(incoming: ReceivedRequest) -> Iterator[Violation]:
    """With thinking enabled, an assistant turn that contains thinking begins with it."""
    if _config(incoming).get("type") != "enabled":
        return
    for turn in turns(incoming.body):
        kinds = [block.type for block in turn.blocks]
        if kinds and kinds[0] not in THINKING and any(kind in THINKING for kind in kinds):
            yield invalid(
                f"{turn.blocks[0].path}: If an assistant message contains any thinking blocks, the first block "
                f"must be `thinking` or `redacted_thinking`. Found `{kinds[0]}`."
            )


def thinking_opens_tool_loop(incoming: ReceivedRequest) -> Iterator[Violation]:
    """With thinking enabled, a tool loop that is still going on begins with thinking.

    The loop begins with the first assistant message after the user's last message that has no tool results.
    """
    if _config(incoming).get("type") != "enabled":
        return
    conversation = [turn for turn in turns(incoming.body) if turn.role != "system"]
    if not conversation[-1].of_type("tool_result"):
        return
    said = [
        at for at, turn in enumerate(conversation) if turn.role == "user" and not turn.of_type("tool_result")
    ]
    opening = conversation[said[-1] + 1] if said else None
    if opening and opening.blocks and opening.blocks[0].type not in THINKING:
        first = opening.blocks[0]
        yield invalid(
            f"{first.path}.type: Expected `thinking` or `redacted_thinking`, but found `{first.type}`. When `thinking` "
            "is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of "
            "`tool_use` and `tool_result` blocks). To avoid this requirement, disable `thinking`."
        )


def thinking_rules(signer: Signer) -> tuple[RequestRule, ...]:
    """Return the rules that check the signatures of thinking."""

    def thinking_unmodified(incoming: ReceivedRequest) -> Iterator[Violation]:
        """Thinking in the latest assistant message is not modified."""
        latest = max(
            (block.message for block in blocks(incoming.body) if block.role == "assistant"), default=-1
        )
        for signed in _signed(incoming, signer):
            if signed.block.message == latest and signed.claim and not signed.genuine:
                yield invalid(
                    f"{signed.block.path}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
                    "modified. These blocks must remain as they were in the original response."
                )

    def thinking_signed(incoming: ReceivedRequest) -> Iterator[Violation]:
        """Every thinking block comes back with the text and the signature it was issued with."""
        for signed in _signed(incoming, signer):
            if not signed.genuine:
                yield invalid(f"{signed.block.path}: Invalid `signature` in `{signed.block.type}` block")

    def thinking_bound(incoming: ReceivedRequest) -> Iterator[Violation]:
        """On models that bind thinking, the prompt before a block is unchanged, unless the request lets the API drop the block."""
        if _drops_blocks(incoming):
            return
        for found in _unbound(incoming, signer):
            yield invalid(
                f"{found.block.path}: Invalid `signature` in `{found.block.type}` block. The block is bound to a different "
                "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "
                f'"drop_block". That setting requires the `{BINDING_BETA}` value in the `anthropic-beta` header. '
                f"{_PLACES[found.section]}"
            )

    return (thinking_unmodified, thinking_signed, thinking_bound)


def dropped_thinking(incoming: ReceivedRequest, signer: Signer) -> list[Dropped]:
    """Return the thinking blocks of a legal request that the model is not shown, in order."""
    reasons = {
        signed.block.path: "model_binding_mismatch"
        for signed in _signed(incoming, signer)
        if signed.claim and signed.claim.model != incoming.model
    }
    reasons |= {found.block.path: "prefix_binding_mismatch" for found in _unbound(incoming, signer)}
    paths = [block.path for block in blocks(incoming.body)]
    return [Dropped(path=path, reason=reasons[path]) for path in paths if path in reasons]


def _unbound(incoming: ReceivedRequest, signer: Signer) -> Iterator[Unbound]:
    if not incoming.model.startswith(BINDING_MODELS):
        return
    known = signer.known_prefixes(pieces(incoming.body))
    for signed in _signed(incoming, signer):
        if signed.claim and signed.claim.model == incoming.model:
            then, path = signed.claim.prefix, signed.block.path
            if all(before[path] != then for before in known):
                now = known[0][path]
                changed = [section for section in SECTIONS if now[section] != then[section]]
                yield Unbound(block=signed.block, section=changed[0])


def _signed(incoming: ReceivedRequest, signer: Signer) -> Iterator[Signed]:
    for block in blocks(incoming.body):
        if block.type in THINKING:
            signature = block.value.get("signature") or block.value.get("data") or ""
            yield Signed(block=block, claim=signer.read(signature))


def _config(incoming: ReceivedRequest) -> Json:
    return incoming.body.get("thinking") or {}


def _drops_blocks(incoming: ReceivedRequest) -> bool:
    config = _config(incoming)
    binding = config.get("block_binding") or {}
    return config.get("type") == "adaptive" and binding.get("prefix_mismatch_behavior") == "drop_block"


# Rules for size


def prompt_fits(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The prompt fits the context length."""
    if incoming.counting:
        return
    size = prompt_tokens(pieces(incoming.body), incoming.count)
    if size > incoming.context_length:
        yield invalid(f"prompt is too long: {size} tokens > {incoming.context_length} maximum")


def output_fits(incoming: ReceivedRequest) -> Iterator[Violation]:
    """The prompt and the output asked for fit the context length together."""
    if incoming.counting:
        return
    size, output = prompt_tokens(pieces(incoming.body), incoming.count), incoming.body["max_tokens"]
    if size + output > incoming.context_length:
        yield invalid(
            f"input length and `max_tokens` exceed context limit: {size} + {output} > {incoming.context_length}, "
            "decrease input length or `max_tokens` and try again"
        )


# Answers

MESSAGES_DEPEND_ON = ("tool_choice", "thinking")
"""A change of these settings invalidates the cached messages, but not the cached tools and system prompt."""


class MessagesDialect:
    """Answers in the format of the Messages API."""

    request_id_header = "request-id"

    def __init__(self, *, ids: Ids, key: bytes, machines: Machines | None = None) -> None:
        self._ids = ids
        self._signer = Signer(key)
        self._machines = machines or Machines()
        self.rules = rules(self._signer)

    def error(self, violation: Violation, request_id: str) -> Json:
        """Return the body of an error."""
        said: Json = {"type": violation.type, "message": violation.message}
        if violation.code is not None:
            said["details"] = {"error_code": violation.code}
        return {"type": "error", "error": said, "request_id": request_id}

    def models(self, context_lengths: Mapping[str, int]) -> Json:
        """Return the list of models."""
        listed = [
            {
                "type": "model",
                "id": name,
                "display_name": name,
                "created_at": "1970-01-01T00:00:00Z",
                "lifecycle": "active",
                "max_input_tokens": length,
            }
            for name, length in context_lengths.items()
        ]
        names: list[str | None] = [*context_lengths] or [None]
        return {"data": listed, "has_more": False, "first_id": names[0], "last_id": names[-1]}

    def count(self, incoming: ReceivedRequest) -> Json:
        """Return the answer to a request for a token count."""
        return {"input_tokens": prompt_tokens(pieces(incoming.body), incoming.count)}

    def reply(self, answer: Spoken, incoming: ReceivedRequest) -> Json:
        """Return the whole answer with its usage; from now on the cache knows the prompt."""
        if is_asked_for(incoming.body):
            return self._compacted(answer, incoming)
        content = self._content(answer, incoming)
        reply: Json = {
            "id": self._ids.new("msg"),
            "type": "message",
            "role": "assistant",
            "model": incoming.body["model"],
            "content": content,
            "stop_reason": _stop_reason(answer),
            "stop_sequence": None,
            "usage": self._usage(content, incoming),
        }
        if isinstance(answer, Refuse):
            reply["stop_details"] = {"type": "refusal", "category": None, "explanation": answer.text}
        dropped = dropped_thinking(incoming, self._signer)
        if dropped:
            reply["input_transformations"] = [
                {"type": "thinking_dropped", "path": block.path, "reason": block.reason} for block in dropped
            ]
        return reply

    def events(self, reply: Json, incoming: ReceivedRequest) -> Iterator[bytes]:  # noqa: ARG002 - the protocol has it
        """Yield the same answer as server-sent events."""
        return stream(reply)

    def _compacted(self, answer: Spoken, incoming: ReceivedRequest) -> Json:
        """Return the answer to a request for a compaction: one signed block with the scripted text, billed as an iteration.

        If the scripted answer is anything but text, there is no block, and the stop reason says why.
        """
        said = self._content(answer, incoming)
        text = "".join(block["text"] for block in said if block["type"] == "text")
        stop = _stop_reason(answer)
        content: list[Json] = []
        if stop == "end_turn" and text:
            signature = self._signer.sign_block(incoming.model, text, pieces(incoming.body))
            content, stop = [{"type": "compaction", "content": text, "signature": signature}], "compaction"
        spent = self._usage(said, incoming)
        own = {name: spent[name] for name in spent if name != "service_tier"}
        own["input_tokens"] += incoming.count(incoming.body["compaction"].get("instructions") or "")
        nothing = {"input_tokens": 0, "output_tokens": 0, "service_tier": "standard"}
        return {
            "id": self._ids.new("msg"),
            "type": "message",
            "role": "assistant",
            "model": incoming.body["model"],
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {**nothing, "iterations": [{"type": "compaction", **own}]},
        }

    def _content(self, answer: Spoken, incoming: ReceivedRequest) -> list[Json]:
        match answer:
            case Say() | CutOff() | Refuse() | DropConnection():
                return [{"type": "text", "text": answer.text}] if answer.text else []
            case CallTools():
                said = [{"type": "text", "text": answer.text}] if answer.text else []
                return said + [
                    {
                        "type": "tool_use",
                        "id": call.id or self._ids.new("toolu"),
                        "name": call.name,
                        "input": dict(call.arguments),
                    }
                    for call in answer.calls
                ]
            case Think():
                return [self._thinking(answer, incoming), *self._content(answer.then, incoming)]

    def _thinking(self, answer: Think, incoming: ReceivedRequest) -> Json:
        text = "" if answer.redacted else answer.text
        signature = self._signer.sign(incoming.model, text, pieces(incoming.body))
        if answer.redacted:
            return {"type": "redacted_thinking", "data": signature}
        return {"type": "thinking", "thinking": text, "signature": signature}

    def _usage(self, content: list[Json], incoming: ReceivedRequest) -> Json:
        body, model = incoming.body, str(incoming.body["model"])
        prompt = Prompt(
            pieces(body),
            incoming.count,
            answer=message_pieces({"role": "assistant", "content": content}, len(body["messages"])),
            settings=[body.get(name) for name in MESSAGES_DEPEND_ON],
        )
        caching = self._machines.caching(model, otherwise="anthropic")
        used = self._machines.use(prompt, model, caching)
        return {
            "input_tokens": used.uncached,
            "cache_read_input_tokens": used.read,
            "cache_creation_input_tokens": used.written + used.written_long,
            "cache_creation": {
                "ephemeral_5m_input_tokens": used.written,
                "ephemeral_1h_input_tokens": used.written_long,
            },
            "output_tokens": max(1, sum(tokens(block, incoming.count) for block in content)),
            "service_tier": "standard",
        }


def _stop_reason(answer: Spoken) -> str:
    match answer:
        case Think():
            return _stop_reason(answer.then)
        case CallTools():
            return "tool_use"
        case CutOff():
            return "max_tokens"
        case Refuse():
            return "refusal"
        case Say() | DropConnection():
            return "end_turn"


# Answers as events


def stream(reply: Json) -> Iterator[bytes]:
    """Yield an answer as server-sent events: its start, each block in pieces, its end."""
    usage = reply["usage"]
    opening = {**reply, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    opening.pop("stop_details", None)
    yield _event("message_start", message=opening)
    yield _event("ping")
    for index, block in enumerate(reply["content"]):
        yield from _block(index, block)
    end = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    if "stop_details" in reply:
        end["stop_details"] = reply["stop_details"]
    totals = {key: value for key, value in usage.items() if key not in ("cache_creation", "service_tier")}
    yield _event("message_delta", delta=end, usage=totals)
    yield _event("message_stop")


def _block(index: int, block: Json) -> Iterator[bytes]:
    opening: Json
    match block:
        case {"type": "text", "text": text}:
            opening = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in slices(text)]
        case {"type": "thinking", "thinking": text, "signature": signature}:
            opening = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in slices(text)]
            deltas.append({"type": "signature_delta", "signature": signature})
        case {"type": "tool_use"}:
            opening = {**block, "input": {}}
            written = write(block["input"]) if block["input"] else ""
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *slices(written))]
        case _:
            opening, deltas = block, []
    yield _event("content_block_start", index=index, content_block=opening)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _event(name: str, **fields: object) -> bytes:
    return f"event: {name}\ndata: {write({'type': name, **fields})}\n\n".encode()
