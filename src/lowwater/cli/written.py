"""A setting's value as a person reads it on one line."""

from msgspec import Struct, structs

from lowwater.settings.fitting import shown


def written(value: object) -> str:
    """Return `value` on one line: lists with commas, mappings as `key value`; nothing that is null inside them."""
    match value:
        case ():
            return "none"
        case tuple() | list():
            return ", ".join(map(written, value))
        case Struct():
            fields = structs.asdict(value).items()
            return ", ".join(f"{name} {written(inner)}" for name, inner in fields if inner is not None)
        case int() if not isinstance(value, bool):
            return f"{value:,}"
        case _:
            return shown(value)
