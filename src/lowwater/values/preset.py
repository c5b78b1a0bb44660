"""How the mechanisms behave under a policy, where the named presets differ (SPEC B, D, L)."""

from msgspec import Struct


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
    note_in_system: bool = False
    """Say in the system prompt, once, that earlier turns were compacted."""
