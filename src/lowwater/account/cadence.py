"""How often sessions are compacted, and how: the seven cadence metrics (docs/specification.md: K) and what belongs to them."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from lowwater.account.joining import joined
from lowwater.account.timeline import turns_before
from lowwater.values.events import Compaction, Event, Rejected, Skip
from lowwater.values.stored import Account

WITHOUT_MODEL = frozenset({"extractive", "marker"})
"""Those who write summaries and call no model."""
_WRITING = frozenset({"summarize", "summarize_all", "leaf", "condense"})
"""The mechanisms that put a summary in place."""
_WITH_SUMMARY = frozenset({"summary", "condense"})


class Cadence(Struct, frozen=True, kw_only=True):
    """The cadence of one session or of many together; None is a mean or a ratio of nothing."""

    sessions: int
    turns: int
    events: int
    """Compactions that were committed."""
    events_per_100_turns: float | None
    turns_between_events: float | None
    """The mean from one event of a session to its next; a session that was split goes on in its child."""
    summary_calls: int
    """Calls that asked a model for a summary, as far as events tell: what one summarizer was asked twice counts once."""
    reclaimed_per_event: float | None
    prompt_and_summary_tokens: int
    """All prompts as their providers counted them, those that asked for summaries included, and all summaries put in place."""
    earliest_changed: int | None
    """The smallest index of a view at which an event began."""
    prunes_per_summary: float | None
    """How many events needed no summary for each that did."""
    prunes: int
    """Events without a summary."""
    summaries: int
    """Events with one."""
    mean_summary_tokens: float | None
    reclaimed: int
    last_mode: str
    """How the latest event of all went about it; empty if there was none."""
    skips: dict[str, int]
    """How often views were left as they are, by reason code; the most frequent first."""


def cadence(accounts: Sequence[Account]) -> Cadence:
    """Return the cadence of these sessions: sums are sums over all, means are over all events and turns alike."""
    turns = sum(len(account.records) for account in accounts)
    every = [event for account in accounts for event in account.events]
    events = [event for event in every if isinstance(event, Compaction)]
    summaries = sum(event.mode in _WITH_SUMMARY for event in events)
    prunes = len(events) - summaries
    reclaimed = sum(event.reclaimed for event in events)
    summary_tokens = sum(event.summary_tokens for event in events)
    intervals = [interval for account in joined(accounts) for interval in _intervals(account)]
    return Cadence(
        sessions=len(accounts),
        turns=turns,
        events=len(events),
        events_per_100_turns=_ratio(100 * len(events), turns),
        turns_between_events=_ratio(sum(intervals), len(intervals)),
        summary_calls=sum(map(_summary_calls, every)),
        reclaimed_per_event=_ratio(reclaimed, len(events)),
        prompt_and_summary_tokens=_prompts(accounts)
        + sum(event.summary_prompts for event in every)
        + summary_tokens,
        earliest_changed=min((event.first_changed for event in events), default=None),
        prunes_per_summary=_ratio(prunes, summaries),
        prunes=prunes,
        summaries=summaries,
        mean_summary_tokens=_ratio(summary_tokens, sum(map(summaries_in, events))),
        reclaimed=reclaimed,
        last_mode=max(events, key=lambda event: event.at).mode if events else "",
        skips=dict(Counter(event.because.code for event in every if isinstance(event, Skip)).most_common()),
    )


def summaries_in(event: Compaction) -> int:
    """Return how many summaries an event put in place."""
    return sum(phase.mechanism in _WRITING for phase in event.phases) or int(event.mode in _WITH_SUMMARY)


def _intervals(account: Account) -> list[int]:
    """Return the turns between each event of a session and the one before it."""
    told = zip(account.events, turns_before(account), strict=True)
    before = [turns for event, turns in told if isinstance(event, Compaction)]
    return [after - turns for turns, after in pairwise(before)]


def _summary_calls(event: Event) -> int:
    """Return how many calls for summaries an event tells of: those put in place, and those that came to nothing.

    A summary that was repaired is among the rejected ones and in place: its call is one.
    """
    if isinstance(event, Skip):
        return sum(each.by not in WITHOUT_MODEL for each in event.rejected)
    in_place = 0 if event.summarizer in WITHOUT_MODEL else summaries_in(event)
    return in_place + sum(_is_further_call(each, event) for each in event.rejected)


def _is_further_call(rejected: Rejected, event: Compaction) -> bool:
    return rejected.by not in WITHOUT_MODEL and (rejected.by != event.summarizer or bool(rejected.said))


def _prompts(accounts: Sequence[Account]) -> int:
    records = (record for account in accounts for record in account.records)
    return sum(record.usage.prompt for record in records if record.usage is not None)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
