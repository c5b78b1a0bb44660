"""A session's state as bytes, as it is stored.

The bytes are a msgpack map with the names of `core/stored_form.py` and the version of the stored form. Fields that cannot be
read are named, so that whoever opens the session can report them.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import fields, replace

from lowwater.core.stored_form import FORM, FORMER_POLICIES, stored_as, stored_names
from lowwater.core.turns.state import State
from lowwater.errors import NewerSchema

LOCAL = frozenset({"ledger", "model", "call", "prompt_layout", "candidates", "rejected"})
"""Fields that are not part of the bytes: the ledger is stored separately, the model is found by its name, the rest belongs to one turn."""

_CARRIED = tuple(field for field in fields(State) if field.name not in LOCAL)
_ATTRIBUTES = tuple(field.name for field in _CARRIED)
_FORM = "form"
# Defined from the fields of State, so that types are not repeated; a field without a stored name fails here.
_Carried = msgspec.defstruct(
    "Carried",
    [(_FORM, int, FORM)]
    + [(field.name, field.type, field.default) for field in _CARRIED if not field.required]
    + [(field.name, field.type) for field in _CARRIED if field.required],
    kw_only=True,
    frozen=True,
    rename=stored_as("state"),
    forbid_unknown_fields=True,
)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Carried)
_each_decoder = msgspec.msgpack.Decoder(dict[str, Raw])


class Resumed(Struct, frozen=True, kw_only=True):
    """A state that was read, and what could not be read, in words."""

    state: State
    unread: tuple[str, ...] = ()


def pack_state(state: State) -> bytes:
    """Return a state as bytes."""
    return _encoder.encode(_Carried(**_values(state) | {"route": state.route.storable()}))


def unpack_state(carried: bytes, state: State) -> Resumed:
    """Return `state` with the fields read from `carried`, which may be empty; raise NewerSchema for a newer form.

    Fields that cannot be read stay as they are in `state`, and are named.
    """
    if not carried:
        return Resumed(state=state)
    try:
        found = _decoder.decode(carried)
    except msgspec.MsgspecError as error:
        return _unpack_each(carried, state, error)
    _refuse_newer(getattr(found, _FORM))
    return Resumed(state=_replaced(state, _values(found)))


def moved_on(seen: State, new: State) -> bool:
    """Return whether any stored field has changed; compares by identity."""
    return any(getattr(seen, attribute) is not getattr(new, attribute) for attribute in _ATTRIBUTES)


def _unpack_each(carried: bytes, state: State, why: Exception) -> Resumed:
    """Return `state` with every field that can be read on its own."""
    try:
        stored = _each_decoder.decode(carried)
        form = stored.pop(stored_names("state")[_FORM], None)
        _refuse_newer(FORM if form is None else msgspec.msgpack.decode(form, type=int))
    except msgspec.MsgspecError:
        return Resumed(state=state, unread=(f"all of it ({why})",))
    values: dict[str, Any] = {}
    unread: list[str] = []
    names = stored_names("state")
    for field in _CARRIED:
        body = stored.pop(names[field.name], None)
        if body is None:
            if field.required:
                unread.append(f"`{names[field.name]}` (missing)")
            continue
        try:
            values[field.name] = msgspec.msgpack.decode(body, type=field.type)
        except msgspec.MsgspecError as error:
            unread.append(f"`{names[field.name]}` ({error})")
    unread += [f"`{name}` (unknown)" for name in stored]
    return Resumed(state=_replaced(state, values), unread=tuple(unread))


def _refuse_newer(form: int) -> None:
    if form > FORM:
        raise NewerSchema(
            f"the session's state is stored in form {form} and this Lowwater knows {FORM}: use a newer Lowwater"
        )


def _replaced(state: State, values: dict[str, Any]) -> State:
    if values.get("route") == state.route.storable():
        values["route"] = state.route  # whoever opens it knows the whole URL
    if (policy := values.get("policy", "")) in FORMER_POLICIES:
        values["policy"] = FORMER_POLICIES[policy]
    return replace(state, **values)


def _values(of: Any) -> dict[str, Any]:  # noqa: ANN401 - either of two structs with the same fields
    return {attribute: getattr(of, attribute) for attribute in _ATTRIBUTES}
