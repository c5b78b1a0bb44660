"""What sessions cost is kept beside what they are: where only the accounts cannot be written, everything else still is."""

import logging
from collections.abc import Callable

from msgspec.structs import replace

from lowwater.core.stored import Append

_log = logging.getLogger("lowwater")


class UnwritableAccounts(Exception):
    """The tables of records and events cannot be written; never leaves the store."""


class AccountsApart:
    """Writes appends, without their record and events where these alone make it fail; the log says so once."""

    def __init__(self, place: object) -> None:
        self._place = place
        self._told = False

    def written(self, new: Append, write: Callable[[Append], int]) -> int:
        """Return the version that `write` gave to what is new, or to as much of it as can be written."""
        try:
            return write(new)
        except UnwritableAccounts as error:
            said = str(error)
        if not self._told:
            self._told = True
            _log.warning(
                "the store %s cannot record what its sessions do and cost (%s): everything else is kept; restore a copy with all "
                "of its tables, or choose another place",
                self._place,
                said,
            )
        return write(replace(new, record=None, events=()))
