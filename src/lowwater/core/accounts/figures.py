"""Totals for one model or all: what turns cost, what summaries cost, and whether compactions paid for themselves."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache

from msgspec import Struct

from lowwater.core.accounts.cadence import summaries_in
from lowwater.core.accounts.payback import Payback
from lowwater.core.events import Compaction, TurnRecord
from lowwater.core.models.registry import Registry, canonical_model_name
from lowwater.core.stored import Account


class Figures(Struct, frozen=True, kw_only=True):
    """The totals of one model, or of all of them.

    Money is in nano-dollars, over the turns and compactions whose cost is known; it is None if no cost is known at all.
    `unpriced_turns` and `unpriced_passes` count the others. `net` is None if any compaction has no price: it would be too high.
    """

    model: str
    """Empty for all models together."""
    sessions: int
    turns: int
    unpriced_turns: int
    prompt: int
    """Tokens of all prompts, as far as providers reported them."""
    output: int
    cache_read: int
    cache_read_share: float | None
    foreseen_turns: int
    """Turns with both a predicted and a reported number of tokens read from the cache."""
    foreseen_off: float | None
    """The error of that prediction, in either direction, as a share of the prompts of these turns."""
    cost: int | None
    untouched: int | None
    """What the turns would have cost if nothing had ever been compacted."""
    passes: int
    """Compactions that were committed."""
    unpriced_passes: int
    reclaimed: int
    """Tokens that compactions took out of prompts, each counted once."""
    saved: int
    """Tokens that calls did not send because of that, counted at every call."""
    summary_tokens: int
    summary_cost: int | None
    summary_cost_per_1000: float | None
    """Per 1,000 tokens of summary, whoever wrote it."""
    rewriting_cost: int | None
    compaction_cost: int | None
    """Summaries and rewriting together."""
    net: int | None
    """The net saving: `untouched` minus `cost` (which includes rewriting the cache) minus the cost of summaries."""
    score: float | None
    """The mean share of critical references that summaries kept."""
    recall_offered: int = 0
    """Calls in which the model was offered recall."""
    recall_used: int = 0
    """Calls of recall that models made; `recall_found` of them gave something, and `recall_named` a name that was used next."""
    recall_found: int = 0
    recall_named: int = 0
    shadow_estimated: int | None = None
    """Only in shadow mode: the estimate of `untouched`, which is what the calls really cost; `cost` is what they would have cost."""


class Gathered(Struct, frozen=True, kw_only=True):
    """The records, compactions and paybacks of one model, or of all, from many sessions."""

    sessions: int
    records: Sequence[TurnRecord]
    events: Sequence[Compaction]
    paybacks: Sequence[Payback]


def figures(model: str, gathered: Gathered) -> Figures:
    """Return the totals of what was gathered."""
    records, events, paybacks = gathered.records, gathered.events, gathered.paybacks
    usages = [record.usage for record in records if record.usage is not None]
    prompt, cache_read = sum(usage.prompt for usage in usages), sum(usage.cache_read for usage in usages)
    foreseen = [
        (abs(record.expected.cache_read - record.usage.cache_read), record.usage.prompt)
        for record in records
        if record.expected is not None and record.usage is not None
    ]
    recalls = [record.recall for record in records if record.recall is not None]
    estimated = [record.estimated for record in records if record.estimated is not None]
    summaries = known_sum(event.cost for event in events)
    rewriting = known_sum(payback.rewriting for payback in paybacks)
    return Figures(
        model=model,
        sessions=gathered.sessions,
        turns=len(records),
        unpriced_turns=sum(record.cost is None for record in records),
        prompt=prompt,
        output=sum(usage.output for usage in usages),
        cache_read=cache_read,
        cache_read_share=ratio_of(cache_read, prompt),
        foreseen_turns=len(foreseen),
        foreseen_off=ratio_of(sum(off for off, _ in foreseen), sum(prompt for _, prompt in foreseen)),
        cost=known_sum(record.cost for record in records),
        untouched=known_sum(map(_untouched, records)),
        passes=len(events),
        unpriced_passes=_unpriced(paybacks),
        reclaimed=sum(event.reclaimed for event in events),
        saved=sum(record.removed for record in records),
        summary_tokens=sum(event.summary_tokens for event in events),
        summary_cost=summaries,
        summary_cost_per_1000=cost_per_1000(events),
        rewriting_cost=rewriting,
        compaction_cost=None if summaries is None or rewriting is None else summaries + rewriting,
        net=_net(gathered),
        score=mean(event.score for event in events),
        recall_offered=len(recalls),
        recall_used=sum(use.calls for use in recalls),
        recall_found=sum(use.found for use in recalls),
        recall_named=sum(use.named for use in recalls),
        shadow_estimated=sum(estimated) if estimated else None,
    )


def known_sum(amounts: Iterable[int | None]) -> int | None:
    """Return the sum of the amounts that are known; None if there are some and none is."""
    every = list(amounts)
    known = [amount for amount in every if amount is not None]
    return sum(known) if known or not every else None


def cost_per_1000(events: Iterable[Compaction]) -> float | None:
    """Return the nano-dollars for 1,000 tokens of summary, over the events whose cost is known; None if there are none."""
    priced = [(event.cost, event.summary_tokens) for event in events if event.cost is not None]
    written = [(cost, tokens) for cost, tokens in priced if tokens]
    return ratio_of(1_000 * sum(cost for cost, _ in written), sum(tokens for _, tokens in written))


def mean(numbers: Iterable[float | None]) -> float | None:
    """Return the mean of the numbers that there are; None if there are none."""
    known = [number for number in numbers if number is not None]
    return ratio_of(sum(known), len(known))


def ratio_of(part: float, whole: float) -> float | None:
    """Return one number divided by another; None if that is a share of nothing."""
    return part / whole if whole else None


def _untouched(record: TurnRecord) -> int | None:
    """Return what a turn would have cost untouched; what earlier versions of Lowwater told below zero is not known."""
    return None if record.untouched is None or record.untouched < 0 else record.untouched


def _unpriced(paybacks: Sequence[Payback]) -> int:
    return sum(payback.summaries is None or payback.rewriting is None for payback in paybacks)


def _net(gathered: Gathered) -> int | None:
    pairs = ((_untouched(record), record.cost) for record in gathered.records)
    gains = known_sum(
        None if untouched is None or cost is None else untouched - cost for untouched, cost in pairs
    )
    if gains is None or _unpriced(gathered.paybacks):
        return None
    return gains - sum(event.cost or 0 for event in gathered.events)


class Summarizing(Struct, frozen=True, kw_only=True):
    """One summarizer's summaries."""

    by: str
    summaries: int
    """Summaries that were used."""
    tokens: int
    priced: int
    """How many of those used have a known cost that includes no other summarizer's attempts."""
    cost_per_1000: float | None
    """What these cost per 1,000 tokens of summary, in nano-dollars."""
    scored: int
    score: float | None
    """Their mean score as they were written."""
    repaired_score: float | None
    """The mean score, once repaired, of those that were repaired."""
    rejected: int
    """Not accepted as they were written; some of them were repaired and used."""


def summarizing(accounts: Sequence[Account], registry: Registry) -> list[Summarizing]:
    """Return the figures of each summarizer, the one with most summaries first; models go by their canonical name."""
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
    repaired = [event.repaired_score for event in events if event.repaired_score is not None]
    return Summarizing(
        by=by,
        summaries=sum(map(summaries_in, events)),
        tokens=sum(event.summary_tokens for event in events),
        priced=sum(map(summaries_in, priced)),
        cost_per_1000=cost_per_1000(priced),
        scored=len(scores),
        score=mean(scores),
        repaired_score=mean(repaired),
        rejected=rejected,
    )


def _name(by: str, registry: Registry) -> str:
    """Return the canonical name of a known model; any other summarizer keeps its name."""
    return canonical_model_name(by, registry) if registry.match(by).how in {"listed", "resold"} else by


class Repayment(Struct, frozen=True, kw_only=True):
    """What became of many compactions; those made before the same call count as one."""

    compactions: int
    paid: int
    """Those that have paid for themselves."""
    failed: int
    """Those that have not and never will: undone, replaced, or their session ended."""
    undone: int
    """Those that failed because they were undone."""
    open: int
    """Those that have not paid for themselves yet."""
    unknown: int
    """Those of which it is not known: no call came yet, or a price or a usage is missing."""
    missing: int
    """What the failed ones cost and did not save, in nano-dollars."""
    compared: int
    """Those that have paid for themselves and have a prediction."""
    predicted: float | None
    """The mean number of later calls after which these were predicted to."""
    realised: float | None
    """The mean number of later calls after which they had."""


def repayment(paybacks: Sequence[Payback]) -> Repayment:
    """Return what became of these compactions, in numbers."""
    unknown = [payback for payback in paybacks if payback.missing is None and payback.turns is None]
    paid = [payback for payback in paybacks if payback.turns is not None]
    failed = [payback for payback in paybacks if payback.turns is None and payback.failed]
    compared = [payback for payback in paid if payback.predicted is not None]
    return Repayment(
        compactions=len(paybacks),
        paid=len(paid),
        failed=len(failed),
        undone=sum(payback.over == "undone" for payback in failed),
        open=len(paybacks) - len(unknown) - len(paid) - len(failed),
        unknown=len(unknown),
        missing=sum(payback.missing or 0 for payback in failed),
        compared=len(compared),
        predicted=mean(payback.predicted for payback in compared),
        realised=mean(payback.turns for payback in compared),
    )


class Costs(Struct, frozen=True, kw_only=True):
    """Nano-dollars for the calls of a session; None if the price of one of them is not known."""

    calls: int | None
    """The calls of its turns."""
    summaries: int | None
    """The calls that wrote summaries."""
    untouched: int | None
    """Estimate of what its turns would have cost without any compaction."""

    @property
    def total(self) -> int | None:
        """Turns and summaries together."""
        return _sum_if_known((self.calls, self.summaries))


def costs_of(account: Account) -> Costs:
    """Return what a session cost."""
    return Costs(
        calls=_sum_if_known(record.cost for record in account.records),
        summaries=_sum_if_known(event.cost for event in account.events if isinstance(event, Compaction)),
        untouched=_sum_if_known(record.untouched for record in account.records),
    )


def _sum_if_known(amounts: Iterable[int | None]) -> int | None:
    """Return the sum, or None if an amount is unknown."""
    total = 0
    for each in amounts:
        if each is None:
            return None
        total += each
    return total
