"""`State`, the one value that changes from turn to turn, and `Setup`, what stays the same over a session's turns.

The other classes are parts of the state: totals, the call under way, a prefetched summary, the layout of the prompt as the
provider's cache sees it. All of it is plain data; `core/stored_form.py` has the names under which it is stored.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.cache.belief import KEY_BYTES, Belief, BeliefError, Block, Layout, MarkLifetime
from lowwater.core.cache.marks import CacheMarks
from lowwater.core.costs.prices import Meter
from lowwater.core.decisions import Candidates, Decision, Past
from lowwater.core.events import Compaction, Event, Rejected
from lowwater.core.ledger import Ledger
from lowwater.core.mechanisms.mechanism import EditContext, Mechanism, ProposalRequest, survey
from lowwater.core.mechanisms.reuse import Experience
from lowwater.core.messages import Format, Message, Span
from lowwater.core.models.model import FallbackChain, Model
from lowwater.core.policies.policy import Policy, preset_under
from lowwater.core.proposals import Preset, Proposal
from lowwater.core.stored_form import stored_as
from lowwater.core.summary.pins import Pin
from lowwater.core.summary.request import Judged, SummaryRequest
from lowwater.core.tokens.counting import Calibration
from lowwater.core.view import Item, View
from lowwater.protocols import Tokenizer
from lowwater.settings import Settings

_LOW_IN_A_ROW = 3
"""Weak answers in a row after which the first summarizer is skipped."""
_RECOVERS = 3_600.0
"""Seconds after which it is asked again."""
_RECHECK_PART = 4
"""The mechanisms are asked again after one part in so many of the calls until the nearest plan is due, because prices move."""
_RECHECK_GROWTH = 1.03
"""They are also asked again when the prompt has grown by this factor: there is more to remove."""
_NEVER = 10**18
SUMMARY_SHARE = 0.1
"""The share of a session's cost that summaries by a model may have."""
PREAMBLE = -1
"""The index of tools and system prompt among the marks."""
_SAME_SCALE = 0.005
"""A scale that differs by less than this share does not change the sizes of blocks that are laid out already."""
_STORABLE = re.compile(r"(?:[a-z][a-z0-9+.-]*://[^/@?#]*)?#[0-9a-f]{16}")
"""A URL as `_without_secrets` returns it."""


class Totals(Struct, frozen=True, kw_only=True, rename=stored_as("totals"), forbid_unknown_fields=True):
    """What a session has consumed, as its provider reported it, and what compaction has done."""

    turns: int = 0
    prompt: int = 0
    cache_read: int = 0
    output: int = 0
    misjudged: int = 0
    """Tokens by which the cache belief was wrong, over all calls: expected against reported cache reads."""
    compactions: int = 0
    prunes: int = 0
    """Compactions that needed no summary."""
    summaries: int = 0
    summary_tokens: int = 0
    reclaimed: int = 0
    earliest_changed: int | None = None
    """The smallest index of an item that a compaction changed."""
    cost: int | None = 0
    """Nano-dollars for all calls, those for summaries included; None once one of them had no known price."""
    summary_cost: int | None = 0
    """Nano-dollars for calls that wrote summaries; None once one of them had no known price."""
    thinking_off: int = 0
    """Calls whose thinking was disabled, because the provider would have refused it behind a compaction."""

    @property
    def has_spent_summary_share(self) -> bool:
        """Whether summaries have cost their share of the session; further ones are not bought until its other calls have cost more.

        Without known prices nothing is capped.
        """
        return bool(self.cost and self.summary_cost and self.summary_cost > SUMMARY_SHARE * self.cost)

    def paid(self, cost: int | None, *, for_summaries: bool = False) -> "Totals":
        """Return the totals with the cost of further calls; None if it is not known."""
        total = None if self.cost is None or cost is None else self.cost + cost
        if not for_summaries:
            return replace(self, cost=total)
        part = None if self.summary_cost is None or cost is None else self.summary_cost + cost
        return replace(self, cost=total, summary_cost=part)

    def with_compaction(self, event: Compaction, *, summaries: int) -> "Totals":
        """Return the totals after one more compaction."""
        earliest = self.earliest_changed
        return replace(
            self,
            compactions=self.compactions + 1,
            prunes=self.prunes + (not summaries),
            summaries=self.summaries + summaries,
            summary_tokens=self.summary_tokens + event.summary_tokens,
            reclaimed=self.reclaimed + event.reclaimed,
            earliest_changed=event.first_changed if earliest is None else min(earliest, event.first_changed),
        )


class Route(Struct, frozen=True, kw_only=True, rename=stored_as("route"), forbid_unknown_fields=True):
    """Where calls go: the model as the user spells it, and the URL of its API, empty for the provider's own."""

    model: str
    base_url: str = ""

    def storable(self) -> "Route":
        """Return the route as it may be stored: whatever of its URL may be secret is replaced by a hash."""
        return Route(model=self.model, base_url=_without_secrets(self.base_url))


def _without_secrets(url: str) -> str:
    """Return a URL's scheme, host and port, followed by a hash of the whole URL if it has anything more."""
    try:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        shown = f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        shown = ""
    if not url or url == shown or _STORABLE.fullmatch(url):
        return url
    return f"{shown}#{blake2b(url.encode(errors='surrogatepass'), digest_size=8).hexdigest()}"


class PendingCall(Struct, frozen=True, kw_only=True):
    """A call under way: what was sent to which model and when, and what it should be billed.

    It belongs to the process that makes the call and is not stored: whatever other processes do to the session meanwhile,
    the answer is interpreted by what was sent.
    """

    at: float
    layout: Layout
    expected: Usage
    newest_outside_tail: int
    """The number of the newest message that was not in the tail; 0 if all were."""
    model: Model
    counted: int
    """The size of what was sent, in counted tokens."""
    removed: int
    """The model's tokens that compactions had removed from it."""
    removed_before: int
    """Those of them that were already missing in the call before."""
    compaction_surcharge: int | None
    """Nano-dollars by which compactions since the call before make it more expensive; None if not known."""
    removed_behind: int = 0
    """The token position before which compactions have changed nothing."""
    is_settled: bool = True
    """Two calls were answered since the last compaction, so that it is not to blame if the cache is lost."""
    decision: str = ""
    """The reason code of the decision before it."""
    thinking_off: bool = False
    """Its thinking is disabled, because the provider would refuse it in a tool loop whose beginning was compacted."""


class RecheckBackoff(Struct, frozen=True, kw_only=True, rename=stored_as("rest"), forbid_unknown_fields=True):
    """Until when the mechanisms need not be asked again, because nothing was nearly due for a prompt of `prompt` tokens."""

    until: int
    """The reading of the rent meter at which to ask again."""
    prompt: int

    def is_too_early(self, *, meter: int, prompt: int) -> bool:
        """Return whether it is too early to ask again; only for a warm cache, because a cold one changes every price."""
        return meter < self.until and prompt < _RECHECK_GROWTH * self.prompt


def recheck_backoff(
    candidates: Candidates, *, meter: int, read_price: int, prompt: int
) -> RecheckBackoff | None:
    """Return until when not to ask the mechanisms again; None if the next turn has to, because a plan is due or nearly so."""
    best = candidates.best
    if best is None:
        return RecheckBackoff(until=meter + _NEVER, prompt=prompt)
    if best.is_due:
        return None
    calls = best.calls_left
    wait = _NEVER if calls is None else read_price * (calls // _RECHECK_PART)
    return RecheckBackoff(until=meter + wait, prompt=prompt) if wait > 0 else None


class PrefetchedSummary(
    Struct, frozen=True, kw_only=True, rename=stored_as("parked"), forbid_unknown_fields=True
):
    """A summary that was written, judged and billed ahead of its time, and is not in the view yet.

    What it replaces is identified as in its request: by the numbers of the original messages, and the summary that it
    updates. It was made from the originals, so placeholders inside its span do not make it stale; any other change does.
    """

    span: Span
    """The items it would replace."""
    numbers: tuple[int, ...]
    previous: str
    recall: bool
    """Whether the model that reads it can recall messages."""
    tokens: int
    """The size of its text in counted tokens."""
    judged: Judged

    def fits(self, items: Sequence[Item]) -> bool:
        """Return whether its span still contains exactly what it was written for."""
        from lowwater.core.mechanisms.spans import request_for  # noqa: PLC0415 - loaded if there is one

        current = request_for(items, self.span, max_tokens=0, focus="", recall=self.recall)
        return self.answers(current)

    def answers(self, request: SummaryRequest) -> bool:
        """Return whether it is what this request asks for; a request with a focus asks for something else."""
        same = (request.numbers, request.previous, request.recall) == (
            self.numbers,
            self.previous,
            self.recall,
        )
        return same and not request.focus

    def is_ready(self, request: ProposalRequest) -> bool:
        """Return whether it may be used now: it fits, lies between head and tail, and is not too long for the model."""
        from lowwater.core.turns.summaries import OVERSHOOT  # noqa: PLC0415 - loaded if there is one

        zones, span = survey(request).zones, self.span
        return (
            zones.head <= span.start < span.stop <= zones.tail
            and {span.start, span.stop} <= set(zones.cuts)
            and self.recall == request.context.offers_recall
            and self.tokens <= OVERSHOOT * request.counted(request.limits.summary)
            and self.fits(request.items)
        )

    def offer(self, items: Sequence[Item]) -> Proposal | None:
        """Return the proposal to use it, which takes no call; None if that would gain nothing."""
        from lowwater.core.mechanisms import summarize  # noqa: PLC0415 - loaded if there is one
        from lowwater.core.mechanisms.spans import offer_span  # noqa: PLC0415
        from lowwater.core.summary.index import expected_tokens  # noqa: PLC0415

        index = expected_tokens(items[self.span.start : self.span.stop]) if self.recall else 0
        offer = offer_span(summarize.NAME, items, self.span, self.tokens, index_tokens=index)
        return None if offer is None else replace(offer, calls=0)


class PromptLayout(Struct, frozen=True, kw_only=True):
    """A view as the provider's cache sees it: one block for the preamble (tools and system prompt), one for each part of a message."""

    view: View
    layout: Layout
    start: bytes
    """What else the cache depends on: model, URL, parameters."""
    prompt: int
    scale: float
    last_blocks: tuple[int, ...] = ()
    """The index of each item's last block."""
    message_tokens: int = 0
    """Tokens of all blocks but the first."""
    cache_marks: CacheMarks | None = None
    """The cache marks that the provider takes, as this layout has them; None if it takes none."""

    def starts(self) -> list[int]:
        """Return the token position at which each item starts, and where the last one ends."""
        ends = self.layout.ends
        return [ends[0], *(ends[last] for last in self.last_blocks)]


class SummarizerBackoff(
    Struct, frozen=True, kw_only=True, rename=stored_as("standing"), forbid_unknown_fields=True
):
    """At which rung the ladder begins: several low scores in a row move it down by one, and after an hour it is back at the top."""

    first: int = 0
    low: int = 0
    """Low scores in a row of that rung."""
    since: float = 0.0
    """When the beginning last moved."""
    no_block_since: float | None = None
    """When a provider was last asked to compact by itself and returned no usable block; None if that never happened."""

    def at(self, now: float) -> "SummarizerBackoff":
        """Return where the ladder begins at this time."""
        recovered = self.first and not 0 <= now - self.since < _RECOVERS
        return SummarizerBackoff(no_block_since=self.no_block_since) if recovered else self

    def after(self, *, low: bool | None, now: float) -> "SummarizerBackoff":
        """Return where it begins after an answer of its first rung: `low` if that missed too much, None if there was no answer."""
        if low is None:
            return self
        if low and self.low + 1 >= _LOW_IN_A_ROW:
            return replace(self, first=self.first + 1, low=0, since=now)
        return replace(self, low=self.low + 1 if low else 0)

    def asks_for_blocks(self, now: float) -> bool:
        """Return whether a provider may be asked to compact by itself: not within an hour after it returned no usable block."""
        since = self.no_block_since
        return since is None or not 0 <= now - since < _RECOVERS


class Ladder(Struct, frozen=True, kw_only=True):
    """Which summarizers are asked before the extractive one, in what order, and how strictly answers are judged."""

    rungs: int = 0
    """How many summarizers there are."""
    first: int = 0
    """How many of them are skipped, from the top."""
    competing: bool = False
    """Ask all of them and use the best answer, rather than the first that is accepted."""
    order: tuple[int, ...] = ()
    """The rungs in the order in which they are asked, the cheapest first; empty if that is the order of their numbers."""
    names: tuple[str, ...] = ()
    """The names of the summarizers, by rung."""
    cached_prefix: frozenset[int] = frozenset()
    """The rungs for which extending the last request, whose prefix is cached, is the cheapest way to ask."""
    native: int | None = None
    """The rung whose provider can compact by itself; None if there is none."""
    accepts_weak: bool = True
    """Use the best weak summary if all of them miss too much."""

    def name(self, rung: int) -> str:
        """Return the name of a rung's summarizer."""
        return self.names[rung] if rung < len(self.names) else f"summarizer {rung + 1}"

    def without(self, rung: int) -> "Ladder":
        """Return the ladder without one rung."""
        order = tuple(each for each in self.order or range(self.rungs) if each != rung)
        return replace(self, order=order, rungs=self.rungs if order else 0)

    @property
    def asked(self) -> tuple[int, ...]:
        """The rungs to ask, in order."""
        rungs = self.order or range(self.rungs)
        return tuple(rung for rung in rungs if rung < self.rungs)[self.first :]


class State(Struct, frozen=True, kw_only=True, dict=True):
    """A session between two calls."""

    ledger: Ledger
    route: Route
    model: Model
    calibration: Calibration
    format: Format | None = None
    """The format of its messages; None as long as they could be in more than one."""
    assumed_format: Format | None = None
    """The format in which messages were read before one showed it."""
    past: Past = Past()
    summarizer_backoff: SummarizerBackoff = SummarizerBackoff()
    totals: Totals = Totals()
    reported_prompt: int = 0
    """The size of the last prompt as its provider reported it; 0 if it never did, or another model answered."""
    caller_windows: tuple[tuple[str, int], ...] = ()
    """Context lengths that a caller set for this session, by provider, URL and model."""
    learned_windows: tuple[tuple[str, int], ...] = ()
    """Context lengths learned from providers' errors in this session, by provider, URL and model."""
    budget: int = 0
    """The most tokens that a request of this session may have, below its model's window; 0 if there is no such limit."""
    doubted_prompt: int = 0
    """The size of the last prompt as its provider reported it, if that was not believed; 0 if it was."""
    sent_tokens: int = 0
    """The size of what was last prepared for sending, in counted tokens."""
    growth: float = 0.0
    growth_turns: int = 0
    """How many turns the growth was measured over."""
    recent_growth: tuple[int, ...] = ()
    """What each of the newest turns added to the prompt, in counted tokens, the newest last."""
    warned: frozenset[str] = frozenset()
    decision: Decision | None = None
    last_compaction: Compaction | None = None
    """The newest compaction."""
    rejected: tuple[Rejected, ...] = ()
    """The summaries that were not accepted as written when the last decision was carried out."""
    prefetched_summary: PrefetchedSummary | None = None
    """A prefetched summary; it may be stale."""
    policy: str = ""
    """The policy that decided last; empty before the first turn."""
    max_tokens: int | None = None
    belief: Belief = Belief()
    """What the provider's cache should hold."""
    belief_error: BeliefError | None = None
    """How far the last call's expected cache reads and writes were from what was reported."""
    meter: Meter = Meter()
    """The rent paid so far."""
    uncharged_summary_cost: int | None = 0
    """Nano-dollars for summaries that are not in any compaction's bill yet: prefetched or useless ones; None if not known."""
    unreported_summary_prompts: int = 0
    """Tokens of the prompts that asked for prefetched summaries, which no event has reported yet."""
    unreported_rejections: tuple[Rejected, ...] = ()
    """Prefetched summaries that were not accepted as written, which no event has reported yet."""
    compaction_surcharge: int | None = 0
    """Nano-dollars by which compactions since the last answer make the next call more expensive; None if not known."""
    removed_tokens: int = 0
    """The model's tokens that compactions had removed from the last call that was answered."""
    paused_until: int = 0
    """The turn up to which nothing is bought, because a compaction was undone."""
    recheck_backoff: RecheckBackoff | None = None
    """Until when the mechanisms need not be asked; None if the next turn has to ask them."""
    candidates: Candidates | None = None
    """The candidates at the last decision; None if the policy compares no prices."""
    prompt_layout: PromptLayout | None = None
    newest_outside_tail: int = 0
    """The number of the newest message that is not in the tail; 0 if all are."""
    call: PendingCall | None = None
    called_at: float | None = None
    """When the last call that was answered was sent."""
    gaps: tuple[float, ...] = ()
    """Seconds from one call to the next, newest last; how long the session's pauses are."""
    parameters: bytes = b""
    """Other parameters of the request that the provider's cache depends on."""
    offers_recall: bool = False
    has_system_note: bool = False
    """The system prompt says that earlier turns were compacted."""
    binds_thinking: bool = False
    """Some model that was used so far refuses thinking behind messages that changed."""
    thinking_off: bool = False
    """The last request had its thinking disabled."""
    pins: tuple[Pin, ...] = ()
    """The user's standing instructions, in the order in which they were said; some may be of messages that are discarded."""
    instructions_read: int = 0
    """The number of the newest message that was searched for standing instructions."""
    experience: Experience = Experience()
    """The uses of removed results up to the newest compaction, for the reuse model."""
    thinking_unbound_above: int | None = None
    """Thinking in messages above this number was bound to a prefix that is gone; None if there is none."""

    @property
    def counted(self) -> int:
        """The size of the view and its preamble in counted tokens."""
        return self.ledger.view.total_tokens

    @property
    def window(self) -> int:
        """The model's context length, or the session's budget if that is smaller; shares of the window are shares of this."""
        return min(self.model.context_length, self.budget or self.model.context_length)

    @cached_property
    def scale(self) -> float:
        """The model's tokens per counted token; the view as a whole never exceeds the size of the prompt."""
        return min(self.calibration.scale, self.prompt / max(1, self.counted))

    @cached_property
    def prompt(self) -> int:
        """The size of the next prompt in the model's tokens."""
        return self.calibration.next_prompt(self.counted)


def is_prefetched(state: State) -> bool:
    """Return whether there is a prefetched summary that still fits the view."""
    return state.prefetched_summary is not None and state.prefetched_summary.fits(state.ledger.view.items)


def drop_stale(state: State) -> State:
    """Return the state without a prefetched summary whose messages have changed or are summarised already."""
    return (
        state
        if state.prefetched_summary is None or is_prefetched(state)
        else replace(state, prefetched_summary=None)
    )


class Acted(Struct, frozen=True, kw_only=True):
    """The state after a decision was carried out, and the events to report."""

    state: State
    events: tuple[Event, ...]

    @property
    def compaction(self) -> Compaction | None:
        """The compaction among the events, if there was one."""
        return next((event for event in self.events if isinstance(event, Compaction)), None)


class Setup(Struct, frozen=True, kw_only=True, dict=True):
    """How a session is run: models, settings, policy, counting, summarizers, plugins."""

    chain: FallbackChain
    routes: tuple[Route, ...]
    """Where calls to the models of the chain go, one route for each."""
    settings: Settings
    policy: Policy
    tokenizer: Tokenizer
    size: Callable[[Message], int]
    size_preamble: Callable[[bytes, bytes], int]
    summary_models: tuple[Model | None, ...] = ()
    """The models that write summaries, by rung; None where the model is not known."""
    rungs: int = 0
    """How many summarizers are asked before the extractive one."""
    mechanisms: tuple[Mechanism, ...] = ()
    """Plugins' mechanisms, in the order in which they are asked."""
    native: tuple[int, ...] = ()
    """The rungs of summarizers whose provider can compact by itself."""
    summaries_at: str = ""
    """The only provider whose sessions may be summarised, at its own URL; empty if any may."""

    def may_send_to_summarizers(self, state: State) -> bool:
        """Return whether the session's messages may go to the summarizers: they go where its calls go, or were named."""
        is_own = state.model.provider == self.summaries_at and not state.route.base_url
        return not self.summaries_at or is_own

    def may_ask(self, state: State) -> bool:
        """Return whether a summarizer may be asked by itself: not once summaries have cost their share of the session."""
        return self.may_send_to_summarizers(state) and not state.totals.has_spent_summary_share

    @cached_property
    def preset(self) -> Preset:
        """What the policy asks of the mechanisms, with the user's settings."""
        return preset_under(self.policy.preset, self.settings.tool_results)

    def ladder(self, backoff: SummarizerBackoff) -> Ladder:
        """Return which summarizers are asked; `backoff` says where to begin."""
        compression = self.settings.compression
        return Ladder(
            rungs=self.rungs,
            first=backoff.first,
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


def lay_out_prompt(
    view: View,
    *,
    start: bytes,
    prompt: int,
    scale: float,
    marks: Mapping[int, MarkLifetime],
    cache_marks: CacheMarks | None = None,
    before: PromptLayout | None = None,
) -> PromptLayout:
    """Lay out a view of `prompt` tokens in blocks.

    `start` is what else the cache depends on. Tokens that were not counted are assumed to be in the preamble. `marks` says
    which messages carry a cache mark on their last part. `before` is the previous layout, which is extended if possible.
    """
    if before is None or not _is_extended_by(before, view, start, scale):
        before = _preamble_layout(view, start, scale)
    items, blocks, lasts = view.items, list(before.layout.blocks), list(before.last_blocks)
    known, inside = len(lasts), before.message_tokens
    for at in before.layout.marked:
        blocks[at] = replace(blocks[at], mark="")
    if known:
        blocks[lasts[-1]] = replace(blocks[lasts[-1]], ends=_end_kind(items, known - 1))
    for index in range(known, len(items)):
        inside += _add(blocks, items[index], before.scale)
        lasts.append(len(blocks) - 1)
        blocks[-1] = replace(blocks[-1], ends=_end_kind(items, index))
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
        last_blocks=tuple(lasts),
        message_tokens=inside,
        cache_marks=cache_marks,
    )


def _is_extended_by(before: PromptLayout, view: View, start: bytes, scale: float) -> bool:
    """Return whether a view is the one that was laid out before, with further items at its end."""
    old = before.view
    same = (old.system, old.tools, before.start) == (view.system, view.tools, start)
    return same and view.items.extends(old.items) and abs(scale - before.scale) <= _SAME_SCALE * scale


def _preamble_layout(view: View, start: bytes, scale: float) -> PromptLayout:
    """Return the layout of a view's preamble, without any message."""
    key = blake2b(start + b"\0" + view.tools + b"\0" + view.system, digest_size=KEY_BYTES).digest()
    preamble = Layout(blocks=(Block(key=key, tokens=0),))
    return PromptLayout(view=view, layout=preamble, start=start, prompt=0, scale=scale)


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


def _end_kind(items: Sequence[Item], index: int) -> Literal["", "input", "output"]:
    """Return whether an item ends the input of a call or its output, where providers may cache on their own."""
    if items[index].message.role == "assistant":
        return "output"
    is_last = index + 1 == len(items) or items[index + 1].message.role == "assistant"
    return "input" if is_last else ""


def key_behind(layout: Layout, message: Message) -> bytes:
    """Return the key of the prefix that consists of the layout and the answer to it."""
    key = layout.blocks[-1].key
    for piece in range(max(1, len(message.parts))):
        key = _key(key, message, piece)
    return key


def _key(before: bytes, message: Message, piece: int) -> bytes:
    return blake2b(before + message.digest + piece.to_bytes(4, "big"), digest_size=KEY_BYTES).digest()
