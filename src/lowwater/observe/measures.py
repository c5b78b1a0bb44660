"""The metrics of events and turns, for OpenTelemetry and Prometheus alike: numbers and names only, never contents.

The session is not a label: a metric keeps a series for each value of its labels, and the number of sessions is unbounded.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from lowwater.core.events import Compaction, Event, Skip, TurnRecord

Label = Literal["model", "mode", "reason"]

OTHER = "other"
MOST_VALUES = 100
"""Most values that a label may have: names of models can come from anybody who sends requests."""
_NANO = 1_000_000_000
_TOKENS = tuple(4.0**power for power in range(4, 13))
_SECONDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0)
_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
_USAGE = "gen_ai.client.inference.usage"


class Measure(Struct, frozen=True, kw_only=True):
    """A metric: a counter, or a histogram if it has `bounds`."""

    name: str
    """Words from the general to the specific, separated by dots."""
    unit: str
    """`token`, `USD`, `s`, `1` for a ratio, or what is counted."""
    description: str
    labels: tuple[Label, ...]
    bounds: tuple[float, ...] = ()
    gen_ai: str = ""
    """Its name in OpenTelemetry's GenAI conventions; empty if they have none."""


class Measured(Struct, frozen=True, kw_only=True):
    """One value of a measure, with label values in the order of `Measure.labels`."""

    measure: Measure
    value: float
    labels: tuple[str, ...]


class Labels:
    """Bounds the values of labels: after `MOST_VALUES` different ones, every new one becomes `other`."""

    def __init__(self) -> None:
        self._seen: dict[Label, set[str]] = {}

    def bounded(self, measured: Measured) -> dict[Label, str]:
        """Return the labels of a value by name, bounded."""
        names = measured.measure.labels
        return {name: self._of(name, value) for name, value in zip(names, measured.labels, strict=True)}

    def _of(self, name: Label, value: str) -> str:
        seen = self._seen.setdefault(name, set())
        if value not in seen and len(seen) >= MOST_VALUES:
            return OTHER
        seen.add(value)
        return value


def _measure(
    name: str, unit: str, description: str, *labels: Label, bounds: tuple[float, ...] = (), gen_ai: str = ""
) -> Measure:
    return Measure(name=name, unit=unit, description=description, labels=labels, bounds=bounds, gen_ai=gen_ai)


COMPACTIONS = _measure(
    "compactions", "compaction", "Compactions that were committed.", "model", "mode", "reason"
)
RECLAIMED = _measure(
    "compaction.reclaimed", "token", "What a compaction removed.", "model", "mode", bounds=_TOKENS
)
DISTURBED = _measure(
    "compaction.disturbed", "token", "What stands behind the first change of a compaction.", "model", "mode"
)
DURATION = _measure(
    "compaction.duration", "s", "How long a compaction took.", "model", "mode", bounds=_SECONDS
)
SUMMARY_TOKENS = _measure("summary", "token", "Summaries put in place.", "model")
SUMMARY_COST = _measure("summary.cost", "USD", "What summaries cost.", "model")
SUMMARY_SCORE = _measure(
    "summary.score",
    "1",
    "The score of a summary as written: what it kept of the critical references, less for what it invents.",
    "model",
    bounds=_SHARES,
)
REJECTED = _measure("summaries.rejected", "summary", "Summaries that were not accepted as written.", "reason")
SKIPS = _measure("skips", "skip", "Decisions to leave a prompt as it is.", "reason")
TURNS = _measure("turns", "turn", "Turns that were recorded.", "model")
INPUT = _measure(
    "input", "token", "Prompts, what was cached included.", "model", gen_ai=f"{_USAGE}.input_tokens"
)
CACHE_READ = _measure(
    "input.cache_read",
    "token",
    "What prompts read from the cache.",
    "model",
    gen_ai=f"{_USAGE}.cache_read.input_tokens",
)
CACHE_WRITE = _measure(
    "input.cache_write",
    "token",
    "What prompts wrote to the cache.",
    "model",
    gen_ai=f"{_USAGE}.cache_write.input_tokens",
)
OUTPUT = _measure("output", "token", "What models generated.", "model", gen_ai=f"{_USAGE}.output_tokens")
REMOVED = _measure("removed", "token", "What compactions kept out of prompts, at every turn.", "model")
COST = _measure("cost", "USD", "What turns cost, summaries not included.", "model")
UNTOUCHED = _measure(
    "untouched.cost", "USD", "What turns would have cost had nothing ever been compacted.", "model"
)
SHADOW_COST = _measure(
    "shadow.cost",
    "USD",
    "What turns would have cost in shadow mode had they been compacted, summaries not included.",
    "model",
)
UNPRICED = _measure("turns.unpriced", "turn", "Turns whose cost is not known and not counted.", "model")
THINKING_OFF = _measure(
    "turns.thinking_disabled",
    "turn",
    "Turns whose thinking was disabled, because the provider would have refused it behind a compaction.",
    "model",
)
RECALL_OFFERED = _measure("recall.offered", "turn", "Turns in which the model was offered recall.", "model")
RECALLS = _measure("recalls", "recall", "Calls of recall tools: searches and expansions.", "model", "mode")
RECALLS_FOUND = _measure("recalls.found", "recall", "Calls of recall tools that gave something.", "model")
RECALLS_NAMED = _measure(
    "recalls.named", "recall", "Calls of recall tools of which the model then used a name.", "model"
)
UNPRICED_COMPACTIONS = _measure(
    "compactions.unpriced",
    "compaction",
    "Compactions whose summaries' cost is not known and not counted.",
    "model",
)

MEASURES = (
    COMPACTIONS, RECLAIMED, DISTURBED, DURATION, SUMMARY_TOKENS, SUMMARY_COST, SUMMARY_SCORE, REJECTED, SKIPS, TURNS, INPUT,
    CACHE_READ, CACHE_WRITE, OUTPUT, REMOVED, COST, UNTOUCHED, UNPRICED, UNPRICED_COMPACTIONS,
    THINKING_OFF, RECALL_OFFERED, RECALLS, RECALLS_FOUND, RECALLS_NAMED, SHADOW_COST,
)  # fmt: skip


def measured_event(event: Event) -> Iterator[Measured]:
    """Yield the values of an event."""
    for rejected in event.rejected:
        yield _one(REJECTED, 1, rejected.code)
    match event:
        case Compaction():
            yield from _measured_compaction(event)
        case Skip():
            yield _one(SKIPS, 1, event.because.code)


def measured_turn(record: TurnRecord) -> Iterator[Measured]:
    """Yield the values of a turn; unknown costs are counted as unpriced, never as zero."""
    model, usage = record.model, record.usage
    yield _one(TURNS, 1, model)
    yield _one(REMOVED, record.removed, model)
    if record.thinking_off:
        yield _one(THINKING_OFF, 1, model)
    if (recall := record.recall) is not None:
        yield _one(RECALL_OFFERED, 1, model)
        yield _one(RECALLS, recall.searches, model, "search")
        yield _one(RECALLS, recall.expands, model, "expand")
        yield _one(RECALLS_FOUND, recall.found, model)
        yield _one(RECALLS_NAMED, recall.named, model)
    if usage is not None:
        yield _one(INPUT, usage.prompt, model)
        yield _one(CACHE_READ, usage.cache_read, model)
        yield _one(CACHE_WRITE, usage.cache_write + usage.cache_write_long, model)
        yield _one(OUTPUT, usage.output, model)
    if record.cost is None or record.untouched is None:
        yield _one(UNPRICED, 1, model)
    elif record.estimated is not None:
        yield _one(COST, record.untouched / _NANO, model)
        yield _one(SHADOW_COST, record.cost / _NANO, model)
    else:
        yield _one(COST, record.cost / _NANO, model)
        yield _one(UNTOUCHED, record.untouched / _NANO, model)


def _measured_compaction(event: Compaction) -> Iterator[Measured]:
    model, mode = event.model, event.mode
    yield _one(COMPACTIONS, 1, model, mode, event.because.code)
    yield _one(RECLAIMED, event.reclaimed, model, mode)
    yield _one(DISTURBED, event.disturbed, model, mode)
    yield _one(DURATION, event.seconds, model, mode)
    yield _one(SUMMARY_TOKENS, event.summary_tokens, model)
    if event.score is not None:
        yield _one(SUMMARY_SCORE, event.score, model)
    if event.cost is None:
        yield _one(UNPRICED_COMPACTIONS, 1, model)
    else:
        yield _one(SUMMARY_COST, event.cost / _NANO, model)


def _one(measure: Measure, value: float, *labels: str) -> Measured:
    return Measured(measure=measure, value=value, labels=labels)
