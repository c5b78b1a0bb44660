"""What is kept of one turn: what it consumed and cost, why it went as it did, and where it left rent and cache belief."""

from msgspec import Struct
from msgspec.structs import replace

from lowwater.values.usage import Usage


class TurnRecord(Struct, frozen=True, kw_only=True):
    """One recorded turn; the newest one of a session is all that a process needs, beside the ledger, to go on with it."""

    at: float
    model: str
    usage: Usage | None = None
    """What the provider reported; None if it reported nothing."""
    expected: Usage | None = None
    """What the call should have been billed, told before it was made."""
    cost: int | None = None
    """Nano-dollars, the calls for summaries included; None if a price was not known."""
    decision: str = ""
    """The reason code of the decision."""
    belief: bytes = b""
    """What the provider's cache is believed to hold after the turn, packed by whoever records it: a store looks at neither."""
    meter: bytes = b""
    """The rent paid by then, packed likewise."""

    def outdated(self) -> "TurnRecord":
        """Return the record as it is kept once a newer one is there: belief and meter only count while they are the last."""
        return replace(self, belief=b"", meter=b"") if self.belief or self.meter else self
