"""A view of a course as pieces in order, so that policies with actions of their own can be played on it."""

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from lowwater.replay.course import Course, Sheet, Turn

Form = Literal["whole", "elided", "cleared", "summary"]
"""A turn as it came, with its results as digests, with its results as plain placeholders; or a summary of turns."""


class Piece(Struct, frozen=True, kw_only=True):
    """What a view shows of one turn, or a summary; equal pieces are the same bytes."""

    form: Form
    turn: int
    """The turn; of a summary, the first turn behind it."""
    tokens: int
    serial: int = 0
    """Tells summaries apart that reach equally far: no two texts are the same."""
    depth: int = 0
    """How many times its content was summarised before."""


class Asking(Struct, frozen=True, kw_only=True):
    """A call for a summary, in tokens; `other` is a cheaper model that sees only what it is to summarise."""

    read: int = 0
    fresh: int = 0
    written: int = 0
    output: int = 0
    other: bool = False

    def cost(self, sheet: Sheet) -> int:
        """Return what it costs, undivided."""
        if self.other:
            return (
                sheet.other_input * (self.read + self.fresh + self.written) + sheet.other_output * self.output
            )
        return (
            sheet.read * self.read
            + sheet.input * self.fresh
            + sheet.write * self.written
            + sheet.output * self.output
        )


class Change(Struct, frozen=True, kw_only=True):
    """Another view to go on with, and the calls it took to make."""

    pieces: tuple[Piece, ...]
    asked: tuple[Asking, ...] = ()


class View(Struct, frozen=True, kw_only=True):
    """What would be sent at a turn's call, and what was sent at the one before."""

    course: Course
    sheet: Sheet
    pieces: tuple[Piece, ...]
    sent: int
    """The size of the prompt before this one."""
    cold: bool
    serial: int
    """How many summaries there were so far."""

    @property
    def size(self) -> int:
        """The prompt in tokens."""
        return self.course.fixed + tokens_of(self.pieces)

    def summary(self, tokens: int, upto: int, *, later: int = 0, depth: int = 0) -> Piece:
        """Return a new summary of all before a turn; `later` numbers those of one change."""
        return Piece(form="summary", turn=upto, tokens=tokens, serial=self.serial + later + 1, depth=depth)

    def riding(self, output: int) -> Asking:
        """Return the request before, sent again with an instruction: warm it is read, cold it is input."""
        sheet = self.sheet
        if self.cold:
            return Asking(fresh=self.sent + sheet.instruction, output=output)
        return Asking(read=self.sent, fresh=sheet.instruction, output=output)

    def cheapest(self, covered: int, output: int) -> Asking:
        """Return the cheaper of riding the request before and of showing `covered` tokens to another model."""
        riding, other = self.riding(output), self.elsewhere(covered, output)
        return min(riding, other, key=lambda asking: asking.cost(self.sheet))

    def elsewhere(self, covered: int, output: int) -> Asking:
        """Return a request that shows another model `covered` tokens."""
        return Asking(fresh=covered + self.sheet.instruction, output=output, other=True)

    def tail(self, tokens: int) -> int:
        """Return the index of the first piece of a tail of at most so many tokens; the newest is always in it."""
        left = tokens
        for index in range(len(self.pieces) - 1, -1, -1):
            left -= self.pieces[index].tokens
            if left < 0:
                return min(index + 1, len(self.pieces) - 1)
        return 0


class Peer(Protocol):
    """A policy with actions of its own; asked before every call of one course, in order."""

    def __call__(self, view: View, /) -> Change | None:
        """Return the view to send instead, or None for the one there is."""
        ...


def tokens_of(pieces: Iterable[Piece]) -> int:
    """Return the tokens of pieces together."""
    return sum(piece.tokens for piece in pieces)


def piece_of(turns: Sequence[Turn], index: int, form: Form, *, placeholder: int = 0) -> Piece:
    """Return a turn in a form; `placeholder` is what stands for results that were cleared."""
    turn = turns[index]
    match form:
        case "elided":
            tokens = turn.text + turn.elided
        case "cleared":
            tokens = turn.text + min(turn.results, placeholder)
        case _:
            tokens = turn.whole
    return Piece(form=form, turn=index, tokens=tokens)
