"""Text that comes in pieces, broken between words at the width of the terminal."""

import re

from rich.cells import cell_len

_PIECES = re.compile(r"\n|[^\S\n]+|\S+")


class Wrapping:
    """Gives pieces back as soon as it is known on which line they stand; a word is held until it ends."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._column = 0
        self._space = ""
        self._word = ""

    def feed(self, text: str) -> str:
        """Return what can be shown now."""
        shown = []
        for piece in _PIECES.findall(text):
            if piece.isspace():
                shown.append(self._end_word())
                if piece == "\n":
                    shown.append("\n")
                    self._column, self._space = 0, ""
                else:
                    self._space += piece
            else:
                self._word += piece
        return "".join(shown)

    def end(self) -> str:
        """Return what was held back; a new line is not begun."""
        return self._end_word()

    def _end_word(self) -> str:
        word, space = self._word, self._space
        if not word:
            return ""
        self._word = self._space = ""
        size = cell_len(word)
        if self._column and self._column + len(space) + size > self._width:
            self._column = size
            return f"\n{word}"
        self._column += len(space) + size
        return f"{space}{word}"
