"""Amounts of money as people read them."""

from lowwater.values.market import Currency

_NANO = 1_000_000_000
_MILLION = 1_000_000


def money(amount: int, currency: Currency) -> str:
    """Return an amount in dollars, or as worth so many input tokens where the model's price is unknown."""
    sign = "-" if amount < 0 else ""
    if currency == "tokens":
        return f"{sign}{round(abs(amount) * _MILLION / _NANO):,} input tokens"
    dollars = abs(amount) / _NANO
    return f"{sign}${dollars:,.2f}" if dollars >= 1 else f"{sign}${dollars:.4f}"
