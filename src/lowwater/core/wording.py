"""Numbers, nouns and amounts of money as people read them."""

from lowwater.core.decisions import Currency


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 turn`, `2,000 turns`, `3 summaries`."""
    many = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeou" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else many}"


_NANO = 1_000_000_000
_MILLION = 1_000_000


def money(amount: int, currency: Currency) -> str:
    """Return an amount in dollars, or as worth so many input tokens where the model's price is unknown."""
    sign = "-" if amount < 0 else ""
    if currency == "tokens":
        return f"{sign}{round(abs(amount) * _MILLION / _NANO):,} input tokens"
    dollars = abs(amount) / _NANO
    return f"{sign}${dollars:,.2f}" if dollars >= 1 else f"{sign}${dollars:.4f}"
