"""Formatting counts and amounts of money for people."""

from lowwater.core.decisions import Currency

_NANO_PER_DOLLAR = 1_000_000_000
_TOKENS_PER_DOLLAR = 1_000_000


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 turn`, `2,000 turns`, `3 summaries`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeou" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def money(amount: int, currency: Currency) -> str:
    """Return an amount in dollars, or in input tokens if the model's price is unknown."""
    sign = "-" if amount < 0 else ""
    if currency == "tokens":
        return f"{sign}{round(abs(amount) * _TOKENS_PER_DOLLAR / _NANO_PER_DOLLAR):,} input tokens"
    dollars = abs(amount) / _NANO_PER_DOLLAR
    return f"{sign}${dollars:,.2f}" if dollars >= 1 else f"{sign}${dollars:.4f}"
