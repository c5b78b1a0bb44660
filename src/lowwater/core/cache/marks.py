"""Cache marks: which a provider takes, and on which messages they go; also OpenAI's `prompt_cache_key`.

A mark (Anthropic: `cache_control`, OpenAI: `prompt_cache_breakpoint`) asks the provider to store the prefix that ends there.
The belief about the cache assumes the marks that are placed here, so requests must carry exactly these.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import pairwise

from msgspec import Struct

from lowwater.core.cache.lifetimes import Lifetime
from lowwater.core.entries import AlteredMessage, Compacted, Edit, PreambleChanged
from lowwater.core.ledger import Ledger, Saved
from lowwater.core.messages import AnyPart, Message, Opaque
from lowwater.core.models.model import ALIBABA, UNKNOWN, MarkedPrefixes, Model, router_of
from lowwater.core.view import Edited, Item, Summary, items_shown

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


def cache_key_for(model: Model, *, session: str) -> str:
    """Return the session's `prompt_cache_key`, the same in every process; empty if the provider has no such parameter.

    It routes the session's requests to the same cache. It is a hash of the session's name and reveals nothing of its content.
    """
    if model.provider != "openai":
        return ""
    return f"lw-{blake2b(session.encode(errors='surrogatepass'), digest_size=_KEY_BYTES).hexdigest()}"
