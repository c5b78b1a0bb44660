"""Hermes Agent's two ways to compact, as models on a course (docs/specification.md: C, D)."""

from lowwater.replay.peers_view import Change, Piece, View, piece_of, tokens_of

_THRESHOLD, _TAIL, _RUNWAY = 0.5, 0.2, 0.15
_RATIO, _LEAST, _SHARE, _MOST = 0.2, 2_000, 0.05, 12_000
"""A summary's size: a share of what it replaces, at least, at most so much of the window, at most."""
_PLACEHOLDER = 40
"""Tokens of the line that stands for a turn's results."""
_PROTECTED = ((500_000, 100_000), (128_000, 40_000), (64_000, 20_000), (0, 10_000))
"""The newest tool output that a prune spares, by the size of the window."""
_FLOOR = 64_000


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
