"""Events and a turn to report, with a secret in everything that must stay."""

from lowwater.core.api_calls import Usage
from lowwater.core.decisions import Reason
from lowwater.core.events import Compaction, Phase, Rejected, Skip, TurnRecord

SECRET = "sk-secret"
REJECTED = Rejected(
    by="haiku", code="references_missing", missing=2, first_missing=(SECRET, "b.py"), error=f"no {SECRET}"
)
EVENT = Compaction(
    at=1_000.5,
    model="claude-opus-5-5",
    mode="summary",
    mechanisms=("elide", "summarize"),
    because=Reason(code="rent-paid", facts={"prompt": 100_000, "told": SECRET}),
    before=100_000,
    after=30_000,
    items_before=200,
    items_after=40,
    first_changed=3,
    disturbed=28_000,
    summary_tokens=4_000,
    summarizer="haiku",
    score=0.75,
    seconds=0.25,
    phases=(Phase(mechanism="elide", removed=20_000),),
    number=2,
    cost=20_000_000,
    price=30_000_000,
    saves=10_000_000,
    rejected=(REJECTED,),
)
SKIP = Skip(
    at=1.0, because=Reason(code="cooling-down", facts={"told": SECRET}), prompt=10, rejected=(REJECTED,)
)
TURN = TurnRecord(
    at=2.0,
    model="claude-opus-5-5",
    usage=Usage(uncached=10, cache_read=900, cache_write=60, cache_write_long=30, output=50),
    cost=1_500_000_000,
    untouched=2_500_000_000,
    removed=70_000,
    decision="rent-paid",
)
UNPRICED = TurnRecord(at=3.0, model="mystery-2", usage=Usage(uncached=5), removed=7)
