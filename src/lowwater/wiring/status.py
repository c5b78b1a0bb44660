"""A session in numbers, for people and programs."""

from msgspec import Struct

from lowwater.assemble.marks import Marks
from lowwater.engine.state import State, Totals
from lowwater.values.limits import Limits


class Status(Struct, frozen=True, kw_only=True):
    """What there is to know about a session between two calls; sizes are the model's tokens."""

    session: str
    model: str
    policy: str
    prompt: int
    threshold: int
    wall: int
    context: int
    messages: int
    """In the view."""
    history: int
    """Messages ever appended."""
    compaction_count: int
    last_mode: str
    caching: str
    totals: Totals

    def __str__(self) -> str:
        percent = 100 * self.prompt / self.threshold if self.threshold else 0
        used = self.totals
        lines = [
            f"{self.session} · {self.model} · {self.policy}",
            f"prompt {self.prompt:,} of {self.threshold:,} tokens to the threshold ({percent:.0f} %), "
            f"wall {self.wall:,}, context {self.context:,}",
            f"view {self.messages:,} of {self.history:,} messages; {self.compaction_count} compactions"
            + (f", the last by {self.last_mode}" if self.last_mode else "")
            + f"; {used.reclaimed:,} tokens reclaimed, {used.summaries} summaries",
            f"prompt caching: {self.caching}",
        ]
        if used.turns:
            cached = used.cache_read / used.prompt if used.prompt else 0
            lines.append(
                f"{used.turns:,} turns, {used.prompt:,} prompt tokens ({cached:.0%} read from cache), {used.output:,} output"
            )
        return "\n".join(lines)


def status_of(name: str, state: State, limits: Limits, *, policy: str, marks: Marks | None) -> Status:
    """Return the status of a session."""
    automatic = "automatic" if state.model.cache.ttl or state.model.cache.matching else "off"
    return Status(
        session=name,
        model=state.model.name,
        policy=policy,
        prompt=state.prompt,
        threshold=limits.threshold,
        wall=limits.wall,
        context=limits.context,
        messages=len(state.ledger.view.items),
        history=len(state.ledger.messages),
        compaction_count=state.totals.compactions,
        last_mode=state.last.mode if state.last else "",
        caching=f"on, {marks.ttl}" if marks else automatic,
        totals=state.totals,
    )
