"""What sessions cost and what compaction did about it: by model, by summarizer, and in all."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache

from msgspec import Struct

from lowwater.core.accounts.advice import Advice, advise
from lowwater.core.accounts.cadence import joined
from lowwater.core.accounts.figures import (
    Figures,
    Gathered,
    Repayment,
    Summarizing,
    figures,
    repayment,
    summarizing,
)
from lowwater.core.accounts.payback import Payback, paybacks
from lowwater.core.events import Compaction, TurnRecord
from lowwater.core.models.registry import Registry, canonical_model_name
from lowwater.core.stored import Account


class Efficiency(Struct, frozen=True, kw_only=True):
    """Many sessions in numbers, and what these recommend."""

    total: Figures
    models: tuple[Figures, ...]
    """By what they cost, the dearest first; those whose cost is not known last."""
    summarizers: tuple[Summarizing, ...]
    """By how many summaries they wrote, most first."""
    repayment: Repayment
    advice: tuple[Advice, ...]


def efficiency(accounts: Sequence[Account], registry: Registry) -> Efficiency:
    """Return what these sessions cost and saved; models are matched, and rewriting is priced, by `registry`."""
    repaid = [payback for account in joined(accounts) for payback in paybacks(account, registry)]
    models = [figures(name, of) for name, of in _by_model(accounts, repaid, registry).items()]
    models.sort(key=lambda each: (each.cost is None, -(each.cost or 0), each.model))
    summarizers = summarizing(accounts, registry)
    paid = repayment(repaid)
    unpriced = {each.model for each in models if registry.find(each.model).prices is None}
    return Efficiency(
        total=figures("", _together(accounts, repaid)),
        models=tuple(models),
        summarizers=tuple(summarizers),
        repayment=paid,
        advice=tuple(advise(models, summarizers, paid, unpriced=unpriced)),
    )


def total_of(account: Account, registry: Registry) -> Figures:
    """Return one session's totals over all models and summarizers."""
    bought = paybacks(account, registry)
    gathered = Gathered(sessions=1, records=account.records, events=compactions(account), paybacks=bought)
    return figures("", gathered)


def _together(accounts: Sequence[Account], repaid: Sequence[Payback]) -> Gathered:
    return Gathered(
        sessions=len(accounts),
        records=[record for account in accounts for record in account.records],
        events=[event for account in accounts for event in compactions(account)],
        paybacks=repaid,
    )


def _by_model(
    accounts: Sequence[Account], repaid: Sequence[Payback], registry: Registry
) -> dict[str, Gathered]:
    """Return what belongs to each model by its one name; a session counts wherever a turn or compaction of it does."""
    named = cache(lambda name: canonical_model_name(name, registry))
    sessions: defaultdict[str, set[str]] = defaultdict(set)
    records: defaultdict[str, list[TurnRecord]] = defaultdict(list)
    events: defaultdict[str, list[Compaction]] = defaultdict(list)
    bought: defaultdict[str, list[Payback]] = defaultdict(list)
    for account in accounts:
        for record in account.records:
            records[named(record.model)].append(record)
            sessions[named(record.model)].add(account.session.name)
        for event in compactions(account):
            events[named(event.model)].append(event)
            sessions[named(event.model)].add(account.session.name)
    for payback in repaid:
        bought[named(payback.model)].append(payback)
    return {
        name: Gathered(
            sessions=len(sessions[name]), records=records[name], events=events[name], paybacks=bought[name]
        )
        for name in sessions
    }


def compactions(account: Account) -> list[Compaction]:
    """Return the events of a session that changed its view."""
    return [event for event in account.events if isinstance(event, Compaction)]
