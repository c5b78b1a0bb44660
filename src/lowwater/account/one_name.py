"""The one name that accounts keep a model under, however calls spelled it (docs/specification.md: K)."""

from lowwater.values.model_names import is_suffix
from lowwater.values.registry import Registry


def one_name(name: str, registry: Registry) -> str:
    """Return the name of the listed model that `name` means, or its own without who serves it, dates and revisions."""
    found = registry.match(name)
    if found.how in ("listed", "resold"):
        return found.model.name.rpartition("/")[2]
    own = found.spelling.name
    end = next((end for end in range(1, len(own)) if is_suffix(own[end:])), len(own))
    return own[:end]
