"""Models of other tools' policies, played on a course."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Literal, Protocol

from msgspec import Struct

from lowwater.core.policies.guarded import guard_leaf
from lowwater.lab.course import KEPT_FREE, Act, Course, Prune, Sheet, Summarise, Turn, Use
from lowwater.lab.schedules import Policy, RentOrBuy, Tally, exact_gate, never, rolling_mask, threshold
from lowwater.settings import LeafSettings

Form = Literal["whole", "elided", "cleared", "summary"]
"""A turn as it came, with its results as digests, with its results as plain placeholders; or a summary of turns."""
_THRESHOLD, _TAIL, _RUNWAY = 0.5, 0.2, 0.15
_RATIO, _LEAST, _SHARE, _MOST = 0.2, 2_000, 0.05, 12_000
"""A summary's size: a share of what it replaces, at least, at most so much of the window, at most."""
_PLACEHOLDER = 40
"""Tokens of the line that stands for a turn's results."""
_PROTECTED = ((500_000, 100_000), (128_000, 40_000), (64_000, 20_000), (0, 10_000))
"""The newest tool output that a prune spares, by the size of the window."""
_FLOOR = 64_000
_LCM_TAIL = 32
"""Turns of the fresh tail: 64 messages, an answer and its results each turn."""
_CONDENSED, _FAN_IN = 2_000, 8
_PASSES = 12
UNGUARDED = LeafSettings(leaf_budget_headroom_factor=0.0, leaf_skip_reduction_threshold=0.0)
"""Both factors at 0 are the plain trigger."""
_CLEARED = 8
"""Tokens of OpenCode's plain placeholder."""
_OPENCODE_SPARED, _OPENCODE_LEAST, _OPENCODE_OUTPUT = 40_000, 20_000, 32_000
_LANGCHAIN_TRIGGER, _LANGCHAIN_KEPT, _LANGCHAIN_NOTE = 100_000, 10, 20
"""Tokens (as measured; the middleware has no trigger by itself), turns of 20 messages, a note's tokens."""
_LANGCHAIN_COUNTS = 0.7
"""Of the tokens of tool results, the share that its estimate by characters finds: 100,000 were 141,000."""
_AGENTS_ITEMS, _ITEMS_WITH_TOOLS, _ITEMS_WITHOUT = 10, 4, 2
"""Reasoning, text, call and output of a turn with tools: so 53 requests have about the 20 compactions that were measured."""
_SERVER_TRIGGER = 200_000
"""OpenAI publishes no default; this is what Hermes asks for where nobody says otherwise."""
DECLARED: Mapping[str, Callable[[Tally], Policy]] = {
    "rent-or-buy": RentOrBuy,
    "exact-gate": exact_gate,
    "threshold-50": threshold(0.5),
    "rolling-mask": rolling_mask,
    "never": never,
}
"""Policies with the optimum's actions and tail: none of them can cost less than it."""


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


def hermes_classic(view: View) -> Change | None:
    """At half of the window the middle is summarised, behind the first turn and before a tail of a tenth of the window.

    The summary comes from another model that sees tool results as one line each (measured: none over 123 characters), and is
    a fifth as long as what it replaces, within bounds. Not modelled: the floor of 20 messages for the tail, the note
    in the system prompt, which breaks the cache there once, and pruning in the head.
    """
    threshold = _THRESHOLD * view.sheet.window
    return _summarised(view, round(_TAIL * threshold)) if view.size >= threshold else None


def hermes_runway(view: View) -> Change | None:
    """At the threshold old tool output is pruned; only if that leaves too little runway, the middle is summarised too.

    Half of the window, at least 64,000 tokens; the newest output is spared by a budget that depends on the window, and a
    prune that reclaims less than a twentieth of it is none. Not modelled: results that are never pruned by their tool.
    """
    window = view.sheet.window
    threshold = min(max(_THRESHOLD * window, _FLOOR), view.sheet.wall)
    if view.size < threshold:
        return None
    least = max(5_000, window // 20)
    tail = view.tail(round(_TAIL * threshold))
    pruned = _pruned(view, tail)
    reclaimed = tokens_of(view.pieces) - tokens_of(pruned)
    target = threshold - max(least, _RUNWAY * threshold)
    if reclaimed >= least and view.size - reclaimed <= target:
        return Change(pieces=pruned)
    return _summarised(view, round(_TAIL * threshold))


def _summarised(view: View, tail_tokens: int) -> Change | None:
    first = 1 if view.pieces[0].form == "whole" and view.pieces[0].turn == 0 else 0
    tail = max(first, view.tail(tail_tokens))
    middle = view.pieces[first:tail]
    if not any(piece.form != "summary" for piece in middle):
        return None
    tokens = _size(tokens_of(middle), view.sheet.window)
    shown = sum(_cleared(view, piece).tokens for piece in middle)
    summary = view.summary(tokens, view.pieces[tail].turn)
    return Change(
        pieces=(*view.pieces[:first], summary, *view.pieces[tail:]), asked=(view.elsewhere(shown, tokens),)
    )


def _size(replaced: int, window: int) -> int:
    return round(min(max(_RATIO * replaced, _LEAST), _SHARE * window, _MOST))


def _pruned(view: View, tail: int) -> tuple[Piece, ...]:
    """Return the view with the results before the tail cleared, but for the newest of them; the one that crosses is kept."""
    left = next(spared for window, spared in _PROTECTED if view.sheet.window >= window)
    pieces = list(view.pieces)
    for index in range(tail - 1, -1, -1):
        piece = pieces[index]
        if left <= 0:
            pieces[index] = _cleared(view, piece)
        elif piece.form == "whole":
            left -= view.course.turns[piece.turn].results
    return tuple(pieces)


def _cleared(view: View, piece: Piece) -> Piece:
    if piece.form != "whole" or view.course.turns[piece.turn].results <= _PLACEHOLDER:
        return piece
    return piece_of(view.course.turns, piece.turn, "cleared", placeholder=_PLACEHOLDER)


class LeafPasses(Struct, frozen=True, kw_only=True):
    """Before a call, if the guards let it through, the oldest 20,000 raw tokens outside the tail become 2,400.

    Eight summaries become one of 2,000; above three quarters of the window passes go on until it fits, at most twelve.
    Summaries come from another model. Not modelled: the smaller fan-ins of deeper levels, preparation in the
    background, and tool loops under one user message, which it cannot compact.
    """

    leaf: LeafSettings = LeafSettings()

    def __call__(self, view: View) -> Change | None:
        """Return the view after the passes that are due."""
        sweep = _Sweep(view, self.leaf)
        budget = view.sheet.window
        is_due = guard_leaf(raw=sweep.raw, assembled=view.size, budget=budget, leaf=self.leaf).compacts
        if is_due:
            sweep.compact()
        most = self.leaf.context_threshold * budget
        while view.size > most and sweep.size > most and len(sweep.asked) < _PASSES and sweep.raw:
            sweep.compact()
        return Change(pieces=tuple(sweep.pieces), asked=tuple(sweep.asked)) if sweep.asked else None


class _Sweep:
    """Passes over one view, one after the other."""

    def __init__(self, view: View, leaf: LeafSettings) -> None:
        self._view, self._leaf = view, leaf
        self.pieces = list(view.pieces)
        self.asked: list[Asking] = []

    @property
    def size(self) -> int:
        """The prompt as the passes leave it."""
        return self._view.course.fixed + tokens_of(self.pieces)

    @property
    def raw(self) -> int:
        """Tokens outside the tail that were never summarised."""
        return sum(piece.tokens for piece in self.pieces[:-_LCM_TAIL] if piece.form != "summary")

    def compact(self) -> None:
        """Take one leaf pass, and condense if there are summaries enough."""
        first = sum(piece.form == "summary" for piece in self.pieces)
        end, taken = first, 0
        while end < len(self.pieces) - _LCM_TAIL and taken < self._leaf.leaf_chunk_tokens:
            taken += self.pieces[end].tokens
            end += 1
        self._replace(first, end, self._leaf.leaf_target_tokens, depth=0)
        leaves = [at for at, piece in enumerate(self.pieces) if piece.form == "summary" and not piece.depth]
        if len(leaves) >= _FAN_IN:
            self._replace(leaves[0], leaves[0] + _FAN_IN, _CONDENSED, depth=1)

    def _replace(self, first: int, end: int, tokens: int, *, depth: int) -> None:
        covered = self.pieces[first:end]
        upto = covered[-1].turn + (covered[-1].form != "summary")
        summary = self._view.summary(tokens, upto, later=len(self.asked), depth=depth)
        self.asked.append(self._view.elsewhere(tokens_of(covered), tokens))
        self.pieces[first:end] = [summary]


def claude_code(view: View) -> Change | None:
    """Near the end of the window, output and a buffer kept free, all history becomes one summary by the same model.

    At 200,000 that is 167,000, as recorded sessions of its later versions show. The request rides the cached prefix, and no tail is kept but the newest turn. Not modelled: the files and
    reminders that it attaches again afterwards, and its clearing of old results in some versions.
    """
    if view.size < view.sheet.window - KEPT_FREE or len(view.pieces) == 1:
        return None
    return _all_but_newest(view, view.riding(view.sheet.summary))


def opencode(view: View) -> Change | None:
    """Results older than the newest 40,000 tokens of them are cleared if that frees 20,000; on overflow, a summary.

    The summary is the same model's, in a request that writes everything to the cache again and reads nothing of it.
    Overflow leaves 32,000 for the output. Not modelled: that it waits for two turns of the user, and spared tools.
    """
    if view.size > view.sheet.window - _OPENCODE_OUTPUT and len(view.pieces) > 1:
        asked = Asking(written=view.size, fresh=view.sheet.instruction, output=view.sheet.summary)
        return _all_but_newest(view, asked)
    pieces = _cleared_window(view)
    freed = tokens_of(view.pieces) - tokens_of(pieces)
    return Change(pieces=pieces) if freed > _OPENCODE_LEAST else None


def langchain(view: View) -> Change | None:
    """`SummarizationMiddleware` at 100,000 tokens: all but the newest 20 messages become a note, without a summary.

    Its history is trimmed to 4,000 tokens before it is summarised, which leaves nothing where one message is longer: the
    model is never called. It estimates tokens by characters, which finds too few in tool results, and counts
    messages only: prompts run higher than its trigger.
    """
    return _langchain(view, _LANGCHAIN_NOTE, None)


def langchain_untrimmed(view: View) -> Change | None:
    """The same with trimming off: the summary is the same model's, in a request that reads nothing from the cache."""
    tokens = view.sheet.summary
    covered = tokens_of(view.pieces[:-_LANGCHAIN_KEPT])
    return _langchain(view, tokens, Asking(fresh=covered + view.sheet.instruction, output=tokens))


def openai_default(view: View) -> Change | None:
    """The Agents SDK's compaction session: every ten items the server makes one opaque item of all but the newest turn.

    The item is billed as a summary that rides the cached prefix. The measurement counted the requests alone, for the server bills its
    compactions apart: without them this model has the 0.46 of never that were measured there, with them 0.8. Not modelled:
    user messages, which stay as they are, and what the opaque item really measures.
    """
    items = 0
    for piece in view.pieces[:-1]:
        if piece.form != "summary":
            items += _ITEMS_WITH_TOOLS if view.course.turns[piece.turn].results else _ITEMS_WITHOUT
    return _all_but_newest(view, view.riding(view.sheet.summary)) if items >= _AGENTS_ITEMS else None


def openai_server(view: View) -> Change | None:
    """`context_management` on the server: at 200,000 tokens, or where the window ends before, one opaque item.

    It is billed as a summary that rides the cached prefix. Not modelled: what the opaque item really measures.
    """
    if view.size < min(_SERVER_TRIGGER, view.sheet.wall) or len(view.pieces) == 1:
        return None
    return _all_but_newest(view, view.riding(view.sheet.summary))


def _langchain(view: View, tokens: int, asked: Asking | None) -> Change | None:
    old, kept = view.pieces[:-_LANGCHAIN_KEPT], view.pieces[-_LANGCHAIN_KEPT:]
    if _langchain_count(view) < _LANGCHAIN_TRIGGER or not any(piece.form != "summary" for piece in old):
        return None
    return Change(pieces=(view.summary(tokens, kept[0].turn), *kept), asked=(asked,) if asked else ())


def _langchain_count(view: View) -> float:
    results = sum(view.course.turns[piece.turn].results for piece in view.pieces if piece.form == "whole")
    return tokens_of(view.pieces) - (1 - _LANGCHAIN_COUNTS) * results


def _all_but_newest(view: View, asked: Asking) -> Change:
    newest = view.pieces[-1]
    return Change(pieces=(view.summary(view.sheet.summary, newest.turn), newest), asked=(asked,))


def _cleared_window(view: View) -> tuple[Piece, ...]:
    """Return the view with the results cleared that lie behind the newest 40,000 tokens of them."""
    spared, pieces = _OPENCODE_SPARED, list(view.pieces)
    for index in range(len(pieces) - 1, -1, -1):
        piece = pieces[index]
        if piece.form != "whole":
            break
        results = view.course.turns[piece.turn].results
        if spared <= 0 and results > _CLEARED:
            pieces[index] = piece_of(view.course.turns, piece.turn, "cleared", placeholder=_CLEARED)
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
"""Policies with actions, tails and summaries of their own, which the optimum does not bound."""
