"""How a session is known again by the list its client keeps, where nobody tells its name."""

from msgspec import Struct


class Trail(Struct, frozen=True, kw_only=True):
    """What a session was last seen with: digests of its client's whole list, with and without the answer."""

    tenant: str
    session: str
    keys: tuple[bytes, ...]
    hint: str = ""
    """What the client told of itself; it tells sessions of one tenant apart, and never leads to another tenant."""


class Followed(Struct, frozen=True, kw_only=True):
    """A session that once had this key."""

    key: bytes
    session: str
    hint: str
    newest: bool
    """Whether the session was last seen with it; if not, it has gone on since."""
