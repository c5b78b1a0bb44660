"""JSON text in one spelling, so that equal values are equal strings."""

from collections.abc import Collection

import msgspec

_encoder = msgspec.json.Encoder(order="sorted")


def canonical_json(text: str, *, without: Collection[str] = ()) -> str:
    """Return `text` with sorted keys and no insignificant blanks; text that is not JSON comes back stripped.

    `without` names top-level keys that do not count.
    """
    try:
        value = msgspec.json.decode(text)
        if without and isinstance(value, dict):
            value = {key: item for key, item in value.items() if key not in without}
        return _encoder.encode(value).decode()
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return text.strip()
