"""What `lowwater recall` found, on a terminal and for programs."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from rich.padding import Padding
from rich.text import Text

from lowwater.cli.kept_words import fitted, on_one_line, printable
from lowwater.core.recall.recalled import Child, Expansion, Recalled, Told, names_messages
from lowwater.core.recall.search import first_line, words_in
from lowwater.core.wording import counted

_INDENT = (0, 0, 0, 4)
_WHO = 26
"""Columns for who speaks."""
_FOUND_BY = "bold yellow"


class Found(Struct, frozen=True, kw_only=True):
    """A message that was found, and the session it is in."""

    session: str
    recalled: Recalled


def found_page(
    wanted: str, found: Sequence[Found], *, width: int, whole: bool, is_mixed: bool = False
) -> Iterator[Text | Padding]:
    """Yield each message with what stands around it; `whole` or one line of it, with its session if `is_mixed`."""
    if not found:
        yield Text(f"No message has any of these words: {on_one_line(wanted, 60)}")
    for index, each in enumerate(found):
        if index:
            yield Text()
        yield from _one(each, wanted, width, whole=whole, is_mixed=is_mixed)


def expansion_page(
    expansion: Expansion, messages: Sequence[Recalled], *, width: int, left: int
) -> Iterator[Text | Padding]:
    """Yield what a handle leads to: the summary if it names one, then a line for each child, or whole messages."""
    children = counted(len(expansion.children) + left, "piece")
    yield Text.assemble((expansion.handle, "bold"), f" · {children}")
    if expansion.text:
        yield Text("\nsummary", style="bold")
        yield Padding(Text(printable(expansion.text)), _INDENT)
        yield Text("\nmade of", style="bold")
    if messages:
        for one in messages:
            yield Text()
            yield from _whole(one)
    else:
        yield from _children(expansion.children, width)
    if left:
        yield Text(f"{left:,} more: a higher --limit shows them", style="bright_black")


def found_said(wanted: str, found: Sequence[Found], *, whole: bool) -> dict[str, object]:
    """Return what was found for programs; texts only where `whole` messages are wanted."""
    return {
        "wanted": wanted,
        "found": [
            {
                "session": each.session,
                **_told(each.recalled),
                "excerpt": each.recalled.excerpt,
                "tokens_with_near": each.recalled.tokens_with_near,
                "group": each.recalled.group,
                "near": [_told(one) | ({"text": one.text} if whole else {}) for one in each.recalled.near],
                **({"text": each.recalled.text} if whole else {}),
            }
            for each in found
        ],
    }


def expansion_said(expansion: Expansion, messages: Sequence[Recalled]) -> dict[str, object]:
    """Return what a handle leads to for programs."""
    return {
        "handle": expansion.handle,
        "summary": expansion.text,
        "children": expansion.children,
        "messages": [_told(one) | {"text": one.text} for one in messages],
    }


def _one(found: Found, wanted: str, width: int, *, whole: bool, is_mixed: bool) -> Iterator[Text | Padding]:
    one = found.recalled
    before = [near for near in one.near if near.number < one.number]
    after = [near for near in one.near if near.number > one.number]
    with_near = f", {one.tokens_with_near:,} with what is around it" if one.near else ""
    session = f"{on_one_line(found.session, 200)} · " if is_mixed else ""
    yield Text.assemble(
        (f"{session}{one.handle}", "bold"),
        f" · {on_one_line(one.who, 60)} · {counted(one.tokens, 'token')}{with_near}",
    )
    yield from _around(before, width)
    text = Text(printable(one.text) if whole else on_one_line(one.excerpt, 300))
    if not names_messages(wanted):
        text.highlight_words(words_in(wanted), _FOUND_BY, case_sensitive=False)
    yield Padding(text, _INDENT)
    yield from _around(after, width)


def _whole(one: Told) -> Iterator[Text | Padding]:
    yield Text.assemble(
        (one.handle, "bold"), f" · {on_one_line(one.who, 60)} · {counted(one.tokens, 'token')}"
    )
    yield Padding(Text(printable(one.text)), _INDENT)


def _around(near: Sequence[Told], width: int) -> Iterator[Text]:
    for one in near:
        said = first_line(one.text)
        yield _line(one.handle, one.who, one.tokens, said=said, width=width, style="bright_black")


def _children(children: Sequence[Child], width: int) -> Iterator[Text]:
    for child in children:
        who = child.who if child.kind == "message" else f"summary of {child.messages:,}"
        yield _line(child.handle, who, child.tokens, said=child.first_line, width=width)


def _line(handle: str, who: str, tokens: int, *, said: str, width: int, style: str = "") -> Text:
    """Return a message on one line that is no wider than the terminal."""
    line = f"{handle:<8}  {fitted(on_one_line(who, 60), _WHO)}  {tokens:>6,}  {on_one_line(said, 200)}"
    return Text(fitted(line, width).rstrip(), style=style)


def _told(one: Told) -> dict[str, object]:
    return {"handle": one.handle, "number": one.number, "who": one.who, "tokens": one.tokens}
