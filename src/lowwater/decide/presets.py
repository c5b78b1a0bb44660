"""What the named presets ask of the mechanisms, and how the user's settings overrule that (docs/specification.md: B, D, L)."""

from msgspec.structs import replace

from lowwater.values.preset import Preset
from lowwater.values.settings import ToolResultSettings

OWN = Preset()
PRICED = replace(OWN, priced=True)
SEED = Preset(elide_limit_chars=200, never_prune=(*OWN.never_prune, "read"), by_value=False)
RUNWAY = replace(SEED, plain_placeholders=True)
CLASSIC = replace(RUNWAY, threshold_floor=False, note_in_system=True)


def preset_under(preset: Preset, chosen: ToolResultSettings) -> Preset:
    """Return the preset with what the user set; null leaves it as the preset has it."""
    limit, never = chosen.elide_limit_chars, chosen.never_prune
    return replace(
        preset,
        elide_limit_chars=preset.elide_limit_chars if limit is None else limit,
        never_prune=preset.never_prune if never is None else never,
    )
