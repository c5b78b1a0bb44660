"""What a session has beside its ledger, as bytes: whoever opens it again goes on where it was left."""

from typing import Any

import msgspec
from msgspec.structs import fields, replace

from lowwater.engine.state import State

LOCAL = frozenset({"ledger", "model", "call", "laid", "market", "rejected"})
"""What is not carried: the ledger is stored as such, the model is found by its name, all else is of one turn."""

_CARRIED = tuple(field for field in fields(State) if field.name not in LOCAL)
# The fields are those of State, so that a new one is carried without being written down twice.
_Carried = msgspec.defstruct(
    "Carried",
    [(field.name, field.type, field.default) for field in _CARRIED if not field.required]
    + [(field.name, field.type) for field in _CARRIED if field.required],
    kw_only=True,
    frozen=True,
)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Carried)


def pack(state: State) -> bytes:
    """Return what is carried of a session."""
    return _encoder.encode(_Carried(**_values(state) | {"route": state.route.storable()}))


def unpack(carried: bytes, state: State) -> State:
    """Return `state` with what was carried; as it is if that was written by a Lowwater that thought in other terms."""
    try:
        found = _decoder.decode(carried)
    except msgspec.MsgspecError:
        return state
    values = _values(found)
    if values["route"] == state.route.storable():
        values["route"] = state.route  # whoever opens it knows the whole URL
    return replace(state, **values)


def moved_on(seen: State, new: State) -> bool:
    """Return whether anything that is carried has changed, told by identity."""
    return any(getattr(seen, field.name) is not getattr(new, field.name) for field in _CARRIED)


def _values(of: Any) -> dict[str, Any]:  # noqa: ANN401 - either of two structs with the same fields
    return {field.name: getattr(of, field.name) for field in _CARRIED}
