"""Finding texts that are nearly the same: those that share most of their distinct lines."""

from zlib import crc32

_NEAR = 0.85
"""Share of distinct lines two texts have in common when one is as good as the other."""
_FEW_LINES = 4
_LONGEST, _KEYS = 32, 6
_MOST_COMPARED = 16
"""With how many texts of one key a text is compared."""


class Lines:
    """A text by its lines; `number` says whose it is."""

    __slots__ = ("distinct", "keys", "most", "number", "size")

    def __init__(self, number: int, text: str) -> None:
        encoded = text.encode(errors="replace")
        lines = encoded.splitlines() if b"\r" in encoded else encoded.removesuffix(b"\n").split(b"\n")
        self.number = number
        self.distinct = frozenset(lines)
        """The lines without repetitions."""
        self.size = len(self.distinct)
        self.most = self.size / _NEAR + 1
        """No text with more distinct lines is near."""
        self.keys = _keys(lines)

    def is_near(self, other: "Lines") -> bool:
        """Return whether nearly all lines of both are the same."""
        mine, theirs = self.size, other.size
        if mine < _FEW_LINES or theirs < _FEW_LINES or mine < _NEAR * theirs or theirs < _NEAR * mine:
            return False
        common = len(self.distinct & other.distinct)
        return common >= _NEAR * (mine + theirs - common)


def _keys(lines: list[bytes]) -> list[int]:
    """Return a few checksums of long lines, as good as drawn: of nearly equal texts, one is all but certainly in both.

    Long lines are rarely those of another text. A text of few lines has no keys: one line more makes it another.
    """
    if len(lines) < _FEW_LINES:
        return []
    if len(lines) > _LONGEST:
        lines = sorted(lines, key=len)[-_LONGEST:]
    return sorted(set(map(crc32, lines)))[:_KEYS]


class NearCopies:
    """Texts that can be found by others that are nearly the same."""

    def __init__(self) -> None:
        self._by_key: dict[int, list[Lines]] = {}

    def find_or_add(self, lines: Lines) -> int | None:
        """Return the number of a text taken before that is nearly the same; if there is none, take this one."""
        size, most = lines.size, lines.most
        compared: set[Lines] = set()
        for key in lines.keys:
            for other in reversed(self._by_key.get(key, ())[-_MOST_COMPARED:]):
                if other.size > most or size > other.most or other in compared:
                    continue
                if lines.is_near(other):
                    return other.number
                compared.add(other)
        for key in lines.keys:
            self._by_key.setdefault(key, []).append(lines)
        return None
