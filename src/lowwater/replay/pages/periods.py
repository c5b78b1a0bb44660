"""Amounts by day put together into as many columns as a page can show: days, weeks or months without a hole."""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Literal

from msgspec import Struct

MOST_COLUMNS = 120
MOST_MODELS = 7
OTHER_MODELS = "other models"

Unit = Literal["day", "week", "month"]
_UNITS: tuple[Unit, ...] = ("day", "week", "month")


class Spent(Struct, frozen=True, kw_only=True):
    """What one model cost in each period."""

    model: str
    cost: list[int]


class Periods(Struct, frozen=True, kw_only=True):
    """Periods by their first days, and what each model cost in them: the dearest first, the least put together."""

    unit: Unit = "day"
    starts: list[str] = []
    spent: list[Spent] = []


def periods_of(costs: Mapping[tuple[str, str], int]) -> Periods:
    """Return costs by day (YYYY-MM-DD) and model as columns."""
    if not costs:
        return Periods()
    days = sorted({day for day, _ in costs})
    unit = next(unit for unit in _UNITS if unit == "month" or len(_starts(days, unit)) <= MOST_COLUMNS)
    starts = _starts(days, unit)
    place = {start: index for index, start in enumerate(starts)}
    of_model: dict[str, int] = {}
    for (_, model), cost in costs.items():
        of_model[model] = of_model.get(model, 0) + cost
    dearest = sorted(of_model, key=lambda model: (-of_model[model], model))
    own = dearest if len(dearest) <= MOST_MODELS + 1 else dearest[:MOST_MODELS]
    names = own if len(own) == len(dearest) else [*own, OTHER_MODELS]
    table = {name: [0] * len(starts) for name in names}
    for (day, model), cost in costs.items():
        table[model if model in own else OTHER_MODELS][place[_start(day, unit)]] += cost
    return Periods(unit=unit, starts=starts, spent=[Spent(model=name, cost=table[name]) for name in names])


def _starts(days: list[str], unit: Unit) -> list[str]:
    """Return the first day of every period from the first to the last."""
    return list(_walk(_start(days[0], unit), _start(days[-1], unit), unit))


def _walk(first: str, last: str, unit: Unit) -> Iterator[str]:
    here = first
    while here <= last:
        yield here
        length = {"day": 1, "week": 7, "month": 32}[unit]
        here = _start((date.fromisoformat(here) + timedelta(days=length)).isoformat(), unit)


def _start(day: str, unit: Unit) -> str:
    given = date.fromisoformat(day)
    match unit:
        case "day":
            return day
        case "week":
            return (given - timedelta(days=given.weekday())).isoformat()
        case "month":
            return given.replace(day=1).isoformat()
