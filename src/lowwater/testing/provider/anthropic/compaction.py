"""Messages rules about compaction on demand: how it is asked for, and where and how its block may come back.

After Anthropic's pages "Compaction on demand" and "Compaction and preserved thinking" (beta compact-2026-09-04).
"""

from collections.abc import Iterator

from lowwater.testing.provider.anthropic.body import Block, blocks, invalid
from lowwater.testing.provider.anthropic.signatures import Signer, digest
from lowwater.testing.provider.rule import Incoming, Json, Rule, Violation

ON_DEMAND_BETA = "compact-2026-09-04"
THRESHOLD_BETA = "compact-2026-01-12"
MODELS = (
    *("claude-fable-5", "claude-mythos-5", "claude-mythos-preview", "claude-opus-5", "claude-sonnet-5"),
    *("claude-haiku-5-5", "claude-opus-4-8", "claude-opus-4-7", "claude-opus-4-6", "claude-sonnet-4-6"),
)
"""Beginnings of the names of models that compact."""
MOST_INSTRUCTIONS = 16_384

_FIELDS = frozenset({"type", "content", "encrypted_content", "signature", "tool_changes", "cache_control"})


def compaction_needs_beta(incoming: Incoming) -> Iterator[Violation]:
    """Compaction is asked for only with the beta's header."""
    if _asked(incoming) is not None and ON_DEMAND_BETA not in _betas(incoming):
        yield invalid(f"compaction: requires anthropic-beta: {ON_DEMAND_BETA}")


def compaction_shape(incoming: Incoming) -> Iterator[Violation]:
    """It is of the type `summarize`, with instructions that are not too long."""
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


def compaction_supported(incoming: Incoming) -> Iterator[Violation]:
    """Only some models compact, and read a signed block."""
    carries = any(map(_is_signed, _blocks(incoming)))
    if (_asked(incoming) is not None or carries) and not incoming.model.startswith(MODELS):
        yield invalid(f"compaction: not supported on {incoming.model}")


def compaction_stands_alone(incoming: Incoming) -> Iterator[Violation]:
    """It goes with nothing that would shape a reply, for none is written."""
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


def block_needs_beta(incoming: Incoming) -> Iterator[Violation]:
    """A block is sent back only with a beta's header; a signed one with that of compaction on demand."""
    for block in _blocks(incoming):
        allowed = {ON_DEMAND_BETA} if _is_signed(block) else {ON_DEMAND_BETA, THRESHOLD_BETA}
        if not allowed & _betas(incoming):
            yield invalid(
                f"{block.path}: Input tag 'compaction' found using 'type' does not match any of the expected tags"
            )


def block_as_returned(incoming: Incoming) -> Iterator[Violation]:
    """A block has the fields that the API returned and no other, and what it says is not empty."""
    for block in _blocks(incoming):
        for name in sorted(block.value.keys() - _FIELDS):
            yield invalid(f"{block.path}.compaction.{name}: Extra inputs are not permitted")
        content = block.value.get("content")
        if content is not None and not isinstance(content, str):
            yield invalid(f"{block.path}.compaction.content: Input should be a valid string")
        elif content == "":
            yield invalid(f"{block.path}.compaction.content: String should have at least 1 character")


def one_signed_block_first(incoming: Incoming) -> Iterator[Violation]:
    """There is one signed block, and nothing stands before it."""
    signed = [block for block in _blocks(incoming) if _is_signed(block)]
    if len(signed) > 1:
        yield invalid("messages: a request may carry one signed `compaction` block, the newest")
    for block in signed:
        if block.path != "messages.0.content.0":
            yield _coded(
                "compaction_block_misplaced",
                f"{block.path}: messages remain in front of the `compaction` block",
            )


def no_threshold_behind_block(incoming: Incoming) -> Iterator[Violation]:
    """A request that carries a signed block is not compacted at a threshold too."""
    managed = incoming.body.get("context_management")
    edits = managed.get("edits") or [] if isinstance(managed, dict) else []
    at_threshold = any(isinstance(edit, dict) and edit.get("type") == "compact_20260112" for edit in edits)
    if at_threshold and any(map(_is_signed, _blocks(incoming))):
        yield invalid(
            "context_management: `compact_20260112` cannot run on a request with a signed `compaction` block"
        )


def block_rules(signer: Signer) -> tuple[Rule, ...]:
    """Return the rules that need to know which blocks this provider signed."""

    def block_signed(incoming: Incoming) -> Iterator[Violation]:
        """A signed block comes back with the signature and the words it was issued with."""
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


def _asked(incoming: Incoming) -> object:
    return None if incoming.counting else incoming.body.get("compaction")


def _blocks(incoming: Incoming) -> list[Block]:
    return [block for block in blocks(incoming.body) if block.type == "compaction"]


def _is_signed(block: Block) -> bool:
    return bool(block.value.get("signature"))


def _betas(incoming: Incoming) -> set[str]:
    return {beta.strip() for beta in incoming.headers.get("anthropic-beta", "").split(",")}


def _coded(code: str, message: str) -> Violation:
    return Violation(message=message, code=code)
