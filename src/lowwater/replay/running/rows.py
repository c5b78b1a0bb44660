"""The calls of a session that the engine played, put together to an outcome."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from lowwater.core.accounts.cadence import cadence
from lowwater.core.api_calls import Usage
from lowwater.core.stored import Account
from lowwater.replay.references.outcome import Outcome as Found
from lowwater.replay.running.results import Cadence, Event, Outcome, Recalled, Series


class Row(Struct, frozen=True, kw_only=True):
    """One call; money in nano-dollars, sizes in the model's tokens."""

    usage: Usage
    cost: int
    """With the summaries before it."""
    asked: int
    """The part of it that went into those."""
    rework: int
    elided: int
    """What placeholders keep out of the prompt."""
    removed: int
    """What compactions keep out of it, placeholders included."""


class Rows(Struct, kw_only=True):
    """What is written down while a session is played."""

    calls: list[Row] = []
    events: list[Event] = []
    found: list[Found] = []

    def outcome(self, policy: str, account: Account, *, context_length: int) -> Outcome:
        """Return what they come to, once the session is over."""
        calls, prompts = self.calls, [row.usage.prompt for row in self.calls]
        return Outcome(
            policy=policy,
            kind="full",
            arm="",
            is_bounded=False,
            fits=max(prompts) <= context_length,
            cost=sum(row.cost for row in calls),
            summaries=sum(row.asked for row in calls),
            rework=sum(row.rework for row in calls),
            recall=_recalled(self.found),
            cadence=_cadence(account),
            mean_view=sum(prompts) / len(prompts),
            peak_view=max(prompts),
            series=_series(calls),
            events=tuple(self.events),
        )


def _recalled(found: Sequence[Found]) -> Recalled:
    places = Counter(each.place for each in found)
    causes = Counter(str(each.because) for each in found if each.place == "gone")
    return Recalled(
        uses=len(found),
        in_view=places["in_view"],
        one_recall=places["one_recall"],
        causes=dict(sorted(causes.items())),
    )


def _cadence(account: Account) -> Cadence:
    told = cadence([account])
    return Cadence(
        turns=told.turns,
        events=told.events,
        intervals=round((told.turns_between_events or 0) * max(0, told.events - 1)),
        summary_calls=told.summary_calls,
        reclaimed=told.reclaimed,
        prompt_and_summary_tokens=told.prompt_and_summary_tokens,
        earliest_changed=told.earliest_changed,
        prunes=told.prunes,
        summaries=told.summaries,
    )


def _series(rows: Sequence[Row]) -> Series:
    return Series(
        prompt=tuple(row.usage.prompt for row in rows),
        read=tuple(row.usage.cache_read for row in rows),
        written=tuple(row.usage.prompt - row.usage.cache_read for row in rows),
        elided=tuple(row.elided for row in rows),
        summarised=tuple(row.removed - row.elided for row in rows),
        cost=tuple(row.cost for row in rows),
        rework=tuple(row.rework for row in rows),
    )
