"""The state of a session, the one value that changes from turn to turn, and what stays the same over its turns."""

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.cache.belief import Belief, BeliefError
from lowwater.core.cache.layout import KEY_BYTES, Block, Layout, Lifetime
from lowwater.core.costs.rent import Meter
from lowwater.core.decisions import Candidates, Decision, Past, best_of
from lowwater.core.events import Compaction, Rejected
from lowwater.core.groups import Span
from lowwater.core.ledger import Ledger
from lowwater.core.mechanisms import summarize
from lowwater.core.mechanisms.editing import EditContext
from lowwater.core.mechanisms.registry import Mechanism, ProposalRequest, survey
from lowwater.core.mechanisms.spans import offer_span, request_for
from lowwater.core.messages import Format, Message
from lowwater.core.models.model import FallbackChain, Model
from lowwater.core.policies.registry import Policy, preset_under
from lowwater.core.proposals import Preset, Proposal
from lowwater.core.stored_form import stored_as
from lowwater.core.summary.request import Judged, SummaryRequest
from lowwater.core.tokens.calibration import Calibration
from lowwater.core.turns.summaries import OVERSHOOT, Ladder, SummarizerBackoff
from lowwater.core.view import Item, View
from lowwater.protocols import Tokenizer
from lowwater.settings import Settings

_PATIENCE = 4
"""Looks again after this part of the calls that the nearest plan is away, for prices move meanwhile."""
_GROWTH = 1.03
"""Looks again when the prompt has grown by this factor: there is more to remove."""


class RecheckBackoff(Struct, frozen=True, kw_only=True, rename=stored_as("rest"), forbid_unknown_fields=True):
    """Nothing was nearly due when a prompt of `prompt` tokens was looked through."""

    until: int
    """The reading of the meter at which to look again."""
    prompt: int

    def lasts(self, *, meter: int, prompt: int) -> bool:
        """Return whether it is too early to look again; only for a warm cache, for a cold one changes every price."""
        return meter < self.until and prompt < _GROWTH * self.prompt


def recheck_backoff(market: Candidates, *, meter: int, read_price: int, prompt: int) -> RecheckBackoff | None:
    """Return how long to rest after a look that found nothing to buy."""
    best = best_of(market.bargains)
    if best is None:
        return RecheckBackoff(until=meter + _FOREVER, prompt=prompt)
    if best.is_due:
        return None
    calls = best.calls_left
    wait = _FOREVER if calls is None else read_price * (calls // _PATIENCE)
    return RecheckBackoff(until=meter + wait, prompt=prompt) if wait > 0 else None


_FOREVER = 10**18


class PrefetchedSummary(
    Struct, frozen=True, kw_only=True, rename=stored_as("parked"), forbid_unknown_fields=True
):
    """A summary that was asked for, judged and billed, and is not in the view yet.

    What it stands for is named as in its request: the numbers of the originals, and the summary it updates. It was made
    from the originals, so placeholders inside its span do not make it stale; any other change there does.
    """

    span: Span
    """The items it would replace."""
    numbers: tuple[int, ...]
    previous: str
    recall: bool
    """Whether its reader can call messages back."""
    tokens: int
    """The size of its text, as counted."""
    judged: Judged

    def fits(self, items: Sequence[Item]) -> bool:
        """Return whether its span still holds just what it stands for."""
        stands = request_for(items, self.span, max_tokens=0, focus="", recall=self.recall)
        return self.answers(stands)

    def answers(self, request: SummaryRequest) -> bool:
        """Return whether it is what this request asks for; one with a focus asks for another."""
        same = (request.numbers, request.previous, request.recall) == (
            self.numbers,
            self.previous,
            self.recall,
        )
        return same and not request.focus

    def is_ready(self, asked: ProposalRequest) -> bool:
        """Return whether it may be published now: it fits, lies between head and tail, and is not too long for the model."""
        zones, span = survey(asked).zones, self.span
        return (
            zones.head <= span.start < span.stop <= zones.tail
            and {span.start, span.stop} <= set(zones.cuts)
            and self.recall == asked.context.offers_recall
            and self.tokens <= OVERSHOOT * asked.counted(asked.limits.summary)
            and self.fits(asked.items)
        )

    def offer(self, items: Sequence[Item]) -> Proposal | None:
        """Return the proposal to publish it, which takes no call; None if that would be no gain."""
        offer = offer_span(summarize.NAME, items, self.span, self.tokens)
        return None if offer is None else replace(offer, calls=0)


PREAMBLE = -1
"""The index that stands for tools and system prompt among the marks."""
_SAME_SCALE = 0.005
"""A scale that differs by less than this share does not change the sizes of blocks that were laid out already."""


class PromptLayout(Struct, frozen=True, kw_only=True):
    """A view that was laid out: one block for the preamble, and one for each part of a message."""

    view: View
    layout: Layout
    start: bytes
    prompt: int
    scale: float
    lasts: tuple[int, ...] = ()
    """The block that each item ends with."""
    inside: int = 0
    """Tokens of all blocks but the first."""

    def starts(self) -> list[int]:
        """Return the token position at which each item starts, and where the last one ends."""
        ends = self.layout.ends
        return [ends[0], *(ends[last] for last in self.lasts)]


def lay_out_prompt(
    view: View,
    *,
    start: bytes,
    prompt: int,
    scale: float,
    marks: Mapping[int, Lifetime],
    before: PromptLayout | None = None,
) -> PromptLayout:
    """Return a view of `prompt` tokens in blocks.

    `start` is what else the cache depends on. What the count cannot see is taken to stand in the preamble. `marks` says
    which messages carry a mark on their last part. `before` is what was laid out last.
    """
    if before is None or not _goes_on(before, view, start, scale):
        before = _begun(view, start, scale)
    items, blocks, lasts = view.items, list(before.layout.blocks), list(before.lasts)
    known, inside = len(lasts), before.inside
    for at in before.layout.marked:
        blocks[at] = replace(blocks[at], mark="")
    if known:
        blocks[lasts[-1]] = replace(blocks[lasts[-1]], ends=_ends(items, known - 1))
    for index in range(known, len(items)):
        inside += _add(blocks, items[index], before.scale)
        lasts.append(len(blocks) - 1)
        blocks[-1] = replace(blocks[-1], ends=_ends(items, index))
    blocks[0] = replace(blocks[0], tokens=max(0, prompt - inside))
    for index, mark in marks.items():
        at = 0 if index == PREAMBLE else lasts[index]
        blocks[at] = replace(blocks[at], mark=mark)
    return PromptLayout(
        view=view,
        layout=Layout(blocks=tuple(blocks)),
        start=start,
        prompt=prompt,
        scale=before.scale,
        lasts=tuple(lasts),
        inside=inside,
    )


def key_behind(layout: Layout, message: Message) -> bytes:
    """Return the key of the prefix that ends with an answer to what was laid out."""
    key = layout.blocks[-1].key
    for piece in range(max(1, len(message.parts))):
        key = _key(key, message, piece)
    return key


def _begun(view: View, start: bytes, scale: float) -> PromptLayout:
    """Return a view's preamble laid out, without any message."""
    key = blake2b(start + b"\0" + view.tools + b"\0" + view.system, digest_size=KEY_BYTES).digest()
    preamble = Layout(blocks=(Block(key=key, tokens=0),))
    return PromptLayout(view=view, layout=preamble, start=start, prompt=0, scale=scale)


def _goes_on(before: PromptLayout, view: View, start: bytes, scale: float) -> bool:
    """Return whether a view is one that was laid out before, with items behind it."""
    old = before.view
    same = (old.system, old.tools, before.start) == (view.system, view.tools, start)
    return same and view.items.extends(old.items) and abs(scale - before.scale) <= _SAME_SCALE * scale


def _add(blocks: list[Block], item: Item, scale: float) -> int:
    """Append the blocks of an item and return their tokens."""
    tokens, key = round(scale * item.tokens), blocks[-1].key
    pieces = max(1, len(item.message.parts))
    spent = 0
    for piece in range(pieces):
        upto = tokens * (piece + 1) // pieces
        key = _key(key, item.message, piece)
        blocks.append(Block(key=key, tokens=upto - spent))
        spent = upto
    return tokens


def _key(before: bytes, message: Message, piece: int) -> bytes:
    return blake2b(before + message.digest + piece.to_bytes(4, "big"), digest_size=KEY_BYTES).digest()


def _ends(items: Sequence[Item], index: int) -> Literal["", "input", "output"]:
    if items[index].message.role == "assistant":
        return "output"
    is_last = index + 1 == len(items) or items[index + 1].message.role == "assistant"
    return "input" if is_last else ""


class Totals(Struct, frozen=True, kw_only=True, rename=stored_as("totals"), forbid_unknown_fields=True):
    """What a session has consumed as its provider reported it, and what compaction did."""

    turns: int = 0
    prompt: int = 0
    cache_read: int = 0
    output: int = 0
    misjudged: int = 0
    """Tokens by which the cache belief was off, over all calls: what it said would be read against what was."""
    compactions: int = 0
    prunes: int = 0
    """Compactions that needed no summary."""
    summaries: int = 0
    summary_tokens: int = 0
    reclaimed: int = 0
    earliest_changed: int | None = None
    """The smallest index of a view at which a compaction began."""
    cost: int | None = 0
    """Nano-dollars for all calls, those for summaries included; None once the price of one was not known."""
    summary_cost: int | None = 0
    """Nano-dollars for the calls that wrote summaries; None once the price of one was not known."""
    thinking_off: int = 0
    """Calls whose thinking was disabled, because the provider would have refused it behind a compaction."""

    def paid(self, cost: int | None, *, for_summaries: bool = False) -> "Totals":
        """Return the totals with the cost of further calls; None if it is not known."""
        total = None if self.cost is None or cost is None else self.cost + cost
        if not for_summaries:
            return replace(self, cost=total)
        part = None if self.summary_cost is None or cost is None else self.summary_cost + cost
        return replace(self, cost=total, summary_cost=part)


class Route(Struct, frozen=True, kw_only=True, rename=stored_as("route"), forbid_unknown_fields=True):
    """Where calls go: the model as the user spells it, and the URL of its API, empty for the provider's own."""

    model: str
    base_url: str = ""

    def storable(self) -> "Route":
        """Return it as it may be stored: a hash stands for all of the URL that may hold a password or a capability."""
        return Route(model=self.model, base_url=_told_apart(self.base_url))


def _told_apart(url: str) -> str:
    """Return a URL's scheme, host and port, and what tells it from others there; nothing more if it is nothing more."""
    try:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        shown = f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        shown = ""
    if not url or url == shown or _STORABLE.fullmatch(url):
        return url
    return f"{shown}#{blake2b(url.encode(errors='surrogatepass'), digest_size=8).hexdigest()}"


_STORABLE = re.compile(r"(?:[a-z][a-z0-9+.-]*://[^/@?#]*)?#[0-9a-f]{16}")
"""A URL that was stored before."""


class Call(Struct, frozen=True, kw_only=True):
    """A call under way: what was sent, to whom and when, and what it should be billed.

    It belongs to the process that makes it: whatever others do to the session meanwhile, its answer is read by this.
    """

    at: float
    layout: Layout
    expected: Usage
    outside: int
    """The number of the newest message that was not in the tail; 0 if all were."""
    model: Model
    counted: int
    """The size of what was sent, as counted."""
    removed: int
    """The model's tokens that compactions kept out of it."""
    removed_before: int
    """Those of them that earlier calls went without, too."""
    bought: int | None
    """Nano-dollars that the compactions since then make it cost more; None if that is not known."""
    decision: str = ""
    """The reason code of the decision before it."""
    thinking_off: bool = False
    """Its thinking is disabled, because the provider would refuse it in a tool loop whose beginning was compacted."""


class State(Struct, frozen=True, kw_only=True):
    """A session between two calls."""

    ledger: Ledger
    route: Route
    model: Model
    calibration: Calibration
    format: Format | None = None
    """The format its messages told; None as long as they read the same in both."""
    assumed: Format | None = None
    """The format that messages were read in before one told it."""
    past: Past = Past()
    standing: SummarizerBackoff = SummarizerBackoff()
    totals: Totals = Totals()
    reported: int = 0
    """The size of the last prompt as its provider reported it; 0 if it never did, or another model answered."""
    windows: tuple[tuple[str, int], ...] = ()
    """Context lengths that a caller set for this session, by provider, URL and model."""
    taught: tuple[tuple[str, int], ...] = ()
    """Context lengths that providers' errors told in this session, by provider, URL and model."""
    doubted: int = 0
    """The size of the last prompt as its provider reported it, where that was not believed; 0 if it was."""
    sent: int = 0
    """The size of what was last prepared for sending, as counted."""
    growth: float = 0.0
    growths: int = 0
    """How many turns the growth was measured over."""
    grown: tuple[int, ...] = ()
    """What each of the newest turns added to the prompt, as counted, the newest last."""
    warned: frozenset[str] = frozenset()
    decision: Decision | None = None
    last: Compaction | None = None
    """The newest compaction."""
    rejected: tuple[Rejected, ...] = ()
    """The summaries that were not accepted as they were when the last decision was carried out."""
    parked: PrefetchedSummary | None = None
    """A summary that was prepared ahead of its time; it may be stale."""
    policy: str = ""
    """The policy that decided last; empty before the first turn."""
    max_tokens: int | None = None
    belief: Belief = Belief()
    """What the provider's cache should hold."""
    misjudged: BeliefError | None = None
    """What the last call was expected to read and write, beside what was reported."""
    meter: Meter = Meter()
    """The rent paid so far."""
    ahead: int | None = 0
    """Nano-dollars for summaries that no compaction's bill has yet: parked, or of no use; None if that is not known."""
    ahead_prompts: int = 0
    """Tokens of the prompts that asked for parked summaries, which no event tells of yet."""
    bought: int | None = 0
    """Nano-dollars that compactions since the last answer make the next call cost more; None if that is not known."""
    kept_out: int = 0
    """The model's tokens that compactions kept out of the last call that was answered."""
    held_until: int = 0
    """The turn up to which nothing is bought, because a compaction was undone."""
    rest: RecheckBackoff | None = None
    """How long not to look for something to buy; None if the next turn has to look."""
    market: Candidates | None = None
    """What was on sale at the last decision; None if the policy compares no prices."""
    laid: PromptLayout | None = None
    outside: int = 0
    """The number of the newest message that is not in the tail; 0 if all are."""
    call: Call | None = None
    called_at: float | None = None
    """When the last call that was answered was sent."""
    gaps: tuple[float, ...] = ()
    """Seconds between calls, the newest last."""
    parameters: bytes = b""
    """What else of the request the provider's cache depends on."""
    offers_recall: bool = False
    noted: bool = False
    """The system prompt says that earlier turns were compacted."""
    binds_thinking: bool = False
    """Some model that was used so far refuses thinking behind messages that changed."""
    thinking_off: bool = False
    """The last request had its thinking disabled."""
    unbound: int | None = None
    """Thinking in messages with a higher number was thought behind a prefix that is gone."""

    @property
    def counted(self) -> int:
        """The size of the view and its preamble, as counted."""
        return self.ledger.view.total_tokens

    @property
    def scale(self) -> float:
        """The model's tokens per counted token, no more than what was reported allows for the view as a whole."""
        return min(self.calibration.scale, self.prompt / max(1, self.counted))

    @property
    def prompt(self) -> int:
        """The size of the next prompt in the model's tokens."""
        return self.calibration.next_prompt(self.counted)


class Setup(Struct, frozen=True, kw_only=True):
    """How sessions are run."""

    chain: FallbackChain
    routes: tuple[Route, ...]
    """Where the models of the chain are, one for each."""
    settings: Settings
    policy: Policy
    tokenizer: Tokenizer
    size: Callable[[Message], int]
    size_preamble: Callable[[bytes, bytes], int]
    summary_models: tuple[Model | None, ...] = ()
    """The models that write summaries, by rung; None where it is not known which does."""
    rungs: int = 0
    """How many summarizers stand before the extractive one."""
    mechanisms: tuple[Mechanism, ...] = ()
    """Those that others wrote, in the order in which they are asked."""
    native: tuple[int, ...] = ()
    """The summarizers that can ask their provider to compact by itself, by rung."""

    @property
    def preset(self) -> Preset:
        """What the policy asks of the mechanisms, as the settings change it."""
        return preset_under(self.policy.preset, self.settings.tool_results)

    def ladder(self, standing: SummarizerBackoff) -> Ladder:
        """Return how summaries are asked for by a session that stands there."""
        compression = self.settings.compression
        return Ladder(
            rungs=self.rungs,
            first=standing.first,
            names=tuple(
                model.name if model else f"summarizer {rung}"
                for rung, model in enumerate(self.summary_models, start=1)
            ),
            competing=compression.competing_summaries,
            accepts_weak=compression.weak_summaries == "accept",
        )

    def edit_context(self, *, offers_recall: bool) -> EditContext:
        """Return what the mechanisms need."""
        return EditContext(
            size=self.size,
            tokenizer=self.tokenizer,
            preset=self.preset,
            digest_ratio=self.settings.tool_results.digest_ratio,
            offers_recall=offers_recall,
            redact=self.settings.privacy.redact,
        )
