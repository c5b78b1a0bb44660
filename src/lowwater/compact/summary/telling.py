"""What the assistant told, sentence by sentence, and how to shorten it to what matters."""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from lowwater.compact.summary.naming import named_in
from lowwater.compact.summary.phrases import clip, sentences
from lowwater.compact.summary.story import Statement

_PROCESS = re.compile(
    r"""^(?:(?:wait|hmm|ah|oh|ok(?:ay)?|good|great|perfect|excellent|now|alright|first|next|then|so|right|yes|sure|done)
        [,.!:—–-]*\s+)*
    (?:let\ me|let's|i'?ll|i\ will|i'?m\ going\ to|i\ am\ going\ to|i'?m|i\ need\ to|we\ need\ to|going\ to|time\ to|i\ can\ see|i\ have)
    \s+(?:(?:now|also|then|first|just|quickly|actually|to)\ )*
    (?:(?:re)?(?:read|check|look|run|see|search|find|view|examine|start|explore|verify|continue|get|take|do|open|inspect
        |investigate|understand|analy[sz]e|review|try|proceed|gather|grep|list|load|use|test|confirm|fetch|begin|dig|build
        |pull|wait|refresh|go|compare|watch)(?:n?n?ing|t?ting)?
      |using|tracing|comparing|continuing|examining|taking|also|still|now)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_NOW = re.compile(
    r"""^(?:now|next|then|first|finally|also|and)[,:]?\s+(?:i\s+|we\s+)?
    (?:add|update|modify|fix|create|write|check|run|look|need|remove|replace|verify|rebuild|commit|the)\b
    .{0,120}[:.…]?$""",
    re.IGNORECASE | re.VERBOSE,
)
_PLEASANTRY = re.compile(
    r"""^(?:you'?re\ (?:absolutely\ )?right|good\ (?:catch|point|question)|great|perfect|excellent|sure|done|got\ it|thanks
        |sounds\ good|of\ course|yes)[.!,\s]*$
    | ^(?:would\ you\ like|want\ me\ to|shall\ i|should\ i|do\ you\ want|let\ me\ know|ready\ to|does\ this|is\ there\ anything)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_WEIGHTY = re.compile(
    r"""\b(?:root\ cause|caused?\ by|the\ cause|because|decided|decision|instead\ of|rather\ than|turns\ out
    |the\ (?:real\ |actual\ |main\ )?(?:problem|issue|bug|fix|reason)
    |fixed|added|removed|renamed|created|implemented|changed|updated|moved|replaced|committed|pushed|merged
    |pass(?:es|ed|ing)?|fail(?:s|ed|ing)?|blocked|remaining|next\ step)\b""",
    re.IGNORECASE | re.VERBOSE,
)


class Told(Struct, frozen=True, kw_only=True):
    """One sentence of the assistant, with the names in it."""

    number: int
    text: str
    names: frozenset[str]
    process: bool
    """Whether it only announces what is done next, or is polite."""

    @property
    def weight(self) -> float:
        """How much a reader would miss it."""
        weight = min(len(self.names), 5) + (2 if _WEIGHTY.search(self.text) else 0)
        return weight - 4 if self.process else weight


def told(statement: Statement) -> tuple[Told, ...]:
    """Return the sentences of a statement."""
    return tuple(
        Told(
            number=statement.number,
            text=sentence,
            names=frozenset(text for _, text in named_in(sentence)),
            process=is_process(sentence),
        )
        for sentence in sentences(statement.text)
    )


def is_process(sentence: str) -> bool:
    """Tell whether a sentence only announces the next step or is polite."""
    straight = sentence.replace("’", "'")
    return any(pattern.match(straight) for pattern in (_PROCESS, _NOW, _PLEASANTRY))


def condense(told_sentences: Sequence[Told], limit: int) -> str:
    """Return the sentences that matter most, in their order, within `limit` characters; at least the first of them."""
    candidates = [sentence for sentence in told_sentences if _says_something(sentence)] or list(
        told_sentences
    )
    if not candidates:
        return ""
    ranked = sorted(
        range(len(candidates)), key=lambda at: (-candidates[at].weight - (3 if at == 0 else 0), at)
    )
    chosen: list[int] = []
    left = limit
    for at in ranked:
        if len(candidates[at].text) + 2 <= left:
            chosen.append(at)
            left -= len(candidates[at].text) + 2
    if not chosen:
        return clip(candidates[ranked[0]].text, limit)
    return joined(candidates[at].text for at in sorted(chosen))


def _says_something(sentence: Told) -> bool:
    if (sentence.process and not sentence.names) or sentence.text.endswith(","):
        return False
    return len(sentence.text) >= 20 or bool(sentence.names)


def joined(texts: Iterable[str]) -> str:
    """Return sentences and bullet points as one line of running text."""
    ended = [text if text.endswith((".", "!", "?", ":", ";", "。", "…")) else f"{text};" for text in texts]
    joined = " ".join(ended)
    return joined[:-1] + "." if joined.endswith((";", ":")) else joined
