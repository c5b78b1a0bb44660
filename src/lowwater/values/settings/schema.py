"""The settings as a JSON Schema, for editors and for programs that write lowwater.yaml."""

from collections.abc import Iterable
from typing import Any, get_args

import msgspec

from lowwater.values.settings.sections import Policy, Settings


def settings_schema(*, policies: Iterable[str] = ()) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of lowwater.yaml: types, ranges, defaults and descriptions of every setting.

    `policies` are the names that installed packages add to ours.
    """
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "lowwater.yaml",
        **msgspec.json.schema(Settings),
    }
    policy = schema["$defs"]["CompressionSettings"]["properties"]["policy"]
    del policy["anyOf"]
    policy["enum"] = [*get_args(Policy), *policies]
    # Defaults in it are Python's own tuples, which other validators do not take for arrays.
    return msgspec.json.decode(msgspec.json.encode(schema), type=dict[str, Any])
