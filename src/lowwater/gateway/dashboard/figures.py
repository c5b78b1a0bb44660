"""What the dashboard shows of sessions without any of their contents: sizes, costs, calls and compactions, as JSON values."""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate
from threading import Lock
from typing import Any

from msgspec.structs import asdict

from lowwater.adapters.models import load_registry
from lowwater.core.accounts.cadence import turns_before_events
from lowwater.core.accounts.figures import costs_of
from lowwater.core.accounts.filling import FILL_KINDS, Filling, FillingCounter, ReplayedViews
from lowwater.core.entries import Appended
from lowwater.core.events import Compaction, TurnRecord
from lowwater.core.models.model import MarkedPrefixes, Uncached
from lowwater.core.policies.explanations import reason_sentence
from lowwater.core.stored import Account, Listed
from lowwater.errors import BadInput, StaleLedger
from lowwater.protocols import Store
from lowwater.session.compactions import compaction_fields, compaction_lines
from lowwater.session.internals import internals
from lowwater.session.reopen import open_kept
from lowwater.settings import Settings

_MOST_POINTS = 1_200
"""Points of a chart: more than a screen has. Of more calls, evenly spaced ones are shown, and those around compactions."""
_MOST_COMPACTIONS = 2_000
_MOST_COUNTED = 4
"""Sessions whose windows' fillings are remembered: some megabytes for 20,000 calls."""


def session_rows(
    store: Store, known: Sequence[Listed], *, sees: dict[str, bool], deleted: dict[str, float]
) -> list[dict[str, object]]:
    """Return sessions as lines of a list; a title is shown only to those who may see contents."""
    accounts = {each.session.name: each for each in store.accounts([listed.name for listed in known])}
    return [
        _row(listed, accounts.get(listed.name, Account(session=listed)), sees=sees[listed.name])
        | {"deleted_at": deleted.get(listed.name)}
        for listed in known
    ]


def _row(listed: Listed, account: Account, *, sees: bool) -> dict[str, object]:
    costs = costs_of(account)
    usages = [each.usage or each.expected for each in account.records]
    return {
        "name": listed.name,
        "title": listed.about.title if sees else "",
        "source": listed.about.source.partition(":")[0],
        "model": listed.model,
        "messages": listed.messages,
        "turns": listed.turns,
        "compactions": listed.compactions,
        "prompt": next((usage.prompt for usage in reversed(usages) if usage is not None), None),
        "cost": costs.total,
        "untouched": costs.untouched,
        "changed_at": listed.changed_at,
        "sees": sees,
    }


def session_page(store: Store, listed: Listed, settings: Settings, *, sees: bool) -> dict[str, object]:
    """Return one session: its state, its bill, its calls and its compactions."""
    account = next(iter(store.accounts([listed.name])), Account(session=listed))
    session = open_kept(store, listed, settings)
    status, costs = session.status(), costs_of(account)
    shown = _points(account)
    told = [
        (event, turns)
        for event, turns in zip(account.events, turns_before_events(account), strict=True)
        if isinstance(event, Compaction)
    ]
    decision = status.decision
    return {
        "name": listed.name,
        "title": listed.about.title if sees else "",
        "source": listed.about.source.partition(":")[0],
        "sees": sees,
        "version": listed.version,
        "model": status.model,
        "policy": status.policy,
        "opened_at": listed.opened_at,
        "changed_at": listed.changed_at,
        "messages": status.messages,
        "history": status.history,
        "sizes": {
            "prompt": status.prompt,
            "threshold": status.threshold,
            "acts_at": status.acts_at,
            "wall": status.wall,
            "context": status.context,
            "level": status.level,
        },
        "cache": _cache(account.records, listed),
        "costs": {**asdict(costs), "total": costs.total},
        "totals": status.totals,
        "decision": None
        if decision is None
        else {"code": decision.because.code, "said": reason_sentence(decision.because)},
        "pins": {
            "in_force": status.pins,
            "left_out": status.pins_left_out,
            "proposed": status.pins_proposed,
        },
        "calls": _calls(account, shown),
        "compactions": [
            {
                "number": event.number,
                "at": event.at,
                "turn": turns + 1,
                "mode": event.mode,
                "summarizer": event.summarizer,
                "before": event.before,
                "after": max(0, event.after),
            }
            for event, turns in told[-_MOST_COMPACTIONS:]
        ],
        "compaction_count": len(told),
    }


def compaction_page(store: Store, listed: Listed, number: int) -> dict[str, object]:
    """Return one compaction with its reason, its price and its payback, or raise BadInput."""
    account = next(iter(store.accounts([listed.name])), Account(session=listed))
    for line in compaction_lines(account, load_registry()):
        if line.event.number == number:
            return compaction_fields(line)
    raise BadInput(f"session {listed.name!r} has no compaction {number}")


class WindowFillings:
    """What filled the windows of the sessions that were looked at last; of one that has gone on, only what is new is read."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._counted: OrderedDict[str, tuple[int, FillingCounter]] = OrderedDict()
        self._one_at_a_time = Lock()

    def page(self, listed: Listed) -> dict[str, object]:
        """Return what filled the prompt by kind, at the calls that `session_page` shows."""
        with self._one_at_a_time:
            found, account = self._count(listed)
        shown = _points(account)
        return {
            "index": [each + 1 for each in shown],
            "kinds": {kind: [getattr(found[each], kind) for each in shown] for kind in FILL_KINDS},
        }

    def _count(self, listed: Listed) -> tuple[list[Filling], Account]:
        version, counter = self._counted.pop(listed.name, (0, FillingCounter()))
        try:
            new = self._store.read(listed.name, since=version)
        except StaleLedger:
            # It was deleted and has begun again under the same name.
            counter, new = FillingCounter(), self._store.read(listed.name)
        # After the entries: a call without its answer is counted again next time, an answer without its call never.
        account = next(iter(self._store.accounts([listed.name])), Account(session=listed))
        if counter.entries and any(not isinstance(each, Appended) for each in new.entries):
            view_at = internals(open_kept(self._store, listed, self._settings)).ledger.view_at
        else:
            view_at = ReplayedViews(new.entries).at
        found = counter.count(new.entries, account.records, view_at)
        self._counted[listed.name] = new.version, counter
        while len(self._counted) > _MOST_COUNTED:
            self._counted.popitem(last=False)
        return found, account


def _points(account: Account) -> list[int]:
    """Return the indexes of the calls that charts show."""
    count = len(account.records)
    if count <= _MOST_POINTS:
        return list(range(count))
    step = count / (_MOST_POINTS // 2)
    even = {round(at * step) for at in range(_MOST_POINTS // 2)} | {count - 1}
    events = zip(account.events, turns_before_events(account), strict=True)
    around = [turn + off for event, turn in events if isinstance(event, Compaction) for off in (-1, 0)]
    return sorted({each for each in (*even, *around[-_MOST_POINTS // 2 :]) if 0 <= each < count})


def _calls(account: Account, shown: Sequence[int]) -> dict[str, list[Any]]:
    """Return the calls as columns; sums run over all calls, also those that are not shown."""
    records = account.records
    events = zip(account.events, turns_before_events(account), strict=True)
    summaries = [0] * (len(records) + 1)
    for event, turn in events:
        if isinstance(event, Compaction):
            summaries[turn] += event.cost or 0
    paid = list(accumulate((record.cost or 0) + summaries[at] for at, record in enumerate(records)))
    untouched = list(accumulate(record.untouched or record.cost or 0 for record in records))
    usages = [record.usage or record.expected for record in records]
    return {
        "index": [at + 1 for at in shown],
        "at": [records[at].at for at in shown],
        "prompt": [None if (usage := usages[at]) is None else usage.prompt for at in shown],
        "paid": [paid[at] for at in shown],
        "untouched": [untouched[at] for at in shown],
    }


def _cache(records: Sequence[TurnRecord], listed: Listed) -> dict[str, object]:
    """Return until when what the last call left in the provider's cache should live, as far as that is known."""
    last = records[-1] if records else None
    rules = load_registry().find(listed.model).cache
    if last is None or isinstance(rules.matching, Uncached) or last.model != listed.model:
        return {"until": None, "lifetime": None, "is_empty": False}
    usage = last.usage
    only_marked = isinstance(rules.matching, MarkedPrefixes) and rules.matching.unmarked == "uncached"
    if only_marked and usage is not None and usage.prompt == usage.uncached:
        return {"until": None, "lifetime": None, "is_empty": True}
    is_long = usage is not None and usage.cache_write_long > 0
    lifetime = rules.ttl_long if is_long and rules.ttl_long else rules.ttl
    until = None if lifetime is None else last.at + lifetime
    return {"until": until, "lifetime": lifetime, "is_empty": False}
