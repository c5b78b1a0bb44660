"""Agents and frameworks that compact at a fixed size or count, as models on a course; their numbers were measured on the real packages."""

from lowwater.replay.peers_view import Asking, Change, Piece, View, piece_of, tokens_of
from lowwater.replay.recorded import KEPT_FREE

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
    pieces = _cleared(view)
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


def _cleared(view: View) -> tuple[Piece, ...]:
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
