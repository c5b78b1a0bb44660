"""Adding up what audits found: amounts that are not known stay out of a sum, and a sum of nothing known is not known."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from lowwater.replay.audit.audited import CAUSES, Cause, Figures, Missed, Spending

T = TypeVar("T", Figures, Missed, Spending)


def known_sum(amounts: Iterable[int | None]) -> int | None:
    """Return the sum of the amounts that are known; None if none is."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def plus(one: T, other: T) -> T:
    """Return two of a kind added field by field."""
    fields: dict[str, Any] = {
        name: known_sum((getattr(one, name), getattr(other, name))) for name in one.__struct_fields__
    }
    return type(one)(**fields)


def total(kind: type[T], each: Iterable[T]) -> T:
    """Return all of a kind added up."""
    summed = kind()
    for one in each:
        summed = plus(summed, one)
    return summed


def merged_missed(each: Iterable[Mapping[Cause, Missed]]) -> dict[Cause, Missed]:
    """Return misses by cause added up, in the order of the causes."""
    found: dict[Cause, Missed] = {}
    for missed in each:
        for cause, one in missed.items():
            found[cause] = plus(found[cause], one) if cause in found else one
    return {cause: found[cause] for cause in CAUSES if cause in found}
