"""What a mechanism offers to do to a view, and how the mechanisms behave under a policy."""

from msgspec import Struct

from lowwater.core.groups import Span
from lowwater.core.stored_form import stored_as
from lowwater.core.tools import bare_name, classify


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


class Preset(Struct, frozen=True, kw_only=True):
    """What a policy asks of the mechanisms, beside the settings."""

    elide_limit_chars: int = 600
    never_prune: tuple[str, ...] = ("clarify", "memory", "skill", "todo")
    """Classes or names of tools whose results are never elided or shortened."""
    plain_placeholders: bool = False
    """One line without a digest."""
    by_value: bool = True
    """Protect the tool output worth most per token; False protects the newest."""
    threshold_floor: bool = True
    priced: bool = False
    """What a plan takes is compared with its price: the tail is the newest messages and no share of the window."""
    note_in_system: bool = False
    """Say in the system prompt, once, that earlier turns were compacted."""

    def protects(self, tool: str) -> bool:
        """Return whether results of this tool stay as they are.

        A listed name stands for its whole class: `read_file` protects `Read` too. A name of no class stands for itself,
        whatever server it comes from.
        """
        kind = classify(tool)
        if kind == "other":
            return tool in self.never_prune or bare_name(tool) in self.never_prune
        return any(name == kind or classify(name) == kind for name in self.never_prune)
