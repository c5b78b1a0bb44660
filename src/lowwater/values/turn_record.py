"""What is kept of one turn: what it consumed and cost, and why it went as it did."""

from msgspec import Struct

from lowwater.values.stored_form import stored_as
from lowwater.values.usage import Usage


class TurnRecord(
    Struct, frozen=True, kw_only=True, rename=stored_as("turn_record"), forbid_unknown_fields=True
):
    """One recorded turn; money is in nano-dollars and None where a price was not known."""

    at: float
    model: str
    usage: Usage | None = None
    """What the provider reported; None if it reported nothing."""
    expected: Usage | None = None
    """What the input of the call should have been billed, told before it was made."""
    cost: int | None = None
    """What the call cost; what summaries cost stands with their events."""
    untouched: int | None = None
    """About what it would have cost had nothing ever been compacted: what was removed carried along, nothing rewritten."""
    removed: int = 0
    """The model's tokens that compactions kept out of its prompt."""
    decision: str = ""
    """The reason code of the decision before it."""
    thinking_off: bool = False
    """Its thinking was disabled, because the provider would have refused it in a tool loop whose beginning was compacted."""
