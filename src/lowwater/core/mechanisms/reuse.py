"""How likely content is to be used again, and which tool results pruning leaves alone for that reason."""

from collections.abc import Iterable, Sequence
from math import exp, log, log1p, log2, sqrt

from msgspec import Struct

from lowwater.core.mechanisms.mechanism import EditContext, Zones
from lowwater.core.mechanisms.results import PartPlace, ShownResult, calls_in, unprotected
from lowwater.core.proposals import Preset
from lowwater.core.stored_form import stored_as
from lowwater.core.tools import ToolClass, class_of, file_access
from lowwater.core.view import Item, newest_number

_USES: dict[ToolClass, float] = {
    "write": 0.001,
    "todo": 0.001,
    "shell": 0.025,
    "list": 0.06,
    "search": 0.06,
    "web": 0.08,
    "read": 0.09,
    "agent": 0.16,
}
"""Expected uses of the first 1,000 characters of a result that is five calls old, by the class of its tool."""
_OTHER_USES = 0.06
_LENGTH_POWER = 0.75
"""Expected uses grow with this power of the length."""
YOUNG = 5
"""Calls after which a result's chance of use begins to fade."""
_RECALL = 10_000
"""The cost of one recall beside the content, in tokens: one more call over a warm prefix of some 100,000."""
_CHARS_PER_TOKEN = 4

_PRIOR_USES = 10.0
"""The weight of the prior in `Experience.factor`, in expected uses."""
# Written by `python -m bench.reuse --write`.
WEIGHTS = (0.091, 0.779, -0.388, -1.124, 0.683)
"""The weights of the reuse model, a logistic regression, for the features of `features_of`."""


def chance_of_use(tool: ToolClass, chars: int, calls_ago: int) -> float:
    """Return the chance that a result is used again, given its tool, its length, and the number of calls since."""
    fade = sqrt(YOUNG / max(YOUNG, calls_ago))
    return 1 - exp(-_USES.get(tool, _OTHER_USES) * (chars / 1_000) ** _LENGTH_POWER * fade)


def worth_per_token(tool: ToolClass, chars: int, tokens: int, calls_ago: int) -> float:
    """Return the expected tokens of rework that are saved by each token of a result that is kept."""
    return chance_of_use(tool, chars, calls_ago) * (_RECALL + tokens) / max(tokens, 1)


class ResultFacts(Struct, frozen=True, kw_only=True, gc=False):
    """What the chance of a later use of a tool result is computed from."""

    tool: ToolClass
    chars: int
    calls_ago: int
    """How many answers the model has given since."""
    calls: int
    """How many answers the model has given in the whole session so far."""
    changed: bool = False
    """Whether a file that its call accessed was changed since."""


def features_of(facts: ResultFacts, experience: float = 0.0) -> tuple[float, ...]:
    """Return the features of the model, in the order of its weights; `experience` is the logarithm of `Experience.factor`."""
    usual = chance_of_use(facts.tool, facts.chars, facts.calls_ago)
    return (
        1.0,
        log(max(-log1p(-min(usual, 0.999)), 1e-6)),
        log2(max(facts.calls, 1) / 20),
        float(facts.changed),
        experience,
    )


def chance_of_later_use(facts: ResultFacts, experience: float = 0.0) -> float:
    """Return the chance that the result is used again, by the reuse model; `experience` as in `features_of`."""
    features = features_of(facts, experience)
    score = sum(weight * feature for weight, feature in zip(WEIGHTS, features, strict=True))
    return 1 / (1 + exp(-score))


def uses_between(chance: float, age: int, later: int) -> float:
    """Return the expected uses of a result between two ages, in calls, given the chance of a use after the first."""
    uses = -log1p(-min(chance, 0.999))
    return uses * (1 - sqrt(max(age, YOUNG) / max(later, YOUNG)))


class Experience(
    Struct, frozen=True, kw_only=True, rename=stored_as("experience"), forbid_unknown_fields=True
):
    """How many uses of removed results the reuse model expected without any experience, and how many were observed."""

    expected: float = 0.0
    observed: float = 0.0

    before: float = 1.0
    """Observed uses ÷ expected uses in earlier sessions, as known when this session began."""

    upto: int = 0
    """The number of the newest message at the last count."""

    def plus(self, expected: float, observed: float, *, upto: int = 0) -> "Experience":
        """Return the experience with further uses added; `upto` is the newest message that they include."""
        return Experience(
            expected=self.expected + expected,
            observed=self.observed + observed,
            before=self.before,
            upto=max(upto, self.upto),
        )

    @property
    def factor(self) -> float:
        """By how much to multiply the uses that the reuse model expects; shrunk towards `before` while few are known."""
        return (_PRIOR_USES * self.before + self.observed) / (_PRIOR_USES + self.expected)


def facts_of(items: Sequence[Item]) -> list[ResultFacts | None]:
    """Return for each item what is known of its first tool result; None for items without results."""
    calls, newest = calls_in(items), newest_number(items[-1]) if items else 0
    facts: list[ResultFacts | None] = [None] * len(items)
    answers, changed = 0, set[str]()
    whole = max(newest // 2, sum(item.message.role == "assistant" for item in items))
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if item.message.role == "assistant":
            accesses = [access for call in item.message.calls if (access := file_access(call))]
            changed.update(path for access in accesses if access.changes for path in access.paths)
            answers += 1
            continue
        call = next((call for each in item.message.results if (call := calls.get(each.call_id))), None)
        if call is not None:
            access = file_access(call)
            facts[index] = ResultFacts(
                tool=class_of(call),
                chars=item.tokens * _CHARS_PER_TOKEN,
                calls_ago=answers,
                calls=whole,
                changed=access is not None and not changed.isdisjoint(access.paths),
            )
    return facts


def chances_of_use(items: Sequence[Item], experience: float = 0.0) -> list[float]:
    """Return for each item the chance that something in it is used again, by the reuse model.

    Items that are not tool results count as results of an unknown tool, by size and age alone.
    """
    chances: list[float] = []
    after = sum(item.message.role == "assistant" for item in items)
    for item, facts in zip(items, facts_of(items), strict=True):
        after -= item.message.role == "assistant"
        if facts is None:
            chances.append(chance_of_use("other", item.tokens * _CHARS_PER_TOKEN, after))
        else:
            chances.append(chance_of_later_use(facts, experience))
    return chances


def spared(items: Sequence[Item], zones: Zones, context: EditContext) -> frozenset[PartPlace]:
    """Return the results in the middle that pruning leaves alone: those of never-prune tools, and the most valuable others."""
    outputs = [
        result
        for result in context.results
        if result.item in zones.middle and result.place not in context.taken
    ]
    prunable = unprotected(outputs, context.preset)
    stays = protected(items, prunable, context.preset, tokens=context.protected_tokens)
    return stays | ({result.place for result in outputs} - {result.place for result in prunable})


def protected(
    items: Sequence[Item], results: Sequence[ShownResult], preset: Preset, *, tokens: int
) -> frozenset[PartPlace]:
    """Return the places of the results that pruning leaves alone, up to `tokens`; the one that crosses the limit stays too.

    `results` are those of the middle that could be pruned, oldest first. Protected are the newest or, if the preset says
    `by_value`, those that save most rework per token.
    """
    order: Iterable[ShownResult] = reversed(results)
    if preset.by_value:
        order = _by_worth(items, [result for result in results if _can_shrink(result, preset)])
    kept: set[PartPlace] = set()
    spent = 0
    for result in order:
        if spent >= tokens:
            break
        kept.add(result.place)
        spent += result.tokens + result.pictures
    return frozenset(kept)


def _can_shrink(result: ShownResult, preset: Preset) -> bool:
    return len(result.text) > preset.elide_limit_chars or result.pictures > 0


def _by_worth(items: Sequence[Item], results: Sequence[ShownResult]) -> list[ShownResult]:
    """Return the results, those worth most per token first; among equals the newest."""
    calls_after = _calls_after(items)

    def worth(result: ShownResult) -> tuple[float, int]:
        tokens = result.tokens + result.pictures
        return worth_per_token(result.kind, len(result.text), tokens, calls_after[result.item]), result.number

    return sorted(results, key=worth, reverse=True)


def _calls_after(items: Sequence[Item]) -> list[int]:
    """Return for each item how many answers of the model came after it."""
    after = [0] * len(items)
    calls = 0
    for index in range(len(items) - 1, -1, -1):
        after[index] = calls
        calls += items[index].message.role == "assistant"
    return after
