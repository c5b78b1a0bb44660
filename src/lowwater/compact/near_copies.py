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

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self._text = text
        self._distinct: frozenset[str] | None = None

    @property
    def keys(self) -> list[int]:
        """A few checksums of long lines, as good as drawn: of nearly equal texts, one is all but certainly in both.

        Long lines are rarely those of another text. A text of few lines has no keys: one line more makes it another.
        """
        lines = self._text.splitlines()
        if len(lines) < _FEW_LINES:
            return []
        lines.sort(key=len)
        longest = "\n".join(lines[-_LONGEST:]).encode(errors="replace")
        return sorted(set(map(crc32, longest.split(b"\n"))))[:_KEYS]

    @property
    def distinct(self) -> frozenset[str]:
        """The lines without repetitions."""
        if self._distinct is None:
            self._distinct = frozenset(self._text.splitlines())
        return self._distinct

    def is_near(self, other: "Lines") -> bool:
        """Return whether nearly all lines of both are the same."""
        mine, theirs = len(self.distinct), len(other.distinct)
        if min(mine, theirs) < max(_FEW_LINES, _NEAR * max(mine, theirs)):
            return False
        common = len(self.distinct & other.distinct)
        return common >= _NEAR * (mine + theirs - common)


class NearCopies:
    """Texts that can be found by others that are nearly the same."""

    def __init__(self) -> None:
        self._by_key: dict[int, list[Lines]] = {}

    def find_or_add(self, lines: Lines) -> int | None:
        """Return the number of a text taken before that is nearly the same; if there is none, take this one."""
        keys = lines.keys
        for key in keys:
            for other in reversed(self._by_key.get(key, [])[-_MOST_COMPARED:]):
                if lines.is_near(other):
                    return other.number
        for key in keys:
            self._by_key.setdefault(key, []).append(lines)
        return None
