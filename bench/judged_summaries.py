"""Measures which recorded summaries would be refused, and which of other conversations: `python -m bench.judged_summaries [--all]`.

Claude Code records the summary of each of its compactions. Each is judged as a summary of what it stands for, and as one of other
conversations: of six, drawn by hash, or of all with `--all`.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256

from msgspec import Struct

from bench.transcripts import ABSENT, CANONICAL, sessions
from lowwater.core.messages import Message
from lowwater.core.summary.activity import own_words
from lowwater.core.summary.critical import critical_references
from lowwater.core.summary.grounding import Sources
from lowwater.core.summary.request import Critical, SummaryRequest, Verdict, Written
from lowwater.core.summary.validation import REPAIRABLE, WEAK, validate
from lowwater.core.tokens.estimate import CharacterTokenizer

_OPENS = "This session is being continued from a previous conversation"
_CLOSES = (
    "If you need specific details from before compaction",
    "Please continue the conversation from where we left",
)
_OTHERS = 6
_UNLIMITED = 10**6


class Recorded(Struct, frozen=True, kw_only=True):
    """A summary as it was recorded, and what it stands for."""

    session: str
    text: str
    request: SummaryRequest
    wanted: tuple[Critical, ...]
    sources: Sources


def recorded() -> Iterator[Recorded]:
    """Yield the summaries that Claude Code recorded."""
    for session in sessions():
        start, previous = 0, ""
        for at, line in enumerate(session.messages):
            if line.kind != "compact_summary" or not line.message.text.startswith(_OPENS):
                continue
            text = _without_frame(line.message.text)
            messages = [each.message for each in session.messages[start:at] if each.message.role != "system"]
            request = _request(messages, previous)
            yield Recorded(
                session=session.name,
                text=text,
                request=request,
                wanted=critical_references(request),
                sources=Sources(request),
            )
            start, previous = at + 1, text


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
        f"Lowest score of one that stands: {lowest:.2f}; highest of one of another conversation: {highest:.2f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
