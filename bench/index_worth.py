"""Which names behind a summary are used later: what the index of names is ranked and cut by.

    .venv/bin/python -m bench.index_worth [--sessions N]

Recorded sessions of at least 60 calls are cut after 40, 80, 160 and 320 calls. What is more than 20 calls old there counts as
summarised; its names that stand nowhere else are those an index could list (`lowwater.core.summary.index`), and the uses
(`lowwater.lab.references`) after the cut are looked for in them. The first table tells by source how many of the uses have such
a name, what listing all of them would take, and how many uses there are for each token of a name by its worth per token,
which is `_USES_PER_WORTH` of the index. The second compares orders: how many of those uses the names of so many tokens
hold. The regression is fitted for each source on all others, and is not shipped. The last line is about files that were edited
in the 40 calls before a cut and last read before what is kept: how many of them are read again within 20 calls.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import log2

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bench.configurations import chosen
from bench.transcripts import ABSENT, CANONICAL
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.mechanisms.digest import choose_names
from lowwater.core.messages import Message
from lowwater.core.references import reference_kind
from lowwater.core.summary.index import ListedResult, results_to_list
from lowwater.core.tools import class_of, path_of
from lowwater.core.view import Original
from lowwater.lab.references.uses import LaterUse, find_words, uses_of
from lowwater.lab.replay.script import script_of

LEAST_CALLS, CUTS, KEPT = 60, (40, 80, 160, 320), 20
RECENT, SOON = 40, 20
BUDGETS = (500, 1_000, 1_500, 2_500, 4_000)
TOKENIZER = tokenizer_for("o200k")
ALL = 10**9
Numbers = NDArray[np.float64]


class Row(Struct, frozen=True, kw_only=True):
    """A name that an index could list at one cut."""

    source: str
    cut: int
    tokens: int
    value: float
    """Its worth per token."""
    features: tuple[float, ...]
    is_used: bool


class Cut(Struct, frozen=True, kw_only=True):
    """What happened at one cut of one session."""

    source: str
    uses: int
    found: int
    """The uses that are in a name which could be listed."""
    rows: tuple[Row, ...]
    edited: "EditedFiles"


class EditedFiles(Struct, kw_only=True):
    """Files that were edited shortly before a cut and whose content is not kept."""

    files: int = 0
    read_again: int = 0
    tokens: int = 0
    """Of their last reads."""


def cuts_of(messages: Sequence[Message], source: str, first: int) -> Iterator[Cut]:
    """Yield what an index could list at each cut of a session."""
    uses, answers = uses_of(messages), [at for at, each in enumerate(messages) if each.role == "assistant"]
    items = [Original(number=at, message=each, tokens=0) for at, each in enumerate(messages, start=1)]
    for number, calls in enumerate(CUTS):
        if calls < len(answers):
            tail, end = answers[calls - KEPT], answers[calls]
            listed = results_to_list(items[:tail], beside=items[tail:end], redact=True)
            later = [use for use in uses if use.number > end and use.origin.number <= tail]
            edited = edited_files(messages, answers, calls, tail)
            yield _cut(listed, later, edited, source=source, number=first + number, calls=calls)


def edited_files(messages: Sequence[Message], answers: Sequence[int], calls: int, tail: int) -> EditedFiles:
    """Return what became of the files that were edited in the calls before a cut and last read before message `tail`."""
    made = {call.id: call for message in messages for call in message.calls}
    end, recently = answers[calls], answers[max(0, calls - RECENT)]
    soon = answers[min(len(answers) - 1, calls + SOON)]
    edited = {
        path_of(call)
        for message in messages[recently:end]
        for call in message.calls
        if class_of(call) == "write" and path_of(call)
    }
    last: dict[str, tuple[int, int]] = {}
    for at, message in enumerate(messages[:end]):
        for result in message.results:
            call = made.get(result.call_id)
            if call is not None and class_of(call) == "read" and path_of(call) in edited:
                last[path_of(call)] = at, TOKENIZER.count(result.text)
    again = {
        path_of(call) for message in messages[end:soon] for call in message.calls if class_of(call) == "read"
    }
    found = EditedFiles()
    for path, (at, tokens) in last.items():
        if at < tail:
            found.files += 1
            found.tokens += tokens
            found.read_again += path in again
    return found


def _cut(
    listed: Sequence[ListedResult],
    later: Sequence[LaterUse],
    edited: EditedFiles,
    *,
    source: str,
    number: int,
    calls: int,
) -> Cut:
    by_result: dict[int, list[LaterUse]] = defaultdict(list)
    for use in later:
        by_result[use.origin.number].append(use)
    used: set[str] = set()
    found = 0
    for result in listed:
        for use in by_result[result.number]:
            hits = [name for name in result.names if find_words(use.text, name.shown) >= 0]
            found += bool(hits)
            used.update(name.text for name in hits[:1])
    holders = {name.text: result for result in listed for name in result.names}
    newest = max((result.number for result in listed), default=0)
    rows = [
        Row(
            source=source,
            cut=number,
            tokens=offer.tokens,
            value=offer.value,
            features=_features(offer.name.text, offer.name.worth, holders[offer.name.text], newest, calls),
            is_used=offer.name.text in used,
        )
        for offer in choose_names([name for result in listed for name in result.names], ALL, TOKENIZER)
    ]
    return Cut(source=source, uses=len(later), found=found, rows=tuple(rows), edited=edited)


def _features(name: str, worth: float, result: ListedResult, newest: int, calls: int) -> tuple[float, ...]:
    kind = reference_kind(name)
    return (
        1.0,
        log2(worth),
        log2(calls),
        log2(1 + (newest - result.number) / 2),
        log2(1 + result.chars),
        log2(1 + len(result.names)),
        log2(len(name)),
        float(kind == "path"),
        float(kind == "number"),
        *(float(result.kind == tool) for tool in ("read", "shell", "search", "agent")),
    )


def fitted(features: Numbers, used: Numbers, *, penalty: float = 3.0) -> Numbers:
    """Return the weights of a logistic regression."""
    weights = np.zeros(features.shape[1])
    weights[0] = -4.0
    ridge = np.diag([1e-6, *[penalty] * (len(weights) - 1)])
    for _ in range(30):
        chance = _chance(features, weights)
        slope = features.T @ (used - chance) - ridge @ weights
        curve = (features * (chance * (1 - chance))[:, None]).T @ features + ridge
        weights += np.linalg.solve(curve, slope)
    return weights


def _chance(features: Numbers, weights: Numbers) -> Numbers:
    chance: Numbers = 1 / (1 + np.exp(-(features @ weights)))
    return chance


def by_regression(rows: Sequence[Row]) -> Numbers:
    """Return the chance per token of each name, from the other sources."""
    features = np.array([row.features for row in rows])
    used = np.array([row.is_used for row in rows], dtype=float)
    source = np.array([row.source for row in rows])
    chance = np.zeros(len(rows))
    for left_out in sorted(set(source)):
        inside = source == left_out
        if used[~inside].any():
            chance[inside] = _chance(features[inside], fitted(features[~inside], used[~inside]))
    tokens: Numbers = np.array([row.tokens for row in rows], dtype=float)
    return chance / tokens


def kept(rows: Sequence[Row], order: Numbers, budget: int) -> float:
    """Return the share of used names among the first of each cut that fit into the budget."""
    room: dict[int, int] = defaultdict(lambda: budget)
    used = 0
    for at in np.argsort(-order, kind="stable"):
        row = rows[int(at)]
        if row.tokens <= room[row.cut]:
            room[row.cut] -= row.tokens
            used += row.is_used
    return used / max(1, sum(row.is_used for row in rows))


def tables(cuts: Sequence[Cut]) -> Iterator[str]:
    """Yield both tables."""
    yield "| source | cuts | uses after them | in a name that could be listed | tokens of all names, a cut | uses ÷ (tokens × worth per token) |"
    yield "|---|---|---|---|---|---|"
    for source in ("all", *sorted({cut.source for cut in cuts})):
        of = [cut for cut in cuts if source in ("all", cut.source)]
        rows = [row for cut in of for row in cut.rows]
        uses, found = sum(cut.uses for cut in of), sum(cut.found for cut in of)
        worth = sum(row.tokens * row.value for row in rows)
        yield (
            f"| {source} | {len(of)} | {uses:,} | {found / max(1, uses):.1%} | {sum(row.tokens for row in rows) / len(of):,.0f} | "
            f"{found / max(1.0, worth):.5f} |"
        )
    rows = [row for cut in cuts for row in cut.rows]
    tokens: Numbers = np.array([row.tokens for row in rows], dtype=float)
    orders: dict[str, Numbers] = {
        "worth per token (shipped)": np.array([row.value for row in rows]),
        "the shortest first": 1 / tokens,
        "regression, source left out": by_regression(rows),
    }
    yield ""
    yield f"| used names kept in so many tokens | {' | '.join(f'{budget:,}' for budget in BUDGETS)} |"
    yield "|---" * (1 + len(BUDGETS)) + "|"
    for name, order in orders.items():
        yield f"| {name} | {' | '.join(f'{kept(rows, order, budget):.1%}' for budget in BUDGETS)} |"

    files = sum(cut.edited.files for cut in cuts)
    again, read = sum(cut.edited.read_again for cut in cuts), sum(cut.edited.tokens for cut in cuts)
    yield (
        f"\nFiles edited shortly before and not kept: {files:,}, {read / max(1, files):,.0f} tokens each; "
        f"read again soon: {again / max(1, files):.1%}."
    )


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=1_000)
    asked = parser.parse_args()
    if not CANONICAL.exists():
        print(ABSENT)
        return 0
    cuts: list[Cut] = []
    for recording in chosen(LEAST_CALLS)[: asked.sessions]:
        cuts += cuts_of(
            script_of(recording).messages, recording.path.rsplit("/", 2)[-2], len(CUTS) * len(cuts)
        )
        print(f"\r{len(cuts)} cuts", end="", file=sys.stderr, flush=True)
    print("\n".join(tables(cuts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
