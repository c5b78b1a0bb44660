"""How much of what later turns use of a tool result is still in the view when only its placeholder is.

    .venv/bin/python -m bench.recall

Of every recorded session, the uses (see `lowwater.lab.references`) that come more than 5 calls after a result of more than 600
characters: is the very string in the placeholder, whose tokens are at most 16 % of the result's, frame included?
The digest was tuned on one half of the sessions; the figures that count are those of the other half.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from time import perf_counter

from msgspec import Struct

from bench.transcripts import ABSENT, CANONICAL, sessions
from lowwater.adapters.tokenizer import SplintrTokenizer
from lowwater.core.mechanisms.placeholder import placeholder
from lowwater.core.messages import Message
from lowwater.core.references import NAME
from lowwater.core.tools import classify
from lowwater.lab.references.uses import LaterUse, Origin, argument_texts, find_words, uses_of
from lowwater.protocols import Tokenizer

LATER, LONG, RATIO, WANTED = 5, 600, 0.16, 0.85
LEAST: dict[str, float] = {
    "agentv": 0.85,
    "entireio-cli": 0.84,
    "entireio-git-sync": 0.73,
    "packmind-context-evaluator": 0.95,
    "tau-bench": 0.70,
}
"""What has to be left of the late uses in the report half of each source that has enough of them.

The digest was tuned on halves of the others; entireio-git-sync came later, as a whole.
"""
UNSEEN = ("entireio-git-sync", "session-share")
"""Sources that were not there when the digest was tuned: WANTED is of the others."""
_FRAME = "[tool · 10,000 chars elided · recall lw:100]\n"

Shown = Callable[[Origin, frozenset[str], Tokenizer], str]


class Kept(Struct, kw_only=True):
    """How many uses there were, and how many of them are still in the view."""

    uses: int = 0
    kept: int = 0

    @property
    def share(self) -> float:
        """The share that is still there, 1 if there was nothing to keep."""
        return self.kept / self.uses if self.uses else 1.0


def head_and_tail(result: Origin, _known: frozenset[str], tokenizer: Tokenizer) -> str:
    """Return a frame with the start and end of the text around it."""
    return _largest(
        lambda size: result.text[:size] + _FRAME + result.text[-size:], len(result.text), result, tokenizer
    )


def bag_of_names(result: Origin, _known: frozenset[str], tokenizer: Tokenizer) -> str:
    """Return a frame with the distinct names of the text as they come."""
    names = list(dict.fromkeys(NAME.findall(result.text)))
    return _largest(lambda size: _FRAME + " ".join(names[:size]), len(names), result, tokenizer)


def with_digest(result: Origin, _known: frozenset[str], tokenizer: Tokenizer) -> str:
    """Return the placeholder, made from nothing but the result and its call."""
    return _placeholder(result, frozenset(), tokenizer)


def with_digest_that_knows(result: Origin, known: frozenset[str], tokenizer: Tokenizer) -> str:
    """Return the placeholder without the names that other messages say."""
    return _placeholder(result, known, tokenizer)


def _placeholder(result: Origin, known: frozenset[str], tokenizer: Tokenizer) -> str:
    return placeholder(
        result.text, number=100, call=result.call, offers_recall=True, tokenizer=tokenizer, known=known
    )


WAYS: dict[str, Shown] = {
    "head and tail": head_and_tail,
    "bag of names": bag_of_names,
    "digest": with_digest,
    "digest that knows the talk": with_digest_that_knows,
}


def _largest(text_of: Callable[[int], str], most: int, result: Origin, tokenizer: Tokenizer) -> str:
    """Return the longest text that is within the ratio."""
    room = int(RATIO * tokenizer.count(result.text))
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if tokenizer.count(text_of(middle)) <= room:
            low = middle
        else:
            high = middle - 1
    return text_of(low) if low else ""


class Measured(Struct, kw_only=True):
    """What one way of eliding kept, by half of the sessions and by everything the report tells apart."""

    kept: dict[tuple[str, str], Kept]
    tokens: int = 0
    original: int = 0
    over: int = 0
    seconds: float = 0.0
    characters: int = 0

    def of_source(self, source: str) -> Kept:
        """Return what was kept in the report half of a source."""
        return self.kept["report", f"source: {source}"]

    @property
    def seen(self) -> Kept:
        """What was kept in the report half of the sources that were there when the digest was tuned."""
        unseen = [self.of_source(source) for source in UNSEEN]
        every = self.kept["report", "all"]
        return Kept(
            uses=every.uses - sum(each.uses for each in unseen),
            kept=every.kept - sum(each.kept for each in unseen),
        )


def half_of(session: str) -> str:
    """Return whether a session was for tuning or is for the report, by a hash of its id."""
    return "report" if sha256(session.encode()).digest()[0] & 1 else "tune"


class Late(Struct, frozen=True, kw_only=True):
    """The late uses of long results in one session, together for each result."""

    source: str
    half: str
    messages: list[Message]
    by_result: dict[tuple[int, str], list[LaterUse]]


def late_uses() -> Iterator[Late]:
    """Yield every session."""
    for session in sessions():
        messages = [each.message for each in session.messages if each.kind != "compact_summary"]
        by_result: dict[tuple[int, str], list[LaterUse]] = defaultdict(list)
        for use in uses_of(messages):
            if use.later > LATER and len(use.origin.text) > LONG:
                by_result[use.origin.number, use.origin.call.id].append(use)
        yield Late(
            source=session.name.partition("/")[0],
            half=half_of(session.id),
            messages=messages,
            by_result=by_result,
        )


def talk(messages: Sequence[Message], until: int) -> str:
    """Return all text up to the answer of call `until`, that one included, but for the results of tools."""
    said: list[str] = []
    turn = 0
    for message in messages:
        turn += message.role == "assistant"
        if turn > until:
            break
        said.append(message.text)
        said += (text for call in message.calls for text in (call.name, *argument_texts(call, keys=True)))
    return "\n".join(said)


def measure(ways: dict[str, Shown] = WAYS) -> dict[str, Measured]:
    """Elide every result that is used late in each way, and look for its uses."""
    tokenizer = SplintrTokenizer()
    measured = {way: Measured(kept=defaultdict(Kept)) for way in ways}
    for late in late_uses():
        for uses in late.by_result.values():
            result = uses[0].origin
            known = frozenset(NAME.findall(talk(late.messages, result.turn + LATER)))
            for way, shown in ways.items():
                _look(measured[way], late, uses, shown=shown, known=known, tokenizer=tokenizer)
    return measured


def _look(
    measured: Measured,
    late: Late,
    uses: list[LaterUse],
    *,
    shown: Shown,
    known: frozenset[str],
    tokenizer: Tokenizer,
) -> None:
    """Elide the result of these uses, and count which of them are left."""
    result = uses[0].origin
    start = perf_counter()
    text = shown(result, known, tokenizer)
    measured.seconds += perf_counter() - start
    measured.characters += len(result.text)
    whole, left = tokenizer.count(result.text), tokenizer.count(text)
    measured.original += whole
    measured.tokens += left
    measured.over += left > RATIO * whole
    for use in uses:
        kept = find_words(use.text, text) >= 0
        for group in (
            "all",
            f"source: {late.source}",
            f"tool: {classify(result.call.name)}",
            f"reference: {use.kind}",
        ):
            count = measured.kept[late.half, group]
            count.uses += 1
            count.kept += kept


def table(measured: dict[str, Measured]) -> str:
    """Return the figures as a Markdown table: all first, then by the number of uses."""
    any_way = next(iter(measured.values()))
    groups = sorted(
        {group for half, group in any_way.kept if half == "report"},
        key=lambda group: (group != "all", group.split(":")[0], -any_way.kept["report", group].uses),
    )
    lines = [
        f"| sessions | uses of | number | {' | '.join(measured)} |",
        f"|---|---|---|{'---|' * len(measured)}",
    ]
    for half, group in [("tune", "all"), *(("report", group) for group in groups)]:
        shares = " | ".join(f"{100 * way.kept[half, group].share:.1f} %" for way in measured.values())
        lines.append(f"| {half} | {group} | {any_way.kept[half, group].uses:,} | {shares} |")
    sizes = " | ".join(f"{100 * way.tokens / way.original:.1f} %" for way in measured.values())
    return "\n".join([*lines, f"| | tokens left | | {sizes} |"])


def main() -> int:
    """Print the table; fail if the digest keeps less than it must."""
    if not CANONICAL.exists():
        print(ABSENT)
        return 0
    measured = measure()
    print(table(measured))
    digest = measured["digest"]
    print(
        f"\n{digest.seconds / digest.characters * 1e6:.2f} s per million characters, {digest.over} placeholders over 16 %"
    )
    short = [source for source, least in LEAST.items() if digest.of_source(source).share < least]
    print(
        f"sources below their bound: {', '.join(short) or 'none'}; without the unseen ones {digest.seen.share:.1%}"
    )
    return 1 if short or digest.seen.share < WANTED or digest.over else 0


if __name__ == "__main__":
    sys.exit(main())
