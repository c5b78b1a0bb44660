"""Recommendations in words, for someone who never saw the code."""

from math import floor, log10
from string import Formatter

from lowwater.account.advice import Advice, Code

_NANO = 1_000_000_000

SENTENCES: dict[Code, str] = {
    "prices-unknown": "The prices of {model} are not known: what its turns cost (so many: {turns}) is missing from every sum.",
    "turns-unpriced": "What {unpriced} of {turns} turns on {model} cost is not known (their usage was not reported, or they were "
    "not billed at list prices) and is missing from every sum.",
    "summaries-dear": "Summaries by {dear} cost {factor}× those by {cheap} for the same score: {dear_cost:usd} against "
    "{cheap_cost:usd} per 1,000 tokens, scores {dear_score} and {cheap_score}, over {dear_summaries} and {cheap_summaries} "
    "summaries. Let {cheap} write them.",
    "summaries-rejected": "Of what {by} wrote, {rejected} summaries were not accepted as they were ({summaries} were put in place): "
    "another summarizer may need fewer repairs.",
    "not-paid-back": "Of {settled} compactions that are over, {failed} were undone, replaced or cut short before they had paid "
    "for themselves (undone: {undone}); {missing:usd} of what they cost was never saved. Compact later, or let the policy "
    "`rent-or-buy` decide when.",
    "payback-slower": "Compactions were to pay for themselves after {predicted} later calls and took {realised}, on average over "
    "{compactions}: expect less of them than is predicted.",
    "net-negative": "Compaction on {model} has cost {loss:usd} more than it saved, over {passes} compactions and {turns} turns: "
    "compact later or less often.",
    "cache-misjudged": "What {model} reads from its cache was foreseen {off:share} of the prompt off, over {turns} turns: see "
    "whether something at the start of the prompt changes from call to call, or calls go to different servers.",
}


def sentence(advice: Advice) -> str:
    """Return a recommendation as sentences with all its numbers; a code of another version is listed as it is."""
    words = {str(code): said for code, said in SENTENCES.items()}.get(advice.code)
    if words is None or advice.facts.keys() != _names_in(words):
        return f"{advice.code}: {', '.join(f'{name} {fact}' for name, fact in advice.facts.items())}."
    return _Words().vformat(words, (), advice.facts)


def dollars(nano: float) -> str:
    """Return nano-dollars as people read them: cents from a dollar on, three digits that count below."""
    amount = abs(nano) / _NANO
    places = 2 if amount >= 1 or not amount else 2 - floor(log10(amount))
    return f"{'-' if nano < 0 else ''}${amount:,.{places}f}"


class _Words(Formatter):
    """Writes money as dollars and shares as percentages where a sentence says so, numbers with thousands."""

    def format_field(self, value: object, format_spec: str) -> str:
        if isinstance(value, str) or not isinstance(value, int | float):
            return str(value)
        match format_spec:
            case "usd":
                return dollars(value)
            case "share":
                return f"{value:.1%}"
            case _:
                return f"{value:,}"


def _names_in(words: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(words) if name}
