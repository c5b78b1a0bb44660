"""The settings as a JSON Schema, for editors and for programs that write lowwater.yaml."""

from typing import Any

import msgspec

from lowwater.values.settings.sections import Settings


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of lowwater.yaml: types, ranges, defaults and descriptions of every setting."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "lowwater.yaml",
        **msgspec.json.schema(Settings),
    }
    # Defaults in it are Python's own tuples, which other validators do not take for arrays.
    return msgspec.json.decode(msgspec.json.encode(schema), type=dict[str, Any])
