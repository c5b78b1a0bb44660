"""Accounts made by hand and by chance, and the models they are billed for."""

from hypothesis import strategies as st

from lowwater.core.api_calls import Usage
from lowwater.core.decisions import Reason
from lowwater.core.events import Compaction, Mode, Phase, Rejected, Skip, TurnRecord
from lowwater.core.models.model import CacheRules, MarkedPrefixes, Model, Prices
from lowwater.core.models.registry import Registry
from lowwater.core.stored import About, Account, Listed

TTL = 300
MARKED = CacheRules(matching=MarkedPrefixes(max_marks=4), ttl=TTL, ttl_long=3_600)
PRICES = Prices(input=1_000_000, cache_read=100_000, cache_write=1_250_000, output=5_000_000)
"""A token costs 1,000 nano-dollars plain, 100 read, 1,250 written, 5,000 as output."""
MODEL = Model(
    name="acme-1", provider="acme", family="acme", context_length=200_000, cache=MARKED, prices=PRICES
)
UNPRICED = Model(name="mystery-2", provider="acme", family="acme", context_length=200_000, cache=MARKED)
REGISTRY = Registry((MODEL, UNPRICED))


def turn(
    at: float,
    *,
    read: int = 0,
    write: int = 0,
    uncached: int = 0,
    output: int = 0,
    removed: int = 0,
    model: str = MODEL.name,
    cost: int | None = 0,
    untouched: int | None = 0,
) -> TurnRecord:
    usage = Usage(cache_read=read, cache_write=write, uncached=uncached, output=output)
    return TurnRecord(at=at, model=model, usage=usage, cost=cost, untouched=untouched, removed=removed)


def compaction(
    at: float,
    *,
    before: int = 100,
    after: int = 40,
    mode: Mode = "prune",
    first_changed: int = 3,
    summary_tokens: int = 0,
    summarizer: str = "",
    score: float | None = None,
    cost: int | None = 0,
    price: int | None = None,
    saves: int | None = None,
    number: int = 1,
    rejected: tuple[Rejected, ...] = (),
    phases: tuple[Phase, ...] = (),
    model: str = MODEL.name,
) -> Compaction:
    return Compaction(
        at=at,
        model=model,
        mode=mode,
        mechanisms=("elide",),
        because=Reason(code="rent-paid"),
        before=before,
        after=after,
        items_before=20,
        items_after=10,
        first_changed=first_changed,
        disturbed=0,
        summary_tokens=summary_tokens,
        summarizer=summarizer,
        score=score,
        cost=cost,
        price=price,
        saves=saves,
        number=number,
        rejected=rejected,
        phases=phases,
    )


def skip(at: float, code: str, *rejected: Rejected) -> Skip:
    return Skip(at=at, because=Reason(code=code), prompt=10, rejected=rejected)


def refused(by: str, *, said: str = "") -> Rejected:
    return Rejected(by=by, code="failed", missing=0, first_missing=("sk-secret",), error=said)


def account(
    *happened: TurnRecord | Compaction | Skip,
    name: str = "s",
    ended_at: float | None = None,
    because: str = "",
    parent: str = "",
) -> Account:
    """Return the account of a session in which these happened, in this order."""
    records = tuple(each for each in happened if isinstance(each, TurnRecord))
    events = tuple(each for each in happened if not isinstance(each, TurnRecord))
    listed = Listed(
        name=name,
        version=1,
        entries=0,
        messages=0,
        turns=len(records),
        compactions=sum(isinstance(event, Compaction) for event in events),
        model=MODEL.name,
        opened_at=0.0,
        changed_at=0.0,
        about=About(ended_at=ended_at, ended_because=because, parent=parent),
    )
    return Account(session=listed, records=records, events=events)


_TOKENS = st.integers(0, 200_000)
_MONEY = st.none() | st.integers(0, 10**10)
_MODELS = st.sampled_from(
    ["acme-1", "vertex/acme-1", "acme-1-2026-01-15", "mystery-2", "other-7", "other-7-20260101"]
)
_REJECTED = st.lists(
    st.builds(
        refused, st.sampled_from(["acme-1", "extractive", "mine"]), said=st.sampled_from(["", "timed out"])
    ),
    max_size=2,
).map(tuple)
_PHASES = st.lists(
    st.builds(Phase, mechanism=st.sampled_from(["elide", "dedupe", "leaf", "condense"]), removed=_TOKENS),
    max_size=3,
).map(tuple)
_USAGES = st.builds(
    Usage, uncached=_TOKENS, cache_read=_TOKENS, cache_write=_TOKENS, cache_write_long=_TOKENS, output=_TOKENS
)
_TURNS = st.builds(
    TurnRecord,
    at=st.integers(0, 50).map(float),
    model=_MODELS,
    usage=st.none() | _USAGES,
    expected=st.none() | _USAGES,
    cost=_MONEY,
    untouched=_MONEY,
    removed=_TOKENS,
)
_COMPACTIONS = st.builds(
    compaction,
    st.integers(0, 50).map(float),
    before=st.integers(100_000, 200_000),
    after=st.integers(1, 99_999),
    mode=st.sampled_from(["prune", "summary", "condense", "shorten"]),
    first_changed=st.integers(0, 9),
    summary_tokens=st.integers(0, 5_000),
    summarizer=st.sampled_from(["", "acme-1", "extractive", "mine"]),
    score=st.none() | st.floats(0, 1),
    cost=_MONEY,
    price=_MONEY,
    saves=_MONEY,
    model=_MODELS,
    rejected=_REJECTED,
    phases=_PHASES,
)
_SKIPS = st.builds(skip, st.integers(0, 50).map(float), st.sampled_from(["cooling-down", "wall", "undone"]))


def happenings() -> st.SearchStrategy[list[TurnRecord | Compaction | Skip]]:
    """Return a strategy for what happens in a session, in order of time."""
    every = st.lists(_TURNS | _TURNS | _COMPACTIONS | _SKIPS, max_size=12)
    return every.map(lambda happened: sorted(happened, key=lambda each: each.at))


@st.composite
def accounts(draw: st.DrawFn) -> list[Account]:
    """Draw the accounts of a few sessions."""
    return [
        account(*happened, name=f"s{at}", ended_at=draw(st.none() | st.just(99.0)))
        for at, happened in enumerate(draw(st.lists(happenings(), max_size=3)))
    ]
