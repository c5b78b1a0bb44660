"""A session as numbers: what each call to the model added, how long it waited, and what was used again later."""

from msgspec import Struct

SHARE = 1_000_000
"""Chances and shares are integers of millionths, so that costs stay exact."""


class Turn(Struct, frozen=True, kw_only=True):
    """What one call to the model added to the prompt, in tokens, and what it wrote."""

    text: int
    """New text: the answer before, its calls, what the user said."""
    results: int = 0
    """New tool results, which can be elided."""
    elided: int = 0
    """Their size once elided; never above `results`."""
    output: int = 0
    gap: float = 0.0
    """Seconds since the call before."""
    chance: int = 0
    """Uses of the results to expect once they are five calls old, in millionths."""

    @property
    def whole(self) -> int:
        """All that was added."""
        return self.text + self.results


class Use(Struct, frozen=True, kw_only=True):
    """A later call needs something of a turn's results."""

    at: int
    """The index of the turn that needs it."""
    of: int
    """The index of the turn whose results hold it."""
    tokens: int
    """What a recall would write."""
    in_digest: bool = False
    """Still visible after the result was elided; a summary loses it all the same."""


class Course(Struct, frozen=True, kw_only=True):
    """One session; without recorded uses the expected ones are charged instead."""

    name: str
    fixed: int
    """Tools and system prompt."""
    tail: int
    """Tokens at the end that no action touches."""
    turns: tuple[Turn, ...]
    uses: tuple[Use, ...] | None = None


class Sheet(Struct, frozen=True, kw_only=True):
    """What a model charges and allows; prices are nano-dollars per 1,000 tokens."""

    name: str
    input: int
    read: int
    write: int
    output: int
    other_input: int
    """What another model charges for a summary."""
    other_output: int
    ttl: float
    """Seconds a cached prefix lives."""
    window: int
    reserved: int = 20_000
    """Kept free for the output."""
    summary: int = 3_000
    """The size of every summary."""
    instruction: int = 400
    """The size of what asks for one."""

    @property
    def wall(self) -> int:
        """The largest prompt that fits."""
        return self.window - self.reserved


class State(Struct, frozen=True, kw_only=True):
    """Turns before `summarised` are behind one summary, results of those before `pruned` are elided."""

    summarised: int = 0
    pruned: int = 0


class Prune(Struct, frozen=True, kw_only=True, tag="prune"):
    """Elide the results of all turns before `upto`."""

    upto: int


class Summarise(Struct, frozen=True, kw_only=True, tag="summarise"):
    """Replace all turns before `upto` by a summary."""

    upto: int


Action = Prune | Summarise


class Act(Struct, frozen=True, kw_only=True):
    """An action before the call of turn `turn`."""

    turn: int
    action: Action


def after(state: State, action: Action | None) -> State:
    """Return the state that an action leads to."""
    match action:
        case Prune(upto=upto):
            return State(summarised=state.summarised, pruned=max(state.pruned, upto))
        case Summarise(upto=upto):
            return State(summarised=upto, pruned=max(state.pruned, upto))
        case None:
            return state
