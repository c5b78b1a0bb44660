"""Reading the `usage` object of a response, whatever the format's names for its figures."""

from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from lowwater.errors import BadInput, UnreadableJson
from lowwater.values.usage import Usage
from lowwater.wire.reading import read_json

T = TypeVar("T")

LARGEST = 10**12
"""No call has this many tokens; whatever says so is broken."""
Tokens = Annotated[int, Meta(ge=0, le=LARGEST)] | None
"""A figure as providers report it: absent, null, or a whole number that a call can have."""

_STANDARD = (None, "", "standard", "default", "auto", "on_demand", "global", "not_available")
"""Words for the tier, the speed and the region that a price list is for."""


class Report(Struct, frozen=True, kw_only=True):
    """What one request consumed: the call that gave the answer, and those the provider made beside it."""

    usage: Usage
    others: tuple[Usage, ...] = ()
    list_price: bool = True
    """Whether all of it was billed at the prices of the model that was asked."""
    prompt: int = 0
    """The size of the prompt that gave the answer."""
    cache_told: bool = True
    """Whether it says how much was read from the cache, be it nothing."""


def is_standard(*words: object) -> bool:
    """Return whether a tier, speed or region, as the provider calls it, is billed as the price list says."""
    return all(word in _STANDARD for word in words)


def read_usage(raw: bytes, kind: type[T]) -> T:
    """Return `raw` as `kind`, which is empty for no usage at all, or raise BadInput."""
    if raw.strip() in (b"", b"null"):
        return kind()
    try:
        return read_json(raw, kind)
    except UnreadableJson as error:
        raise UnreadableJson(f"the usage cannot be read: {error}") from None
    except BadInput as error:
        raise BadInput(f"the usage cannot be read: {error}") from None
