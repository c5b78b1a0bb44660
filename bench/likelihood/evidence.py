"""What the scores say: the validity check, the tables with paired bootstrap intervals, and the picture."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bench.likelihood.inputs import FULL
from bench.likelihood.points import BANDS, band_of
from bench.likelihood.probes import NEEDED as PROBES_NEEDED
from bench.likelihood.prompts import KINDS
from bench.likelihood.validity import NEEDED_AUC, NEEDED_PAIRS, auc

DRAWS, AUC_DRAWS, SEED = 2_000, 500, 20_261_119
CEILING_LABELS = ("50%", "25%", "12%")
OURS = "lowwater"
FEWEST = 30
"""Points that a view needs for a dot in the picture."""
REFERENCES: tuple[str, ...] = ("name", "path", "number")
"""The kinds of tokens that the tables are about: over all tokens the validity check does not pass."""
Row = Mapping[str, Any]
Scores = Mapping[str, Mapping[str, Row]]
"""By point, then by view."""


class Interval(Struct, frozen=True, kw_only=True):
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ({self.low:+.3f} to {self.high:+.3f})"

    @property
    def is_clear(self) -> bool:
        """Whether it does not hold zero."""
        return self.low > 0 or self.high < 0


class Validity(Struct, frozen=True, kw_only=True):
    """The outcome of the validity check."""

    pairs: int
    auc: float
    low: float
    high: float
    """The 95 % interval of the AUC."""
    named: float
    """Median nats that removing a named result costs."""
    other: float

    @property
    def passes(self) -> bool:
        """Whether the instrument may be believed."""
        return self.pairs >= NEEDED_PAIRS and self.auc >= NEEDED_AUC


def by_point(rows: Iterable[Row]) -> dict[str, dict[str, Row]]:
    """Return the rows of points whose full prompt was scored."""
    found: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        found[row["point"]][row["view"]] = row
    return {point: views for point, views in found.items() if FULL in views}


def lost(views: Mapping[str, Row], view: str, kinds: Sequence[str] = REFERENCES) -> float:
    """Return the nats that an action loses under a view against the full prompt, over tokens of these kinds."""
    full, other = views[FULL]["logs"], views[view]["logs"]
    return float(sum(full.get(kind, 0.0) - other.get(kind, 0.0) for kind in kinds))


def validity_of(scores: Scores, kinds: Sequence[str] = REFERENCES) -> Validity | None:
    """Return how well removing a named result is told from removing another; None without pairs."""
    of_session: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for point, views in scores.items():
        if "named-0" in views and "other-0" in views:
            of_session[session_of(point)].append(
                (lost(views, "named-0", kinds), lost(views, "other-0", kinds))
            )
    sessions = list(of_session.values())
    if not sessions:
        return None
    named, other = zip(*(pair for pairs in sessions for pair in pairs), strict=True)
    draw = Random(SEED)
    drawn = []
    for _ in range(AUC_DRAWS):
        again = [pair for pairs in draw.choices(sessions, k=len(sessions)) for pair in pairs]
        drawn.append(auc([one for one, _ in again], [two for _, two in again]))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Validity(
        pairs=len(named),
        auc=auc(named, other),
        low=float(low),
        high=float(high),
        named=float(np.median(named)),
        other=float(np.median(other)),
    )


def session_of(point: str) -> str:
    """Return the session that a point is of: points of one session are drawn together."""
    return point.rpartition("#")[0]


def interval(values: Sequence[float], weights: Sequence[float], sessions: Sequence[str]) -> Interval:
    """Return the sum of the values over that of the weights, with a bootstrap over sessions."""
    names = sorted(set(sessions))
    place = {name: at for at, name in enumerate(names)}
    sums: NDArray[np.float64] = np.zeros((2, len(names)))
    for value, weight, session in zip(values, weights, sessions, strict=True):
        sums[0, place[session]] += value
        sums[1, place[session]] += weight
    drawn = np.random.default_rng(SEED).integers(0, len(names), (DRAWS, len(names)))
    totals = sums[:, drawn].sum(axis=2)
    means = totals[0] / np.maximum(totals[1], 1e-9)
    low, high = np.percentile(means, [2.5, 97.5])
    mean = sums[0].sum() / max(sums[1].sum(), 1e-9)
    return Interval(mean=float(mean), low=float(low), high=float(high))


def loss_per_token(
    scores: Scores, view: str, *, against: str = FULL, kinds: Sequence[str] = REFERENCES, band: int = 0
) -> Interval | None:
    """Return the nats per token that actions lose under a view, against the full prompt or another view, on points that have both."""
    found: list[tuple[float, float, str]] = []
    for point, views in scores.items():
        if view in views and against in views and (not band or band_of(views[FULL]["tokens"]) == band):
            tokens = sum(views[FULL]["counts"].get(kind, 0) for kind in kinds)
            found.append((lost(views, view, kinds) - lost(views, against, kinds), tokens, session_of(point)))
    if not any(tokens for _, tokens, _ in found):
        return None
    return interval(*zip(*found, strict=True))


def share(scores: Scores, view: str, part: Callable[[Row, Row], tuple[float, float]]) -> float:
    """Return the sum of something over that of what it is a share of, given the row of the full prompt and of the view."""
    pairs = [part(views[FULL], views[view]) for views in scores.values() if view in views]
    return sum(one for one, _ in pairs) / max(1e-9, sum(whole for _, whole in pairs))


def still_called(full: Row, row: Row) -> tuple[float, float]:
    """Count a tool whose name the model writes itself under the full prompt, and whether it still does; it is the first reference."""
    is_own = full["spots"][:1] == "1"
    return float(is_own and row["spots"][:1] == "1"), float(is_own)


def still_named(full: Row, row: Row) -> tuple[float, float]:
    """Count the references in the arguments that the model writes itself under the full prompt, and those it still does."""
    own = [at for at, hit in enumerate(full["spots"]) if at and hit == "1"]
    return float(sum(row["spots"][at] == "1" for at in own)), float(len(own))


def views_in(scores: Scores) -> list[str]:
    """Return all views but those of the validity check, ours first, then by ceiling."""
    found = {
        view
        for views in scores.values()
        for view in views
        if view.partition("-")[0] not in ("named", "other")
    }
    return sorted(found - {FULL}, key=lambda view: (_ceiling(view), not view.startswith(OURS), view))


def validity_table(scores: Scores, composable: Mapping[str, bool]) -> Iterator[str]:
    """Yield what the validity check found over all tokens of the action and over its references: by length, by what is named, by source."""
    sources = sorted({point.partition("/")[0] for point in scores})
    parts: dict[str, Callable[[str], bool]] = {
        "all": lambda _: True,
        **{f"up to {band:,} tokens": partial(_is_in, scores, band) for band in BANDS},
        "what is named can be put together from parts said elsewhere": lambda point: composable[point],
        "it cannot": lambda point: not composable[point],
        **{f"without {source}": partial(_is_not_of, source) for source in sources},
    }
    yield (
        "| prompts | pairs | AUC, all tokens (95 %) | AUC, references (95 %) | nats lost in references, named result removed (median) "
        "| other result removed |"
    )
    yield "|---|---|---|---|---|---|"
    for title, is_part in parts.items():
        part = {point: views for point, views in scores.items() if "named-0" in views and is_part(point)}
        whole, found = validity_of(part, KINDS), validity_of(part)
        if whole is not None and found is not None:
            yield (
                f"| {title} | {found.pairs} | {whole.auc:.3f} ({whole.low:.3f} to {whole.high:.3f}) | "
                f"{found.auc:.3f} ({found.low:.3f} to {found.high:.3f}) | {found.named:.2f} | {found.other:.2f} |"
            )


def _is_in(scores: Scores, band: int, point: str) -> bool:
    return band_of(scores[point][FULL]["tokens"]) == band


def _is_not_of(source: str, point: str) -> bool:
    return not point.startswith(f"{source}/")


def main_table(scores: Scores) -> Iterator[str]:
    """Yield each view: its size, what it loses by kind of reference, and what the model still writes."""
    yield (
        "| view | points | share of the tokens | nats lost per token of references (95 %) | "
        + " | ".join(f"{kind}s" for kind in REFERENCES)
        + " | tools still written | other references still written |"
    )
    yield "|---" * (6 + len(REFERENCES)) + "|"
    for view in views_in(scores):
        whole = loss_per_token(scores, view)
        if whole is None:
            continue
        kinds = [loss_per_token(scores, view, kinds=[kind]) for kind in REFERENCES]
        cells = [
            view.replace("-", " ", 1) if view.startswith(OURS) else view,
            str(sum(view in views for views in scores.values())),
            f"{share(scores, view, lambda full, row: (row['tokens'], full['tokens'])):.0%}",
            str(whole),
            *("–" if kind is None else f"{kind.mean:+.2f}" for kind in kinds),
            f"{share(scores, view, still_called):.0%}",
            f"{share(scores, view, still_named):.0%}",
        ]
        yield f"| {' | '.join(cells)} |"


def beside(scores: Scores, ours: str = OURS) -> Iterator[str]:
    """Yield what each view loses more than ours under the same ceiling, on the same points."""
    name = ours
    yield "| view | against | points | nats per token more (95 %) | separated |"
    yield "|---|---|---|---|---|"
    for view in views_in(scores):
        ours = f"{name}-{_label(view)}"
        if view == ours or not _label(view):
            continue
        found = loss_per_token(scores, view, against=ours)
        if found is not None:
            points = sum(view in views and ours in views for views in scores.values())
            yield f"| {view} | {ours} | {points} | {found} | {'yes' if found.is_clear else 'no'} |"


def ablation_table(scores: Scores, against: str) -> Iterator[str]:
    """Yield what switching a part off loses more."""
    yield "| without | points | of them with another view | nats per token more (95 %) | separated |"
    yield "|---|---|---|---|---|"
    for view in views_in(scores):
        found = loss_per_token(scores, view, against=against) if view.startswith("without-") else None
        if found is not None:
            both = [views for views in scores.values() if view in views and against in views]
            other = sum(views[view]["digest"] != views[against]["digest"] for views in both)
            part = view.removeprefix("without-")
            yield f"| {part} | {len(both)} | {other} | {found} | {'yes' if found.is_clear else 'no'} |"


def by_length(scores: Scores, views: Sequence[str]) -> Iterator[str]:
    """Yield the nats lost per token by length of the full prompt."""
    yield "| view | " + " | ".join(f"up to {band:,}" for band in BANDS) + " |"
    yield "|---" * (1 + len(BANDS)) + "|"
    for view in views:
        cells = [loss_per_token(scores, view, band=band) for band in BANDS]
        if any(cells):
            yield f"| {view} | " + " | ".join("–" if cell is None else str(cell) for cell in cells) + " |"


def probe_table(scores: Scores) -> Iterator[str]:
    """Yield, by kind of question, how many the model answers exactly with the full prompt and over each view."""
    kinds: dict[str, list[Mapping[str, Row]]] = defaultdict(list)
    for point, views in scores.items():
        kinds[point.rpartition("#")[2].partition(" ")[2]].append(views)
    shown = sorted({view for views in scores.values() for view in views} - {FULL})
    yield f"| question | asked | full prompt | {' | '.join(shown)} |"
    yield "|---" * (3 + len(shown)) + "|"
    for kind, asked in sorted(kinds.items()):
        right = sum(views[FULL]["spots"] == "1" for views in asked) / len(asked)
        cells = [_right(asked, view) if right >= PROBES_NEEDED else "–" for view in shown]
        yield f"| {kind} | {len(asked)} | {right:.0%} | {' | '.join(cells)} |"


def _right(asked: Sequence[Mapping[str, Row]], view: str) -> str:
    had = [views[view]["spots"] == "1" for views in asked if view in views]
    return f"{sum(had) / len(had):.0%} of {len(had)}" if had else "–"


def picture(scores: Scores) -> str:
    """Return a drawing of what views cost, as a share of the full prompt's tokens, against what they lose."""
    dots: list[tuple[str, float, Interval]] = []
    for view in views_in(scores):
        found = loss_per_token(scores, view)
        if found is not None and _label(view) and sum(view in views for views in scores.values()) >= FEWEST:
            size = share(scores, view, lambda full, row: (row["tokens"], full["tokens"]))
            dots.append((view, size, found))
    top = max([0.1, *(each.high for _, _, each in dots)])
    widest = max([0.1, *(size for _, size, _ in dots)]) * 1.1
    bottom = min([0.0, *(each.low for _, _, each in dots)])

    def x(size: float) -> float:
        return 60 + 560 * size / widest

    def y(nats: float) -> float:
        return 350 - 320 * (nats - bottom) / (top - bottom)

    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 400" font-family="sans-serif" font-size="11">',
        "<title>Share of the prompt's tokens against nats lost per token</title>",
        f'<path d="M60 30V350H620M60 {y(0):.1f}H620" fill="none" stroke="#888"/>',
        *(
            f'<text x="{x(at / 20):.0f}" y="366" text-anchor="middle">{at * 5} %</text>'
            for at in range(round(20 * widest) + 1)
            if at / 20 <= widest
        ),
        f'<text x="54" y="{y(top):.0f}" text-anchor="end">{top:.2f}</text>',
        f'<text x="54" y="{y(0):.0f}" text-anchor="end">0</text>',
        '<text x="340" y="388" text-anchor="middle">share of the full prompt&#8217;s tokens</text>',
        '<text x="60" y="20">nats lost per token of references, 95 % interval</text>',
    ]
    names = sorted({view.rpartition("-")[0] for view, _, _ in dots}, key=lambda name: (name != OURS, name))
    for at, name in enumerate(names):
        colour = _COLOURS[at % len(_COLOURS)]
        lines.append(f'<circle cx="640" cy="{36 + 16 * at}" r="4" fill="{colour}"/>')
        lines.append(f'<text x="650" y="{40 + 16 * at}">{name}</text>')
        for view, size, found in dots:
            if view.rpartition("-")[0] == name:
                lines.append(
                    f'<path d="M{x(size):.1f} {y(found.low):.1f}V{y(found.high):.1f}" stroke="{colour}"/>'
                    f'<circle cx="{x(size):.1f}" cy="{y(found.mean):.1f}" r="4" fill="{colour}"/>'
                )
    return "\n".join([*lines, "</svg>\n"])


_COLOURS = (
    *("#0b6e4f", "#c1121f", "#3a86ff", "#fb8500", "#8338ec", "#6c757d"),
    *("#e78ac3", "#8aa624", "#000000", "#00b4d8", "#7f5539", "#ffca3a"),
)


def _label(view: str) -> str:
    label = view.rpartition("-")[2]
    return label if label in CEILING_LABELS else ""


def _ceiling(view: str) -> int:
    return CEILING_LABELS.index(_label(view)) if _label(view) else len(CEILING_LABELS)
