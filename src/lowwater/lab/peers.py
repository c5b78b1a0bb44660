"""Simulates the compaction policies of other tools on a course (a session reduced to token counts).

A peer sees a `PeerView` before each call and may return a `PeerChange`. `play_course` bills the calls. `PEERS` lists the models of
other tools; each docstring says what the tool does (its first line is shown on the replay page) and what the model leaves out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Literal, Protocol

from msgspec import Struct

from lowwater.core.policies.guarded import guard_leaf
from lowwater.lab.course import (
    KEPT_FREE,
    Course,
    CourseAction,
    CoursePrune,
    CourseTurn,
    CourseUse,
    Sheet,
    Summarise,
)
from lowwater.lab.schedules import (
    RentOrBuy,
    SchedulePolicy,
    Tally,
    exact_gate,
    never,
    rolling_mask,
    threshold,
)
from lowwater.settings import LeafSettings

Form = Literal["whole", "elided", "cleared", "summary"]
"""A turn unchanged, with its results elided to digests, or with its results cleared to placeholders; or a summary of turns."""
_HERMES_THRESHOLD, _HERMES_TAIL, _HERMES_RUNWAY = 0.5, 0.2, 0.15
_SUMMARY_RATIO, _MIN_SUMMARY, _MAX_SUMMARY_SHARE, _MAX_SUMMARY = 0.2, 2_000, 0.05, 12_000
"""The size of Hermes' summaries: a share of what they replace, a minimum, a maximum share of the window, and a maximum."""
_HERMES_PLACEHOLDER = 40
"""Tokens of the line that replaces a turn's results."""
_SPARED_OUTPUT = ((500_000, 100_000), (128_000, 40_000), (64_000, 20_000), (0, 10_000))
"""(window, tokens): how much of the newest tool output a prune of Hermes spares, by the size of the window."""
_MIN_THRESHOLD = 64_000
_LCM_TAIL = 32
"""Turns in the fresh tail of lossless-claw: 64 messages, two per turn (an answer and its results)."""
_CONDENSED_TOKENS, _FAN_IN = 2_000, 8
_MAX_PASSES = 12
UNGUARDED = LeafSettings(leaf_budget_headroom_factor=0.0, leaf_skip_reduction_threshold=0.0)
"""With both factors at 0, lossless-claw compacts whenever a leaf chunk is full."""
_OPENCODE_PLACEHOLDER = 8
"""Tokens of OpenCode's placeholder for a cleared result."""
_OPENCODE_SPARED, _OPENCODE_LEAST, _OPENCODE_OUTPUT = 40_000, 20_000, 32_000
_LANGCHAIN_TRIGGER, _LANGCHAIN_KEPT, _LANGCHAIN_NOTE = 100_000, 10, 20
"""The trigger in tokens (as measured; the middleware has no default), turns kept (20 messages), tokens of the note."""
_LANGCHAIN_COUNTS = 0.7
"""LangChain estimates tokens from characters and finds this share of those in tool results (measured: 100,000 of 141,000)."""
_AGENTS_ITEMS, _ITEMS_WITH_TOOLS, _ITEMS_WITHOUT = 10, 4, 2
"""The trigger in items, and items per turn with tools (reasoning, text, call, output) and without.

With these, 53 requests have about 20 compactions, as measured.
"""
_SERVER_TRIGGER = 200_000
"""OpenAI publishes no default; this is the one that Hermes sends."""
DECLARED: Mapping[str, Callable[[Tally], SchedulePolicy]] = {
    "rent-or-buy": RentOrBuy,
    "exact-gate": exact_gate,
    "threshold-50": threshold(0.5),
    "rolling-mask": rolling_mask,
    "never": never,
}
"""Policies limited to the optimum's actions and tail, so that none of them can cost less than the optimum."""


class PeerPiece(Struct, frozen=True, kw_only=True):
    """What a view shows of one turn, or a summary; equal pieces stand for equal bytes."""

    form: Form
    turn: int
    """The index of the turn; for a summary, of the first turn after it."""
    tokens: int
    serial: int = 0
    """Makes summaries that end at the same turn unequal: no two summaries have the same text."""
    depth: int = 0
    """How many times its content had been summarised before."""


class PeerSummaryCall(Struct, frozen=True, kw_only=True):
    """The tokens of a request for a summary; `other` means a cheaper model that is sent only what it summarises."""

    read: int = 0
    fresh: int = 0
    written: int = 0
    output: int = 0
    other: bool = False

    def cost(self, sheet: Sheet) -> int:
        """Return its cost in thousandths of a nano-dollar."""
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


class PeerChange(Struct, frozen=True, kw_only=True):
    """A new view, and the summary calls made for it."""

    pieces: tuple[PeerPiece, ...]
    asked: tuple[PeerSummaryCall, ...] = ()


class PeerView(Struct, frozen=True, kw_only=True):
    """What would be sent with the next call, and what was sent with the previous one."""

    course: Course
    sheet: Sheet
    pieces: tuple[PeerPiece, ...]
    sent: int
    """Tokens of the previous prompt."""
    cold: bool
    serial: int
    """The number of summaries so far."""

    @property
    def size(self) -> int:
        """The prompt in tokens."""
        return self.course.fixed + tokens_of_pieces(self.pieces)

    def summary(self, tokens: int, upto: int, *, later: int = 0, depth: int = 0) -> PeerPiece:
        """Return a new summary of everything before turn `upto`; `later` numbers several summaries of one change."""
        return PeerPiece(
            form="summary", turn=upto, tokens=tokens, serial=self.serial + later + 1, depth=depth
        )

    def cached_prefix_call(self, output: int) -> PeerSummaryCall:
        """Return a request that repeats the previous prompt with an instruction: read from a warm cache, else billed as input."""
        sheet = self.sheet
        if self.cold:
            return PeerSummaryCall(fresh=self.sent + sheet.instruction, output=output)
        return PeerSummaryCall(read=self.sent, fresh=sheet.instruction, output=output)

    def cheapest_call(self, covered: int, output: int) -> PeerSummaryCall:
        """Return the cheaper of a request on the cached prefix and one that sends `covered` tokens to another model."""
        cached, other = self.cached_prefix_call(output), self.other_model_call(covered, output)
        return min(cached, other, key=lambda call: call.cost(self.sheet))

    def other_model_call(self, covered: int, output: int) -> PeerSummaryCall:
        """Return a request that sends `covered` tokens to another model."""
        return PeerSummaryCall(fresh=covered + self.sheet.instruction, output=output, other=True)

    def tail(self, tokens: int) -> int:
        """Return the index at which a tail of at most `tokens` begins; the newest piece is always in it."""
        left = tokens
        for index in range(len(self.pieces) - 1, -1, -1):
            left -= self.pieces[index].tokens
            if left < 0:
                return min(index + 1, len(self.pieces) - 1)
        return 0


class Peer(Protocol):
    """A policy with its own actions; called before every call of a course, in order."""

    def __call__(self, view: PeerView, /) -> PeerChange | None:
        """Return a change to make before the call, or None to send the view as it is."""
        ...


def tokens_of_pieces(pieces: Iterable[PeerPiece]) -> int:
    """Return the sum of the pieces' tokens."""
    return sum(piece.tokens for piece in pieces)


def piece_of(turns: Sequence[CourseTurn], index: int, form: Form, *, placeholder: int = 0) -> PeerPiece:
    """Return a turn in a form; `placeholder` is the size of a cleared result."""
    turn = turns[index]
    match form:
        case "elided":
            tokens = turn.text + turn.elided
        case "cleared":
            tokens = turn.text + min(turn.results, placeholder)
        case _:
            tokens = turn.whole
    return PeerPiece(form=form, turn=index, tokens=tokens)


class CallRecord(Struct, frozen=True, kw_only=True):
    """One call; costs are in thousandths of a nano-dollar."""

    prompt: int
    read: int
    written: int
    elided: int
    """Tokens of results that placeholders keep out of the prompt."""
    summarised: int
    """Tokens of the turns that summaries replace, less the summaries."""
    cost: int
    asked: int = 0
    """Cost of the summary calls before it."""
    rework: int = 0


class ViewChange(Struct, frozen=True, kw_only=True):
    """A change of the view before a call, as recorded."""

    turn: int
    mode: str
    """`prune` or `summary`."""
    before: int
    after: int
    summaries: int = 0
    """The number of summary calls."""
    summary_tokens: int = 0
    first_changed: int = 0
    """The index of the first piece that changed."""
    rewritten: int = 0
    """Tokens from that piece on."""
    forced: bool = False
    """Whether the simulation forced it because the policy would have exceeded the wall."""


class PlayedCourse(Struct, frozen=True, kw_only=True):
    """The result of a course under a policy; if a prompt did not fit the window, `fits` is False and `calls` ends there."""

    calls: tuple[CallRecord, ...]
    events: tuple[ViewChange, ...]
    fits: bool = True
    uses: int = 0
    in_view: int = 0

    @property
    def spent(self) -> int:
        """Cost of calls and summaries in nano-dollars, without rework."""
        return sum(call.cost + call.asked for call in self.calls) // 1_000

    @property
    def total(self) -> int:
        """Total cost in nano-dollars, including rework."""
        return sum(call.cost + call.asked + call.rework for call in self.calls) // 1_000


class Simulation:
    """Plays one course under one peer.

    `cold` says for each call whether the provider's cache has lost the prefix, `believed` what the peer expects.
    """

    def __init__(self, course: Course, sheet: Sheet, cold: Sequence[bool], believed: Sequence[bool]) -> None:
        self._course, self._sheet, self._cold, self._believed = course, sheet, cold, believed
        self._pieces: tuple[PeerPiece, ...] = ()
        self._sent: tuple[PeerPiece, ...] = ()
        self._serial = 0
        self._wholes = list(accumulate(turn.whole for turn in course.turns))
        self._uses: dict[int, list[CourseUse]] = {}
        for use in course.uses or ():
            self._uses.setdefault(use.at, []).append(use)
        self._in_view = 0
        self._events: list[ViewChange] = []

    def play(self, peer: Peer) -> PlayedCourse:
        """Play every call and return the result."""
        calls: list[CallRecord] = []
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

    def _played(self, calls: list[CallRecord], *, fits: bool) -> PlayedCourse:
        return PlayedCourse(
            calls=tuple(calls),
            events=tuple(self._events),
            fits=fits,
            uses=sum(map(len, self._uses.values())),
            in_view=self._in_view,
        )

    def _view(self, turn: int) -> PeerView:
        return PeerView(
            course=self._course,
            sheet=self._sheet,
            pieces=self._pieces,
            sent=self._course.fixed + tokens_of_pieces(self._sent) if turn else 0,
            cold=self._believed[turn],
            serial=self._serial,
        )

    def _change(self, turn: int, change: PeerChange | None, *, forced: bool = False) -> int:
        """Apply a change and return the cost of its summary calls, billed by the real state of the cache."""
        if change is None or change.pieces == self._pieces:
            return 0
        before = self._view(turn).size
        new = [piece for piece in change.pieces if piece.form == "summary" and piece.serial > self._serial]
        first = _common_prefix(self._pieces, change.pieces)
        self._pieces = change.pieces
        self._serial = max([self._serial, *(piece.serial for piece in new)])
        self._events.append(
            ViewChange(
                turn=turn,
                mode="summary" if new else "prune",
                before=before,
                after=self._view(turn).size,
                summaries=len(change.asked),
                summary_tokens=tokens_of_pieces(new),
                first_changed=first,
                rewritten=tokens_of_pieces(change.pieces[first:]),
                forced=forced,
            )
        )
        return sum(self._billed(turn, call.read, call.cost(self._sheet)) for call in change.asked)

    def _billed(self, turn: int, read: int, cost: int) -> int:
        """Return a cost with `read` billed as input if the peer expected a warm cache and it was cold."""
        lost = self._cold[turn] and not self._believed[turn]
        return cost + (self._sheet.input - self._sheet.read) * read if lost else cost

    def _call(self, turn: int, asked: int) -> CallRecord:
        sheet, course = self._sheet, self._course
        same = _common_prefix(self._sent, self._pieces)
        hit = 0 if self._cold[turn] else course.fixed + tokens_of_pieces(self._pieces[:same])
        prompt = course.fixed + tokens_of_pieces(self._pieces)
        cost = sheet.read * hit + sheet.write * (prompt - hit) + sheet.output * course.turns[turn].output
        shown = {piece.turn: piece for piece in self._pieces if piece.form != "summary"}
        elided = sum(course.turns[index].whole - piece.tokens for index, piece in shown.items())
        whole = self._wholes[turn]
        return CallRecord(
            prompt=prompt,
            read=hit,
            written=prompt - hit,
            elided=elided,
            summarised=max(0, course.fixed + whole - prompt - elided),
            cost=cost,
            asked=asked,
            rework=self._rework(turn, shown, prompt),
        )

    def _rework(self, turn: int, shown: dict[int, PeerPiece], prompt: int) -> int:
        """Return the cost of recalling what this turn uses and the view no longer shows."""
        cost = 0
        for use in self._uses.get(turn, ()):
            form = shown[use.of].form if use.of in shown else "summary"
            if form == "whole" or (form == "elided" and use.in_digest):
                self._in_view += 1
            else:
                cost += self._sheet.read * prompt + self._sheet.write * use.tokens
        return cost


def play_course(
    course: Course, sheet: Sheet, peer: Peer, *, cold: Sequence[bool], believed: Sequence[bool]
) -> PlayedCourse:
    """Play a course under a peer: calls are billed by `cold`, the peer decides by `believed`.

    If the peer leaves a prompt above the wall, everything but the newest turn is summarised.
    """
    return Simulation(course, sheet, cold, believed).play(peer)


def follow_schedule(acts: Sequence[CourseAction], *, course: Course) -> Peer:
    """Return a peer that carries out a schedule's actions and nothing else."""
    by_turn = {act.turn: act.action for act in acts}

    def decide(view: PeerView) -> PeerChange | None:
        turn = view.pieces[-1].turn
        match by_turn.get(turn):
            case CoursePrune(upto=upto):
                return PeerChange(pieces=tuple(_elide(piece, upto, course) for piece in view.pieces))
            case Summarise(upto=upto):
                covered = [piece for piece in view.pieces if piece.form == "summary" or piece.turn < upto]
                tokens = view.sheet.summary
                return PeerChange(
                    pieces=(view.summary(tokens, upto), *view.pieces[len(covered) :]),
                    asked=(view.cheapest_call(tokens_of_pieces(covered), tokens),),
                )
            case None:
                return None

    return decide


def _elide(piece: PeerPiece, upto: int, course: Course) -> PeerPiece:
    if piece.form != "whole" or piece.turn >= upto:
        return piece
    return piece_of(course.turns, piece.turn, "elided")


def _forced(view: PeerView) -> PeerChange:
    """Return a change that summarises everything but the newest turn."""
    newest, tokens = view.pieces[-1], view.sheet.summary
    asked = view.cheapest_call(tokens_of_pieces(view.pieces[:-1]), tokens)
    return PeerChange(pieces=(view.summary(tokens, newest.turn), newest), asked=(asked,))


def _common_prefix(before: Sequence[PeerPiece], after: Sequence[PeerPiece]) -> int:
    """Return the number of equal pieces at the start."""
    for index, (old, new) in enumerate(zip(before, after, strict=False)):
        if old is not new and old != new:
            return index
    return min(len(before), len(after))


def hermes_classic(view: PeerView) -> PeerChange | None:
    """Hermes: at half of the window, everything between the first turn and a tail of a tenth of the window is summarised.

    Another model writes the summary; it sees one line per tool result (measured: none over 123 characters). The summary is a
    fifth as long as what it replaces, within bounds. Not modelled: the minimum of 20 messages for the tail, the note in the
    system prompt, which invalidates the cache once, and pruning in the head.
    """
    threshold = _HERMES_THRESHOLD * view.sheet.window
    return _summarise_middle(view, round(_HERMES_TAIL * threshold)) if view.size >= threshold else None


def hermes_runway(view: PeerView) -> PeerChange | None:
    """Hermes with runway: at the threshold, prune old tool output; summarise the middle only if that leaves too little runway.

    The threshold is half of the window, at least 64,000 tokens. The newest output is spared, within a budget that depends on
    the window, and a prune must reclaim at least a twentieth of the window. Not modelled: tools whose results are never pruned.
    """
    window = view.sheet.window
    threshold = min(max(_HERMES_THRESHOLD * window, _MIN_THRESHOLD), view.sheet.wall)
    if view.size < threshold:
        return None
    least = max(5_000, window // 20)
    tail = view.tail(round(_HERMES_TAIL * threshold))
    pruned = _prune_before(view, tail)
    reclaimed = tokens_of_pieces(view.pieces) - tokens_of_pieces(pruned)
    target = threshold - max(least, _HERMES_RUNWAY * threshold)
    if reclaimed >= least and view.size - reclaimed <= target:
        return PeerChange(pieces=pruned)
    return _summarise_middle(view, round(_HERMES_TAIL * threshold))


def _summarise_middle(view: PeerView, tail_tokens: int) -> PeerChange | None:
    first = 1 if view.pieces[0].form == "whole" and view.pieces[0].turn == 0 else 0
    tail = max(first, view.tail(tail_tokens))
    middle = view.pieces[first:tail]
    if not any(piece.form != "summary" for piece in middle):
        return None
    tokens = _summary_size(tokens_of_pieces(middle), view.sheet.window)
    shown = sum(_clear_results(view, piece).tokens for piece in middle)
    summary = view.summary(tokens, view.pieces[tail].turn)
    return PeerChange(
        pieces=(*view.pieces[:first], summary, *view.pieces[tail:]),
        asked=(view.other_model_call(shown, tokens),),
    )


def _summary_size(replaced: int, window: int) -> int:
    return round(min(max(_SUMMARY_RATIO * replaced, _MIN_SUMMARY), _MAX_SUMMARY_SHARE * window, _MAX_SUMMARY))


def _prune_before(view: PeerView, tail: int) -> tuple[PeerPiece, ...]:
    """Return the view with the results before the tail cleared, except the newest within the budget and the one that crosses it."""
    left = next(spared for window, spared in _SPARED_OUTPUT if view.sheet.window >= window)
    pieces = list(view.pieces)
    for index in range(tail - 1, -1, -1):
        piece = pieces[index]
        if left <= 0:
            pieces[index] = _clear_results(view, piece)
        elif piece.form == "whole":
            left -= view.course.turns[piece.turn].results
    return tuple(pieces)


def _clear_results(view: PeerView, piece: PeerPiece) -> PeerPiece:
    if piece.form != "whole" or view.course.turns[piece.turn].results <= _HERMES_PLACEHOLDER:
        return piece
    return piece_of(view.course.turns, piece.turn, "cleared", placeholder=_HERMES_PLACEHOLDER)


class LeafPasses(Struct, frozen=True, kw_only=True):
    """lossless-claw: if its guards allow, the oldest 20,000 raw tokens outside the tail become a summary of 2,400.

    Eight summaries are condensed into one of 2,000 tokens. Above three quarters of the window, passes continue until the prompt
    fits, at most twelve. Another model writes the summaries. Not modelled: the smaller fan-ins of deeper levels, preparation
    in the background, and tool loops under one user message, which it cannot compact.
    """

    leaf: LeafSettings = LeafSettings()

    def __call__(self, view: PeerView) -> PeerChange | None:
        """Return the view after all passes that are due."""
        sweep = _Sweep(view, self.leaf)
        budget = view.sheet.window
        is_due = guard_leaf(raw=sweep.raw, assembled=view.size, budget=budget, leaf=self.leaf).compacts
        if is_due:
            sweep.compact()
        most = self.leaf.context_threshold * budget
        while view.size > most and sweep.size > most and len(sweep.asked) < _MAX_PASSES and sweep.raw:
            sweep.compact()
        return PeerChange(pieces=tuple(sweep.pieces), asked=tuple(sweep.asked)) if sweep.asked else None


class _Sweep:
    """A sequence of passes over one view."""

    def __init__(self, view: PeerView, leaf: LeafSettings) -> None:
        self._view, self._leaf = view, leaf
        self.pieces = list(view.pieces)
        self.asked: list[PeerSummaryCall] = []

    @property
    def size(self) -> int:
        """Tokens of the prompt after the passes so far."""
        return self._view.course.fixed + tokens_of_pieces(self.pieces)

    @property
    def raw(self) -> int:
        """Unsummarised tokens outside the tail."""
        return sum(piece.tokens for piece in self.pieces[:-_LCM_TAIL] if piece.form != "summary")

    def compact(self) -> None:
        """Make one leaf pass, and condense if there are enough summaries."""
        first = sum(piece.form == "summary" for piece in self.pieces)
        end, taken = first, 0
        while end < len(self.pieces) - _LCM_TAIL and taken < self._leaf.leaf_chunk_tokens:
            taken += self.pieces[end].tokens
            end += 1
        self._replace(first, end, self._leaf.leaf_target_tokens, depth=0)
        leaves = [at for at, piece in enumerate(self.pieces) if piece.form == "summary" and not piece.depth]
        if len(leaves) >= _FAN_IN:
            self._replace(leaves[0], leaves[0] + _FAN_IN, _CONDENSED_TOKENS, depth=1)

    def _replace(self, first: int, end: int, tokens: int, *, depth: int) -> None:
        covered = self.pieces[first:end]
        upto = covered[-1].turn + (covered[-1].form != "summary")
        summary = self._view.summary(tokens, upto, later=len(self.asked), depth=depth)
        self.asked.append(self._view.other_model_call(tokens_of_pieces(covered), tokens))
        self.pieces[first:end] = [summary]


def claude_code(view: PeerView) -> PeerChange | None:
    """Claude Code: near the end of the window, the whole history but the newest turn becomes one summary by the same model.

    It keeps room for the output and a buffer: in a window of 200,000 it compacts at 167,000, as recorded sessions of later
    versions show. The summary is requested on the cached prefix. Not modelled: the files and reminders that it attaches again
    afterwards, and its clearing of old results in some versions.
    """
    if view.size < view.sheet.window - KEPT_FREE or len(view.pieces) == 1:
        return None
    return _all_but_newest(view, view.cached_prefix_call(view.sheet.summary))


def opencode(view: PeerView) -> PeerChange | None:
    """OpenCode: clears results older than the newest 40,000 tokens of them if that frees 20,000; on overflow, summarises.

    The same model writes the summary, in a request that writes everything to the cache again and reads nothing from it.
    Overflow means less than 32,000 tokens left for the output. Not modelled: that it waits for two user turns, and tools whose
    results it spares.
    """
    if view.size > view.sheet.window - _OPENCODE_OUTPUT and len(view.pieces) > 1:
        asked = PeerSummaryCall(written=view.size, fresh=view.sheet.instruction, output=view.sheet.summary)
        return _all_but_newest(view, asked)
    pieces = _clear_old_results(view)
    freed = tokens_of_pieces(view.pieces) - tokens_of_pieces(pieces)
    return PeerChange(pieces=pieces) if freed > _OPENCODE_LEAST else None


def langchain(view: PeerView) -> PeerChange | None:
    """LangChain's `SummarizationMiddleware` at 100,000 tokens: all but the newest 20 messages become a note, without a summary.

    It trims the history to 4,000 tokens before summarising. If one message is longer than that, nothing is left and the model
    is never called. It estimates tokens from characters, too few for tool results, and counts messages only, so prompts grow
    beyond its trigger.
    """
    return _langchain(view, _LANGCHAIN_NOTE, None)


def langchain_untrimmed(view: PeerView) -> PeerChange | None:
    """LangChain with trimming off: the same model writes the summary, in a request that reads nothing from the cache."""
    tokens = view.sheet.summary
    covered = tokens_of_pieces(view.pieces[:-_LANGCHAIN_KEPT])
    return _langchain(view, tokens, PeerSummaryCall(fresh=covered + view.sheet.instruction, output=tokens))


def openai_default(view: PeerView) -> PeerChange | None:
    """The OpenAI Agents SDK's compaction session: every ten items, the server replaces all but the newest turn by an opaque item.

    The item is billed like a summary requested on the cached prefix. The measurement counted only the requests, because the
    server bills its compactions separately: without them this model costs 0.46 of `never`, as measured; with them 0.8. Not
    modelled: user messages, which stay as they are, and the real size of the opaque item.
    """
    items = 0
    for piece in view.pieces[:-1]:
        if piece.form != "summary":
            items += _ITEMS_WITH_TOOLS if view.course.turns[piece.turn].results else _ITEMS_WITHOUT
    return (
        _all_but_newest(view, view.cached_prefix_call(view.sheet.summary)) if items >= _AGENTS_ITEMS else None
    )


def openai_server(view: PeerView) -> PeerChange | None:
    """OpenAI's `context_management` on the server: one opaque item at 200,000 tokens, or at the wall if that is lower.

    It is billed like a summary requested on the cached prefix. Not modelled: the real size of the opaque item.
    """
    if view.size < min(_SERVER_TRIGGER, view.sheet.wall) or len(view.pieces) == 1:
        return None
    return _all_but_newest(view, view.cached_prefix_call(view.sheet.summary))


def _langchain(view: PeerView, tokens: int, asked: PeerSummaryCall | None) -> PeerChange | None:
    old, kept = view.pieces[:-_LANGCHAIN_KEPT], view.pieces[-_LANGCHAIN_KEPT:]
    if _langchain_count(view) < _LANGCHAIN_TRIGGER or not any(piece.form != "summary" for piece in old):
        return None
    return PeerChange(pieces=(view.summary(tokens, kept[0].turn), *kept), asked=(asked,) if asked else ())


def _langchain_count(view: PeerView) -> float:
    results = sum(view.course.turns[piece.turn].results for piece in view.pieces if piece.form == "whole")
    return tokens_of_pieces(view.pieces) - (1 - _LANGCHAIN_COUNTS) * results


def _all_but_newest(view: PeerView, asked: PeerSummaryCall) -> PeerChange:
    newest = view.pieces[-1]
    return PeerChange(pieces=(view.summary(view.sheet.summary, newest.turn), newest), asked=(asked,))


def _clear_old_results(view: PeerView) -> tuple[PeerPiece, ...]:
    """Return the view with all results cleared that are older than the newest 40,000 tokens of results."""
    spared, pieces = _OPENCODE_SPARED, list(view.pieces)
    for index in range(len(pieces) - 1, -1, -1):
        piece = pieces[index]
        if piece.form != "whole":
            break
        results = view.course.turns[piece.turn].results
        if spared <= 0 and results > _OPENCODE_PLACEHOLDER:
            pieces[index] = piece_of(
                view.course.turns, piece.turn, "cleared", placeholder=_OPENCODE_PLACEHOLDER
            )
        spared -= results
    return tuple(pieces)


PEERS: Mapping[str, Peer] = {
    "hermes-classic": hermes_classic,
    "hermes-runway": hermes_runway,
    "lcm-leaf": LeafPasses(leaf=UNGUARDED),
    "lcm-guarded": LeafPasses(),
    "claude-code": claude_code,
    "opencode": opencode,
    "langchain": langchain,
    "langchain-untrimmed": langchain_untrimmed,
    "openai-default": openai_default,
    "openai-server": openai_server,
}
"""Policies with their own actions, tails and summaries; the optimum is not a lower bound for them."""
