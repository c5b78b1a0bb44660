"""What the named presets ask of the mechanisms, and how the user's settings overrule that (SPEC B, D, L)."""

from msgspec.structs import replace

from lowwater.values.preset import Preset
from lowwater.values.settings import ToolResultSettings

OWN = Preset()
SEED = Preset(elide_limit_chars=200, never_prune=(*OWN.never_prune, "read"), by_value=False)
RUNWAY = replace(SEED, plain_placeholders=True)
CLASSIC = replace(RUNWAY, threshold_floor=False, note_in_system=True)

_DEFAULT = ToolResultSettings()


def preset_under(preset: Preset, chosen: ToolResultSettings) -> Preset:
    """Return the preset with what the user set otherwise than the default."""
    limit, never = chosen.elide_limit_chars, chosen.never_prune
    return replace(
        preset,
        elide_limit_chars=preset.elide_limit_chars if limit == _DEFAULT.elide_limit_chars else limit,
        never_prune=preset.never_prune if never == _DEFAULT.never_prune else never,
    )
