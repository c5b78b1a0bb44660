"""Decisions explained in words: a sentence for every reason code, the steps of a plan, and the prices that were compared."""

from collections.abc import Mapping, Sequence
from string import Formatter

from lowwater.core.decisions import (
    Candidates,
    Compact,
    Decision,
    Fact,
    PricedPlan,
    Reason,
    ReasonCode,
    scaled,
)
from lowwater.core.events import Rejected
from lowwater.core.mechanisms.mechanism import Mechanism, SummaryMechanism
from lowwater.core.proposals import Proposal
from lowwater.core.wording import money

_DUE = "The prompt of {prompt} tokens has reached the {limit} of {trigger}"
_WALL = "The prompt of {prompt} tokens has reached the wall of {wall}"
_TO_LAST = (
    "Of the ways to do that, this one costs least over the calls until it has to be done again: it should leave {expected}, "
    "which lasts for some {calls} calls."
)
_LEAF = "{raw} tokens before the protected newest messages were never summarised"
_COOLING = "The summarizer failed (failures in a row: {failures}) and is left alone for another {seconds} s"
SENTENCES: dict[ReasonCode, str] = {
    "disabled": "Compaction is switched off (enabled: false), so the prompt of {prompt} tokens is sent as it is.",
    "policy-never": "The policy `never` compacts only what does not fit: the prompt has {prompt} tokens, the wall is "
    "at {wall}.",
    "below-threshold": "The prompt of {prompt} tokens is below the threshold of {threshold}.",
    "below-hygiene": "The prompt of {prompt} tokens is below the hygiene limit of {hygiene}.",
    "too-few-messages": "The prompt of {prompt} tokens has reached the hygiene limit of {hygiene}, but it has only "
    "{messages} messages, and fewer than {least} are left alone.",
    "nothing-offered": f"{_DUE}, but there is nothing to remove outside its protected start and end.",
    "nothing-by-hand": "Asked for by hand, but there is nothing to remove from the prompt of {prompt} tokens.",
    "no-leaf-offered": f"{_LEAF}, enough for a chunk of {{chunk}}, but no chunk of the {{assembled}} tokens can be "
    "taken without splitting a tool call from its result.",
    "prune-alone-too-small": f"{_DUE}; pruning would reclaim only {{reclaims}}, less than the {{minimum}} that make "
    "it count, and there is nothing to summarise.",
    "prune-alone-falls-short": f"{_DUE}; pruning would leave {{pruned}}, more than the {{target}} it has to get down "
    "to, and there is nothing to summarise.",
    "too-little-raw": f"Only {_LEAF}, less than a chunk of {{chunk}}; the prompt has {{assembled}} tokens "
    "(pressure: {pressure}).",
    "budget-headroom": "The prompt of {assembled} tokens is below {ceiling}, where a pass is forced: there is room, and "
    f"the cache is left alone. {_LEAF} (pressure: {{pressure}}).",
    "cache-aware": "A pass would remove {reduction} of {assembled} tokens, less than the {least_reduction} that are "
    f"worth breaking the cache for. {_LEAF} (pressure: {{pressure}}).",
    "does-not-fit": f"{_WALL}, and nothing can be removed: take a model with a larger window, or send less.",
    "ceiling-out-of-reach": "The prompt of {prompt} tokens is above the ceiling of {ceiling} (max_view_tokens), and nothing more can be "
    "removed: the system prompt, the tools, the users' words and the newest exchange alone are larger. Raise the ceiling, or send less.",
    "too-many-bytes": "The request of {bytes} bytes is larger than the {limit} that the provider takes, and nothing can be "
    "removed: send fewer or smaller images.",
    "irreducible": "The last compaction could get no lower than {floor} tokens (in vain, in a row: {tries}). The "
    "next try is due at {retry_at} tokens (now {prompt}), when {needed} tokens that are new can be removed (now "
    "{fresh}), or in {seconds} s.",
    "cooling-down": f"{_COOLING}; what needs no model would reclaim {{reclaims}} of {{prompt}} tokens, less than the "
    "{minimum} that make it count.",
    "rent-cannot-be-due": "The prompt of {prompt} tokens stays as it is: whatever could be removed from it, carrying that has "
    "cost less so far than rewriting the cache behind it would.",
    "undone": "A compaction was undone, so the prompt of {prompt} tokens stays as it is unless a size forces a change; calls "
    "until things are bought again: {calls}.",
    "rent-rests": "The prompt of {prompt} tokens stays as it is: when it was last looked through, nothing in it was nearly "
    "worth its price, and it has hardly grown since.",
    "nothing-to-buy": "The prompt of {prompt} tokens stays as it is: there is next to nothing to remove outside its protected "
    "start and end.",
    "rent-below-price": "Removing {removes} of {prompt} tokens would cost {price} now (the cache is {warm}). Carrying them "
    "has cost {rent} so far, which is less, so they stay. Calls until it is due at this rate: {calls}.",
    "too-young-to-pay": "Removing {removes} of {prompt} tokens would cost {price} now (the cache is {warm}) and save {saves} at "
    "each call. A session as young as this one often ends before that has paid, so they stay; so far they have cost {rent}. Calls until it is old enough: {calls}.",
    "by-hand": "Asked for by hand: the prompt of {prompt} tokens should come down to {expected}.",
    "wall": f"{_WALL} and must be made to fit; compacting its older messages should leave {{expected}}.",
    "wall-into-tail": f"{_WALL} and must be made to fit. Compacting its older messages would leave {{middle}}, "
    "so its protected end shrinks too, until at most {enough} are left; all steps together should leave {expected}.",
    "ceiling-into-tail": "The prompt of {prompt} tokens is above the ceiling of {ceiling} (max_view_tokens). Compacting its older "
    "messages would leave {middle}, too much for several turns of growth, so its protected start and end shrink too, until at most "
    "{enough} are left; all steps together should leave {expected}.",
    "wall-to-last": f"{_WALL} and must be made to fit. {_TO_LAST}",
    "ceiling-to-last": f"The prompt of {{prompt}} tokens is above the ceiling of {{ceiling}} (max_view_tokens). {_TO_LAST}",
    "byte-limit": "The request of {bytes} bytes is larger than the {limit} that the provider takes, so it must be made "
    "smaller whatever its tokens.",
    "cliff": "The prompt of {prompt} tokens has reached {cliff}, from where on the whole request is billed at higher "
    "prices; compacting it should leave {expected}.",
    "rent-paid": "Carrying {removes} of {prompt} tokens has cost {rent} so far, no less than the {price} that removing them "
    "costs now (the cache is {warm}), so they go.",
    "waiting-in-vain": "Removing {removes} of {prompt} tokens costs {price} now (the cache is {warm}), and carrying them on "
    "costs {saves} at each call, more than waiting can be expected to save, so they go; so far they have cost {rent}.",
    "free-now": "With {removes} of {prompt} tokens removed the next call is {gain} cheaper at once (the cache is {warm}), "
    "what may be lost included, so they go.",
    "summary-due": f"{_DUE}; a summary of the older messages should leave {{expected}}.",
    "prune-suffices": f"{_DUE}; pruning alone should leave {{pruned}}, no more than the {{target}} it has to get down "
    "to, so no summary is needed.",
    "prune-falls-short": f"{_DUE}; pruning alone should leave {{pruned}}, more than the {{target}} it has to get down "
    "to, so a summary follows at once.",
    "prune-too-small": f"{_DUE}; pruning would reclaim only {{reclaims}}, less than the {{minimum}} that make it "
    "count, so the older messages are summarised instead.",
    "prune-and-summary": f"{_DUE}; pruning should reclaim {{reclaims}}, and with the summary that always follows "
    "{expected} should be left.",
    "leaf-due": f"{_LEAF}; a pass removes {{reduction}} of {{assembled}} tokens, no less than the {{least_reduction}} "
    "that are worth breaking the cache for (pressure: {pressure}).",
    "leaf-pressure": "The prompt of {assembled} tokens has reached {ceiling} (pressure: {pressure}), so a pass that removes "
    f"{{reduction}} goes ahead whatever the cache says. {_LEAF}.",
    "full-sweep": "The prompt of {assembled} tokens is above {trigger}, the budget's threshold: passes over the oldest "
    "messages and summaries (on offer: {passes}) are made until at most {enough} are left; all of them should leave "
    "{expected}.",
    "cooling-down-prune": f"{_COOLING}; until then only what needs no model is done, which should reclaim {{reclaims}} "
    "of {prompt} tokens and leave {expected}.",
    "too-large-at-the-door": "Tool results that came in (so many: {results}) were longer than {limit} tokens and were shortened "
    "before they entered the prompt.",
    "no-room-at-the-door": "Tool results that came in (so many: {results}) would have made a prompt of {prompt} tokens, more than the {limit} "
    "that may be sent. The last compaction was only {turns} turns ago, so they were shortened instead of compacting again.",
    "images-refused": "The provider refused the request for its images, so older ones were replaced by placeholders (messages: {messages}).",
    "not-smaller": "What was tried ({wanted}) would not have made the prompt of {prompt} tokens smaller, so it stays as "
    "it is.",
}
_BY_CODE: dict[str, str] = dict(SENTENCES.items())
_CACHE = {
    "warm": "The cache is warm: {hit} of the prompt's tokens should be read from it.",
    "cold": "Nothing of the prompt should be in the cache: all of it is written whatever is done.",
    "unsure": "The cache may be warm: about {hit} of the prompt's tokens can be expected to be read from it.",
}


def explain(
    decision: Decision,
    *,
    scale: float = 1.0,
    candidates: Candidates | None = None,
    rejected: Sequence[Rejected] = (),
    mechanisms: Sequence[Mechanism] = (),
) -> str:
    """Return why a decision was taken and, if it is to compact, what is to be done, step by step.

    `scale` converts counted tokens into the model's, as when the decision was taken. `candidates` has the plans that could be
    bought, `rejected` the summaries that were not accepted as written, `mechanisms` those of plugins.
    """
    text = "\n".join([_decision(decision, scale, mechanisms), *(rejection(each) for each in rejected)])
    return f"{text}\n\n{explain_candidates(candidates, mechanisms)}" if candidates is not None else text


def reason_sentence(reason: Reason) -> str:
    """Return the reason as one or two sentences with all its numbers; a code of another version is listed with its facts."""
    facts = {name: _shown(fact) for name, fact in reason.facts.items()}
    known = _BY_CODE.get(reason.code) or _sentence_of_a_policy(reason.code)
    if known is None or facts.keys() != _names_in(known):
        return f"{reason.code}: {', '.join(f'{name} {fact}' for name, fact in facts.items())}."
    return known.format_map(facts)


def _sentence_of_a_policy(code: str) -> str | None:
    """Return the sentence that a policy has for a reason code of its own; None if no policy knows the code."""
    from lowwater.core.policies.registry import POLICIES  # noqa: PLC0415 - it imports every file of this folder

    return next((policy.sentences[code] for policy in POLICIES if code in policy.sentences), None)


def rejection(rejected: Rejected) -> str:
    """Return why a summary was not accepted, with the critical references that it misses."""
    if rejected.error:
        return f"{rejected.by} was asked for a summary and gave none ({rejected.code}): {rejected.error}."
    said = f"The summary by {rejected.by} was not accepted as written ({rejected.code})"
    if not rejected.missing:
        return f"{said}."
    first = "; ".join(rejected.first_missing)
    more = " Among them" if rejected.missing > len(rejected.first_missing) else " They are"
    return f"{said}: it misses {rejected.missing:,} critical references.{more}: {first}"


def _known(mechanisms: Sequence[Mechanism]) -> dict[str, Mechanism | SummaryMechanism]:
    """Return our mechanisms and these by name."""
    from lowwater.core.mechanisms.registry import MECHANISMS  # noqa: PLC0415 - it imports every mechanism

    return {**MECHANISMS, **{each.name: each for each in mechanisms}}


def _decision(decision: Decision, scale: float, mechanisms: Sequence[Mechanism]) -> str:
    if not isinstance(decision, Compact):
        return reason_sentence(decision.because)
    steps, known = decision.proposals, _known(mechanisms)
    lines = [reason_sentence(decision.because)]
    lines += [f"{number}. {_step(step, scale, known)}" for number, step in enumerate(steps, start=1)]
    lines.append(_rewritten(steps, scale))
    if len(steps) > 1 and decision.enough:
        lines.append(f"Once {decision.enough:,} tokens or fewer are left, the remaining steps are skipped.")
    return "\n".join(lines)


def _step(step: Proposal, scale: float, known: Mapping[str, Mechanism | SummaryMechanism]) -> str:
    mechanism = known.get(step.mechanism)
    doing = (mechanism.sentence if mechanism else "") or step.mechanism
    calls = "a summary is written" if step.calls else "no model is called"
    return (
        f"{doing}: about {scaled(step.removes, scale):,} tokens less, from message {step.first_changed + 1:,} on; "
        f"{calls}."
    )


def _rewritten(steps: Sequence[Proposal], scale: float) -> str:
    """Return how much has to be written to the cache again behind the first change, if all steps are carried out.

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


def explain_candidates(candidates: Candidates, mechanisms: Sequence[Mechanism] = ()) -> str:
    """Return the plans that a policy could buy, each with its price, the rent paid so far, and when it is due."""
    lines = [
        _CACHE[candidates.warm].format(hit=f"{candidates.hit:,}")
        + f" As it is, it costs {money(candidates.unchanged_cost, candidates.currency)}."
    ]
    for plan in candidates.plans:
        lines += _plan_lines(plan, candidates, mechanisms)
    return "\n".join(lines)


def _plan_lines(plan: PricedPlan, candidates: Candidates, mechanisms: Sequence[Mechanism]) -> list[str]:
    def amount(nano: int) -> str:
        return money(nano, candidates.currency)

    again = plan.price - plan.summary - plan.rework - plan.disturbance
    lines = [
        f"{'On sale at the last look' if candidates.is_from_earlier_turn else 'On sale'}: {_plan_name(plan, mechanisms)}, {plan.removes:,} tokens.",
        f"  rent paid so far     {amount(plan.rent)}",
        f"  price now            {amount(plan.price)}",
        f"    next call          {amount(again)} ({plan.still_cached:,} tokens read, {plan.rewritten:,} written)",
    ]
    if plan.summary:
        lines.append(f"    summary            {amount(plan.summary)}")
    if plan.disturbance:
        lines.append(f"    disturbance        {amount(plan.disturbance)}")
    if plan.rework:
        lines.append(f"    expected rework    {amount(plan.rework)}")
    lines.append(f"  saves at each call   {amount(plan.saves)}")
    lines.append(f"  {_due(plan, candidates)}")
    return lines


def _plan_name(plan: PricedPlan, mechanisms: Sequence[Mechanism]) -> str:
    known = _known(mechanisms)
    labels = {name: mechanism.label or name for name, mechanism in known.items()}
    replaced = [labels.get(step.mechanism, step.mechanism) for step in plan.plan if step.span is None]
    steps = [labels.get(step.mechanism, step.mechanism) for step in plan.plan if step.span is not None]
    steps += [f"placeholders for {', '.join(replaced)}"] if replaced else []
    return " and ".join(steps) or "nothing"


def _due(plan: PricedPlan, candidates: Candidates) -> str:
    left = plan.calls_left
    if left == 0:
        return "due now"
    if left is None:
        return "never due at these prices"
    calls = "1 more call" if left == 1 else f"{left:,} more calls"
    sooner = "" if candidates.warm == "cold" else ", sooner if the cache goes cold"
    return f"due after {calls} over a warm cache{sooner}"
