"""What a mechanism offers to do to a view, before anything is done."""

from msgspec import Struct

from lowwater.values.groups import Span
from lowwater.values.stored_form import stored_as


class Target(Struct, frozen=True, kw_only=True, rename=stored_as("target"), forbid_unknown_fields=True):
    """One part of a view that would be replaced: the item's index, the path to the part, and its size."""

    item: int
    path: tuple[int, ...]
    tokens: int
    how: str = ""
    """In what way another message makes it dispensable; empty if none does."""
    by: int = 0
    """The number of that message."""


class Proposal(Struct, frozen=True, kw_only=True, rename=stored_as("proposal"), forbid_unknown_fields=True):
    """A plan that can be printed, priced and stored; `apply` of the same mechanism carries it out.

    Mechanisms that replace parts name them in `targets`; those that replace whole messages name a `span` of items.
    """

    mechanism: str
    removes: int
    """Tokens the view would lose, as far as can be told before doing it."""
    first_changed: int
    """The index of the first item that would change."""
    survives: int
    """Tokens behind that item that stay, and have to be written to the cache again."""
    targets: tuple[Target, ...] = ()
    span: Span | None = None
    calls: int = 0
    """Calls of a model it takes."""
