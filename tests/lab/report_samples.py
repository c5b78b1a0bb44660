"""Reports of audits and replays made of few numbers, for their pages, and readers of what a page holds."""

from html.parser import HTMLParser

from lowwater.lab.audit.files import AuditedFile
from lowwater.lab.audit.findings import (
    AuditedSession,
    AuditFigures,
    AuditRow,
    Cause,
    Foreseen,
    Missed,
    Native,
    Saving,
    Spending,
)
from lowwater.lab.audit.report import AuditReport, report_of
from lowwater.lab.pages.document import utc_day as day_of
from lowwater.lab.pages.replay import Timeline, Timelines
from lowwater.lab.replay.course_replay import (
    Bounds,
    CadenceSums,
    CourseEvent,
    OutcomeKind,
    PolicyOutcome,
    Series,
    SessionResult,
    UsesFound,
)
from lowwater.lab.replay.report import ReplayReport, ReportBuilder

DOLLAR = 1_000_000_000
START = 1_767_600_000.0
DAY = 86_400.0
MADE = 1_794_744_000.0
"""2026-11-15 12:00 UTC."""
HOSTILE = "</script><img src=x onerror=alert(1)>&amp;$title<!--"
MODELS = ("claude-opus-4-5", "claude-sonnet-4-5", "a model nobody knows")
POLICIES = ("rent-or-buy", "never", "threshold-50", "claude-code", "optimum")


def audited(number: int, *, name: str = "", day: int = 0) -> AuditedSession:
    """Return a session that cost so many dollars; every third is of a model without prices."""
    model = MODELS[number % 3]
    is_priced = number % 3 < 2
    cost = number * DOLLAR if is_priced else None
    figures = AuditFigures(
        calls=10 + number,
        uncached=100,
        cache_read=90_000 * number,
        cache_write=9_000 * number,
        output=500 * number,
        cost=cost,
        unpriced=0 if is_priced else 10 + number,
    )
    missed: dict[Cause, Missed] = {
        "first": Missed(misses=1, tokens=1_000, cost=DOLLAR // 100 if is_priced else None),
        "expired": Missed(misses=2, tokens=5_000 * number, cost=number * DOLLAR // 10 if is_priced else None),
    }
    spending = Spending(reads=number * DOLLAR // 2, writes=number * DOLLAR // 4, output=number * DOLLAR // 4)
    at = START + DAY * day
    return AuditedSession(
        id=name or f"session-{number:04}",
        agent="claude-code",
        path=f"/recorded/{number}.jsonl",
        model=model,
        started_at=at,
        ended_at=at + 3_600,
        rows=(
            AuditRow(
                day=day_of(at),
                model=model,
                figures=figures,
                spending=spending if is_priced else Spending(),
                missed=missed,
            ),
        ),
        peak_prompt=50_000 + number,
        natives=(
            Native(
                at=at + 60,
                trigger="auto",
                call=4,
                before=150_000,
                after=50_000,
                served=6,
                summary_cost=DOLLAR // 10,
                rewrite_cost=DOLLAR // 10,
                saved=DOLLAR,
                earlier=3,
            ),
        )
        if number % 4 == 1
        else (),
        foreseen=Foreseen(foreseen=101, recorded=100) if is_priced else None,
        saving=Saving(
            calls=10,
            modelled=cost or 0,
            never=-DOLLAR // 5,
            rent_or_buy=number * DOLLAR // 10,
            actions=2,
        )
        if is_priced
        else None,
    )


def audit_of(count: int = 30, *, names: dict[int, str] | None = None) -> AuditReport:
    """Return the report of so many sessions, one a day."""
    sessions = tuple(
        audited(number, name=(names or {}).get(number, ""), day=number) for number in range(1, count + 1)
    )
    return report_of([AuditedFile(path="/recorded", sessions=sessions, repeated=2)])


def played(
    policy: str, calls: int, *, factor: float, arm: str, kind: OutcomeKind = "course", fits: bool = True
) -> PolicyOutcome:
    """Return what a policy comes to that costs a factor of the optimum, a hundredth of a dollar a call."""
    total = round(factor * calls * DOLLAR / 100)
    prompt = tuple(20_000 + 300 * (call % 50) for call in range(calls))
    each = (*[total // calls] * (calls - 1), total - total // calls * (calls - 1))
    return PolicyOutcome(
        policy=policy,
        kind=kind,
        arm=arm,
        is_bounded=kind == "course" and policy != "claude-code",
        fits=fits,
        cost=total,
        recall=UsesFound(uses=100, in_view=80, one_recall=15 if kind == "full" else None),
        cadence=CadenceSums(
            turns=calls, events=calls // 50, summary_calls=calls // 50, summaries=calls // 50
        ),
        mean_view=sum(prompt) / calls,
        peak_view=max(prompt),
        series=Series(
            prompt=prompt,
            read=tuple(size - 1_000 for size in prompt),
            written=(1_000,) * calls,
            elided=tuple(10 * call for call in range(calls)),
            summarised=tuple(50 * call for call in range(calls)),
            cost=each,
            rework=(0,) * calls,
        ),
        events=tuple(
            CourseEvent(
                turn=turn, mode="summary" if turn % 100 == 50 else "prune", before=34_700, after=20_000
            )
            for turn in range(50, calls, 50)
        ),
    )


def session_result(number: int, *, calls: int = 120, name: str = "", fits: bool = True) -> SessionResult:
    """Return a session under a few policies and two arms; the later, the more compaction would have saved."""
    arms = ("neutral", "pessimistic")
    factors = {"rent-or-buy": 1.05, "never": 1.2 + number / 100, "threshold-50": 1.3, "claude-code": 1.4}
    outcomes = [
        played(policy, calls, factor=factors.get(policy, 1.0), arm=arm, fits=fits or policy != "never")
        for arm in arms
        for policy in POLICIES
    ]
    outcomes.append(played("rent-or-buy", calls, factor=1.1, arm="neutral", kind="full"))
    least = round(calls * DOLLAR / 100)
    return SessionResult(
        id=name or f"session-{number:04}",
        agent="claude-code",
        path=f"/recorded/{number}.jsonl",
        key=f"{number}",
        model="claude-opus-4-5",
        calls=calls,
        fixed=20_000,
        bounds=tuple(
            Bounds(arm=arm, optimum=least, relaxed=least // 2, never=round(factors["never"] * least))
            for arm in arms
        ),
        outcomes=tuple(outcomes),
    )


def replay_of(*results: SessionResult) -> tuple[ReplayReport, tuple[Timeline, ...]]:
    """Return the report of results, and the timelines that its page would draw."""
    gathering, timelines = ReportBuilder(), Timelines()
    for result in results:
        gathering.add(result)
        timelines.add(result)
    return gathering.report(POLICIES), timelines.chosen()


class PageReader(HTMLParser):
    """Reads a page and complains about every element that is not closed where it should be."""

    VOID = frozenset({"meta", "link", "br", "img", "input", "hr"})

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.feed(page)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open:
            name = self.open[-1]
            if name == "script":
                name = f"script {self.elements[-1][1].get('type', '')}".strip()
            self.texts[name] = self.texts.get(name, "") + data

    @property
    def data(self) -> str:
        """The JSON that the scripts read."""
        return self.texts["script application/json"]
