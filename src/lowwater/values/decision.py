"""What a policy decides, always with why."""

from msgspec import Struct

from lowwater.values.proposal import Proposal
from lowwater.values.stored_form import stored_as

Fact = int | float | str


class Reason(Struct, frozen=True, kw_only=True, rename=stored_as("reason"), forbid_unknown_fields=True):
    """Why a decision was taken: a stable code, and the numbers that were compared."""

    code: str
    facts: dict[str, Fact] = {}


class Keep(
    Struct, frozen=True, kw_only=True, tag="keep", rename=stored_as("keep"), forbid_unknown_fields=True
):
    """Send the view as it is."""

    because: Reason


class Compact(
    Struct, frozen=True, kw_only=True, tag="compact", rename=stored_as("compact"), forbid_unknown_fields=True
):
    """Carry out `proposals`, in order, before sending.

    When the view is at or below `enough` after some of them, the rest is not needed. A step that may cost a model call is
    reached only if those before it did not suffice.
    """

    proposals: tuple[Proposal, ...]
    because: Reason
    enough: int = 0
    below: int = 0
    """Ending at this size or above was fruitless: the next compaction would be due at once. 0: anything smaller will do."""
    fit: int = 0
    """The size that a squeeze among the proposals works towards; 0 if there is none."""


Decision = Keep | Compact
