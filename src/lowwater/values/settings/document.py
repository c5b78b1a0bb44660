"""Settings written as a document: what lowwater.yaml holds, taken apart into single settings."""

from collections.abc import Callable, Mapping

from lowwater.errors import BadSetting
from lowwater.values.settings.catalogue import catalogue, sections
from lowwater.values.settings.words import did_you_mean, shown


def settings_in(document: object, *, place: Callable[[str], str]) -> dict[str, object]:
    """Return the raw values in `document` by the names of their settings; raise BadSetting for an unknown key.

    `place` says where a path such as `compression.threshold` is written, for errors. A section left empty is as good
    as none.
    """
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise BadSetting(f"{place('')} must hold sections such as `compression:`, not {shown(document)}")
    found: dict[str, object] = {}
    for key, value in document.items():
        if key not in sections():
            found[_known(shown(key), place)] = value
        elif isinstance(value, Mapping):
            found |= {_known(f"{key}.{shown(name)}", place): inner for name, inner in value.items()}
        elif value is not None:
            raise BadSetting(f"{place(key)}: {key} must hold settings, not {shown(value)}")
    return found


def _known(path: str, place: Callable[[str], str]) -> str:
    name = path.rpartition(".")[2]
    for setting in catalogue():
        if setting.path == path:
            return name
    for setting in catalogue():
        if setting.name == name:
            hint = (
                f"; it belongs under {setting.section}" if setting.section else "; it belongs to no section"
            )
            break
    else:
        hint = did_you_mean(name, [*sections(), *(setting.name for setting in catalogue())])
    raise BadSetting(f"{place(path)}: there is no setting {path}{hint}")
