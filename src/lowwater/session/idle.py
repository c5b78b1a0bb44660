"""`session.idle()`: tells a caller with its own loop what to do in a pause before the cached prefix expires, and when."""

from typing import TYPE_CHECKING

from msgspec import Struct

from lowwater.core.costs.idle import LASTS, IdleAction, IdleMode
from lowwater.core.turns.idle import PausePlan, record_kept_warm
from lowwater.errors import BadInput
from lowwater.session.internals import SessionInternals, internals

if TYPE_CHECKING:
    from lowwater.session.session import Session

MODES = ("off", "compact", "keep-warm", "auto")


class Idle(Struct, frozen=True, kw_only=True):
    """What to do if no call has been made by `at`; amounts are in nano-dollars.

    `keep-warm`: send the last request again with the smallest output limit that its provider accepts, and pass the answer to
    `idle(kept_warm=…)`, which says what comes next. `compact`: call `compress()`. `let-go`: do nothing.
    """

    action: IdleAction
    at: float | None = None
    """On the session's clock, shortly before the prefix expires; None if there is nothing to do."""
    expires: float | None = None
    """When the prefix expires; None if that is not known."""
    costs: int = 0
    """What one call that keeps it warm costs."""
    loses: int = 0
    """How much more the next call costs if the prefix has expired."""
    calls: int = 0
    """How many more calls to keep it warm are worth making, at most, if the pause goes on."""


NOTHING = Idle(action="let-go")


def idle(session: SessionInternals, mode: IdleMode, kept_warm: object, *, lasts: float = LASTS) -> Idle:
    """Return what to do in the pause of a session; the answer to a call that kept it warm, if there is one, is recorded first."""
    if mode not in MODES:
        raise BadInput(f"idle: {mode!r} is not a mode; the modes are {', '.join(MODES)}")
    if kept_warm is not None:
        _record(session, kept_warm)
    found = session.pause_plan(mode, lasts=lasts)
    return NOTHING if found is None else _told(found)


def record_ping(session: "Session", answer: bytes) -> None:
    """Bill a call that kept a session's prefix warm."""
    _record(internals(session), answer)


def _record(session: SessionInternals, answer: object) -> None:
    session.recorder.record(
        answer, (), lambda state, read: record_kept_warm(state, read, session.now()), appends=False
    )


def _told(found: PausePlan) -> Idle:
    action = found.plan.action
    return Idle(
        action=action,
        at=None if action == "let-go" else found.cached.due,
        expires=found.cached.expires,
        costs=found.costs.ping,
        loses=found.costs.lost,
        calls=found.plan.pings,
    )
