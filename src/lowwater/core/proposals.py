"""What a mechanism proposes to do to a view, and what a policy asks of the mechanisms."""

from msgspec import Struct

from lowwater.core.messages import Span
from lowwater.core.stored_form import stored_as
from lowwater.core.tools import bare_name, classify


class Target(Struct, frozen=True, kw_only=True, rename=stored_as("target"), forbid_unknown_fields=True):
    """A part of a view that would be replaced: the item's index, the path to the part, and its size."""

    item: int
    path: tuple[int, ...]
    tokens: int
    how: str = ""
    """How another message makes it redundant; empty if none does."""
    by: int = 0
    """The number of that message."""


class Proposal(Struct, frozen=True, kw_only=True, rename=stored_as("proposal"), forbid_unknown_fields=True):
    """A change to the view that can be printed, priced and stored; `apply` of the same mechanism carries it out.

    Mechanisms that replace parts name them in `targets`; those that replace whole messages name a `span` of items.
    """

    mechanism: str
    removes: int
    """Tokens the view would lose, as far as is known in advance."""
    first_changed: int
    """The index of the first item that would change."""
    survives: int
    """Tokens after that item that stay and have to be written to the cache again."""
    targets: tuple[Target, ...] = ()
    span: Span | None = None
    calls: int = 0
    """How many model calls it takes."""


class Preset(Struct, frozen=True, kw_only=True):
    """What a policy asks of the mechanisms, in addition to the settings."""

    elide_limit_chars: int = 600
    never_prune: tuple[str, ...] = ("clarify", "memory", "skill", "todo")
    """Classes or names of tools whose results are never elided or shortened."""
    pinned: tuple[str, ...] = ()
    """Patterns of files whose content stays in view."""
    plain_placeholders: bool = False
    """Placeholders are one line, without a digest."""
    by_value: bool = True
    """Protect the tool output with the highest value per token; False: protect the newest."""
    digests_arguments: bool = True
    """Long arguments of old calls become digests, as old results do."""
    threshold_floor: bool = True
    priced: bool = False
    """The policy compares prices: the tail is the newest messages, without a budget in tokens."""
    note_in_system: bool = False
    """Note in the system prompt, once, that earlier turns were compacted."""

    def protects(self, tool: str) -> bool:
        """Return whether results of this tool are never elided or shortened.

        A listed name protects its whole class: `read_file` protects `Read` too. A name that belongs to no class protects
        the tool of that name, whatever server it comes from.
        """
        kind = classify(tool)
        if kind == "other":
            return tool in self.never_prune or bare_name(tool) in self.never_prune
        return any(name == kind or classify(name) == kind for name in self.never_prune)
