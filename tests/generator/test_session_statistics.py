"""Generated sessions measured like recorded ones: figures of the same order as in ../shared/transcripts."""

import itertools
import zlib
from collections.abc import Callable, Sequence

from msgspec import Struct
from splintr import Tokenizer

from lowwater.core.messages import texts_of
from tests.generated import GeneratedSession, generate_session


class Range(Struct, frozen=True):
    low: float
    high: float


def outputs(sessions: Sequence[GeneratedSession]) -> list[str]:
    return [result.text for session in sessions for message in session.messages for result in message.results]


def at_share(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def share_of(claims: Sequence[bool]) -> float:
    return sum(claims) / len(claims)


def sizes(sessions: Sequence[GeneratedSession]) -> list[int]:
    return [len(text) for text in outputs(sessions)]


def tool_share(sessions: Sequence[GeneratedSession]) -> float:
    everything = sum(len(text) for s in sessions for message in s.messages for text in texts_of(message))
    return sum(sizes(sessions)) / everything


def calls_per_user_message(sessions: Sequence[GeneratedSession]) -> float:
    asked = sum(message.role == "user" for session in sessions for message in session.messages)
    return sum(len(session.usages) for session in sessions) / asked


def parallel_share(sessions: Sequence[GeneratedSession]) -> float:
    acting = [message for session in sessions for message in session.messages if message.calls]
    return share_of([len(message.calls) > 1 for message in acting])


def error_share(sessions: Sequence[GeneratedSession]) -> float:
    return share_of([r.is_error for s in sessions for message in s.messages for r in message.results])


def thinking_share(sessions: Sequence[GeneratedSession]) -> float:
    answers = [message for s in sessions for message in s.messages if message.role == "assistant"]
    return share_of([bool(message.thinking) for message in answers])


def gaps(sessions: Sequence[GeneratedSession]) -> list[float]:
    """Seconds from one answer of the model to the next."""
    found: list[float] = []
    for session in sessions:
        timed = zip(session.messages, session.times, strict=True)
        answered = [time for message, time in timed if message.role == "assistant"]
        found += [after - before for before, after in itertools.pairwise(answered)]
    return found


def repeated_share(sessions: Sequence[GeneratedSession]) -> float:
    long = [text for text in outputs(sessions) if len(text) > 200]
    return 1 - len(set(long)) / len(long)


def characters_per_token(sessions: Sequence[GeneratedSession]) -> float:
    tokenizer = Tokenizer.from_pretrained("o200k_base")
    sample = outputs(sessions)[::5]
    return sum(map(len, sample)) / sum(len(tokenizer.encode(text)) for text in sample)


def compressibility(sessions: Sequence[GeneratedSession]) -> float:
    ratios = [len(t) / len(zlib.compress(t.encode())) for t in outputs(sessions) if len(t) > 2_000]
    return at_share(ratios, 0.5)


# Recorded coding sessions (Claude Code, Codex): median 470–690 characters, 90 % below 5,000–11,000, 99 % below 33,000–40,000,
# largest 84,000; tools 70–80 % of the text; parallel calls in 11–36 % of answers; errors 0–7 %; thinking in 2–64 %;
# 9 calls per user message; median gap 7–13 s, over five minutes 2–3 %; 3.3–4.0 characters per token; zlib 2.8–3.1.
CODING: list[tuple[str, Callable[[Sequence[GeneratedSession]], float], Range]] = [
    ("median output", lambda s: at_share(sizes(s), 0.5), Range(300, 1_100)),
    ("90 % of outputs", lambda s: at_share(sizes(s), 0.9), Range(3_500, 11_000)),
    ("99 % of outputs", lambda s: at_share(sizes(s), 0.99), Range(14_000, 45_000)),
    ("largest output", lambda s: max(sizes(s)), Range(30_000, 90_000)),
    ("tool share", tool_share, Range(0.60, 0.85)),
    ("calls per user message", calls_per_user_message, Range(6, 16)),
    ("parallel share", parallel_share, Range(0.08, 0.30)),
    ("error share", error_share, Range(0.03, 0.09)),
    ("thinking share", thinking_share, Range(0.25, 0.65)),
    ("median gap", lambda s: at_share(gaps(s), 0.5), Range(4, 13)),
    ("gaps over five minutes", lambda s: share_of([gap > 300 for gap in gaps(s)]), Range(0.01, 0.05)),
    ("repeated outputs", repeated_share, Range(0.0, 0.06)),
    ("characters per token", characters_per_token, Range(3.0, 4.5)),
    ("compressibility", compressibility, Range(2.0, 4.0)),
]


def test_coding_sessions_measure_like_recorded_ones() -> None:
    coding = [generate_session("coding", seed=seed, target_tokens=150_000) for seed in range(4)]
    measured = {name: measure(coding) for name, measure, _ in CODING}
    assert {
        name: measured[name] for name, _, within in CODING if not within.low <= measured[name] <= within.high
    } == {}


# What stands in the outputs of a coding session, by a text that only that kind of output has.
