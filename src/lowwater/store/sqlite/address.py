"""Addresses of SQLite files: `sqlite:///PATH`, and how sure a commit has to be."""

from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct

from lowwater.errors import BadSetting

SQLITE = "sqlite:///"
_SYNC = "?sync="

Sync = Literal["full", "normal"]
"""What a commit outlives: with `full` a loss of power, with `normal` the process, however it ends.

With `normal` a loss of power may take back the last commits, newest first; the file stays whole in either case.
"""


class SqliteAddress(Struct, frozen=True, kw_only=True):
    """A file, and how sure its commits are."""

    path: Path
    sync: Sync = "full"


def sqlite_address(address: str) -> SqliteAddress | None:
    """Return what `sqlite:///PATH` or `sqlite:///PATH?sync=normal` names, None if it is no such address, or raise BadSetting."""
    if not address.startswith(SQLITE) or address == SQLITE:
        return None
    path, asked, sync = address.removeprefix(SQLITE).rpartition(_SYNC)
    if not asked:
        return SqliteAddress(path=Path(sync).expanduser())
    for known in get_args(Sync):
        if sync == known and path:
            return SqliteAddress(path=Path(path).expanduser(), sync=known)
    raise BadSetting(
        f"a store cannot be at {address!r}: write sqlite:///PATH, with ?sync=full or ?sync=normal behind it if you like"
    )
