"""Content that only its provider can read: sealed on the way out, verified on the way in."""

import hmac
from base64 import b64decode, b64encode

_SEAL = 32


class Sealing:
    """Seals texts and opens its own; a key makes those of one provider worthless to another."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sealed(self, text: str) -> str:
        """Return a text as `encrypted_content`."""
        said = text.encode()
        return b64encode(hmac.digest(self._key, said, "sha256") + said).decode()

    def opened(self, content: str) -> str | None:
        """Return the text in `encrypted_content`, or None if it was not sealed here."""
        try:
            opened = b64decode(content, validate=True)
        except ValueError:
            return None
        seal, said = opened[:_SEAL], opened[_SEAL:]
        whole = hmac.compare_digest(seal, hmac.digest(self._key, said, "sha256"))
        return said.decode() if whole else None
