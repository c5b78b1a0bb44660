"""Fits the reuse model: how likely a tool result is to be used again, given what the session shows of it.

    .venv/bin/python -m bench.reuse           # some two minutes; tables for bench/README.md
    .venv/bin/python -m bench.reuse --write   # writes the weights into core/mechanisms/reuse.py

Recorded sessions are cut after 10, 20, … calls. Each tool result of 300 characters or more that is at least five calls old is
an example at each cut; it is used if a later answer names something that stands in it alone (see `lowwater.lab.references`).
The features are those of `lowwater.core.mechanisms.reuse.features_of`. A source counts by the square root of its examples, so
that two large repositories do not decide alone.

Each source is foretold by weights that were fitted to all others. *Log loss* and *calibration* (the mean distance between the
chance and the share of used results, in tenths of the examples ordered by chance) are of that, beside the table of chances by
tool, length and age (`chance_of_use`, which was fitted to all sources by hand, and is a feature of the model), and that table
with a weight for each kind of tool that was fitted without the source, as the table itself never was. *Corrected* knows moreover how many uses there were for those expected (`Experience`): in the
session up to the cut, and in the sessions of the same source that came before it, in the order of their files' names.
"""

import argparse
import re
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bench.transcripts import ABSENT, CANONICAL, Session, sessions
from lowwater.core.mechanisms import reuse
from lowwater.core.mechanisms.reuse import (
    Experience,
    ResultFacts,
    chance_of_use,
    facts_of,
    features_of,
    uses_between,
)
from lowwater.core.messages import Message
from lowwater.core.view import Original
from lowwater.lab.references.uses import uses_of

CUTS = (10, 20, 30, 40, 50, 60, 80, 100, 120, 160, 200, 240, 320, 400)
YOUNGEST, SHORTEST, CHARS_PER_TOKEN = 5, 300, 4
PENALTY = 3.0
BINS = 10
FEATURES = ("calls so far", "file changed since")
"""The last features of `features_of` before the experience, each of which the second table leaves out once."""
KINDS = ("read", "shell", "search", "list", "web", "agent", "write", "todo", "other")
Numbers = NDArray[np.float64]


class Example(Struct, frozen=True, kw_only=True):
    """One result at one cut of its session."""

    source: str
    cut: int
    """Which cut of which session, in order."""
    first: int
    """The number of the session's first cut."""
    facts: ResultFacts
    used: bool
    """It is used after the cut."""
    elapsed: int
    """The calls up to the session's next cut; 0 if there is none."""
    used_soon: bool
    """It is used before the next cut."""


def examples_of(session: Session, first: int) -> Iterator[Example]:
    """Yield the examples of a session."""
    messages = [recorded.message for recorded in session.messages]
    answers = [at for at, message in enumerate(messages) if message.role == "assistant"]
    if len(answers) <= CUTS[0]:
        return
    used: dict[int, set[int]] = defaultdict(set)
    for use in uses_of(messages):
        used[use.origin.number].add(use.turn)
    items = [
        Original(number=at, message=message, tokens=_chars(message) // CHARS_PER_TOKEN)
        for at, message in enumerate(messages, start=1)
    ]
    cuts = [cut for cut in CUTS if cut < len(answers)]
    for at, cut in enumerate(cuts):
        later = cuts[at + 1] if at + 1 < len(cuts) else cut
        shown = items[: answers[cut]]
        for item, facts in zip(shown, facts_of(shown), strict=True):
            if facts is None or facts.calls_ago < YOUNGEST or facts.chars < SHORTEST:
                continue
            uses = sorted(used[item.number])
            after = bisect_right(uses, cut)
            yield Example(
                source=session.name.split("/")[0],
                cut=first + at,
                first=first,
                facts=facts,
                used=after < len(uses),
                elapsed=later - cut,
                used_soon=bisect_right(uses, later) > after,
            )


def _chars(message: Message) -> int:
    return max((len(result.text) for result in message.results), default=len(message.text))


def fitted(features: Numbers, used: Numbers, weight: Numbers) -> Numbers:
    """Return the weights of a logistic regression; they are drawn to those that give the table's chances."""
    prior = np.zeros(features.shape[1])
    prior[1] = 1.0
    weights = prior.copy()
    ridge = np.diag([1e-6, 1e-3, *[PENALTY] * (len(prior) - 2)])
    for _ in range(40):
        chance = _chance(features, weights)
        slope = features.T @ (weight * (used - chance)) - ridge @ (weights - prior)
        curve = (features * (weight * chance * (1 - chance))[:, None]).T @ features + ridge
        step = np.linalg.solve(curve, slope)
        weights += step * min(1.0, 1.0 / float(np.abs(step).max() or 1.0))
    return weights


def _chance(features: Numbers, weights: Numbers) -> Numbers:
    chance: Numbers = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
    return chance


class Data:
    """All examples as arrays."""

    def __init__(self, examples: Sequence[Example]) -> None:
        """Take the examples apart."""
        self.examples = examples
        self.features: Numbers = np.array([features_of(each.facts)[:-1] for each in examples])
        self.used: Numbers = np.array([each.used for each in examples], dtype=float)
        self.source = np.array([each.source for each in examples])
        self.sources = sorted(set(self.source))
        self.table: Numbers = np.array(
            [chance_of_use(each.facts.tool, each.facts.chars, each.facts.calls_ago) for each in examples]
        )
        sizes = {source: float((self.source == source).sum()) for source in self.sources}
        weight: Numbers = np.array([sizes[source] ** -0.5 for source in self.source])
        self.weight: Numbers = weight * len(weight) / weight.sum()

    def left_out(self, columns: Sequence[int], more: Numbers | None = None) -> Numbers:
        """Return the chance of each example by weights that were fitted to the other sources, with these features and perhaps more."""
        features = self._columns(columns, more)
        chance = np.zeros(len(self.used))
        for source in self.sources:
            inside = self.source == source
            weights = fitted(features[~inside], self.used[~inside], self.weight[~inside])
            chance[inside] = _chance(features[inside], weights)
        return chance

    def _columns(self, columns: Sequence[int], more: Numbers | None) -> Numbers:
        features = self.features[:, columns]
        return features if more is None else np.column_stack((features, more))

    def kinds(self) -> Numbers:
        """Return a column for each kind of tool."""
        return np.array([[each.facts.tool == kind for kind in KINDS] for each in self.examples], dtype=float)

    def weights(self, columns: Sequence[int]) -> Numbers:
        """Return the weights fitted to all sources, the last one that of experience with chances by such weights."""
        features = self._columns(columns, None)
        plain = _chance(features, fitted(features, self.used, self.weight))
        for _ in range(2):
            whole = self._columns(columns, self.experience(plain))
            weights = fitted(whole, self.used, self.weight)
            plain = _chance(features, weights[:-1])
        return weights

    def experience(self, chance: Numbers) -> Numbers:
        """Return what was experienced before each example, in its session and its source's earlier ones, with these chances."""
        rows: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for at, each in enumerate(self.examples):
            rows[each.first][each.cut].append(at)
        found = np.zeros(len(chance))
        earlier: dict[str, Experience] = defaultdict(Experience)
        for cuts in rows.values():
            source = self.examples[next(iter(cuts.values()))[0]].source
            own = Experience(before=earlier[source].factor)
            for cut in sorted(cuts):
                found[cuts[cut]] = np.log(own.factor)
                for at in cuts[cut]:
                    each = self.examples[at]
                    age = each.facts.calls_ago
                    expected = uses_between(float(chance[at]), age, age + each.elapsed)
                    own = own.plus(expected, float(each.used_soon))
            earlier[source] = earlier[source].plus(own.expected, own.observed)
        return found


def log_loss(chance: Numbers, used: Numbers) -> float:
    """Return the mean log loss in nats."""
    sure = np.clip(chance, 1e-6, 1 - 1e-6)
    return float(-(used * np.log(sure) + (1 - used) * np.log(1 - sure)).mean())


def calibration(chance: Numbers, used: Numbers) -> float:
    """Return the mean distance of chance and share in tenths of the examples."""
    order = np.argsort(chance, kind="stable")
    parts = np.array_split(order, BINS)
    return float(sum(len(part) * abs(chance[part].mean() - used[part].mean()) for part in parts) / len(order))


def tables(data: Data) -> Iterator[str]:
    """Yield the tables of the README."""
    every = range(data.features.shape[1])
    fixed = len(every) - len(FEATURES)
    model, kinds = data.left_out(every), data.kinds()
    with_kinds = data.left_out(every, kinds)
    columns = {
        "table": data.table,
        "table, left out": data.left_out(range(fixed), kinds),
        "model, left out": model,
        "corrected, left out": data.left_out(every, data.experience(model)),
    }
    titles = " | ".join(f"{name}: log loss | calibration" for name in columns)
    yield f"| source | examples | used | {titles} |"
    yield "|---|---|---|" + "---|---|" * len(columns)
    for source in ("all", *data.sources):
        of = np.ones(len(data.used), dtype=bool) if source == "all" else data.source == source
        cells = " | ".join(
            f"{log_loss(each[of], data.used[of]):.4f} | {calibration(each[of], data.used[of]):.4f}"
            for each in columns.values()
        )
        yield f"| {source} | {of.sum():,} | {data.used[of].mean():.1%} | {cells} |"
    yield ""
    yield "| the model | log loss | calibration |"
    yield "|---|---|---|"
    yield f"| – | {_figures(model, data)} |"
    for at, name in enumerate(FEATURES, start=fixed):
        without = data.left_out([each for each in every if each != at])
        yield f"| without {name} | {_figures(without, data)} |"
    yield f"| with a weight for each kind of tool | {_figures(with_kinds, data)} |"
    learned = np.column_stack((kinds, data.experience(with_kinds)))
    yield f"| the same, corrected | {_figures(data.left_out(every, learned), data)} |"


def _figures(chance: Numbers, data: Data) -> str:
    return f"{log_loss(chance, data.used):.4f} | {calibration(chance, data.used):.4f}"


def write(data: Data) -> None:
    """Put the weights, fitted to all sources, into the file of the model."""
    weights = data.weights(range(data.features.shape[1]))
    path = Path(reuse.__file__)
    shown = ", ".join(f"{weight:.3f}" for weight in weights)
    text = re.sub(r"(?s)WEIGHTS = \([^)]*\)", f"WEIGHTS = ({shown})", path.read_text())
    path.write_text(text)


def main() -> int:
    """Print the tables, or write the weights."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    if not CANONICAL.exists():
        print(ABSENT)
        return 0
    examples: list[Example] = []
    first = 0
    for session in sessions():
        found = list(examples_of(session, first))
        examples += found
        first += len(CUTS)
    data = Data(examples)
    if asked.write:
        write(data)
    else:
        print("\n".join(tables(data)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
