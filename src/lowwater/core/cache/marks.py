"""Cache marks: which a provider takes, on which messages they go, and which lifetime they ask for; also OpenAI's `prompt_cache_key`.

A mark (Anthropic: `cache_control`, OpenAI: `prompt_cache_breakpoint`) asks the provider to store the prefix that ends there.
The belief about the cache assumes the marks that are placed here, so requests must carry exactly these.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from lowwater.core.costs.prices import nano_dollars
from lowwater.core.entries import AlteredMessage, Compacted, Edit, PreambleChanged
from lowwater.core.ledger import Ledger, Saved
from lowwater.core.messages import AnyPart, Message, Opaque
from lowwater.core.models.model import ALIBABA, UNKNOWN, CacheRules, MarkedPrefixes, Model, Prices, router_of
from lowwater.core.view import Edited, Item, Summary, items_shown

Lifetime = Literal["short", "long"]
"""Of an entry in the cache, where a provider sells two (Anthropic: 5 minutes and 1 hour)."""

LOOKBACK = 20
"""How many content blocks Anthropic checks backwards from a mark for a stored prefix, the marked block included."""

_MARKS_ON_MESSAGES = 3
"""Anthropic takes four marks in a request; one of them is placed before the messages."""
_LIFETIMES = {"short": "5m", "long": "1h"}
_NOT_COMPACTING = frozenset({"shorten", "reasoning", "repeat", "keep", "pins"})
"""Mechanisms that do not compact the history: truncation on arrival, thinking a model rejects, a repeated message, a view that stays."""
_RECENT_ENTRIES = 200
"""The newest entries, which are searched for a change of the system prompt."""
_KEY_BYTES = 8


class CacheMarks(Struct, frozen=True, kw_only=True):
    """The cache marks that a provider takes: one before the messages, the others on messages."""

    ttl: str = "5m"
    in_chat: bool = False
    """Whether marks are taken in the chat format (Claude through OpenRouter, for example)."""
    on_tools: bool = False
    """Whether they are taken on the text of tool messages in the chat format (`core/models/model.py`)."""
    breakpoints: bool = False
    """Whether they are OpenAI's `prompt_cache_breakpoint`, to which the server adds one of its own."""
    lookback: int | None = LOOKBACK
    """Blocks that are checked backwards from a mark; None: no limit."""

    @property
    def on_messages(self) -> int:
        """How many marks go on messages, besides the one before them; one less for OpenAI, whose server adds one."""
        return _MARKS_ON_MESSAGES - self.breakpoints

    def last(self, count: int) -> range:
        """Return the indexes of the last three of `count` messages, which is what the strategy `system_and_3` marks."""
        return range(max(0, count - _MARKS_ON_MESSAGES), count)


def marks_for(
    model: Model, *, name: str, ttl: str, base_url: str = "", lifetime: Lifetime = "short"
) -> CacheMarks | None:
    """Return the marks for a model called `name` at `base_url`, or None if the provider takes none.

    `lifetime` is what a `ttl` of `auto` means at the moment. OpenAI offers a single lifetime, whatever is asked for.
    """
    matching = model.cache.matching
    if not isinstance(matching, MarkedPrefixes):
        return None
    if model.provider == "openai":
        return CacheMarks(ttl="30m", breakpoints=True, lookback=matching.lookback_blocks)
    router = router_of(name, base_url) or (ALIBABA if model.provider == "alibaba" else None)
    asked = _LIFETIMES[lifetime] if ttl == "auto" else ttl
    return CacheMarks(
        ttl=asked,
        in_chat=model.provider != "anthropic" or router is not None,
        on_tools=(router or UNKNOWN).on_tools,
        lookback=matching.lookback_blocks,
    )


class Seams(Struct, frozen=True, kw_only=True):
    """The places in a list of messages that decide where cache marks go, as indexes into that list."""

    shared: int = 0
    """How many messages at the start are the same as in the last request; 0 if there was none or it is unknown."""
    edge: int | None = None
    """The last message that the last compaction changed: a summary, or a message with placeholders."""
    earlier: int | None = None
    """The edge in the last request, if a compaction since then left that message unchanged."""
    system_moves: bool = False
    """Whether the system prompt has changed while the tools stayed the same, so that a mark on it is of little use."""

    def moved(self, place: Callable[[int], int]) -> "Seams":
        """Return the seams for another list, in which message `i` is at index `place(i)`; a negative index means it is gone."""
        edge = None if self.edge is None else place(self.edge)
        earlier = None if self.earlier is None else place(self.earlier)
        return Seams(
            shared=max(0, place(self.shared - 1) + 1) if self.shared else 0,
            edge=None if edge is None or edge < 0 else edge,
            earlier=None if earlier is None or earlier < 0 else earlier,
            system_moves=self.system_moves,
        )


NOWHERE = Seams()
"""For a request of which nothing is known."""


def _any_message(_: int) -> bool:
    return True


def place_marks(
    shape: Sequence[int],
    *,
    seams: Seams = NOWHERE,
    most: int = _MARKS_ON_MESSAGES,
    lookback: int | None = LOOKBACK,
    carries: Callable[[int], bool] = _any_message,
) -> tuple[int, ...]:
    """Return the indexes of at most `most` messages to mark, in order; `shape` is the number of blocks of each.

    One more mark, on the system prompt or else on the last tool, comes before the messages and helps whatever changes
    after it. Each mark on a message helps another request:

    - the newest message: the next request, which begins with all of this one;
    - the last message that the last request had too (`seams.shared`): this request. The last request had a mark there,
      and a mark at the same place finds it however many blocks the turn added. After a compaction it is the end of what
      stayed the same, and looks back for the end of an earlier request;
    - the last message that a compaction changed (`seams.edge`): the next prune, which begins after it;
    - `seams.earlier`, the edge before that one, replaces the second if the second is too far away to find it.

    Without an edge, and with the last request's mark within reach, the last three messages are marked
    (docs/specification.md: F). If a message cannot carry a mark (`carries`), the nearest one before it that can gets it.
    """
    last = _last_carriers(len(shape), min(most, _MARKS_ON_MESSAGES), carries)
    reach = None if lookback is None else lookback - 1
    if not last or (seams.edge is None and _finds(shape, last[0], seams.shared - 1, reach)):
        return last
    anchor = seams.shared - 1
    if seams.earlier is not None and not _finds(shape, anchor, seams.earlier, reach):
        anchor = seams.earlier
    at_seams = [at for at in (seams.edge, anchor) if at is not None and at < len(shape)]
    wanted = [last[-1], *(_carrier(at, carries) for at in at_seams), *reversed(last)]
    places = list(dict.fromkeys(at for at in wanted if at >= 0))
    return tuple(sorted(places[:most]))


def _finds(shape: Sequence[int], mark: int, stored: int, reach: int | None) -> bool:
    """Return whether a mark at the end of message `mark` finds the prefix stored at the end of message `stored`."""
    if stored < 0 or stored >= mark or reach is None:
        return True
    return sum(shape[stored + 1 : mark + 1]) <= reach


def _last_carriers(count: int, most: int, carries: Callable[[int], bool]) -> tuple[int, ...]:
    """Return the indexes of the last `most` of `count` messages that can carry a mark, in order."""
    found: list[int] = []
    for at in range(count - 1, -1, -1):
        if len(found) == most:
            break
        if carries(at):
            found.append(at)
    return tuple(reversed(found))


def _carrier(at: int, carries: Callable[[int], bool]) -> int:
    """Return the nearest message from `at` backwards that can carry a mark, or -1."""
    while at >= 0 and not carries(at):
        at -= 1
    return at


def seams_of(ledger: Ledger, messages: Sequence[Message]) -> Seams:
    """Return the seams in `messages`, which is the ledger's view as it is sent.

    The last request ended just before the newest answer, so the ledger is enough to tell what was in it.
    """
    items = ledger.view.items
    answer = _newest_answer(items)
    saved = _first_saved_since(ledger, items, answer)
    shared, earlier = answer, None
    if saved is not None:
        sent = ledger.view_before(saved).items
        shared = _in_common(items, sent, most=answer)
        old = _edge(ledger, sent, saved.position)
        earlier = old if old is not None and old < shared else None
    edge = _edge(ledger, items, len(ledger.entries))
    last = _place(messages, items, shared - 1 if shared else None)
    return Seams(
        shared=0 if last is None else last + 1,
        edge=_place(messages, items, edge),
        earlier=_place(messages, items, earlier),
        system_moves=_system_moves(ledger),
    )


def _place(messages: Sequence[Message], items: Sequence[Item], at: int | None) -> int | None:
    """Return the index of an item's message in what is sent, usually the item's own; None if it is not there."""
    if at is None:
        return None
    item = items[at]
    if at < len(messages) and messages[at] is item.message and len(messages) == len(items):
        return at
    return next((place for place, shown in enumerate(items_shown(messages, items)) if shown is item), None)


def _newest_answer(items: Sequence[Item]) -> int:
    """Return the index of the newest message of the assistant, 0 if there is none."""
    for at in range(len(items) - 1, -1, -1):
        if items[at].message.role == "assistant" and not isinstance(items[at], Summary):
            return at
    return 0


def _first_saved_since(ledger: Ledger, items: Sequence[Item], answer: int) -> Saved | None:
    """Return the first compaction, rewind or checkpoint since the newest answer; None if there was none."""
    item = items[answer] if answer else None
    if item is None or isinstance(item, Summary):
        return None
    number = item.number
    found = None
    for saved in reversed(ledger.saved):
        if saved.messages < number:
            break
        found = saved
    return found


def _in_common(items: Sequence[Item], before: Sequence[Item], *, most: int) -> int:
    """Return how many items at the start show the same messages, at most `most`."""
    most = min(most, len(before))
    return next((at for at in range(most) if not _same(items[at], before[at])), most)


def _same(one: Item, other: Item) -> bool:
    return one is other or one.message is other.message or one.message == other.message


def _edge(ledger: Ledger, items: Sequence[Item], until: int) -> int | None:
    """Return the index of the last of these items that the newest compaction before entry `until` changed."""
    compactions = (
        entry
        for saved in reversed(ledger.saved)
        if saved.kind == "compacted"
        and saved.position < until
        and isinstance(entry := ledger.entries[saved.position], Compacted)
    )
    newest = next((entry for entry in compactions if not _NOT_COMPACTING.issuperset(entry.mechanisms)), None)
    if newest is None:
        return None
    before = next(compactions, None)
    stands = before.items if before else ()
    edited = {stand.number: stand.edits for stand in stands if isinstance(stand, AlteredMessage)}
    return max((at for at, item in enumerate(items) if _is_changed(item, edited)), default=None)


def _is_changed(item: Item, edited: dict[int, tuple[Edit, ...]]) -> bool:
    """Return whether an item is a summary, or has placeholders beyond its edits in `edited`; dropped thinking does not count."""
    if isinstance(item, Summary) or any(map(_is_compaction, item.message.parts)):
        return True
    if not isinstance(item, Edited):
        return False
    before = edited.get(item.number, ())
    return any(edit.by is not None and edit not in before for edit in item.edits)


def _is_compaction(part: AnyPart) -> bool:
    """Return whether a part is the provider's own compaction block."""
    return isinstance(part, Opaque) and part.block == "compaction"


def _system_moves(ledger: Ledger) -> bool:
    """Return whether the system prompt has recently changed while the tools stayed the same."""
    first = bisect_left(ledger.preambles, len(ledger.entries) - _RECENT_ENTRIES)
    entries = [ledger.entries[position] for position in ledger.preambles[first:]]
    changes = [entry for entry in entries if isinstance(entry, PreambleChanged)]
    return any(new.system != old.system and new.tools == old.tools for old, new in pairwise(changes))


# Which lifetime to ask for

WINDOW = 50
"""The number of newest gaps between calls that count: enough to notice that a long pause has become rare."""
_PROMPT, _GROWTH = 50, 1
"""Until it is measured, a call is assumed to add a fiftieth of its prompt, which is the median of recorded sessions."""
_PER = 1_000
Pauses = Sequence[tuple[int, int]]
PAUSES: Pauses = ((60, 105), (300, 34), (1_800, 9), (3_600, 5), (43_200, 1), (86_400, 0))
"""Of a thousand gaps between calls, how many are longer than so many seconds: 31,095 gaps of 447 recorded sessions of coding
agents, most of them Claude Code's (`python -m bench.lifetimes`)."""


class Gaps(Struct, frozen=True, kw_only=True):
    """How many calls came within the short lifetime, between its end and that of the long one, and after both."""

    within: int = 0
    between: int = 0
    beyond: int = 0


def settle_ttl(
    gaps: Sequence[float],
    prices: Prices,
    rules: CacheRules,
    *,
    prompt: int = _PROMPT,
    growth: int = _GROWTH,
    window: int = WINDOW,
    pauses: Pauses = PAUSES,
    now: Lifetime | None = None,
) -> Lifetime:
    """Return the lifetime for a session with these gaps so far; `now` is the one asked for at the last call.

    Until `window` of them are known, it is the one that pays for `pauses` as they are in general; then the newest
    count together with as many of the general ones, and the lifetime changes only if that pays for the change.
    """
    long = prices.cache_write_long
    if long is None or rules.ttl is None or rules.ttl_long is None:
        return "short"
    general = usual_gaps(rules.ttl, rules.ttl_long, pauses)
    usual = saved_by_long(general, prices, prompt=_PROMPT, growth=_GROWTH)
    start: Lifetime = "long" if usual > 0 else "short"
    if len(gaps) < window:
        return start
    seen = _classify(gaps[-window:], rules.ttl, rules.ttl_long)
    saved = saved_by_long(seen, prices, prompt=prompt, growth=growth)
    saved += window * saved_by_long(general, prices, prompt=prompt, growth=growth) // _PER
    if (now or start) == "short":
        return "long" if saved > (long - prices.cache_read) * prompt else "short"
    return "short" if -saved > (prices.cache_write - prices.cache_read) * prompt else "long"


def usual_gaps(short: int, long: int, pauses: Pauses = PAUSES) -> Gaps:
    """Return how a thousand gaps between calls are spread over the two lifetimes in general."""
    after_short, after_long = _longer_than(short, pauses), _longer_than(long, pauses)
    return Gaps(within=_PER - after_short, between=after_short - after_long, beyond=after_long)


def _longer_than(seconds: int, pauses: Pauses) -> int:
    """Return how many of a thousand gaps are longer; between the measured points the nearest shorter one counts."""
    return next((share for least, share in reversed(pauses) if least <= seconds), _PER)


def saved_by_long(gaps: Gaps, prices: Prices, *, prompt: int, growth: int) -> int:
    """Return what the long lifetime saves over these gaps, in tokens × price; negative if it costs more.

    With P tokens of `prompt`, of which g (`growth`) are new at a call, and prices r to read, w and W to write for the
    short lifetime s and the long one l, a call costs

        gap ≤ s        r·(P−g) + w·g   if short     r·(P−g) + W·g   if long
        s < gap ≤ l    w·P                          r·(P−g) + W·g
        gap > l        w·P                          W·P

    so that over n₁, n₂ and n₃ such gaps the long lifetime saves

        n₂·[(w−r)·(P−g) − (W−w)·g] − n₁·(W−w)·g − n₃·(W−w)·P

    No provider rules out that a prefix stored for one lifetime has to be written again for the other, so that is assumed:
    switching costs (W−r)·P or (w−r)·P.
    """
    read, write = prices.cache_read, prices.cache_write
    premium = (prices.cache_write_long or write) - write
    kept = max(0, prompt - growth)
    survived = (write - read) * kept - premium * growth
    return gaps.between * survived - gaps.within * premium * growth - gaps.beyond * premium * prompt


def _classify(gaps: Sequence[float], short: float, long: float) -> Gaps:
    return Gaps(
        within=sum(gap <= short for gap in gaps),
        between=sum(short < gap <= long for gap in gaps),
        beyond=sum(gap > long for gap in gaps),
    )


class Lifetimes(Struct, frozen=True, kw_only=True):
    """The lifetimes a provider offers, in seconds, and what the long one costs or saves after a pause, in nano-dollars.

    The amounts are None if the long lifetime has no price of its own.
    """

    short: int | None = None
    """None if not published."""
    long: int | None = None
    """None if not offered."""
    within_costs: int | None = None
    """The extra cost of the long one if the next call comes within the short one."""
    between_saves: int | None = None
    """What it saves if the next call comes after the short one has ended but not the long one."""
    beyond_costs: int | None = None
    """The extra cost if the next call comes after both have ended."""
    least_share: float | None = None
    """The share of calls that must come between the two ends for the long one to pay; None if no share is enough."""


def lifetimes_of(prices: Prices, rules: CacheRules, *, prompt: int, growth: int) -> Lifetimes:
    """Return what the long lifetime is worth to a session with prompts of `prompt` tokens that grow by `growth` a call."""
    offered = Lifetimes(short=rules.ttl, long=rules.ttl_long)
    if rules.ttl is None or rules.ttl_long is None or prices.cache_write_long is None:
        return offered

    def saved(gaps: Gaps) -> int:
        return saved_by_long(gaps, prices, prompt=prompt, growth=growth)

    within, between, beyond = -saved(Gaps(within=1)), saved(Gaps(between=1)), -saved(Gaps(beyond=1))
    return Lifetimes(
        short=rules.ttl,
        long=rules.ttl_long,
        within_costs=nano_dollars(within),
        between_saves=nano_dollars(between),
        beyond_costs=nano_dollars(beyond),
        least_share=within / (within + between) if between > 0 else None,
    )


# OpenAI's key


def cache_key_for(model: Model, *, session: str) -> str:
    """Return the session's `prompt_cache_key`, the same in every process; empty if the provider has no such parameter.

    It routes the session's requests to the same cache. It is a hash of the session's name and reveals nothing of its content.
    """
    if model.provider != "openai":
        return ""
    return f"lw-{blake2b(session.encode(errors='surrogatepass'), digest_size=_KEY_BYTES).hexdigest()}"
