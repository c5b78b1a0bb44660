"""What the extractive summary keeps of long recorded sessions, how long it is and how long it takes."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import mean, median
from time import process_time

from msgspec import Struct

from bench.transcripts import ABSENT, CANONICAL, sessions
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.messages import Message, legal_cuts, texts_of
from lowwater.core.summary.activity import story_of
from lowwater.core.summary.critical import KeptReferences, critical_references, references_of
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import Critical, SummaryRequest
from lowwater.core.summary.text import named_in
from lowwater.core.tools import arguments_of
from lowwater.protocols import Tokenizer

LONG = 100_000
TAIL = 20
BUDGETS = (10_000, 5_000, 2_000)
TARGET = 0.80
UPDATES = 5
"""Into how many parts a session is cut when its summary is updated again and again."""


class Case(Struct, frozen=True, kw_only=True):
    """One recorded session of at least `LONG` tokens, without summaries its agent inserted."""

    name: str
    messages: tuple[Message, ...]
    tokens: int


class Measured(Struct, frozen=True, kw_only=True):
    """What one summary kept, and what it cost."""

    kept: float
    tokens: int
    seconds: float
    """Of the processor, per 100,000 tokens."""


def cases(tokenizer: Tokenizer) -> list[Case]:
    """Return the long sessions."""
    found: list[Case] = []
    for session in sessions():
        messages = tuple(r.message for r in session.messages if r.kind != "compact_summary")
        tokens = sum(tokenizer.count(text) for message in messages for text in texts_of(message))
        if tokens >= LONG:
            found.append(Case(name=session.name, messages=messages, tokens=tokens))
    return found


def request_for(
    messages: tuple[Message, ...], budget: int, first: int = 1, previous: str = ""
) -> SummaryRequest:
    numbers = tuple(range(first, first + len(messages)))
    return SummaryRequest(
        messages=messages, numbers=numbers, max_tokens=budget, previous=previous, recall=True
    )


def in_one_go(case: Case, budget: int, tokenizer: Tokenizer) -> Measured:
    """Summarise everything but the tail."""
    request = request_for(case.messages[:-TAIL], budget)
    start = process_time()
    text = extract(request, tokenizer)
    seconds = process_time() - start
    wanted = critical_references(request)
    return Measured(
        kept=share(text, wanted), tokens=tokenizer.count(text), seconds=seconds / case.tokens * 100_000
    )


def updated(case: Case, budget: int, tokenizer: Tokenizer) -> Measured:
    """Summarise the same in parts, each time updating the summary before."""
    messages = case.messages[:-TAIL]
    cuts = legal_cuts(messages)
    text, start, began = "", 0, process_time()
    for part in range(1, UPDATES + 1):
        stop = min(cuts, key=lambda cut: abs(cut - len(messages) * part // UPDATES))
        text = extract(request_for(messages[start:stop], budget, start + 1, text), tokenizer)
        start = stop
    seconds = process_time() - began
    wanted = critical_references(request_for(messages, budget))
    return Measured(
        kept=share(text, wanted), tokens=tokenizer.count(text), seconds=seconds / case.tokens * 100_000
    )


def with_content(case: Case, budget: int, tokenizer: Tokenizer) -> float:
    """Return the share kept when every name in every argument counts, written file content included."""
    request = request_for(case.messages[:-TAIL], budget)
    named = {
        Critical(kind=kind, text=text)
        for message in request.messages
        for call in message.calls
        for value in texts_within(arguments_of(call))
        for kind, text in named_in(value)
        if kind != "value"
    }
    return share(extract(request, tokenizer), (*named, *critical_references(request)))


def texts_within(value: object) -> Iterator[str]:
    """Yield the strings in a JSON value."""
    match value:
        case str(text):
            yield text
        case list(items):
            for item in items:
                yield from texts_within(item)
        case dict(fields):
            for field in fields.values():
                yield from texts_within(field)
        case _:
            pass


def later_uses(case: Case, budget: int, tokenizer: Tokenizer) -> tuple[int, int]:
    """Cut at 60 %; count what the assistant names later, unprompted, and had seen before, and what of it was kept."""
    cut = min(legal_cuts(case.messages), key=lambda at: abs(at - len(case.messages) * 6 // 10))
    kept = KeptReferences(extract(request_for(case.messages[:cut], budget), tokenizer))
    past = "\n".join(text for message in case.messages[:cut] for text in texts_of(message))
    uses = named_later(past, case.messages[cut:])
    return len(uses), sum(kept.has(use) for use in uses)


def named_later(past: str, later: Sequence[Message]) -> set[Critical]:
    """Return the paths and identifiers that the assistant names in later messages, unprompted, and that stand in `past`."""
    shown, uses = "", set[Critical]()
    for message in later:
        if message.role == "assistant":
            story = story_of(SummaryRequest(messages=(message,), max_tokens=0))
            named = {
                reference for reference in references_of(story) if reference.kind in {"path", "identifier"}
            }
            uses |= {name for name in named if name.text not in shown and name.text in past}
        shown += "\n".join(texts_of(message))
    return uses


def share(text: str, wanted: Sequence[Critical]) -> float:
    kept = KeptReferences(text)
    return sum(map(kept.has, wanted)) / len(wanted) if wanted else 1.0


def row(label: str, measured: Sequence[Measured]) -> str:
    shares = [m.kept for m in measured]
    tokens = [m.tokens for m in measured]
    return (
        f"| {label} | {mean(shares):.1%} | {min(shares):.1%} | {mean(tokens):,.0f} | {max(tokens):,} "
        f"| {median(m.seconds for m in measured):.2f} s |"
    )


def kinds(found: Iterable[Case]) -> str:
    """Return how many critical references of each kind a session has on average."""
    number, sessions_read = Counter[str](), 0
    for case in found:
        sessions_read += 1
        number.update(
            reference.kind for reference in critical_references(request_for(case.messages[:-TAIL], 0))
        )
    return ", ".join(f"{kind} {count / sessions_read:.1f}" for kind, count in number.most_common())


def report(tokenizer: Tokenizer) -> tuple[str, float]:
    """Return the figures as Markdown, and the mean share at the largest budget."""
    found = cases(tokenizer)
    runs = {budget: [in_one_go(case, budget, tokenizer) for case in found] for budget in BUDGETS}
    lines = [
        f"{len(found)} sessions of {LONG:,} tokens or more; critical references a session: {kinds(found)}.",
        "",
        "| summary of all but the last 20 messages | kept, mean | worst | tokens, mean | most | CPU per 100K tokens |",
        "|---|---|---|---|---|---|",
        *(row(f"at most {budget:,} tokens", measured) for budget, measured in runs.items()),
        row(
            f"at most {BUDGETS[0]:,}, updated {UPDATES} times",
            [updated(c, BUDGETS[0], tokenizer) for c in found],
        ),
        "",
    ]
    strict = mean(with_content(case, BUDGETS[0], tokenizer) for case in found)
    lines += [
        f"With the content of written files counted too, at most {BUDGETS[0]:,} tokens: {strict:.1%}.",
        "",
    ]
    for budget in (BUDGETS[0], BUDGETS[-1]):
        counts = [later_uses(case, budget, tokenizer) for case in found]
        used, kept = sum(u for u, _ in counts), sum(k for _, k in counts)
        lines.append(
            f"Later uses still in a summary of {budget:,} tokens: {kept:,} of {used:,} ({kept / used:.0%})."
        )
    return "\n".join(lines), mean(m.kept for m in runs[BUDGETS[0]])


def main() -> int:
    if not CANONICAL.is_dir():
        print(ABSENT)
        return 0
    text, kept = report(tokenizer_for("o200k"))
    print(text)
    return int(kept < TARGET)


if __name__ == "__main__":
    sys.exit(main())
