"""What a session's first call finds in the cache, told from the sessions around it.

A client sends the same tools and system prompt at the start of every session, so that one reads what another wrote:
if a session of the same folder called the model within the lifetime of its cache, or if sessions that began later than
that found it all the same, because somebody else uses the same start all the time. How long that start is, the first
calls of others tell that read it. A first prompt far longer than others is no beginning, but goes on with something
that was cut off.
"""

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from math import inf
from statistics import median_low

from msgspec import Struct

from lowwater.lab.audit.calls import AuditedCall, Start

_ALIKE = 0.02
"""First prompts that differ by no more than this share are taken to begin with the same."""
_LEVELS = 3
"""So many first calls that read something tell how long the fixed start is; the middle one counts."""
_LATE = 5
"""So many sessions that began after the lifetime tell whether somebody else keeps the start in the cache."""
_FAR_LONGER = 1.4
"""A first prompt of so many times the usual one goes on with something."""
_WHOLE = 0.8
"""A first call that read more than this share of its prompt went on with something: it tells nothing of a start."""
SLIP = 0.003
"""Of what recorded calls inside of a turn should have read, about this share was written anew, for no reason that a size or a time tells.

Where the user speaks it is 12 %: nearly all in a few sessions and nothing in most, so that no share of it would foresee either.
"""


class Begun(Struct, frozen=True, kw_only=True, dict=True):
    """What is known of a recorded session that began."""

    agent: str
    folder: str
    calls: tuple[AuditedCall, ...]
    """Those whose prompt was recorded."""

    @cached_property
    def times(self) -> tuple[float, ...]:
        """When it called, in order."""
        return tuple(sorted(call.at or 0.0 for call in self.calls))

    @property
    def at(self) -> float:
        """When it began."""
        return self.calls[0].at or 0.0

    @property
    def model(self) -> str:
        """The model it began with."""
        return self.calls[0].model.name

    @property
    def prompt(self) -> int:
        """The size of its first prompt."""
        usage = self.calls[0].usage
        return usage.prompt if usage else 0

    @property
    def read(self) -> int:
        """What its first call read, as recorded."""
        usage = self.calls[0].usage
        return usage.cache_read if usage else 0

    @property
    def lifetime(self) -> float:
        """How long the cache keeps what it writes, in seconds."""
        rules = self.calls[0].model.cache
        asks_long = any(call.usage is not None and call.usage.cache_write_long for call in self.calls)
        ttl = rules.ttl_long if asks_long and rules.ttl_long is not None else rules.ttl
        return inf if ttl is None else ttl


class Starts:
    """The sessions of some recordings; each is told from all others."""

    def __init__(self, begun: Sequence[Begun]) -> None:
        self._begun = tuple(begun)
        self._times: dict[tuple[str, str], list[float]] = {}
        for key in {(each.folder, each.model) for each in begun}:
            like = (each.times for each in begun if (each.folder, each.model) == key)
            self._times[key] = sorted(chain.from_iterable(like))
        self._late = {id(each) for each in begun if not self._is_warm(each)}

    def of(self, session: Begun) -> Start:
        """Return what a session is taken to begin with; what its own calls read is not looked at."""
        others = sorted(
            (each for each in self._begun if each is not session and each.agent == session.agent),
            key=lambda each: abs(each.at - session.at),
        )
        folder = [each for each in others if each.folder == session.folder]
        same = [each for each in folder if each.model == session.model]
        fixed = min(_fixed(session, (same, folder, others)), session.prompt)
        usual = median_low([each.prompt for each in same or folder or others or [session]])
        is_kept = (
            id(session) not in self._late or self._is_shared(same) or (not same and self._is_shared(others))
        )
        read = session.prompt if session.prompt > _FAR_LONGER * usual else fixed if is_kept else 0
        return Start(fixed=fixed, read=read, slip=SLIP)

    def _is_warm(self, session: Begun) -> bool:
        """Return whether another session called the model within the lifetime before this one."""
        times = self._times[session.folder, session.model]
        before = bisect_left(times, session.at)
        return before > 0 and session.at - times[before - 1] <= session.lifetime

    def _is_shared(self, nearest: Sequence[Begun]) -> bool:
        """Return whether most sessions that began after the lifetime found something all the same."""
        late = [each for each in nearest if id(each) in self._late][:_LATE]
        return 2 * sum(each.read > 0 for each in late) > len(late)


def _fixed(session: Begun, circles: Sequence[Sequence[Begun]]) -> int:
    """Return how long the fixed start is, as the nearest circle tells that knows."""
    for circle in circles:
        told = [each for each in circle if 0 < each.read < _WHOLE * each.prompt]
        alike = [each for each in told if abs(each.prompt - session.prompt) <= _ALIKE * session.prompt]
        nearest = (alike or told)[:_LEVELS]
        if nearest:
            return sorted(each.read for each in nearest)[len(nearest) // 2]
    return 0
