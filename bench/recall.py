"""How much of what later turns use of a tool result is still in the view when only its placeholder is.

    .venv/bin/python -m bench.recall [--fit]

Of every recorded session, the uses (see `lowwater.lab.references`) that come more than 5 calls after a result of more than 600
characters: is the very string in the placeholder, whose tokens are at most 16 % of the result's, frame included?

The placeholder is made as a compaction five calls after the result makes it: names that users, assistant, calls and newer results
show are left out, and names that older results had too come last. Beside it stands one made of the result alone. The chances by
which names are chosen are fitted to the sources; the column "left out" has, for each source, what is kept with chances fitted to
all the others.

`--fit` prints the chances as they are in `core/references.py` instead, fitted to all sources.

The last line is the same for what calls passed to their tools (`call_arguments`).
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from time import process_time

from msgspec import Struct

from bench.transcripts import ABSENT, CANONICAL, sessions
from lowwater.adapters.tokenizer import SplintrTokenizer
from lowwater.core.mechanisms.call_arguments import digested, long_values
from lowwater.core.mechanisms.digest import distinct_names, read_content
from lowwater.core.mechanisms.mechanism import EditContext
from lowwater.core.mechanisms.placeholder import placeholder
from lowwater.core.messages import Message, ToolCall
from lowwater.core.references import NAME, WORTH, WORTH_IN, ContentKind, shape_of
from lowwater.core.tools import classify, subject_of
from lowwater.lab.references.uses import LaterUse, Origin, argument_texts, find_words, uses_of
from lowwater.protocols import Tokenizer

LATER, LONG, RATIO, WANTED = 5, 600, 0.16, 0.88
LEAST: dict[str, float] = {
    "agentv": 0.86,
    "entireio-cli": 0.90,
    "entireio-git-sync": 0.88,
    "packmind-context-evaluator": 0.93,
    "tau-bench": 0.80,
}
"""What has to be left of the late uses of each source that has enough of them, with chances fitted to the other sources."""
_ALIKE = 0.75
"""A chance in one kind of text that is not less than this share of the shape's, or the other way round, is not written down."""
_FIT_SOURCE, _FIT_SESSION, _FIT_SHAPE, _FIT_BOTH = 60_000, 40, 20, 100
"""So many names of a source count at most, and so many of one shape in a session. A shape counts as if so many names more had been used as often
as all are, and a shape in a kind of text as if so many more had been used as often as the shape is."""
_FRAME = "[tool · 10,000 chars elided · recall lw:100]\n"


class Around(Struct, frozen=True, kw_only=True):
    """The names in the rest of the conversation, five calls after a result."""

    known: frozenset[str] = frozenset()
    """Those that users, assistant, calls and newer results show."""
    repeated: frozenset[str] = frozenset()
    """Those in older results."""


Shown = Callable[[Origin, Around, Tokenizer], str]


class Kept(Struct, kw_only=True):
    """How many uses there were, and how many of them are still in the view."""

    uses: int = 0
    kept: int = 0

    @property
    def share(self) -> float:
        """The share that is still there, 1 if there was nothing to keep."""
        return self.kept / self.uses if self.uses else 1.0


def head_and_tail(result: Origin, _around: Around, tokenizer: Tokenizer) -> str:
    """Return a frame with the start and end of the text around it."""
    return _largest(
        lambda size: result.text[:size] + _FRAME + result.text[-size:], len(result.text), result, tokenizer
    )


def bag_of_names(result: Origin, _around: Around, tokenizer: Tokenizer) -> str:
    """Return a frame with the distinct names of the text as they come."""
    names = list(dict.fromkeys(NAME.findall(result.text)))
    return _largest(lambda size: _FRAME + " ".join(names[:size]), len(names), result, tokenizer)


def with_digest(result: Origin, around: Around, tokenizer: Tokenizer) -> str:
    """Return the placeholder as a compaction makes it."""
    return placeholder(
        result.text,
        number=100,
        call=result.call,
        offers_recall=True,
        tokenizer=tokenizer,
        known=around.known,
        repeated=around.repeated,
    )


def with_digest_alone(result: Origin, _around: Around, tokenizer: Tokenizer) -> str:
    """Return the placeholder, made from nothing but the result and its call."""
    return with_digest(result, Around(), tokenizer)


WAYS: dict[str, Shown] = {
    "head and tail": head_and_tail,
    "bag of names": bag_of_names,
    "digest of the result alone": with_digest_alone,
    "digest": with_digest,
}
LEFT_OUT = "left out"


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
    """What one way of eliding kept, by everything the report tells apart."""

    kept: dict[str, Kept]
    tokens: int = 0
    original: int = 0
    over: int = 0
    seconds: float = 0.0
    characters: int = 0

    def of_source(self, source: str) -> Kept:
        """Return what was kept of a source."""
        return self.kept[f"source: {source}"]


def half_of(session: str) -> str:
    """Return whether a session was for tuning or is for the report, by a hash of its id."""
    return "report" if sha256(session.encode()).digest()[0] & 1 else "tune"


class Late(Struct, frozen=True, kw_only=True):
    """A long result with late uses, and what the conversation around it says."""

    session: str
    uses: tuple[LaterUse, ...]
    around: Around

    @property
    def source(self) -> str:
        """The source of its session."""
        return self.session.partition("/")[0]

    @property
    def result(self) -> Origin:
        """The result."""
        return self.uses[0].origin


def late_results() -> Iterator[Late]:
    """Yield every long result of every session that has late uses."""
    for session in sessions():
        messages = [each.message for each in session.messages if each.kind != "compact_summary"]
        by_result: dict[tuple[int, str], list[LaterUse]] = defaultdict(list)
        for use in uses_of(messages):
            if use.later > LATER and len(use.origin.text) > LONG:
                by_result[use.origin.number, use.origin.call.id].append(use)
        said = _Said(messages) if by_result else None
        for uses in by_result.values():
            assert said is not None
            around = said.around(uses[0].origin)
            yield Late(session=session.name, uses=tuple(uses), around=around)


class _Said:
    """The names that each message of a session says, and those in its results."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._talk: list[frozenset[str]] = []
        self._results: list[dict[str, frozenset[str]]] = []
        self._turns: list[int] = []
        turn = 0
        for message in messages:
            turn += message.role == "assistant"
            said = (text for call in message.calls for text in (call.name, *argument_texts(call, keys=True)))
            self._talk.append(frozenset(NAME.findall("\n".join((message.text, *said)))))
            self._results.append(
                {result.call_id: frozenset(NAME.findall(result.text)) for result in message.results}
            )
            self._turns.append(turn)

    def around(self, result: Origin) -> Around:
        """Return the names around a result up to the answer of the call five later, that one included."""
        known, repeated = set[str](), set[str]()
        for at, turn in enumerate(self._turns):
            if turn > result.turn + LATER:
                break
            known |= self._talk[at]
            for call_id, names in self._results[at].items():
                if (at + 1, call_id) != (result.number, result.call.id):
                    (known if at >= result.number else repeated).update(names)
        return Around(known=frozenset(known), repeated=frozenset(repeated - known))


def measure(ways: dict[str, Shown] = WAYS, *, left_out: bool = True) -> dict[str, Measured]:
    """Elide every result that is used late in each way, and look for its uses; `left_out` adds the digest with sources left out."""
    tokenizer = SplintrTokenizer()
    measured = {way: Measured(kept=defaultdict(Kept)) for way in ways}
    every = list(late_results())
    for late in every:
        for way, shown in ways.items():
            _look(measured[way], late, shown=shown, tokenizer=tokenizer)
    if left_out:
        measured[LEFT_OUT] = Measured(kept=defaultdict(Kept))
        counted = [_counted(late) for late in every]
        for source in sorted({late.source for late in every}):
            with chances_fitted_to([each for each in counted if each.source != source]):
                for late in every:
                    if late.source == source:
                        _look(measured[LEFT_OUT], late, shown=with_digest, tokenizer=tokenizer)
    return measured


ByShape = Counter[tuple[ContentKind, str]]


class Counted(Struct, frozen=True, kw_only=True):
    """The new names of a result, and those of them that are used late, by kind of text and shape."""

    source: str
    session: str
    names: ByShape
    used: ByShape


def _counted(late: Late) -> Counted:
    result, used = late.result, {use.text for use in late.uses}
    content = read_content(result.text, tool=classify(result.call.name), subject=subject_of(result.call))
    names = [name.text for name in distinct_names(content, late.around.known | late.around.repeated)]
    shapes = [(content.kind, shape_of(name)) for name in names]
    return Counted(
        source=late.source,
        session=late.session,
        names=Counter(shapes),
        used=Counter(shape for name, shape in zip(names, shapes, strict=True) if name in used),
    )


@contextmanager
def chances_fitted_to(counted: Sequence[Counted]) -> Iterator[None]:
    """Choose names by chances that are fitted to these results only."""
    of_source, of_session = Counter[str](), Counter[tuple[str, tuple[ContentKind, str]]]()
    for each in counted:
        of_source[each.source] += each.names.total()
        of_session.update({(each.session, shape): count for shape, count in each.names.items()})
    new, used = defaultdict[object, float](float), defaultdict[object, float](float)
    for each in counted:
        weight = min(1.0, _FIT_SOURCE / max(1, of_source[each.source]))
        for shape, count in each.names.items():
            # One session about a drawing full of coordinates says little about decimals elsewhere.
            share = weight * min(1.0, _FIT_SESSION / of_session[each.session, shape])
            for key in (shape, shape[1], ""):
                new[key] += share * count
                used[key] += share * each.used[shape]
    usual = used[""] / max(1.0, new[""])
    before, before_in = dict(WORTH), dict(WORTH_IN)
    fitted = {shape: 100 * (used[shape] + _FIT_SHAPE * usual) / (new[shape] + _FIT_SHAPE) for shape in before}
    fitted_in = {
        key: (100 * used[key] + _FIT_BOTH * fitted[key[1]]) / (new[key] + _FIT_BOTH)
        for key in new
        if isinstance(key, tuple)
    }
    try:
        WORTH.update(fitted)
        WORTH_IN.clear()
        WORTH_IN.update(fitted_in)
        yield
    finally:
        WORTH.update(before)
        WORTH_IN.clear()
        WORTH_IN.update(before_in)


def _look(measured: Measured, late: Late, *, shown: Shown, tokenizer: Tokenizer) -> None:
    """Elide a result, and count which of its uses are left."""
    result = late.result
    start = process_time()
    text = shown(result, late.around, tokenizer)
    measured.seconds += process_time() - start
    measured.characters += len(result.text)
    whole, left = tokenizer.count(result.text), tokenizer.count(text)
    measured.original += whole
    measured.tokens += left
    measured.over += left > RATIO * whole
    for use in late.uses:
        kept = find_words(use.text, text) >= 0
        for group in (
            "all",
            f"source: {late.source}",
            f"tool: {classify(result.call.name)}",
            f"reference: {use.kind}",
        ):
            count = measured.kept[group]
            count.uses += 1
            count.kept += kept


def table(measured: dict[str, Measured]) -> str:
    """Return the figures as a Markdown table: all first, then by the number of uses."""
    any_way = next(iter(measured.values()))
    groups = sorted(
        any_way.kept, key=lambda group: (group != "all", group.split(":")[0], -any_way.kept[group].uses)
    )
    lines = [
        f"| uses of | number | {' | '.join(measured)} |",
        f"|---|---|{'---|' * len(measured)}",
    ]
    for group in groups:
        shares = " | ".join(f"{100 * way.kept[group].share:.1f} %" for way in measured.values())
        lines.append(f"| {group} | {any_way.kept[group].uses:,} | {shares} |")
    sizes = " | ".join(f"{100 * way.tokens / way.original:.1f} %" for way in measured.values())
    return "\n".join([*lines, f"| tokens left | | {sizes} |"])


# What calls passed to their tools


def late_uses_of_calls() -> Iterator[tuple[ToolCall, list[LaterUse]]]:
    """Yield the calls whose long arguments are used late, each with these uses."""
    limit = EditContext(size=lambda _: 0, tokenizer=SplintrTokenizer()).preset.elide_limit_chars
    for session in sessions():
        messages = [each.message for each in session.messages if each.kind != "compact_summary"]
        by_call: dict[str, list[LaterUse]] = defaultdict(list)
        calls: dict[str, ToolCall] = {}
        for use in uses_of(messages, of_calls=True):
            call = use.origin.call
            values = long_values(call, limit) if use.later > LATER else []
            if any(find_words(use.text, value.text) >= 0 for value in values):
                calls[call.id] = call
                by_call[call.id].append(use)
        yield from ((calls[call_id], uses) for call_id, uses in by_call.items())


def measure_calls() -> str:
    """Digest every call whose long arguments are used late, and return what is kept of these uses."""
    tokenizer = SplintrTokenizer()
    context = EditContext(size=lambda _: 0, tokenizer=tokenizer, offers_recall=True)
    kept, whole, left = Kept(), 0, 0
    for call, uses in late_uses_of_calls():
        shorter = digested(call, 100, context)
        whole += tokenizer.count(call.arguments)
        left += tokenizer.count(shorter.arguments)
        text = "\n".join(argument_texts(shorter))
        kept.uses += len(uses)
        kept.kept += sum(find_words(use.text, text) >= 0 for use in uses)
    return (
        f"of {kept.uses} late uses of long arguments, {kept.share:.1%} are kept; of the tokens of these calls, "
        f"{left / max(1, whole):.1%} are left"
    )


def main() -> int:
    """Print the tables; fail if the digest keeps less than it must."""
    if not CANONICAL.exists():
        print(ABSENT)
        return 0
    if "--fit" in sys.argv:
        with chances_fitted_to([_counted(late) for late in late_results()]):
            print("WORTH =", {shape: round(chance, 1) for shape, chance in sorted(WORTH.items())})
            apart = {
                key: chance
                for key, chance in WORTH_IN.items()
                if not _ALIKE < chance / WORTH[key[1]] < 1 / _ALIKE
            }
            print("WORTH_IN =", {key: round(chance, 1) for key, chance in sorted(apart.items())})
        return 0
    measured = measure()
    print(table(measured))
    digest, left_out = measured["digest"], measured[LEFT_OUT]
    print(
        f"\n{digest.seconds / digest.characters * 1e6:.2f} s of processor time per million characters, {digest.over} placeholders over 16 %"
    )
    short = [source for source, least in LEAST.items() if left_out.of_source(source).share < least]
    print(f"sources below their bound when left out: {', '.join(short) or 'none'}")
    print(f"\n`call_arguments`: {measure_calls()}")
    return 1 if short or left_out.kept["all"].share < WANTED or digest.over else 0


if __name__ == "__main__":
    sys.exit(main())
