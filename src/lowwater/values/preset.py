"""How the mechanisms behave under a policy, where the named presets differ (docs/specification.md: B, D, L)."""

from msgspec import Struct

from lowwater.values.tools import bare_name, classify


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
