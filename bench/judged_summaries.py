"""Measures which recorded summaries would be refused, and which of other conversations: `python -m bench.judged_summaries [--all]`.

Claude Code records the summary of each of its compactions. Each is judged as a summary of what it stands for, and as one of other
conversations: of six, drawn by hash, or of all with `--all`.

The second table has what the model's summary keeps beside an extracted one of the same messages: of the names that the assistant
uses afterwards, until the next compaction, and that it had seen before. It had seen the model's summary as well and not the other,
so that the comparison favours the model.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from statistics import mean

from msgspec import Struct
from msgspec.structs import replace

from bench.summary import named_later
from bench.transcripts import ABSENT, CANONICAL, sessions
from bench.transcripts import Recorded as Line
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.messages import Message, ToolResult, texts_of
from lowwater.core.summary.activity import own_words
from lowwater.core.summary.critical import KeptReferences, critical_references
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.grounding import Sources
from lowwater.core.summary.index import MOST_TOKENS, index_of_results
from lowwater.core.summary.request import Critical, SummaryRequest, Verdict, Written
from lowwater.core.summary.validation import REPAIRABLE, WEAK, validate
from lowwater.core.tokens.estimate import CharacterTokenizer
from lowwater.core.turns.state import Ladder
from lowwater.core.turns.summaries import ObtainedSummary, need_for, obtain
from lowwater.core.view import Original
from lowwater.lab.references.uses import find_words, uses_of

_OPENS = "This session is being continued from a previous conversation"
_CLOSES = (
    "If you need specific details from before compaction",
    "Please continue the conversation from where we left",
)
_OTHERS = 6
_UNLIMITED = 10**6
_ROOM = 10_000
"""Tokens that an extracted summary may have with a window of 200,000."""
TOKENIZER = tokenizer_for("o200k")


class Recorded(Struct, frozen=True, kw_only=True):
    """A summary as it was recorded, and what it stands for."""

    session: str
    text: str
    request: SummaryRequest
    wanted: tuple[Critical, ...]
    sources: Sources
    later: tuple[Message, ...]
    """What followed, until the next compaction."""


def recorded() -> Iterator[Recorded]:
    """Yield the summaries that Claude Code recorded."""
    for session in sessions():
        start, previous = 0, ""
        for at, line in enumerate(session.messages):
            if not _is_summary(line):
                continue
            rest = session.messages[at + 1 :]
            end = next((at for at, each in enumerate(rest) if _is_summary(each)), len(rest))
            text = _without_frame(line.message.text)
            messages = [each.message for each in session.messages[start:at] if each.message.role != "system"]
            request = _request(messages, previous)
            yield Recorded(
                session=session.name,
                text=text,
                request=request,
                wanted=critical_references(request),
                sources=Sources(request),
                later=tuple(each.message for each in rest[:end]),
            )
            start, previous = at + 1, text


def _is_summary(line: Line) -> bool:
    return line.kind == "compact_summary" and line.message.text.startswith(_OPENS)


def _request(messages: list[Message], previous: str) -> SummaryRequest:
    asked = [message for message in messages if message.role == "user" and own_words(message)]
    return SummaryRequest(
        messages=tuple(messages),
        max_tokens=_UNLIMITED,
        previous=previous,
        newest_user=asked[-1] if asked else None,
    )


def _without_frame(text: str) -> str:
    ends = [at for closing in _CLOSES if (at := text.find(closing)) >= 0]
    return text[: min(ends, default=len(text))].partition("\n\n")[2].strip() or text


def judge(text: str, of: Recorded) -> Verdict:
    """Return the verdict on a text as a summary of what another one stands for."""
    return validate(
        Written(text=text, by="recorded"),
        of.request,
        CharacterTokenizer(),
        _UNLIMITED,
        wanted=of.wanted,
        sources=of.sources,
    )


def outcome(verdict: Verdict) -> str:
    """Return what would become of a summary with this verdict."""
    if verdict.accepted:
        return "accepted as written"
    code = verdict.because.code
    return f"repaired ({code})" if code in WEAK and verdict.coverage >= REPAIRABLE else f"refused ({code})"


# What it keeps beside an extracted one


class Kept(Struct, frozen=True, kw_only=True):
    """How much of what was used later one kind of summary kept."""

    tokens: int
    coverage: float
    said: int
    """Names that the conversation had said, kept by the summary."""
    said_in_index: int
    """The same, kept by the summary or the index behind it."""
    in_results: int
    """Names that only tool results had, kept by the summary."""
    in_index: int
    """The same, kept by the summary or the index behind it."""


def kept_by(text: str, of: Recorded, said: Sequence[Critical], used: Sequence[str]) -> Kept:
    """Return what a text keeps of the names used after a compaction."""
    items = [Original(number=at, message=each, tokens=0) for at, each in enumerate(of.request.messages, 1)]
    index = index_of_results(
        items, summary=text, tokens=MOST_TOKENS, tokenizer=TOKENIZER, redact=False, break_even=0.0
    )
    kept, listed = KeptReferences(text), KeptReferences(index)
    return Kept(
        tokens=TOKENIZER.count(text),
        coverage=judge(text, of).coverage,
        said=sum(map(kept.has, said)),
        said_in_index=sum(kept.has(name) or listed.has(name) for name in said),
        in_results=sum(find_words(name, text) >= 0 for name in used),
        in_index=sum(find_words(name, text) >= 0 or find_words(name, index) >= 0 for name in used),
    )


def beside_extracted(summaries: Sequence[Recorded]) -> Iterator[str]:
    """Yield what the recorded summaries keep beside extracted ones, in Markdown."""
    writers: dict[str, Callable[[Recorded], str]] = {
        "the model's": lambda each: each.text,
        "the model's, as it is put into the view": as_used,
        "extracted, as long": lambda each: _extracted(each, TOKENIZER.count(each.text)),
        f"extracted, at most {_ROOM:,} tokens": lambda each: _extracted(each, _ROOM),
    }
    rows = {name: list[Kept]() for name in writers}
    of_said = of_used = 0
    for each in summaries:
        past = each.request.messages
        talk = "\n".join(text for message in past for text in texts_of(_without_results(message)))
        said = sorted(named_later(talk, each.later), key=lambda name: (name.kind, name.text))
        used = sorted(
            {use.text for use in uses_of([*past, *each.later]) if use.number > len(past) >= use.origin.number}
        )
        of_said, of_used = of_said + len(said), of_used + len(used)
        for name, write in writers.items():
            rows[name].append(kept_by(write(each), each, said, used))
    yield (
        f"| summary | tokens, mean | critical references kept, by weight | of {of_said} names said before and used later | "
        f"the same with the index | of {of_used} names that only results had | the same with the index |"
    )
    yield "|---|---|---|---|---|---|---|"
    for name, kept in rows.items():
        yield (
            f"| {name} | {mean(each.tokens for each in kept):,.0f} | {mean(each.coverage for each in kept):.0%} | "
            f"{sum(each.said for each in kept) / of_said:.0%} | {sum(each.said_in_index for each in kept) / of_said:.0%} | "
            f"{sum(each.in_results for each in kept) / of_used:.0%} | "
            f"{sum(each.in_index for each in kept) / of_used:.0%} |"
        )


def as_used(of: Recorded) -> str:
    """Return what is put into the view if a model writes the recorded summary: repaired, with what it left out, or the extracted one."""
    replaces = sum(TOKENIZER.count(text) for message in of.request.messages for text in texts_of(message))
    need = need_for(replace(of.request, max_tokens=_ROOM), replaces=replaces, tokenizer=TOKENIZER, must=False)
    steps = obtain(need, Ladder(rungs=1), at=0.0)
    try:
        next(steps)
        steps.send(Written(text=of.text, by="recorded"))
    except StopIteration as done:
        obtained: ObtainedSummary = done.value
        return obtained.judged.written.text if obtained.judged is not None else ""
    return ""


def _extracted(of: Recorded, room: int) -> str:
    return extract(replace(of.request, max_tokens=room), TOKENIZER)


def _without_results(message: Message) -> Message:
    return replace(message, parts=tuple(part for part in message.parts if not isinstance(part, ToolResult)))


def main(arguments: list[str]) -> int:
    """Print what would become of the recorded summaries, of their own conversations and of others."""
    if not CANONICAL.exists():
        print(ABSENT)
        return 0
    summaries = list(recorded())
    own, others = Counter[str](), Counter[str]()
    lowest, highest = 1.0, 0.0
    for at, summary in enumerate(summaries):
        verdict = judge(summary.text, summary)
        own[outcome(verdict)] += 1
        lowest = min(lowest, verdict.score) if "refused" not in outcome(verdict) else lowest
        if "refused" in outcome(verdict):
            facts = verdict.because.facts
            print(
                f"refused: {summary.session[:40]} ({verdict.because.code}) keeps {verdict.coverage:.0%} by weight, "
                f"{facts['invented']} of {facts['named']} names occur nowhere"
            )
        rest = [each for each in summaries if each.session != summary.session]
        rest.sort(key=lambda each: sha256(f"{at} {each.session} {len(each.text)}".encode()).digest())
        for other in rest if "--all" in arguments else rest[:_OTHERS]:
            verdict = judge(summary.text, other)
            others[outcome(verdict)] += 1
            highest = max(highest, verdict.score)
    print("| | own conversation | other conversations |")
    print("|---|---|---|")
    for name in sorted({*own, *others}):
        print(f"| {name} | {own[name]} | {others[name]} |")
    print(f"| **all** | {own.total()} | {others.total():,} |")
    print(
        f"Lowest score of one that stands: {lowest:.2f}; highest of one of another conversation: {highest:.2f}\n"
    )
    print("\n".join(beside_extracted(summaries)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
