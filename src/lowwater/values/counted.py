"""A number with its noun, for sentences."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 turn`, `2,000 turns`, `3 summaries`."""
    many = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeou" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else many}"
