"""Is a summary any good? Refusals, stumps, monsters and those that lost too much are not accepted."""

import re
from collections.abc import Iterable, Sequence

from lowwater.compact.summary.critical import critical_references, missing_from
from lowwater.ports import Tokenizer
from lowwater.values.decision import Reason
from lowwater.values.secrets import conceal
from lowwater.values.summaries import Critical, Judged, SummaryRequest, Verdict, VerdictCode, Written

SHORTEST = 100
"""Characters below which nothing is a summary."""
ENOUGH = 0.5
"""Share of the critical references that must be kept."""
_SHORT = 600
"""Characters within which a refusal anywhere refuses the whole."""
_LEADING = re.compile(r"\A(?:\s|#[^\n]*\n|[-*>]\s)+")
_REFUSES = re.compile(
    r"""(?:(?:i['’]?m|i\ am|we['’]?re|we\ are)\ (?:very\ |so\ |really\ )?(?:sorry|afraid)
          |sorry|my\ apologies|i\ apologi[sz]e|apologies|unfortunately|regrettably)
        [^.\n]{0,80}?\b
        (?:can['’]?t|cannot|can\ not|unable|not\ able|won['’]?t|not\ going\ to|must\ decline|not\ possible)
    | i\ (?:can['’]?t|cannot|can\ not|won['’]?t|will\ not|must\ decline|decline|refuse)\b[^.\n]{0,40}?\b
        (?:assist|help|comply|provide|fulfil|fulfill|do\ that|complete|summari[sz]e|continue|engage|discuss|process|to\b)
    | i(?:['’]?m|\ am)\ (?:unable|not\ able|not\ allowed|not\ permitted|not\ comfortable)\b
    | (?:as|being)\ an?\ (?:ai|language\ model|assistant)\b[^.\n]{0,60}?\b(?:can['’]?t|cannot|unable|not)
    | this\ (?:request|conversation|content)\ (?:violates|goes\ against|cannot\ be)
    | (?:对不起|抱歉|很抱歉)[，,]?[^。\n]{0,20}(?:无法|不能) | 我(?:无法|不能)(?:协助|帮助|提供|完成)
    | (?:申し訳|すみません)[^。\n]{0,30}(?:できません|できかねます|いたしかねます)
    | 죄송[^.\n]{0,30}없습니다
    | (?:es\ tut\ mir\ leid|lo\ siento|désolé|je\ suis\ désolé)[^.\n]{0,60}?\b(?:kann|nicht|puedo|peux)""",
    re.VERBOSE | re.IGNORECASE,
)


def validate(
    written: Written,
    request: SummaryRequest,
    tokenizer: Tokenizer,
    replaced_tokens: int,
    *,
    wanted: Sequence[Critical] | None = None,
) -> Verdict:
    """Judge a summary of messages that were `replaced_tokens` large; the reason carries the numbers compared.

    `wanted` saves finding the critical references again when several summaries of one request are judged.
    """
    references = critical_references(request) if wanted is None else wanted
    missing = missing_from(conceal(written.text) if request.redact else written.text, references)
    score = 1 - len(missing) / len(references) if references else 1.0
    tokens = tokenizer.count(written.text)
    characters = len(written.text.strip())
    because = Reason(
        code=_code(written, characters, tokens, replaced_tokens, score),
        facts={
            "characters": characters,
            "tokens": tokens,
            "replaced_tokens": replaced_tokens,
            "references": len(references),
            "kept": len(references) - len(missing),
        },
    )
    return Verdict(accepted=because.code == "accepted", because=because, score=score, missing=missing)


def best(
    candidates: Iterable[Written],
    request: SummaryRequest,
    tokenizer: Tokenizer,
    replaced_tokens: int,
) -> Judged | None:
    """Return the best of several summaries: accepted before refused, then by score, then the shorter; None of none."""
    wanted = critical_references(request)
    judged = [
        Judged(
            written=written,
            verdict=validate(written, request, tokenizer, replaced_tokens, wanted=wanted),
        )
        for written in candidates
    ]
    return max(judged, key=_merit, default=None)


def is_refusal(text: str) -> bool:
    """Tell whether a text declines to summarise instead of doing it."""
    body = _LEADING.sub("", text)
    if _REFUSES.match(body):
        return True
    return len(body) < _SHORT and _REFUSES.search(body) is not None and "## " not in text


def _code(written: Written, characters: int, tokens: int, replaced_tokens: int, score: float) -> VerdictCode:
    if characters < SHORTEST:
        return "too_short"
    if is_refusal(written.text):
        return "refusal"
    if written.cut_off:
        return "cut_off"
    if tokens >= replaced_tokens:
        return "not_smaller"
    return "accepted" if score >= ENOUGH else "references_missing"


def _merit(judged: Judged) -> tuple[bool, float, int]:
    tokens = judged.verdict.because.facts["tokens"]
    return (judged.verdict.accepted, judged.verdict.score, -int(tokens))
