"""The comparison as Markdown."""

from collections.abc import Sequence
from datetime import date

from bench.real_peers_rows import Row
from bench.real_peers_run import Group

_COLUMNS = (
    "cost ÷ never",
    "with rework ÷ optimum",
    "real ÷ model",
    "prefix breaks",
    "invalid",
    "too large",
    "peak prompt",
    "summary calls",
    "shown to them",
    "facts left",
    "uses in view",
    "seconds",
)


def page(groups: Sequence[Group], sheets: Sequence[str]) -> str:
    """Return all tables: for each group the first sheet in full, and the costs under all of them."""
    lines: list[str] = []
    for group in groups:
        lines += [f"**{group.name}**, {sheets[0]}:", "", *_full(group), ""]
        if len(sheets) > 1:
            lines += [
                f"**{group.name}**, cost ÷ never under each price sheet:",
                "",
                *_costs(group, sheets),
                "",
            ]
    lines += [f"{date.today().isoformat()}: {_versions(groups)}."]
    failed = [f"- {row.name}: {row.failed}" for group in groups for row in group.rows if row.failed]
    return "\n".join([*lines, *(["", "Not run to the end:", "", *failed] if failed else [])])


def _full(group: Group) -> list[str]:
    lines = ["| | " + " | ".join(_COLUMNS) + " |", "|---" * (len(_COLUMNS) + 1) + "|"]
    return lines + [f"| {_name(row, group)} | {' | '.join(_cells(row))} |" for row in _sorted(group.rows)]


def _cells(row: Row) -> list[str]:
    if not row.money:
        return ["failed", *("–" for _ in _COLUMNS[1:])]
    money = row.money[0]
    is_real = row.kind == "real"
    return [
        f"{money.over_never:.2f}",
        _ratio(money.over_optimum),
        _ratio(money.over_model) + (f" ({row.model})" if money.over_model else ""),
        str(row.breaks),
        str(row.invalid) if is_real else "–",
        str(money.too_large) if is_real else "–",
        f"{money.peak:,}",
        str(row.summary_calls),
        f"{money.summary_tokens:,}" if is_real else "–",
        f"{row.facts_left} of {row.facts}" if is_real and row.facts else "–",
        f"{row.uses_left} of {row.uses}" if is_real else "–",
        f"{row.seconds:.1f}" if is_real else "–",
    ]


def _costs(group: Group, sheets: Sequence[str]) -> list[str]:
    lines = ["| | " + " | ".join(sheets) + " |", "|---" * (len(sheets) + 1) + "|"]
    for row in _sorted(group.rows):
        cells = [f"{money.over_never:.2f}" for money in row.money] or ["failed", *("–" for _ in sheets[1:])]
        lines.append(f"| {_name(row, group)} | {' | '.join(cells)} |")
    return lines


def _name(row: Row, group: Group) -> str:
    """Return its name, and on how many sessions it got to the end, where that is not all."""
    all_of_them = len(group.sessions)
    return (
        row.name if row.sessions == all_of_them else f"{row.name} ({row.sessions} of {all_of_them} sessions)"
    )


def _sorted(rows: Sequence[Row]) -> list[Row]:
    """Return the cheapest first, what failed last."""
    return sorted(rows, key=lambda row: row.money[0].over_never if row.money else float("inf"))


def _versions(groups: Sequence[Group]) -> str:
    found: dict[str, str] = {}
    for group in groups:
        for row in group.rows:
            found |= row.versions
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
