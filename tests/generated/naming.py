"""Names made of words: identifiers in each language's casing, past tenses, ids."""

from collections.abc import Sequence


def snake(words: Sequence[str]) -> str:
    """Return `settle_overdue_invoice`."""
    return "_".join(words)


def camel(words: Sequence[str]) -> str:
    """Return `settleOverdueInvoice`."""
    return words[0] + "".join(word.capitalize() for word in words[1:])


def pascal(words: Sequence[str]) -> str:
    """Return `SettleOverdueInvoice`."""
    return "".join(word[:1].upper() + word[1:] for word in words)


def screaming(words: Sequence[str]) -> str:
    """Return `SETTLE_OVERDUE_INVOICE`."""
    return "_".join(words).upper()


def plural(noun: str) -> str:
    """Return more than one of a noun."""
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def third(verb: str) -> str:
    """Return what it does: `settles`."""
    return plural(verb)


def past(verb: str) -> str:
    """Return what was done: `settled`."""
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return _doubled(verb) + "ed"


def doing(verb: str) -> str:
    """Return the act: `settling`."""
    if verb.endswith("e"):
        return verb[:-1] + "ing"
    return _doubled(verb) + "ing"


def _doubled(verb: str) -> str:
    return verb + verb[-1] if verb in {"trim", "wrap", "format", "defer", "transfer"} else verb
