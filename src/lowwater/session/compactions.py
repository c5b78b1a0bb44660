"""Each compaction of a session with what became of it, as history and dashboard show it."""

from collections.abc import Iterator

from msgspec import Struct

from lowwater.core.accounts.cadence import turns_before_events
from lowwater.core.accounts.payback import Payback, paybacks
from lowwater.core.events import Compaction
from lowwater.core.models.registry import Registry
from lowwater.core.policies.explanations import reason_sentence
from lowwater.core.stored import Account

_AS_THEY_ARE = (
    "number",
    "at",
    "model",
    "mode",
    "before",
    "reclaimed",
    "phases",
    "summary_tokens",
    "summary_prompts",
    "summarizer",
    "score",
    "repaired_score",
)


class CompactionLine(Struct, frozen=True, kw_only=True):
    """One compaction with its payback."""

    event: Compaction
    turn: int
    """The number of the turn before which it was made, from 1."""
    payback: Payback | None
    """None if there is nothing to pay back: a result truncated on arrival never was in a prompt."""


def compaction_lines(account: Account, registry: Registry) -> Iterator[CompactionLine]:
    """Yield the compactions of a session, oldest first."""
    bought = {number: each for each in paybacks(account, registry) for number in each.numbers}
    for event, turns in zip(account.events, turns_before_events(account), strict=True):
        if isinstance(event, Compaction):
            payback = bought.get(event.number) if event.mode != "shorten" else None
            yield CompactionLine(event=event, turn=turns + 1, payback=payback)


def compaction_fields(told: CompactionLine) -> dict[str, object]:
    """Return a compaction as JSON values; money is in nano-dollars, None if it is not known."""
    event, payback = told.event, told.payback
    return {
        **{name: getattr(event, name) for name in _AS_THEY_ARE},
        "turn": told.turn,
        "because": {
            "code": event.because.code,
            "facts": event.because.facts,
            "said": reason_sentence(event.because),
        },
        "after": max(0, event.after),
        "messages_before": event.items_before,
        "messages_after": event.items_after,
        "rejected": [
            {
                "by": each.by,
                "code": each.code,
                "missing": each.missing,
                "score": each.score,
                "said": each.error,
            }
            for each in event.rejected
        ],
        "summary_cost": event.cost,
        "predicted_price": event.price,
        "predicted_saves": event.saves,
        "payback": payback,
    }
