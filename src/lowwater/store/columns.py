"""What a person can ask a database about turns and events in plain SQL: the same columns in every one, without contents."""

from lowwater.core.events import Compaction, Event, Skip, TurnRecord

Value = int | float | str | None

TURN_COLUMNS = (
    *("at", "model", "uncached", "cache_read", "cache_write", "cache_write_long", "output"),
    *("cost", "untouched", "removed", "decision"),
)
EVENT_COLUMNS = (
    *("at", "kind", "reason", "model", "mode", "mechanisms", "number", "tokens_before", "tokens_after"),
    *("reclaimed", "ratio", "items_before", "items_after", "first_changed", "disturbed", "summary_tokens"),
    *("summarizer", "score", "seconds", "cost", "price", "saves", "payback", "rejected"),
)


def turn_values(record: TurnRecord) -> tuple[Value, ...]:
    """Return a record's columns; the usage is all NULL where the provider reported none."""
    used = record.usage
    usage: tuple[Value, ...] = (
        (None,) * 5
        if used is None
        else (used.uncached, used.cache_read, used.cache_write, used.cache_write_long, used.output)
    )
    rest = (record.cost, record.untouched, record.removed, record.decision)
    return (record.at, record.model, *usage, *rest)


def event_values(event: Event) -> tuple[Value, ...]:
    """Return an event's columns; of a skip, the prompt that was left as it is stands before and after."""
    match event:
        case Compaction():
            return (
                *(event.at, "compaction", event.because.code, event.model, event.mode),
                *(",".join(event.mechanisms), event.number, event.before, event.after),
                *(event.reclaimed, event.ratio, event.items_before, event.items_after),
                *(event.first_changed, event.disturbed, event.summary_tokens, event.summarizer),
                *(event.score, event.seconds, event.cost, event.price, event.saves, event.payback),
                len(event.rejected),
            )
        case Skip():
            told: dict[str, Value] = {
                "at": event.at,
                "kind": "skip",
                "reason": event.because.code,
                "tokens_before": event.prompt,
                "tokens_after": event.prompt,
                "reclaimed": 0,
                "rejected": len(event.rejected),
            }
            return tuple(told.get(column) for column in EVENT_COLUMNS)
