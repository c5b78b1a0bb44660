"""How often sessions are compacted, and by what; and split sessions joined with the children that continue them."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.events import Compaction, Event, Rejected, Skip
from lowwater.core.stored import Account

WITHOUT_MODEL = frozenset({"extractive", "marker"})
"""The summarizers that call no model."""

_WITH_SUMMARY = frozenset({"summary", "condense"})

_BY_SPLIT = "compression"
"""`About.ended_because` of a session that a child continues."""


class Cadence(Struct, frozen=True, kw_only=True):
    """How often one or many sessions were compacted; a mean or ratio of nothing is None."""

    sessions: int
    turns: int
    events: int
    """Compactions that were committed."""
    events_per_100_turns: float | None
    turns_between_events: float | None
    """The mean from one event of a session to its next; a session that was split goes on in its child."""
    summary_calls: int
    """Calls that asked a model for a summary, as far as events show: repeated calls to one summarizer count once."""
    reclaimed_per_event: float | None
    prompt_and_summary_tokens: int
    """The tokens of all prompts as providers counted them, requests for summaries included, and of all summaries."""
    earliest_changed: int | None
    """The smallest index of a view at which a compaction changed it."""
    prunes_per_summary: float | None
    """How many events needed no summary for each that did."""
    prunes: int
    """Events without a summary."""
    summaries: int
    """Events with one."""
    mean_summary_tokens: float | None
    reclaimed: int
    rewritten: int
    """Tokens behind the first change of each compaction, which have to be written to the cache again."""
    last_mode: str
    """The mode of the latest event; empty if there was none."""
    skips: dict[str, int]
    """How often a compaction was skipped, by reason code, most frequent first."""


def cadence(accounts: Sequence[Account]) -> Cadence:
    """Return the cadence of these sessions; means are over all events and turns, not over sessions."""
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
        rewritten=sum(event.disturbed for event in events),
        last_mode=max(events, key=lambda event: event.at).mode if events else "",
        skips=dict(Counter(event.because.code for event in every if isinstance(event, Skip)).most_common()),
    )


def summaries_in(event: Compaction) -> int:
    """Return how many summaries an event put in place."""
    from lowwater.core.mechanisms.registry import SUMMARIES  # noqa: PLC0415 - it imports every mechanism

    written = [name for name, mechanism in SUMMARIES.items() if not mechanism.by_provider]
    return sum(phase.mechanism in written for phase in event.phases) or int(event.mode in _WITH_SUMMARY)


def _intervals(account: Account) -> list[int]:
    """Return the turns between each event of a session and the one before it."""
    told = zip(account.events, turns_before_events(account), strict=True)
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
    return rejected.by not in WITHOUT_MODEL and (rejected.by != event.summarizer or bool(rejected.error))


def _prompts(accounts: Sequence[Account]) -> int:
    records = (record for account in accounts for record in account.records)
    return sum(record.usage.prompt for record in records if record.usage is not None)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def turns_before_events(account: Account) -> list[int]:
    """Return for each event how many turns had been recorded before it; the numbers never decrease.

    A store knows that from the versions. Without them the times decide: an event at the same moment as a turn belongs before
    it, because views are changed before they are sent. If clocks disagree, nothing counts as earlier than what was stored
    before it.
    """
    if account.turns_before is not None:
        return list(account.turns_before)
    turns = list(accumulate((record.at for record in account.records), max))
    events = accumulate((event.at for event in account.events), max)
    return [bisect_left(turns, at) for at in events]


def goes_on(account: Account) -> bool:
    """Return whether a session can still have turns, under its own name or its child's."""
    return account.session.about.ended_at is None or account.session.about.ended_because == _BY_SPLIT


def joined(accounts: Sequence[Account]) -> list[Account]:
    """Return the accounts with each split session and the child that continues it as one, under the child's name.

    The calls that show what the parent's last compaction was worth are the child's. A child without its parent stays alone.
    """
    by_name = {account.session.name: account for account in accounts}
    children: dict[str, Account] = {}
    for account in sorted(accounts, key=_began):
        parent = by_name.get(account.session.about.parent)
        if parent is not None and parent is not account and parent.session.about.ended_because == _BY_SPLIT:
            children.setdefault(parent.session.name, account)
    continuing = {child.session.name for child in children.values()}
    return [
        _with_children(account, children) for account in accounts if account.session.name not in continuing
    ]


def _with_children(account: Account, children: dict[str, Account]) -> Account:
    """Return an account continued by that of its child, its child's child, and so on."""
    while (child := children.get(account.session.name)) is not None:
        before = len(account.records)
        account = replace(
            child,
            records=(*account.records, *child.records),
            events=(*account.events, *child.events),
            turns_before=(
                *turns_before_events(account),
                *(before + turns for turns in turns_before_events(child)),
            ),
        )
    return account


def _began(account: Account) -> float:
    """Return when something first happened in the session itself; entries copied from its parent are older."""
    return min([each.at for each in (*account.records[:1], *account.events[:1])], default=float("inf"))
