"""Where what later answers use is when they need it: in the view, one recall away, or gone.

    .venv/bin/python -m bench.reach [MODEL] [--sample]

Every recorded session with at least 60 calls is played through the library under rent-or-buy, with recall offered and a
SQLite file as its store; before each call the uses of its answer are looked for (`lowwater.lab.references`). The halves are
those of `bench.recall`: the querier was chosen on one, the figures that count are those of the other. The command ends
with status 1 if less than 98 % of the uses are in view or one recall away.

The last table is what `core/costs/losses.py` has from here: of the uses whose result was edited or summarised when they came,
the share that is not in view.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Raw
from msgspec.structs import replace

from bench.recall import half_of
from bench.transcripts import ABSENT, CANONICAL, Session, sessions
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.formats.codec import as_completion
from lowwater.core.ledger import Ledger
from lowwater.core.messages import texts_of
from lowwater.core.stored import Hit
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.view import Edited, Original
from lowwater.lab.references.reachability import RecallScore, Scorer, UseOutcome, recall_score
from lowwater.lab.references.uses import uses_of
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.settings import OutputSettings, Settings
from lowwater.stores.addresses import SQLITE, open_store
from lowwater.testing.fakes import ScriptedClock

MODEL, POLICY = "claude-opus-4-5", "rent-or-buy"
LEAST_CALLS, SAMPLE = 60, 10
WANTED = 0.98
TOKENIZER = tokenizer_for("o200k")


class StandIn:
    """Writes what the extractive summarizer would, and counts as a model."""

    def __init__(self, model: str) -> None:
        self.model = model

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return the extractive summary."""
        return Written(text=extract(request, TOKENIZER), by="stand-in")


def play(recorded: Session, model: str, path: Path, replaced: Counter[str]) -> Iterator[UseOutcome]:
    """Yield where every use of a session is, in order; count those of replaced results in `replaced`."""
    lines = [line for line in recorded.messages if line.kind != "compact_summary"]
    messages = [line.message for line in lines]
    scorer = Scorer(uses_of(messages), messages, tokenizer=TOKENIZER)
    clock, store = ScriptedClock(), open_store(f"{SQLITE}{path}")
    session = Lowwater(
        store=store,
        model=model,
        policy=POLICY,
        clock=clock,
        summarizer=StandIn(model),
        settings=Settings(output=OutputSettings(quiet=True)),
    ).session("bench")

    def search(words: str, limit: int) -> Sequence[Hit]:
        return store.search(words, session="bench", limit=limit)

    new: list[Raw] = []
    for line in lines:
        assert line.message.wire is not None
        raw = Raw(line.message.wire.raw)
        if line.message.role != "assistant" or not new:
            new.append(raw)
            continue
        clock.advance(max(0.0, (line.at or 0.0) - clock.now()))
        session.append(new)
        session.prepare(offers_recall=True)
        ledger = internals(session).ledger
        found = scorer.at(ledger, search)
        count_replaced(found, ledger, replaced)
        yield from found
        output = TOKENIZER.count("".join(texts_of(line.message)))
        session.record(as_completion(raw, replace(internals(session).expected_usage, output=output), model))
        new = []
    store.close()


def count_replaced(found: Sequence[UseOutcome], ledger: Ledger, replaced: Counter[str]) -> None:
    """Add the uses whose result is edited or behind a summary, and how many of them are not in view."""
    shown = {item.number: item for item in ledger.view.items if isinstance(item, Original | Edited)}
    for each in found:
        item = shown.get(each.use.origin.number)
        if not isinstance(item, Original):
            way = "summary" if item is None else "edit"
            replaced[way] += 1
            replaced[f"{way}, lost"] += each.place != "in_view"


def measure(model: str, step: int, replaced: Counter[str]) -> dict[str, RecallScore]:
    """Play every `step`-th long session and return where its uses are, by half."""
    totals = {"tune": RecallScore(), "report": RecallScore()}
    chosen = [session for session in sessions() if _calls(session) >= LEAST_CALLS][::step]
    with TemporaryDirectory() as folder:
        for done, session in enumerate(chosen, start=1):
            found = recall_score(play(session, model, Path(folder) / f"{done}.db", replaced))
            half = half_of(session.id)
            totals[half] = totals[half].plus(found)
            print(f"\r{done} of {len(chosen)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return totals


def _calls(session: Session) -> int:
    return sum(line.message.role == "assistant" for line in session.messages)


def table(totals: dict[str, RecallScore]) -> str:
    """Return the shares by half and kind, and how the others are reached or why not, as a Markdown table."""
    lines = [
        "| sessions | uses | number | in view | left the view | one recall away |",
        "|---|---|---|---|---|---|",
    ]
    for half, total in totals.items():
        lines.append(_row(half, "all", total))
        for kind, places in sorted(total.by_kind.items()):
            of_kind = RecallScore(
                in_view=places.get("in_view", 0),
                one_recall=places.get("one_recall", 0),
                gone=places.get("gone", 0),
            )
            lines.append(_row(half, kind, of_kind))
    for half, total in totals.items():
        told = ", ".join(f"{why} {count}" for why, count in {**total.ways, **total.causes}.items())
        lines.append(f"\n{half}: {told}.")
    return "\n".join(lines)


def _row(half: str, what: str, recall: RecallScore) -> str:
    left = recall.one_recall + recall.gone
    return (
        f"| {half} | {what} | {recall.uses:,} | {recall.share_in_view:.1%} | {left:,} "
        f"| {recall.share_one_recall:.1%} |"
    )


def main() -> int:
    """Print the table; fail if more than wanted is gone."""
    if not CANONICAL.exists():
        print(ABSENT)
        return 0
    model = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), MODEL)
    replaced: Counter[str] = Counter()
    totals = measure(model, SAMPLE if "--sample" in sys.argv else 1, replaced)
    print(table(totals))
    print("\n| replaced by | later uses | not in view |\n|---|---|---|")
    for way in ("edit", "summary"):
        print(f"| {way} | {replaced[way]:,} | {replaced[f'{way}, lost'] / max(1, replaced[way]):.1%} |")
    report = totals["report"]
    return 0 if report.in_view + report.one_recall >= WANTED * report.uses else 1


if __name__ == "__main__":
    sys.exit(main())
