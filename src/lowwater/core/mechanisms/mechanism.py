"""What a mechanism is, where in a view it may change something, and what all of them are given to decide that."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from lowwater.core.decisions import unscaled
from lowwater.core.limits import Limits
from lowwater.core.messages import Message, Span, legal_cuts
from lowwater.core.proposals import Preset, Proposal
from lowwater.core.view import Item, Summary
from lowwater.protocols import Tokenizer
from lowwater.settings import Settings

if TYPE_CHECKING:
    from lowwater.core.mechanisms.results import PartPlace, ShownResult

Reach = Literal["middle", "everywhere", "last-resort"]
"""Where a mechanism may change something: between the protected head and tail; in these too, if the prompt does not fit; or
in whatever is left when everything else was not enough, until the prompt fits."""


class Zones(Struct, frozen=True, kw_only=True):
    """Items before `head` and from `tail` on are protected. Both indexes lie between groups, and `head` is at most `tail`."""

    head: int
    tail: int
    cuts: tuple[int, ...]
    """All indexes at which the view may be cut without splitting a group, both ends included."""

    @property
    def middle(self) -> range:
        """The indexes of the items between head and tail."""
        return range(self.head, self.tail)


def find_zones(items: Sequence[Item], *, first: int, last: int, tail_tokens: int) -> Zones:
    """Protect the `first` and the `last` items at least, and the newest items up to `tail_tokens`.

    Alignment to groups only makes a protected zone larger. A summary is never part of the head, because the next summary
    updates it.
    """
    cuts = tuple(legal_cuts([item.message for item in items]))
    head = cuts[bisect_left(cuts, min(first, len(items)))]
    summary = next((at for at in range(head) if isinstance(items[at], Summary)), head)
    head = _cut_before(cuts, summary)
    tail, spent = len(items), 0
    while tail > head:
        spent += items[tail - 1].tokens
        if spent > tail_tokens and len(items) - tail >= last:
            break
        tail -= 1
    return Zones(head=head, tail=max(head, _cut_before(cuts, tail)), cuts=cuts)


def smallest_tail(items: Sequence[Item], zones: Zones) -> Zones:
    """Return the zones at the wall: the tail shrinks to the newest group and what follows it.

    If the assistant has not said anything yet, only the newest message is protected.
    """
    last_answer = next(
        (at for at in range(len(items) - 1, -1, -1) if items[at].message.role == "assistant"),
        len(items) - 1,
    )
    newest = _cut_before(zones.cuts, max(0, last_answer))
    return Zones(head=zones.head, tail=max(zones.tail, newest), cuts=zones.cuts)


def newest_group(items: Sequence[Item], zones: Zones) -> int:
    """Return the index at which the newest group begins; what follows it counts as part of it."""
    return smallest_tail(items, Zones(head=0, tail=0, cuts=zones.cuts)).tail


def smallest_head(items: Sequence[Item], zones: Zones) -> Zones:
    """Return the zones at the wall with a head of only what precedes the first answer: system prompts and users' words."""
    first_answer = next(
        (at for at, item in enumerate(items) if item.message.role == "assistant" or item.message.results),
        len(items),
    )
    head = min(zones.head, _cut_before(zones.cuts, first_answer))
    # A head that reached into the newest group had kept the tail from beginning there.
    return Zones(head=head, tail=max(head, min(zones.tail, newest_group(items, zones))), cuts=zones.cuts)


def _cut_before(cuts: Sequence[int], index: int) -> int:
    return cuts[bisect_right(cuts, index) - 1]


class EditContext(Struct, frozen=True, kw_only=True):
    """What mechanisms need to make and measure placeholders and summaries."""

    size: Callable[[Message], int]
    """Counts the tokens of a message, framing included."""
    tokenizer: Tokenizer
    preset: Preset = Preset()
    digest_ratio: float = 0.15
    offers_recall: bool = False
    """The request offers the model a recall tool."""
    break_even: float = 0.0
    """The chance of use per token from which on it pays to carry a name rather than to recall its result; 0 if prices do not matter."""
    redact: bool = True
    """Secrets are removed from summaries."""
    protected_tokens: int = 0
    """How many tokens of tool output in the middle pruning leaves alone."""
    longest_result: int = 0
    """How long a tool result may be if the prompt does not fit."""
    must_fit: int = 0
    """How many counted tokens the view may have for the prompt to fit: a squeeze that wants fewer leaves the rest of new results and summaries alone from there on."""
    too_large: bool = False
    """The request has more bytes than its provider accepts: images in the tail may be removed too."""
    summarised: tuple[Span, ...] = ()
    """The items that summaries of the same rewrite will replace: what they say will not be shown. Given to `apply` only."""
    results: "tuple[ShownResult, ...]" = ()
    """The tool results of the view, except placeholders; given to `propose` only."""
    taken: "frozenset[PartPlace]" = frozenset()
    """The parts that mechanisms asked earlier offer to replace; given to `propose` only."""


Propose = Callable[[Sequence[Item], Zones, EditContext], Proposal | None]
Apply = Callable[[Sequence[Item], Proposal, EditContext], Sequence[Item]]


class Mechanism(Struct, frozen=True, kw_only=True):
    """A way to edit parts of a view, ours or a plugin's; it takes no model call.

    `propose` says which parts could be replaced. `apply` replaces those that were chosen, perhaps only some of them. Both must
    be pure functions of their arguments. A file of this folder that has `MECHANISMS` adds them; nothing else has to know about it.
    """

    name: str
    propose: Propose
    apply: Apply
    loses: float | Callable[[EditContext], float]
    """The share of later uses of a replaced part that its replacement no longer serves: 0 if nothing useful is lost, 1 if all is."""
    label: str = ""
    """What it replaces, as in "placeholders for old images"; its name if empty."""
    sentence: str = ""
    """What it does, as a step of a plan; its name if empty."""
    reach: Reach = "middle"
    order: int = 0
    """The lower, the earlier it is asked and carried out; plugins' are asked first."""
    shares_parts: bool = False
    """Mechanisms that are asked later may edit the same parts too, as `images` does in a result whose text `elide` replaces.
    They see in `EditContext.taken` what is offered already. Of parts that are not shared, they cannot offer anything."""

    def share_lost(self, context: EditContext) -> float:
        """Return the share of later uses that is lost, given how the view is edited."""
        return self.loses(context) if callable(self.loses) else self.loses


class Offers(Struct, frozen=True, kw_only=True):
    """What the mechanisms propose for a view, and the zones it was worked out for."""

    zones: Zones
    proposals: tuple[Proposal, ...]
    outside_tail: int
    """Counted tokens between head and tail that were never summarised."""


class ProposalRequest(Struct, frozen=True, kw_only=True):
    """What the mechanisms are given; limits are in the model's tokens, of which there are `scale` per counted token."""

    items: Sequence[Item]
    context: EditContext
    limits: Limits
    settings: Settings
    scale: float = 1.0
    room: int = 0
    """The model's tokens that the items may have after a compaction that has to make them fit; 0: as few as possible."""
    system_in_preamble: bool = False
    mechanisms: tuple[Mechanism, ...] = ()
    """Plugins' mechanisms."""
    must_fit: bool = False
    """The prompt does not fit: head, tail and the newest exchange may be shortened too."""
    too_large: bool = False
    """The request has more bytes than its provider accepts: images in the tail may be removed too."""
    memo: tuple[tuple[object, ...], Offers] | None = None
    """The survey and its inputs, once it was made; set by `survey` only."""

    def counted(self, tokens: int) -> int:
        """Return a number of the model's tokens in counted tokens."""
        return unscaled(tokens, self.scale)

    @property
    def longest_result(self) -> int:
        """The largest tool result, in counted tokens, that stays whole when the prompt does not fit."""
        return max(500, unscaled(self.limits.most + 1, self.scale) // 8)

    def edit_context(self) -> EditContext:
        """Return the context with the sizes that follow from the limits."""
        return replace(
            self.context,
            protected_tokens=self.counted(self.limits.protected_tool_output),
            longest_result=self.longest_result,
            too_large=self.too_large,
        )


class SummaryMechanism(Struct, frozen=True, kw_only=True):
    """A way to replace whole messages by a summary; a policy that uses it has to name it."""

    name: str
    propose: Callable[[ProposalRequest, Zones], Proposal | None]
    budget: Callable[[ProposalRequest, Sequence[Item]], int]
    """How long the summary of these items may be, in tokens."""
    sentence: str
    """What it does, as a step of a plan."""
    label: str = "a summary of the older messages"
    """What replaces the messages."""
    reach: Reach = "middle"
    order: int = 0
    in_passes: bool = False
    """It summarises one chunk at a time, and can be repeated."""
    merges: bool = False
    """It makes one summary of several, one level deeper."""
    by_provider: bool = False
    """The provider writes an opaque block instead of a text, so it is proposed only to sessions whose provider can."""


def survey(request: ProposalRequest) -> Offers:
    """Return the zones of the view without asking any mechanism, which is enough for most decisions."""
    about = (request.items, request.limits, request.settings, request.scale, request.system_in_preamble)
    if request.memo is None or any(was is not now for was, now in zip(request.memo[0], about, strict=True)):
        force_setattr(request, "memo", (about, _survey(request)))
    assert request.memo is not None
    return request.memo[1]


def _survey(request: ProposalRequest) -> Offers:
    compression = request.settings.compression
    zones = find_zones(
        request.items,
        first=max(0, compression.protect_first_n - request.system_in_preamble),
        last=compression.protect_last_n,
        tail_tokens=request.counted(request.limits.tail),
    )
    middle = request.items[zones.head : zones.tail]
    raw = sum([item.tokens for item in middle if not isinstance(item, Summary)])
    return Offers(zones=zones, proposals=(), outside_tail=raw)
