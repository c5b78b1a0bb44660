"""Decisions in words, for someone who never saw the code."""

from collections.abc import Sequence
from string import Formatter

from lowwater.decide.ledger_of_rent import explain_market
from lowwater.decide.sentences import SENTENCES
from lowwater.values.decision import Compact, Decision, Fact, Reason
from lowwater.values.events import Rejected
from lowwater.values.market import Market
from lowwater.values.proposal import Proposal
from lowwater.values.situation import scaled

_BY_CODE: dict[str, str] = dict(SENTENCES.items())
STEPS = {
    "dedupe": "Replace results that a later one repeats or supersedes by a reference to it",
    "elide": "Put short placeholders in place of old tool results",
    "reasoning": "Drop old reasoning",
    "images": "Put placeholders in place of old images",
    "shorten": "Shorten long tool outputs to their beginning, end and error lines",
    "squeeze": "If that is not enough, shorten whatever is left but the users' words, the newest results last",
    "summarize": "Replace the messages between the protected start and end by one summary",
    "summarize_all": "Replace everything but the protected start and the newest exchange by one summary",
    "native": "Have the provider compact everything before the protected end itself, into a signed block that goes first",
    "leaf": "Replace the oldest messages that were never summarised by a summary",
    "condense": "Merge several summaries into one",
}


def sentence(reason: Reason) -> str:
    """Return the reason as one or two sentences with all its numbers; a code of another version is listed as it is."""
    facts = {name: _shown(fact) for name, fact in reason.facts.items()}
    known = _BY_CODE.get(reason.code)
    if known is None or facts.keys() != _names_in(known):
        return f"{reason.code}: {', '.join(f'{name} {fact}' for name, fact in facts.items())}."
    return known.format_map(facts)


def explain(
    decision: Decision,
    *,
    scale: float = 1.0,
    market: Market | None = None,
    rejected: Sequence[Rejected] = (),
) -> str:
    """Return why a decision was taken and, if it is to compact, what is to be done, step by step.

    `scale` turns counted tokens into the model's, as in the situation that was decided. `market` is what was on sale,
    `rejected` the summaries that were not accepted as they were.
    """
    told = "\n".join([_decision(decision, scale), *(rejection(each) for each in rejected)])
    return f"{told}\n\n{explain_market(market)}" if market is not None else told


def rejection(rejected: Rejected) -> str:
    """Say what a summary missed, in the words of the messages it stood for."""
    if rejected.said:
        return f"{rejected.by} was asked for a summary and gave none ({rejected.code}): {rejected.said}."
    said = f"The summary by {rejected.by} was not accepted as written ({rejected.code})"
    if not rejected.missing:
        return f"{said}."
    first = "; ".join(rejected.first_missing)
    more = " Among them" if rejected.missing > len(rejected.first_missing) else " They are"
    return f"{said}: it misses {rejected.missing:,} critical references.{more}: {first}"


def _decision(decision: Decision, scale: float) -> str:
    if not isinstance(decision, Compact):
        return sentence(decision.because)
    steps = decision.proposals
    lines = [sentence(decision.because)]
    lines += [f"{number}. {_step(step, scale)}" for number, step in enumerate(steps, start=1)]
    lines.append(_rewritten(steps, scale))
    if len(steps) > 1 and decision.enough:
        lines.append(f"Once {decision.enough:,} tokens or fewer are left, the remaining steps are skipped.")
    return "\n".join(lines)


def _step(step: Proposal, scale: float) -> str:
    doing = STEPS.get(step.mechanism, step.mechanism)
    calls = "a summary is written" if step.calls else "no model is called"
    return (
        f"{doing}: about {scaled(step.removes, scale):,} tokens less, from message {step.first_changed + 1:,} on; "
        f"{calls}."
    )


def _rewritten(steps: Sequence[Proposal], scale: float) -> str:
    """Say how much has to be written to the cache again behind the first change, if all steps are taken.

    Edits do not overlap each other, but they may lie inside what a summary replaces.
    """
    first = min(steps, key=lambda step: step.first_changed)
    edits = sum(step.removes for step in steps if step.span is None)
    behind = first.survives + first.removes - edits
    counted = min([behind, *(step.survives for step in steps if step.span is not None)])
    left = scaled(max(0, counted), scale)
    return (
        f"From message {first.first_changed + 1:,} on, about {left:,} tokens are written to the cache again."
    )


def _names_in(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


def _shown(fact: Fact) -> str:
    return fact if isinstance(fact, str) else f"{fact:,}"
