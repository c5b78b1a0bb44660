"""How many tokens recalled text may take, so that recall cannot overflow the window."""

from msgspec import Struct

from lowwater.engine.setup import Setup
from lowwater.engine.situate import limits_for
from lowwater.engine.state import State
from lowwater.values.limits import Limits
from lowwater.values.shares import share_of

AROUND_RESULT = 32
"""Tokens that a provider puts around a tool result, at most."""
_FOR_REFUSALS = 256
"""Tokens that stay free: a call for which there is no room must be answered, too."""
_SHARE, _MOST = 0.10, 25_000


class Room(Struct, frozen=True, kw_only=True):
    """How many tokens, as the session counts them, recalled text may take."""

    each: int
    """One answer."""
    left: int
    """All answers together, up to the largest prompt that may be sent."""


def room_for(
    limits: Limits, *, prompt: int, scale: float = 1.0, share: float = _SHARE, most: int = _MOST
) -> Room:
    """Return the room beside a prompt: for each answer a share of the context length, for all what may still be sent.

    `prompt` is in the model's tokens; `scale` is how many of these one counted token is.
    """
    each = int(min(share_of(limits.context, share), most) / scale)
    left = int((limits.most - _FOR_REFUSALS - prompt) / scale)
    return Room(each=max(0, each - AROUND_RESULT), left=max(0, left))


def room_in(state: State, setup: Setup) -> Room:
    """Return the room a session has now; an answer is small enough to pass the door as it is (docs/specification.md: M)."""
    door = setup.settings.tool_results
    share, most = door.insertion_limit_ratio, door.insertion_limit_tokens
    is_open = share <= 0 or most <= 0
    return room_for(
        limits_for(state, setup),
        prompt=state.prompt,
        scale=state.calibration.scale,
        share=_SHARE if is_open else min(_SHARE, share),
        most=_MOST if is_open else min(_MOST, most),
    )
