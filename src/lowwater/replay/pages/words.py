"""Numbers and lists as the sentences of a page say them."""

from collections.abc import Sequence

from lowwater.core.accounts.advice import dollars

UNKNOWN = "unknown"
_NANO = 1_000_000_000
_THOUSAND = 1_000 * _NANO


def money(nano: int) -> str:
    """Return nano-dollars as dollars, without cents from a thousand on."""
    return f"{'-' if nano < 0 else ''}${abs(nano) / _NANO:,.0f}" if abs(nano) >= _THOUSAND else dollars(nano)


def amount(nano: int | None) -> str:
    """Return nano-dollars as dollars; what is not known is said to be."""
    return UNKNOWN if nano is None else money(nano)


def share(part: float | None) -> str:
    """Return a share in percent, or a dash."""
    return "–" if part is None else f"{part:.1%}".replace("%", " %")


def times(ratio: float | None) -> str:
    """Return a ratio to the hundredth, or a dash."""
    return "–" if ratio is None else f"{ratio:,.2f} ×"


def short(tokens: float) -> str:
    """Return a number of tokens in three digits or so: 950, 12.3K, 4.1M."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if tokens >= size:
            return f"{tokens / size:.{0 if tokens >= 100 * size else 1}f}{unit}"
    return f"{tokens:,.0f}"


def listed(words: Sequence[str]) -> str:
    """Return words as a list: `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
