"""A call with its results, as a model is shown it: the results in full where they fit, else by their handles."""

from collections.abc import Sequence

from lowwater.engine.recall.cutting import Count
from lowwater.engine.recall.neighbourhood import group_of, told
from lowwater.engine.recall.showing import caption, part_of, show
from lowwater.values.entries import Numbers
from lowwater.values.ledger import Numbered
from lowwater.values.recalled import Told


def results_of(messages: Sequence[Numbered], one: Told) -> list[Told]:
    """Return the messages with the results of a message's calls, as far as they are near; none if it calls nothing."""
    wanted = {call.id for call in one.message.calls}
    if not wanted:
        return []
    last = group_of(messages, one.number).last
    if last == one.number:
        return []
    behind = told(messages, Numbers(first=one.number + 1, last=last))
    return [each for each in behind if any(result.call_id in wanted for result in each.message.results)]


def show_call(
    messages: Sequence[Numbered], one: Told, results: Sequence[Told], tokens: int, count: Count
) -> str | None:
    """Return a call under its caption and behind it the results that fit, in order; the caption names the others.

    None if there is no room for the call and the names.
    """
    named = list(results)
    pages: list[str] = []
    shown = _call(messages, one, named, tokens, count)
    if shown is None:
        return None
    for each in results:
        page = f"[{caption(messages, each)}]\n{each.text}"
        rest = [other for other in named if other is not each]
        # A call that is itself cut says how to go on in its last line, and leaves no room anyway.
        whole = f"[{_said(messages, one, rest)}]\n{one.text}"
        text = "\n\n".join([whole, *pages, page])
        if each.tokens <= tokens and count(text) <= tokens:
            named, shown = rest, text
            pages.append(page)
    return shown


def _call(
    messages: Sequence[Numbered], one: Told, named: Sequence[Told], tokens: int, count: Count
) -> str | None:
    part = part_of(one, lines=None, characters=None)
    return show(one, _said(messages, one, named), part, tokens, count)


def _said(messages: Sequence[Numbered], one: Told, named: Sequence[Told]) -> str:
    """Return the caption of a call, with the handles of those of its results that are not shown."""
    listed = ", ".join(f"{each.handle} ({each.tokens:,} tokens)" for each in named)
    what = "result" if len(named) == 1 else "results"
    return caption(messages, one) + (f" · {what} in {listed}" if named else "")
