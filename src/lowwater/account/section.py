"""The efficiency of one session, as its status shows it (SPEC K)."""

from msgspec import Struct

from lowwater.account.advice import Advice
from lowwater.account.advice_words import dollars, sentence
from lowwater.account.efficiency import efficiency
from lowwater.values.registry import Registry
from lowwater.values.stored import Account


class Section(Struct, frozen=True, kw_only=True):
    """What compaction did in a session; money is in nano-dollars and None if it is not known."""

    passes: int
    tokens_saved: int
    """Tokens that calls did not carry, counted at every call."""
    compaction_cost: int | None
    """Summaries, and what was written to the cache again."""
    net: int | None
    """What it saved in the end, all that it cost deducted."""
    advice: tuple[Advice, ...]

    def __str__(self) -> str:
        cost, net = (
            "unknown" if amount is None else dollars(amount) for amount in (self.compaction_cost, self.net)
        )
        first = (
            f"efficiency: passes {self.passes:,}, tokens kept out of prompts {self.tokens_saved:,}, "
            f"compaction cost {cost}, net {net}"
        )
        return "\n".join([first, *(f"  {sentence(each)}" for each in self.advice)])


def section(account: Account, registry: Registry) -> Section:
    """Return the efficiency of one session."""
    found = efficiency([account], registry)
    return Section(
        passes=found.total.passes,
        tokens_saved=found.total.saved,
        compaction_cost=found.total.compaction_cost,
        net=found.total.net,
        advice=found.advice,
    )
