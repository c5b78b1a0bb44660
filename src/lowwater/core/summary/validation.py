"""Judging a summary by its text as it was written, and appending the critical references that it lost.

The score is what a summary keeps of what matters, by weight, times the share of what it names that was really said. A text
that is no summary, or says what nobody said, is refused whatever its score. One that only leaves things out can be repaired,
by quoting them; a dropped prohibition and a dropped open request are never let through as they are.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from lowwater.core.decisions import Reason
from lowwater.core.secrets.redaction import conceal
from lowwater.core.summary.critical import critical_references, is_forbidden, missing_from
from lowwater.core.summary.defects import content_defect, form_defect, is_refusal
from lowwater.core.summary.grounding import Sources
from lowwater.core.summary.request import Critical, Judged, SummaryRequest, Verdict, VerdictCode, Written
from lowwater.core.summary.template import Section
from lowwater.core.summary.text import key_words
from lowwater.protocols import Tokenizer

_SHORTEST = 100
"""The fewest characters of a summary."""
ENOUGH = 0.5
"""The share of what matters, by weight, that must be kept; good summaries of long sessions keep about half of it."""
REPAIRABLE = 0.25
"""The share that must be kept for a repair; below it, the repair would outweigh the text."""

_WEIGHTS = {"ask": 3.0, "forbidden": 2.0, "error": 0.25, "path": 1.0, "identifier": 1.0, "value": 0.25}
_PROHIBITION_WEIGHT = 4.0
_IN_FULL = 14
"""So many references of a kind count in full; of the following ones, the n-th counts this number divided by n."""
_NAMES_PER_LINE = 8
_LABELS = {"path": "Paths: ", "identifier": "Identifiers: ", "value": "Values: "}
WEAK: frozenset[VerdictCode] = frozenset({"references_missing", "prohibition_dropped", "request_dropped"})
"""The codes of summaries that only leave something out."""


def validate(
    written: Written,
    request: SummaryRequest,
    tokenizer: Tokenizer,
    replaced_tokens: int,
    *,
    wanted: Sequence[Critical] | None = None,
    sources: Sources | None = None,
    quotes_only: bool = False,
) -> Verdict:
    """Return the verdict on a summary of messages of `replaced_tokens`; its reason has the numbers that were compared.

    `wanted` are the critical references and `sources` what the summary may draw on, if the caller has them already. What only
    quotes its sources, as the extractive summary does, is not searched for things that nobody said.
    """
    references = critical_references(request) if wanted is None else wanted
    sources = Sources(request) if sources is None else sources
    missing = missing_from(conceal(written.text) if request.redact else written.text, references)
    kept = coverage(references, missing)
    grounding = sources.grounding(written.text)
    tokens = tokenizer.count(written.text)
    characters = len(written.text.strip())
    code = _size_defect(written, characters, tokens, replaced_tokens)
    if code is None and not quotes_only:
        code = form_defect(written.text, sources) or content_defect(
            written.text, sources, grounding, references
        )
    if code is None:
        code = _omission(kept, missing, request)
    because = Reason(
        code=code,
        facts={
            "characters": characters,
            "tokens": tokens,
            "replaced_tokens": replaced_tokens,
            "references": len(references),
            "kept": len(references) - len(missing),
            "named": grounding.named,
            "invented": len(grounding.invented),
        },
    )
    score = kept * grounding.share
    return Verdict(accepted=code == "accepted", because=because, score=score, missing=missing, coverage=kept)


def _size_defect(written: Written, characters: int, tokens: int, replaced_tokens: int) -> VerdictCode | None:
    if characters < _SHORTEST:
        return "too_short"
    if is_refusal(written.text):
        return "refusal"
    if written.cut_off:
        return "cut_off"
    return "not_smaller" if tokens >= replaced_tokens else None


def _omission(kept: float, missing: Sequence[Critical], request: SummaryRequest) -> VerdictCode:
    if kept < ENOUGH:
        return "references_missing"
    if any(map(is_forbidden, missing)):
        return "prohibition_dropped"
    return "request_dropped" if open_request(missing, request) is not None else "accepted"


def open_request(missing: Iterable[Critical], request: SummaryRequest) -> Critical | None:
    """Return the user's newest request if it is among the missing references and nowhere but in what is summarised."""
    newest = request.newest_user
    if newest is None or not request.messages or newest not in request.messages:
        return None
    asked = key_words(newest.text[:300])
    return next((each for each in missing if each.kind == "ask" and each.words == asked), None)


def coverage(references: Sequence[Critical], missing: Iterable[Critical]) -> float:
    """Return the share of the references that is not missing, by weight.

    The first of each kind count in full, since they are the ones named most often (requests: the newest ones); the long tail counts for less and less.
    """
    lost = set(missing)
    asks = [each for each in references if each.kind == "ask"]
    others = [each for each in references if each.kind != "ask"]
    whole = kept = 0.0
    ranks: Counter[str] = Counter()
    for reference in (*reversed(asks), *others):
        ranks[reference.kind] += 1
        if is_forbidden(reference):
            weight = _PROHIBITION_WEIGHT
        else:
            weight = _WEIGHTS[reference.kind] * min(1.0, _IN_FULL / ranks[reference.kind])
        whole += weight
        kept += weight * (reference not in lost)
    return kept / whole if whole else 1.0


def best(
    candidates: Iterable[Written],
    request: SummaryRequest,
    tokenizer: Tokenizer,
    replaced_tokens: int,
) -> Judged | None:
    """Return the best summary: accepted before rejected, then by score, then the shortest; None without candidates."""
    wanted, sources = critical_references(request), Sources(request)
    judged = [
        Judged(
            written=written,
            verdict=validate(written, request, tokenizer, replaced_tokens, wanted=wanted, sources=sources),
        )
        for written in candidates
    ]
    return max(judged, key=rank, default=None)


def rank(judged: Judged) -> tuple[bool, bool, float, int]:
    """Return the key by which summaries are compared: accepted ones first, then those that only leave something out, each by their score."""
    verdict = judged.verdict
    tokens = verdict.because.facts["tokens"]
    return (verdict.accepted, verdict.because.code in WEAK, verdict.score, -int(tokens))


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
