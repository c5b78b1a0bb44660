"""Warnings on the way to the threshold, told to the log and to whoever asked for them (docs/specification.md: I)."""

import logging
from collections.abc import Callable, Sequence

from lowwater.core.policies.warnings import Level, UsageWarning

_log = logging.getLogger("lowwater")
_SEVERITY: dict[Level, int] = {
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "critical": logging.CRITICAL,
}


def tell_doubt(why: str, session: str, *, quiet: bool) -> None:
    """Log that a provider's usage is not believed, unless `quiet`; the answer is kept all the same."""
    if not quiet:
        _log.warning(
            "%s: the usage that the provider reported is not believed and left out: %s. This is said once.",
            session,
            why,
        )


def tell_warnings(
    warnings: Sequence[UsageWarning],
    session: str,
    *,
    call: Callable[[UsageWarning], object] | None,
    quiet: bool,
) -> None:
    """Log the last of the warnings that are due at once, the most urgent, unless `quiet`; and hand each to `call`.

    All of them say the same sentence, and only a program can tell their levels apart. A callback that fails is logged by the
    kind of its error.
    """
    for warning in warnings[-1:] if not quiet else ():
        _log.log(_SEVERITY[warning.level], "%s: %s", session, warning.sentence)
    if call is None:
        return
    for warning in warnings:
        try:
            call(warning)
        except Exception as error:  # noqa: BLE001  # a warning must never make a turn fail
            _log.warning("the warning callback failed: %s", type(error).__name__)
