"""Messages rules about thinking: where it stands, that it is genuine, and that what it was bound to is unchanged."""

from collections.abc import Iterator

from msgspec import Struct

from lowwater.testing.provider.anthropic.body import THINKING, Block, blocks, invalid, pieces, turns
from lowwater.testing.provider.anthropic.signatures import BINDING_MODELS, SECTIONS, Claim, Signer, digest
from lowwater.testing.provider.prompt import Section
from lowwater.testing.provider.rule import Incoming, Json, Rule, Violation

BINDING_BETA = "thinking-binding-controls-2026-08-01"
LEAST_BUDGET = 1024

_PLACES = {
    "tools": "The `tools` differ from those this block was created with.",
    "system": "The `system` prompt differs from the one this block was created with.",
    "messages": "The `messages` before this block differ from those it was created with.",
}


class Signed(Struct, frozen=True, kw_only=True):
    """A thinking block and what its signature vouches for; None if the signature is not ours."""

    block: Block
    claim: Claim | None

    @property
    def genuine(self) -> bool:
        """Whether the block is as it was issued."""
        return self.claim is not None and self.claim.text == digest(self.block.value.get("thinking", ""))


class Unbound(Struct, frozen=True, kw_only=True):
    """A thinking block and the first section before it that has changed."""

    block: Block
    section: Section


class Dropped(Struct, frozen=True, kw_only=True):
    """A thinking block the model is not shown, and the check it failed."""

    path: str
    reason: str


def thinking_config(incoming: Incoming) -> Iterator[Violation]:
    """Thinking is enabled with a budget below the output limit, adaptive, between tools or disabled."""
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


def binding_controls_need_beta(incoming: Incoming) -> Iterator[Violation]:
    """What happens to thinking behind a changed prefix can be chosen only with the beta's header."""
    config = _config(incoming)
    if config.get("block_binding") is not None and BINDING_BETA not in incoming.headers.get(
        "anthropic-beta", ""
    ):
        yield invalid(f"thinking.{config['type']}.block_binding: Extra inputs are not permitted")


def thinking_leads_message(incoming: Incoming) -> Iterator[Violation]:
    """With a thinking budget, a message that has thinking begins with it."""
    if _config(incoming).get("type") != "enabled":
        return
    for turn in turns(incoming.body):
        kinds = [block.type for block in turn.blocks]
        if kinds and kinds[0] not in THINKING and any(kind in THINKING for kind in kinds):
            yield invalid(
                f"{turn.blocks[0].path}: If an assistant message contains any thinking blocks, the first block "
                f"must be `thinking` or `redacted_thinking`. Found `{kinds[0]}`."
            )


def thinking_opens_tool_loop(incoming: Incoming) -> Iterator[Violation]:
    """With a thinking budget, an assistant turn whose tool results are being sent starts with its thinking.

    The turn begins with the first assistant message behind the last thing the user said.
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


def thinking_rules(signer: Signer) -> tuple[Rule, ...]:
    """Return the rules that need to know which signatures this provider issued."""

    def thinking_unmodified(incoming: Incoming) -> Iterator[Violation]:
        """Thinking in the latest assistant message comes back as it was."""
        latest = max(
            (block.message for block in blocks(incoming.body) if block.role == "assistant"), default=-1
        )
        for signed in _signed(incoming, signer):
            if signed.block.message == latest and signed.claim and not signed.genuine:
                yield invalid(
                    f"{signed.block.path}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
                    "modified. These blocks must remain as they were in the original response."
                )

    def thinking_signed(incoming: Incoming) -> Iterator[Violation]:
        """Thinking carries the signature it was issued with."""
        for signed in _signed(incoming, signer):
            if not signed.genuine:
                yield invalid(f"{signed.block.path}: Invalid `signature` in `{signed.block.type}` block")

    def thinking_bound(incoming: Incoming) -> Iterator[Violation]:
        """On models that bind thinking, what stood before a block is unchanged, or its removal is asked for."""
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


def dropped_thinking(incoming: Incoming, signer: Signer) -> list[Dropped]:
    """Return the blocks of a legal request that are not shown to the model, in the order they stand."""
    reasons = {
        signed.block.path: "model_binding_mismatch"
        for signed in _signed(incoming, signer)
        if signed.claim and signed.claim.model != incoming.model
    }
    reasons |= {found.block.path: "prefix_binding_mismatch" for found in _unbound(incoming, signer)}
    paths = [block.path for block in blocks(incoming.body)]
    return [Dropped(path=path, reason=reasons[path]) for path in paths if path in reasons]


def _unbound(incoming: Incoming, signer: Signer) -> Iterator[Unbound]:
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


def _signed(incoming: Incoming, signer: Signer) -> Iterator[Signed]:
    for block in blocks(incoming.body):
        if block.type in THINKING:
            signature = block.value.get("signature") or block.value.get("data") or ""
            yield Signed(block=block, claim=signer.read(signature))


def _config(incoming: Incoming) -> Json:
    return incoming.body.get("thinking") or {}


def _drops_blocks(incoming: Incoming) -> bool:
    config = _config(incoming)
    binding = config.get("block_binding") or {}
    return config.get("type") == "adaptive" and binding.get("prefix_mismatch_behavior") == "drop_block"


def _budget(config: Json, incoming: Incoming) -> Iterator[Violation]:
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
