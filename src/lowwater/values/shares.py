"""Shares of a count of tokens in whole tokens, free of the noise of binary fractions."""

from math import ceil, floor

_NOISE_DIGITS = 6
"""0.57 × 100,000 is 57,000 and 0.8 × 0.75 × 200,000 is 120,000, whatever binary makes of them."""


def share_of(whole: int, *shares: float) -> int:
    """Return the product of `whole` and `shares`, rounded down to whole tokens."""
    return floor(round(_product(whole, shares), _NOISE_DIGITS))


def least_reaching(whole: int, *shares: float) -> int:
    """Return the smallest count of tokens that is at least the product of `whole` and `shares`."""
    return ceil(round(_product(whole, shares), _NOISE_DIGITS))


def _product(whole: int, shares: tuple[float, ...]) -> float:
    product: float = whole
    for share in shares:
        product *= share
    return product
