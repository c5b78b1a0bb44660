"""Reading a file a user named: plain or gzipped, or standard input."""

import gzip
import sys
import zlib
from pathlib import Path

from lowwater.errors import UnreadableFile

_GZIP = b"\x1f\x8b"


def read_file(name: str) -> bytes:
    """Return the bytes of the file `name` (`-` is standard input), gunzipped if need be, or raise UnreadableFile."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except FileNotFoundError:
        raise UnreadableFile(f"{name}: no such file") from None
    except IsADirectoryError:
        raise UnreadableFile(f"{name} is a directory: name a file") from None
    except PermissionError:
        raise UnreadableFile(f"{name}: permission denied") from None
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"{name[:200]!r} cannot be read: {error}") from None
    if data[:2] != _GZIP:
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        raise UnreadableFile(f"{name} looks gzipped but is damaged or cut short") from None
