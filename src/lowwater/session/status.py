"""A session in numbers, for people and programs."""

from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.cache.marks import CacheMarks
from lowwater.core.decisions import Decision
from lowwater.core.events import Compaction
from lowwater.core.limits import Level, Limits, level_of
from lowwater.core.stored import About
from lowwater.core.turns.pins import known_pins, pins_left_out, with_instructions
from lowwater.core.turns.state import Setup, State, Totals
from lowwater.core.wording import counted, money


class Status(Struct, frozen=True, kw_only=True):
    """What there is to know about a session between two calls; sizes are the model's tokens."""

    session: str
    model: str
    policy: str
    prompt: int
    threshold: int
    """The size from which on the policy compacts: its threshold, or whatever else makes it act first."""
    level: Level | None
    """The most urgent warning level that the prompt has reached."""
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
    expected_usage: Usage = Usage()
    """What the provider should bill for the input of the request prepared last; zero before the first."""
    decision: Decision | None = None
    """The last decision, with its reason; None before the first."""
    last_compaction: Compaction | None = None
    about: About = About()
    """Title, source and lineage."""
    acts_at: str = "threshold"
    """What the size in `threshold` is called: the threshold, the budget's threshold, the hygiene limit, the ceiling, the wall."""
    pins: int = 0
    """Standing instructions in force."""
    pins_left_out: int = 0
    """Those of them for which the block of pins has no room, so that the view only names their handles."""
    pins_proposed: int = 0
    """Those that the model proposed and that wait for `pin`."""

    def __str__(self) -> str:
        percent = 100 * self.prompt / self.threshold if self.threshold else 0
        used = self.totals
        lines = [
            f"{self.session} · {self.model} · {self.policy}",
            f"prompt {self.prompt:,} of {self.threshold:,} tokens to the {self.acts_at} ({percent:.0f} %), "
            + (f"level {self.level}, " if self.level else "")
            + ("" if self.acts_at == "wall" else f"wall {self.wall:,}, ")
            + f"context {self.context:,}",
            f"view {self.messages:,} of {self.history:,} messages; {counted(self.compaction_count, 'compaction')}"
            + (f", the last by {self.last_mode}" if self.last_mode else "")
            + f"; {used.reclaimed:,} tokens reclaimed, {counted(used.summaries, 'summary')}",
            f"prompt caching: {self.caching}",
        ]
        if self.pins or self.pins_proposed:
            lines.append(_pins(self))
        if used.turns or used.summary_cost != 0:
            lines.append(_cost(used))
        if used.turns:
            cached = used.cache_read / used.prompt if used.prompt else 0
            off = used.misjudged / used.prompt if used.prompt else 0
            lines.append(
                f"{counted(used.turns, 'turn')}, {used.prompt:,} prompt tokens ({cached:.0%} read from cache, foreseen within "
                f"{off:.1%}), {used.output:,} output"
            )
        if used.thinking_off:
            lines.append(
                f"thinking was disabled in {counted(used.thinking_off, 'call')}: a compaction took away what began their tool loop"
            )
        return "\n".join(lines)


def _pins(status: Status) -> str:
    """Say how many standing instructions there are, and what does not stand in the view."""
    said = f"{counted(status.pins, 'standing instruction')} in force"
    if status.pins_left_out:
        said += f", {status.pins_left_out:,} of them without room in the prompt"
    return f"{said}; {status.pins_proposed:,} proposed by the model" if status.pins_proposed else said


def _cost(used: Totals) -> str:
    """Say what was paid so far; a sum with an unknown price in it is none."""
    if used.cost is None:
        return "cost so far unknown: the price of a call was not known"
    summaries = f" (summaries {money(used.summary_cost, 'usd')})" if used.summary_cost else ""
    return f"cost so far {money(used.cost, 'usd')}{summaries}"


def status_of(
    name: str,
    about: About,
    state: State,
    limits: Limits,
    setup: Setup,
    *,
    marks: CacheMarks | None,
) -> Status:
    """Return the status of a session."""
    policy, settings = setup.policy, setup.settings
    point, pins = policy.acts_at(limits, settings), known_pins(with_instructions(state))
    automatic = "automatic" if state.model.cache.ttl or state.model.cache.matching else "off"
    return Status(
        session=name,
        model=state.model.name,
        policy=policy.name,
        prompt=state.prompt,
        threshold=point.at,
        acts_at=point.called,
        level=level_of(settings.output.warning_levels, state.prompt, point.at),
        wall=limits.wall,
        context=limits.context,
        messages=len(state.ledger.view.items),
        history=len(state.ledger.messages),
        compaction_count=state.totals.compactions,
        last_mode=state.last_compaction.mode if state.last_compaction else "",
        caching=f"on, {marks.ttl}" if marks else automatic,
        totals=state.totals,
        about=about,
        decision=state.decision,
        last_compaction=state.last_compaction,
        expected_usage=state.call.expected if state.call else Usage(),
        pins=sum(pin.status == "in_force" for pin in pins),
        pins_left_out=len(pins_left_out(state, setup)),
        pins_proposed=sum(pin.status == "proposed" for pin in pins),
    )
