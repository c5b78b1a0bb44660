"""Where cache marks go in a request, and the key by which requests find their cache."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from lowwater.core.entries import AlteredMessage, Compacted, Edit, PreambleChanged
from lowwater.core.ledger import Ledger, Saved
from lowwater.core.messages import AnyPart, Message, Opaque
from lowwater.core.models.model import Marks as TakesMarks
from lowwater.core.models.model import Model
from lowwater.core.models.routers import ALIBABA, UNKNOWN, router_of
from lowwater.core.view import Edited, Item, Summary, items_shown

_ASIDE = frozenset({"shorten", "reasoning", "repeat"})
"""Mechanisms that edit without compacting what stands before: at the door, thinking that a model forbids, a message repeated."""
_RECENT = 200
"""Entries that are looked through for a change of the system prompt."""


class Seams(Struct, frozen=True, kw_only=True):
    """The places in a list of messages by which cache marks are put; indexes into that list."""

    shared: int = 0
    """How many messages at the start are those of the last request; 0 if there was none, or nothing is known."""
    edge: int | None = None
    """The last message that the last compaction wrote: a summary, or one with placeholders."""
    earlier: int | None = None
    """The edge of the last request, where a compaction since then left it standing."""
    system_moves: bool = False
    """The system prompt was seen to change while the tools stayed, so that a mark on it serves little."""

    def moved(self, place: Callable[[int], int]) -> "Seams":
        """Return the same seams where each message stands at `place` of where it stood; below 0 it is gone."""
        edge = None if self.edge is None else place(self.edge)
        earlier = None if self.earlier is None else place(self.earlier)
        return Seams(
            shared=max(0, place(self.shared - 1) + 1) if self.shared else 0,
            edge=None if edge is None or edge < 0 else edge,
            earlier=None if earlier is None or earlier < 0 else earlier,
            system_moves=self.system_moves,
        )


NOWHERE = Seams()


def seams_of(ledger: Ledger, messages: Sequence[Message]) -> Seams:
    """Return the seams of a ledger's view in `messages`, which is that view as it is sent.

    The last request ended before the newest answer, so nothing has to be remembered from it.
    """
    items = ledger.view.items
    answer = _newest_answer(items)
    before = _before_answer(ledger, items, answer)
    shared, earlier = answer, None
    if before is not None:
        then = ledger.view_before(before).items
        shared = _in_common(items, then, most=answer)
        old = _edge(ledger, then, before.position)
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
    """Return where the message of an item stands in what is sent, mostly at its own place; None if it is not there."""
    if at is None:
        return None
    item = items[at]
    if at < len(messages) and messages[at] is item.message and len(messages) == len(items):
        return at
    return next((place for place, shown in enumerate(items_shown(messages, items)) if shown is item), None)


def _newest_answer(items: Sequence[Item]) -> int:
    for at in range(len(items) - 1, -1, -1):
        if items[at].message.role == "assistant" and not isinstance(items[at], Summary):
            return at
    return 0


def _before_answer(ledger: Ledger, items: Sequence[Item], answer: int) -> Saved | None:
    """Return the view as it was before the first compaction since the newest answer; None if there was none."""
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
    """Return how many items at the start show the same, of at most `most`."""
    most = min(most, len(before))
    return next((at for at in range(most) if not _same(items[at], before[at])), most)


def _same(one: Item, other: Item) -> bool:
    return one is other or one.message is other.message or one.message == other.message


def _edge(ledger: Ledger, items: Sequence[Item], until: int) -> int | None:
    """Return the index of the last of these items that the newest compaction before entry `until` wrote."""
    compactions = (
        entry
        for saved in reversed(ledger.saved)
        if saved.kind == "compacted"
        and saved.position < until
        and isinstance(entry := ledger.entries[saved.position], Compacted)
    )
    newest = next((entry for entry in compactions if not _ASIDE.issuperset(entry.mechanisms)), None)
    if newest is None:
        return None
    before = next(compactions, None)
    known = (
        {stand.number: stand.edits for stand in before.stands if isinstance(stand, AlteredMessage)}
        if before
        else {}
    )
    return max((at for at, item in enumerate(items) if _is_written(item, known)), default=None)


def _is_written(item: Item, known: dict[int, tuple[Edit, ...]]) -> bool:
    """Return whether an item stands for others or got placeholders beyond the edits it had; dropped thinking is none."""
    if isinstance(item, Summary) or any(map(_is_compaction, item.message.parts)):
        return True
    if not isinstance(item, Edited):
        return False
    before = known.get(item.number, ())
    return any(edit.by is not None and edit not in before for edit in item.edits)


def _is_compaction(part: AnyPart) -> bool:
    """Return whether a part is the provider's own compaction block."""
    return isinstance(part, Opaque) and part.block == "compaction"


def _system_moves(ledger: Ledger) -> bool:
    first = bisect_left(ledger.preambles, len(ledger.entries) - _RECENT)
    entries = [ledger.entries[position] for position in ledger.preambles[first:]]
    changes = [entry for entry in entries if isinstance(entry, PreambleChanged)]
    return any(new.system != old.system and new.tools == old.tools for old, new in pairwise(changes))


LOOKBACK = 20
"""How many blocks Anthropic looks at from a mark backwards, the marked one included."""

_MESSAGES = 3
_LIFETIMES = {"short": "5m", "long": "1h"}

Lifetime = Literal["short", "long"]


class Marks(Struct, frozen=True, kw_only=True):
    """What a provider takes as cache marks: one before the messages, the others on messages."""

    ttl: str = "5m"
    in_chat: bool = False
    """The provider takes marks in the chat format too (Claude through OpenRouter)."""
    on_tools: bool = False
    """In the chat format, it takes them on the text of tool messages too (`values.routers`)."""
    breakpoints: bool = False
    """They are OpenAI's `prompt_cache_breakpoint`, beside one that the server places by itself."""
    lookback: int | None = LOOKBACK
    """Blocks that are looked at from a mark backwards; None is no limit."""

    @property
    def on_messages(self) -> int:
        """How many marks stand on messages beside the one before them; at OpenAI the server places one more."""
        return _MESSAGES - self.breakpoints

    def last(self, count: int) -> range:
        """Return the indexes of the messages that `system_and_3` marks, of `count` that are no system prompt."""
        return range(max(0, count - _MESSAGES), count)


def marks_for(
    model: Model, *, name: str, ttl: str, base_url: str = "", lifetime: Lifetime = "short"
) -> Marks | None:
    """Return the marks for a model called `name` at `base_url`, or None where the provider takes none.

    `lifetime` is what `auto` stands for at the moment. OpenAI sells one lifetime in the chat format, whatever is asked.
    """
    matching = model.cache.matching
    if not isinstance(matching, TakesMarks):
        return None
    if model.provider == "openai":
        return Marks(ttl="30m", breakpoints=True, lookback=matching.lookback_blocks)
    router = router_of(name, base_url) or (ALIBABA if model.provider == "alibaba" else None)
    asked = _LIFETIMES[lifetime] if ttl == "auto" else ttl
    return Marks(
        ttl=asked,
        in_chat=model.provider != "anthropic" or router is not None,
        on_tools=(router or UNKNOWN).on_tools,
        lookback=matching.lookback_blocks,
    )


def _any_message(_: int) -> bool:
    return True


def place_marks(
    shape: Sequence[int],
    *,
    seams: Seams = NOWHERE,
    most: int = _MESSAGES,
    lookback: int | None = LOOKBACK,
    carries: Callable[[int], bool] = _any_message,
) -> tuple[int, ...]:
    """Return the indexes of at most `most` messages to mark, in order; `shape` is the number of blocks of each.

    One more mark, on the system prompt or else on the last tool, stands before the messages and serves whatever changes
    behind it. On messages, each mark serves another request:

    - the newest message: the next request, which begins with all of this one;
    - the last message that the last request had too (`seams.shared`): this request. There the last request was marked,
      and a mark at the very place finds it however many blocks the turn added. Behind a compaction it is the end of
      what stayed the same, and looks back for the end of an earlier request;
    - the last message a compaction wrote (`seams.edge`): the next prune, which begins behind it;
    - `seams.earlier`, the edge before that one, instead of the second where that is too far behind it to find it.

    Without an edge, and with the last request's mark in reach, the last three messages are marked (docs/specification.md: F). A mark
    whose message cannot carry one (`carries`) moves to the nearest before it that can.
    """
    last = _last_carriers(len(shape), min(most, _MESSAGES), carries)
    reach = None if lookback is None else lookback - 1
    if not last or (seams.edge is None and _finds(shape, last[0], seams.shared - 1, reach)):
        return last
    anchor = seams.shared - 1
    if seams.earlier is not None and not _finds(shape, anchor, seams.earlier, reach):
        anchor = seams.earlier
    seamed = [at for at in (seams.edge, anchor) if at is not None and at < len(shape)]
    wanted = [last[-1], *(_carrier(at, carries) for at in seamed), *reversed(last)]
    places = list(dict.fromkeys(at for at in wanted if at >= 0))
    return tuple(sorted(places[:most]))


def _finds(shape: Sequence[int], mark: int, stored: int, reach: int | None) -> bool:
    """Return whether a mark at the end of message `mark` finds what was stored at the end of message `stored`."""
    if stored < 0 or stored >= mark or reach is None:
        return True
    return sum(shape[stored + 1 : mark + 1]) <= reach


def _last_carriers(count: int, most: int, carries: Callable[[int], bool]) -> tuple[int, ...]:
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


_BYTES = 8


def cache_key_for(model: Model, *, session: str) -> str:
    """Return the session's `prompt_cache_key`, the same in every process; empty where the provider documents none.

    It is a hash of the session's name and says nothing of what is in it.
    """
    if model.provider != "openai":
        return ""
    return f"lw-{blake2b(session.encode(errors='surrogatepass'), digest_size=_BYTES).hexdigest()}"
