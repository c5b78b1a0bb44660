"""What was on sale at a decision, for someone who never saw the code: rent paid, price, and what would have to change."""

from lowwater.decide.money import money
from lowwater.values.market import Bargain, Market

_CACHE = {
    "warm": "The cache is warm: {hit} of the prompt's tokens should be read from it.",
    "cold": "Nothing of the prompt should be in the cache: all of it is written whatever is done.",
    "unsure": "The cache may be warm: about {hit} of the prompt's tokens can be expected to be read from it.",
}
_NAMES = {
    "dedupe": "repeated results",
    "elide": "old results",
    "reasoning": "old reasoning",
    "images": "old images",
}


def explain_market(market: Market) -> str:
    """Return the plans that were on sale, each with what it costs, what its rent has come to, and when it is due."""
    lines = [
        _CACHE[market.warm].format(hit=f"{market.hit:,}")
        + f" As it is, it costs {money(market.kept, market.currency)}."
    ]
    for bargain in market.bargains:
        lines += _told(bargain, market)
    return "\n".join(lines)


def _told(bargain: Bargain, market: Market) -> list[str]:
    def amount(nano: int) -> str:
        return money(nano, market.currency)

    again = bargain.price - bargain.summary - bargain.rework
    lines = [
        f"{'On sale at the last look' if market.rests else 'On sale'}: {_named(bargain)}, {bargain.removes:,} tokens.",
        f"  rent paid so far     {amount(bargain.rent)}",
        f"  price now            {amount(bargain.price)}",
        f"    next call          {amount(again)} ({bargain.kept:,} tokens read, {bargain.rewritten:,} written)",
    ]
    if bargain.summary:
        lines.append(f"    summary            {amount(bargain.summary)}")
    if bargain.rework:
        lines.append(f"    expected rework    {amount(bargain.rework)}")
    lines.append(f"  saves at each call   {amount(bargain.saves)}")
    lines.append(f"  {_due(bargain, market)}")
    return lines


def _named(bargain: Bargain) -> str:
    replaced = [_NAMES.get(step.mechanism, step.mechanism) for step in bargain.plan if step.span is None]
    steps = [f"placeholders for {', '.join(replaced)}"] if replaced else []
    if any(step.mechanism == "native" for step in bargain.plan):
        steps.insert(0, "the provider's own compaction of the older messages")
    elif any(step.span is not None for step in bargain.plan):
        steps.insert(0, "a summary of the older messages")
    return " and ".join(steps) or "nothing"


def _due(bargain: Bargain, market: Market) -> str:
    left = bargain.calls_left
    if left == 0:
        return "due now"
    if left is None:
        return "never due at these prices"
    calls = "1 more call" if left == 1 else f"{left:,} more calls"
    sooner = "" if market.warm == "cold" else ", sooner if the cache goes cold"
    return f"due after {calls} over a warm cache{sooner}"
