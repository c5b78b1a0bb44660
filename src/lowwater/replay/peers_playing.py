"""Plays a policy on a course call by call: what each prompt measured, read, wrote and cost, and what was lost."""

from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct

from lowwater.replay.course import Act, Course, Prune, Sheet, Summarise, Use
from lowwater.replay.peers_view import Change, Peer, Piece, View, piece_of, tokens_of


class Called(Struct, frozen=True, kw_only=True):
    """One call; costs are undivided: a thousandth of a nano-dollar."""

    prompt: int
    read: int
    written: int
    elided: int
    """Tokens of results that placeholders keep out of the prompt."""
    summarised: int
    """Tokens of turns that summaries stand for, less the summaries."""
    cost: int
    asked: int = 0
    """What the calls for summaries before it cost."""
    rework: int = 0


class Happened(Struct, frozen=True, kw_only=True):
    """A change of the view before a call."""

    turn: int
    mode: str
    """`prune` or `summary`."""
    before: int
    after: int
    summaries: int = 0
    """Calls for summaries."""
    summary_tokens: int = 0
    first_changed: int = 0
    """The index of the first piece that changed."""
    forced: bool = False
    """The policy would have gone above the wall."""


class Played(Struct, frozen=True, kw_only=True):
    """A course under a policy; `fits` is False if a prompt did not fit, and then the calls end there."""

    calls: tuple[Called, ...]
    events: tuple[Happened, ...]
    fits: bool = True
    uses: int = 0
    in_view: int = 0

    @property
    def spent(self) -> int:
        """All costs in nano-dollars, without rework."""
        return sum(call.cost + call.asked for call in self.calls) // 1_000

    @property
    def total(self) -> int:
        """All costs in nano-dollars, rework included."""
        return sum(call.cost + call.asked + call.rework for call in self.calls) // 1_000


class Playing:
    """One course under one peer; `cold` says of each call whether the provider finds nothing."""

    def __init__(self, course: Course, sheet: Sheet, cold: Sequence[bool], believed: Sequence[bool]) -> None:
        self._course, self._sheet, self._cold, self._believed = course, sheet, cold, believed
        self._pieces: tuple[Piece, ...] = ()
        self._sent: tuple[Piece, ...] = ()
        self._serial = 0
        self._wholes = list(accumulate(turn.whole for turn in course.turns))
        self._uses: dict[int, list[Use]] = {}
        for use in course.uses or ():
            self._uses.setdefault(use.at, []).append(use)
        self._in_view = 0
        self._events: list[Happened] = []

    def play(self, peer: Peer) -> Played:
        """Play every call."""
        calls: list[Called] = []
        wall, turns = self._sheet.wall, self._course.turns
        for turn in range(len(turns)):
            self._pieces = (*self._pieces, piece_of(turns, turn, "whole"))
            asked = self._change(turn, peer(self._view(turn)))
            if self._view(turn).size > wall and len(self._pieces) > 1:
                asked += self._change(turn, _forced(self._view(turn)), forced=True)
            if self._view(turn).size > wall:
                return self._played(calls, fits=False)
            calls.append(self._call(turn, asked))
            self._sent = self._pieces
        return self._played(calls, fits=True)

    def _played(self, calls: list[Called], *, fits: bool) -> Played:
        return Played(
            calls=tuple(calls),
            events=tuple(self._events),
            fits=fits,
            uses=sum(map(len, self._uses.values())),
            in_view=self._in_view,
        )

    def _view(self, turn: int) -> View:
        return View(
            course=self._course,
            sheet=self._sheet,
            pieces=self._pieces,
            sent=self._course.fixed + tokens_of(self._sent) if turn else 0,
            cold=self._believed[turn],
            serial=self._serial,
        )

    def _change(self, turn: int, change: Change | None, *, forced: bool = False) -> int:
        """Take a change over, and return what its calls cost, billed as the provider's cache really was."""
        if change is None or change.pieces == self._pieces:
            return 0
        before = self._view(turn).size
        new = [piece for piece in change.pieces if piece.form == "summary" and piece.serial > self._serial]
        first = _same(self._pieces, change.pieces)
        self._pieces = change.pieces
        self._serial = max([self._serial, *(piece.serial for piece in new)])
        self._events.append(
            Happened(
                turn=turn,
                mode="summary" if new else "prune",
                before=before,
                after=self._view(turn).size,
                summaries=len(change.asked),
                summary_tokens=tokens_of(new),
                first_changed=first,
                forced=forced,
            )
        )
        return sum(self._billed(turn, asking.read, asking.cost(self._sheet)) for asking in change.asked)

    def _billed(self, turn: int, read: int, cost: int) -> int:
        """Return a cost with what was to be read paid as input, if the provider found nothing after all."""
        lost = self._cold[turn] and not self._believed[turn]
        return cost + (self._sheet.input - self._sheet.read) * read if lost else cost

    def _call(self, turn: int, asked: int) -> Called:
        sheet, course = self._sheet, self._course
        same = _same(self._sent, self._pieces)
        hit = 0 if self._cold[turn] else course.fixed + tokens_of(self._pieces[:same])
        prompt = course.fixed + tokens_of(self._pieces)
        cost = sheet.read * hit + sheet.write * (prompt - hit) + sheet.output * course.turns[turn].output
        shown = {piece.turn: piece for piece in self._pieces if piece.form != "summary"}
        elided = sum(course.turns[index].whole - piece.tokens for index, piece in shown.items())
        whole = self._wholes[turn]
        return Called(
            prompt=prompt,
            read=hit,
            written=prompt - hit,
            elided=elided,
            summarised=max(0, course.fixed + whole - prompt - elided),
            cost=cost,
            asked=asked,
            rework=self._rework(turn, shown, prompt),
        )

    def _rework(self, turn: int, shown: dict[int, Piece], prompt: int) -> int:
        """Return what this turn's uses of things no longer in view cost."""
        cost = 0
        for use in self._uses.get(turn, ()):
            form = shown[use.of].form if use.of in shown else "summary"
            if form == "whole" or (form == "elided" and use.in_digest):
                self._in_view += 1
            else:
                cost += self._sheet.read * prompt + self._sheet.write * use.tokens
        return cost


def play(
    course: Course, sheet: Sheet, peer: Peer, *, cold: Sequence[bool], believed: Sequence[bool]
) -> Played:
    """Return a course under a peer; calls are billed by `cold`, the peer decides by what it `believed`.

    Above the wall, where the peer does nothing about it, everything but the newest turn is summarised.
    """
    return Playing(course, sheet, cold, believed).play(peer)


def carrying_out(acts: Sequence[Act], *, course: Course) -> Peer:
    """Return the peer that takes the declared actions of a schedule, and nothing else."""
    by_turn = {act.turn: act.action for act in acts}

    def decide(view: View) -> Change | None:
        turn = view.pieces[-1].turn
        match by_turn.get(turn):
            case Prune(upto=upto):
                return Change(pieces=tuple(_elided(piece, upto, course) for piece in view.pieces))
            case Summarise(upto=upto):
                covered = [piece for piece in view.pieces if piece.form == "summary" or piece.turn < upto]
                tokens = view.sheet.summary
                return Change(
                    pieces=(view.summary(tokens, upto), *view.pieces[len(covered) :]),
                    asked=(view.cheapest(tokens_of(covered), tokens),),
                )
            case None:
                return None

    return decide


def _elided(piece: Piece, upto: int, course: Course) -> Piece:
    if piece.form != "whole" or piece.turn >= upto:
        return piece
    return piece_of(course.turns, piece.turn, "elided")


def _forced(view: View) -> Change:
    """Return the view with all but the newest turn behind a summary."""
    newest, tokens = view.pieces[-1], view.sheet.summary
    asked = view.cheapest(tokens_of(view.pieces[:-1]), tokens)
    return Change(pieces=(view.summary(tokens, newest.turn), newest), asked=(asked,))


def _same(before: Sequence[Piece], after: Sequence[Piece]) -> int:
    """Return how many pieces at the start are the same."""
    for index, (old, new) in enumerate(zip(before, after, strict=False)):
        if old is not new and old != new:
            return index
    return min(len(before), len(after))
