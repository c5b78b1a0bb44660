"""Where cache marks go: `system_and_3` (docs/specification.md: F), the compaction edge, and what the lookback has to find again."""

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from lowwater.assemble.seams import NOWHERE, Seams
from lowwater.values.model import Marks as TakesMarks
from lowwater.values.model import Model
from lowwater.values.routers import ALIBABA, UNKNOWN, router_of

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
