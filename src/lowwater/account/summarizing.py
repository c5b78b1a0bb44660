"""What summaries cost and how good they are, by who wrote them."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache

from msgspec import Struct

from lowwater.account.cadence import summaries_in
from lowwater.account.figures import cost_per_1000, mean
from lowwater.account.one_name import one_name
from lowwater.values.events import Compaction
from lowwater.values.registry import Registry
from lowwater.values.stored import Account


class Summarizing(Struct, frozen=True, kw_only=True):
    """One summarizer's summaries."""

    by: str
    summaries: int
    """Put in place."""
    tokens: int
    priced: int
    """Of those put in place, how many have a cost that is known and nobody else's work in it."""
    cost_per_1000: float | None
    """What these cost for 1,000 tokens of summary, in nano-dollars."""
    scored: int
    score: float | None
    """The mean share of critical references they kept."""
    rejected: int
    """Not accepted as they were written; some of them were repaired and put in place."""


def summarizing(accounts: Sequence[Account], registry: Registry) -> list[Summarizing]:
    """Return what each summarizer wrote, who wrote most first; a model goes by its one name."""
    named = cache(lambda by: _name(by, registry))
    wrote: defaultdict[str, list[Compaction]] = defaultdict(list)
    rejected: Counter[str] = Counter()
    for event in (event for account in accounts for event in account.events):
        rejected.update(named(each.by) for each in event.rejected)
        if isinstance(event, Compaction) and event.summarizer:
            wrote[named(event.summarizer)].append(event)
    found = [_summarizing(by, wrote[by], rejected[by]) for by in {**wrote, **rejected}]
    return sorted(found, key=lambda each: (-each.summaries, each.by))


def _summarizing(by: str, events: Sequence[Compaction], rejected: int) -> Summarizing:
    alone = [event for event in events if all(each.by == event.summarizer for each in event.rejected)]
    priced = [event for event in alone if event.cost is not None and event.summary_tokens]
    scores = [event.score for event in events if event.score is not None]
    return Summarizing(
        by=by,
        summaries=sum(map(summaries_in, events)),
        tokens=sum(event.summary_tokens for event in events),
        priced=sum(map(summaries_in, priced)),
        cost_per_1000=cost_per_1000(priced),
        scored=len(scores),
        score=mean(scores),
        rejected=rejected,
    )


def _name(by: str, registry: Registry) -> str:
    """Return the one name of a model that is known; a summarizer called otherwise keeps its name."""
    return one_name(by, registry) if registry.match(by).how in {"listed", "resold"} else by
