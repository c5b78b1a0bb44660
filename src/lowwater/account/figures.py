"""What the turns and compactions of a model add up to: tokens, money, and how much of it is known."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from lowwater.account.payback import Payback
from lowwater.values.events import Compaction
from lowwater.values.turn_record import TurnRecord


class Figures(Struct, frozen=True, kw_only=True):
    """The sums of one model, or of all of them.

    Money is in nano-dollars, over the turns and compactions whose cost is known: None if there are some and none of theirs is.
    How many are missing stands beside it. `net` is None as soon as a compaction is missing, for it would flatter.
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
    """Turns that tell both what was to be read from the cache and what was."""
    foreseen_off: float | None
    """The tokens by which that was off, either way, as a share of the prompts of these turns."""
    cost: int | None
    untouched: int | None
    """What the turns would have cost had nothing ever been compacted."""
    passes: int
    """Compactions that were committed."""
    unpriced_passes: int
    reclaimed: int
    """Tokens that compactions took out of prompts, each counted once."""
    saved: int
    """Tokens that calls did not carry because of it, counted at every call."""
    summary_tokens: int
    summary_cost: int | None
    summary_cost_per_1000: float | None
    """For 1,000 tokens of summary, whoever wrote it."""
    rewriting_cost: int | None
    compaction_cost: int | None
    """Summaries and rewriting together."""
    net: int | None
    """What was saved in the end: `untouched` less `cost`, in which rewriting is, and less summaries."""
    score: float | None
    """The mean share of critical references that summaries kept."""


class Gathered(Struct, frozen=True, kw_only=True):
    """What belongs to one model, or to all, out of many sessions."""

    sessions: int
    records: Sequence[TurnRecord]
    events: Sequence[Compaction]
    paybacks: Sequence[Payback]


def figures(model: str, gathered: Gathered) -> Figures:
    """Return the sums of what was gathered."""
    records, events, paybacks = gathered.records, gathered.events, gathered.paybacks
    usages = [record.usage for record in records if record.usage is not None]
    prompt, cache_read = sum(usage.prompt for usage in usages), sum(usage.cache_read for usage in usages)
    foreseen = [
        (abs(record.expected.cache_read - record.usage.cache_read), record.usage.prompt)
        for record in records
        if record.expected is not None and record.usage is not None
    ]
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
        cache_read_share=share(cache_read, prompt),
        foreseen_turns=len(foreseen),
        foreseen_off=share(sum(off for off, _ in foreseen), sum(prompt for _, prompt in foreseen)),
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
    return share(1_000 * sum(cost for cost, _ in written), sum(tokens for _, tokens in written))


def mean(numbers: Iterable[float | None]) -> float | None:
    """Return the mean of the numbers that there are; None if there are none."""
    known = [number for number in numbers if number is not None]
    return share(sum(known), len(known))


def share(part: float, whole: float) -> float | None:
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
