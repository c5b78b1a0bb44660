"""Settings: what can be set, how a raw value is made to fit, and what holds in the end."""

from lowwater.values.settings.catalogue import Setting, catalogue, sections, setting_named
from lowwater.values.settings.document import settings_in
from lowwater.values.settings.resolve import Effective, Resolved, Source, resolve
from lowwater.values.settings.schema import settings_schema
from lowwater.values.settings.sections import (
    CacheTtl,
    CompressionSettings,
    FallbackProvider,
    LeafSettings,
    ModelSettings,
    OutputSettings,
    Policy,
    PrivacySettings,
    Settings,
    ToolResultSettings,
    WarningLevels,
)

__all__ = [
    "CacheTtl",
    "CompressionSettings",
    "Effective",
    "FallbackProvider",
    "LeafSettings",
    "ModelSettings",
    "OutputSettings",
    "Policy",
    "PrivacySettings",
    "Resolved",
    "Setting",
    "Settings",
    "Source",
    "ToolResultSettings",
    "WarningLevels",
    "catalogue",
    "resolve",
    "sections",
    "setting_named",
    "settings_in",
    "settings_schema",
]
