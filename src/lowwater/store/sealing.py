"""Bytes that show whether they are still what was written."""

from lowwater.store.packing import KEY_BYTES, digest


class Broken(Exception):
    """The bytes are not what was written; never leaves the store."""


def seal(body: bytes) -> bytes:
    """Return the bytes behind their digest."""
    return digest(body) + body


def unseal(sealed: object) -> bytes:
    """Return the bytes that were sealed, or raise Broken."""
    if isinstance(sealed, bytes) and digest(sealed[KEY_BYTES:]) == sealed[:KEY_BYTES]:
        return sealed[KEY_BYTES:]
    raise Broken("it is not what was written")
