"""Validating a summary, and appending the critical references that it lost."""

import re
from collections.abc import Iterable, Iterator, Sequence

from lowwater.core.decisions import Reason
from lowwater.core.secrets.redaction import conceal
from lowwater.core.summary.critical import critical_references, is_forbidden, missing_from
from lowwater.core.summary.request import Critical, Judged, SummaryRequest, Verdict, VerdictCode, Written
from lowwater.core.summary.template import Section
from lowwater.protocols import Tokenizer

_SHORTEST = 100
"""The fewest characters of a summary."""
_ENOUGH = 0.5
"""The share of the critical references that must be kept."""
_REFUSAL_CHARS = 600
"""In a text shorter than this, a refusal anywhere makes the whole a refusal."""
_LEADING = re.compile(r"\A(?:\s|#[^\n]*\n|[-*>]\s)+")
_REFUSAL = re.compile(
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
_NAMES_PER_LINE = 8
_LABELS = {"path": "Paths: ", "identifier": "Identifiers: ", "value": "Values: "}


def validate(
    written: Written,
    request: SummaryRequest,
    tokenizer: Tokenizer,
    replaced_tokens: int,
    *,
    wanted: Sequence[Critical] | None = None,
) -> Verdict:
    """Return the verdict on a summary of messages of `replaced_tokens`; its reason has the numbers that were compared.

    `wanted` are the critical references, if the caller has them already.
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


def _code(written: Written, characters: int, tokens: int, replaced_tokens: int, score: float) -> VerdictCode:
    if characters < _SHORTEST:
        return "too_short"
    if is_refusal(written.text):
        return "refusal"
    if written.cut_off:
        return "cut_off"
    if tokens >= replaced_tokens:
        return "not_smaller"
    return "accepted" if score >= _ENOUGH else "references_missing"


def is_refusal(text: str) -> bool:
    """Return whether a text declines to summarise instead of doing so."""
    body = _LEADING.sub("", text)
    if _REFUSAL.match(body):
        return True
    return len(body) < _REFUSAL_CHARS and _REFUSAL.search(body) is not None and "## " not in text


def best(
    candidates: Iterable[Written],
    request: SummaryRequest,
    tokenizer: Tokenizer,
    replaced_tokens: int,
) -> Judged | None:
    """Return the best summary: accepted before rejected, then by score, then the shortest; None without candidates."""
    wanted = critical_references(request)
    judged = [
        Judged(
            written=written,
            verdict=validate(written, request, tokenizer, replaced_tokens, wanted=wanted),
        )
        for written in candidates
    ]
    return max(judged, key=_rank, default=None)


def _rank(judged: Judged) -> tuple[bool, float, int]:
    tokens = judged.verdict.because.facts["tokens"]
    return (judged.verdict.accepted, judged.verdict.score, -int(tokens))


def restore_references(text: str, missing: Sequence[Critical], max_tokens: int, tokenizer: Tokenizer) -> str:
    """Return `text` with the prohibitions among the missing references appended word for word.

    They take at most `max_tokens` together; the rest of a long list of rules is left to recall.
    """
    lines: list[str] = []
    left = max_tokens
    for reference in filter(is_forbidden, missing):
        line = f'"{reference.text}"'
        left -= tokenizer.count(f"\n- {line}")
        if left < 0:
            break
        lines.append(line)
    return text.rstrip() + _section_block(Section.CONSTRAINTS, lines) if lines else text


def repair(text: str, missing: Sequence[Critical], max_tokens: int, tokenizer: Tokenizer) -> str:
    """Return `text` with the missing references appended, the most important first, in at most `max_tokens`.

    A text that is already at its limit is returned as it is.
    """
    body = text.rstrip()
    added: dict[Section, list[str]] = {Section.CONSTRAINTS: [], Section.CONTEXT: []}
    left = max_tokens - tokenizer.count(body)
    for section, line in _repair_lines(missing):
        heading = 0 if added[section] else tokenizer.count(f"\n\n## {section}")
        cost = heading + tokenizer.count(f"\n- {line}")
        if cost > left:
            break
        added[section].append(line)
        left -= cost
    while any(added.values()):
        whole = body + "".join(_section_block(section, lines) for section, lines in added.items())
        if tokenizer.count(whole) <= max_tokens:
            return whole
        added[Section.CONTEXT if added[Section.CONTEXT] else Section.CONSTRAINTS].pop()
    return text


def _section_block(section: Section, lines: Iterable[str]) -> str:
    items = "".join(f"\n- {line}" for line in lines)
    return f"\n\n## {section}{items}" if items else ""


def _repair_lines(missing: Sequence[Critical]) -> Iterator[tuple[Section, str]]:
    for reference in missing:
        match reference.kind:
            case "forbidden":
                yield Section.CONSTRAINTS, f'"{reference.text}"'
            case "ask":
                yield Section.CONTEXT, f'The user asked: "{reference.text}"'
            case "error":
                yield Section.CONTEXT, f"Error seen: {reference.text}"
            case _:
                pass
    for kind, label in _LABELS.items():
        names = [reference.text for reference in missing if reference.kind == kind]
        for start in range(0, len(names), _NAMES_PER_LINE):
            yield (
                Section.CONTEXT,
                label + ", ".join(f"`{name}`" for name in names[start : start + _NAMES_PER_LINE]),
            )
