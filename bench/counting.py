"""Measures counting on the recorded sessions: `python -m bench.counting [SECTION …]`.

The sections are equality, fallback, prompts, framing and speed.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from hashlib import sha256
from statistics import fmean, median, quantiles
from typing import TypeVar

from bench.framing import codex_framing, growth_of
from bench.independent import Unavailable, independent_counts
from bench.prompts import Errors, ThinkingRule, calls_of, errors_of
from bench.transcripts import ABSENT, CANONICAL, Session, sessions
from lowwater.adapters.tokenizer import SplintrTokenizer
from lowwater.core.messages import Message, Text, texts_of
from lowwater.core.models.names import read_name
from lowwater.core.tokens.counting import count_message
from lowwater.core.tokens.estimate import CharacterTokenizer
from lowwater.protocols import Tokenizer

T = TypeVar("T")
Failures = list[str]


def main(sections: list[str]) -> int:
    """Print the sections asked for, all by default; return 1 if a figure misses what is promised of it."""
    if not CANONICAL.is_dir():
        print(ABSENT)
        return 0
    measured = list(sessions())
    failures: Failures = []
    for name, measure in _SECTIONS.items():
        if not sections or name in sections:
            failures += measure(measured)
            print()
    for failure in failures:
        print(f"missed: {failure}")
    return 1 if failures else 0


def equality(measured: list[Session]) -> Failures:
    """Compare every text of every message with an independent o200k tokenizer."""
    texts = [text for session in measured for text in _texts(session)]
    tokenizer = SplintrTokenizer("o200k")
    try:
        theirs = independent_counts(texts)
    except Unavailable as error:
        print(f"equality not measured: {error}")
        return []
    ours = [tokenizer.count(text) for text in texts]
    different = sum(1 for left, right in zip(ours, theirs, strict=True) if left != right)
    print("| texts | characters | tokens, splintr | tokens, npm tiktoken | texts that differ |")
    print("|---|---|---|---|---|")
    size = sum(map(len, texts))
    print(f"| {len(texts):,} | {size:,} | {sum(ours):,} | {sum(theirs):,} | {different} |")
    return [f"{different} texts differ from npm tiktoken"] if different else []


def fallback(measured: list[Session]) -> Failures:
    """Compare the estimate with o200k, transcript by transcript."""
    exact, estimate = SplintrTokenizer("o200k"), CharacterTokenizer()
    errors: dict[str, list[float]] = defaultdict(list)
    for session in measured:
        texts = list(_texts(session))
        right = sum(map(exact.count, texts))
        errors["fitted on" if _is_fitted_on(session) else "held out"].append(
            abs(sum(map(estimate.count, texts)) / right - 1)
        )
    print("| transcripts | number | mean error | worst |")
    print("|---|---|---|---|")
    for half, values in sorted(errors.items()):
        print(f"| {half} | {len(values)} | {fmean(values):.1%} | {max(values):.1%} |")
    worst = max(max(values) for values in errors.values())
    return [f"the estimate errs by {worst:.1%} on a transcript"] if worst > 0.15 else []


def prompts(measured: list[Session]) -> Failures:
    """Predict the size of every prompt with reported usage, by family of models."""
    rules: tuple[ThinkingRule, ...] = ("family", "none", "kept", "turn")
    found = {rule: _by_family(measured, rule) for rule in rules}
    print(
        "| model | calls | next prompt, from the last reported | from the first ten calls"
        " | after the client's compaction | thinking never counted | always | until the next user message |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for family, errors in sorted(found["family"].items()):
        others = " | ".join(_median(found[rule][family].unanchored) for rule in rules[1:])
        print(
            f"| {family} | {len(errors.anchored):,} | {_spread(errors.anchored)} | {_spread(errors.unanchored)}"
            f" | {_spread(errors.after)} | {others} |"
        )
    return _broken_promises(found["family"])


def _broken_promises(families: dict[str, Errors]) -> Failures:
    failures = []
    anchored = median(families["all"].anchored)
    if anchored >= 0.01:
        failures.append(f"the next prompt is missed by {anchored:.2%}")
    for name in ("Codex", "Opus 4.5 and 4.6"):
        unanchored = median(families[name].unanchored)
        if unanchored >= 0.05:
            failures.append(f"{name}: a prompt is missed by {unanchored:.2%} after ten calls")
    return failures


def framing(measured: list[Session]) -> Failures:
    """Print what Codex's models write around their content, and how prompts grow with the count."""
    print("| a Codex answer | tokens beyond content | share of answers |")
    print("|---|---|---|")
    for around in codex_framing(measured):
        shape = f"{'text, ' if around.has_text else ''}{around.calls} calls"
        print(f"| {shape} | {around.tokens} | {around.share:.0%} of {around.answers} |")
    ratios: dict[str, list[float]] = defaultdict(list)
    for session in measured:
        ratio = growth_of(session)
        if ratio is not None:
            ratios[next(_families(session.messages[-1].model))].append(ratio)
    print("\n| model | sessions | reported growth for one counted token, median |")
    print("|---|---|---|")
    for family, values in sorted(ratios.items()):
        print(f"| {family} | {len(values)} | {median(values):.2f} |")
    return []


def speed(measured: list[Session]) -> Failures:
    """Time both tokenizers on the sessions' texts and on messages of 400 characters."""
    texts = [text for session in measured[::8] for text in _texts(session)]
    size = sum(len(text.encode()) for text in texts) / 1e6
    messages = [_message(number) for number in range(10_000)]
    tokenizers: tuple[tuple[str, Tokenizer], ...] = (
        ("splintr, o200k", SplintrTokenizer("o200k")),
        ("estimate", CharacterTokenizer()),
    )
    print("| tokenizer | MB/s | µs for a message of 400 characters |")
    print("|---|---|---|")
    for name, tokenizer in tokenizers:
        whole = _seconds(tokenizer.count, texts)
        one = _seconds(lambda message, by=tokenizer: count_message(message, by), messages) / len(messages)  # type: ignore[misc]  # mypy finds no type for the default
        print(f"| {name} | {size / whole:.0f} | {one * 1e6:.1f} |")
    return []


def _by_family(measured: list[Session], rule: ThinkingRule) -> dict[str, Errors]:
    found: dict[str, Errors] = defaultdict(lambda: Errors(anchored=[], unanchored=[], after=[]))
    for session in measured:
        calls = calls_of(session, rule)
        if not calls:
            continue
        errors = errors_of(calls)
        for name in _families(calls[0].model):
            found[name].anchored.extend(errors.anchored)
            found[name].unanchored.extend(errors.unanchored)
            found[name].after.extend(errors.after)
    return found


def _families(model: str) -> Iterator[str]:
    name = read_name(model).name
    yield "-".join(part for part in name.split("-") if len(part) < 8)
    yield "all"
    if name.startswith("gpt"):
        yield "Codex"
    elif name.startswith(("claude-opus-4-5", "claude-opus-4-6")):
        yield "Opus 4.5 and 4.6"


def _texts(session: Session) -> Iterator[str]:
    for recorded in session.messages:
        yield from texts_of(recorded.message)


def _is_fitted_on(session: Session) -> bool:
    """Say whether the estimate's weights were fitted on this session: half of them, by a hash of the id."""
    return sha256(session.id.encode()).digest()[0] % 2 == 0


def _median(values: list[float]) -> str:
    return f"{median(values):.2%}" if values else "–"


def _spread(values: list[float]) -> str:
    if len(values) < 10:
        return "–"
    return f"{median(values):.2%} (90 % of {len(values):,} below {quantiles(values, n=10)[-1]:.1%})"


def _message(number: int) -> Message:
    """Return a message of 400 characters like no other, so that nothing is remembered from the one before."""
    lines = (
        f"Worker {number * 31 + at} read {number * 7 + at} rows from queue_{at} and wrote {number:x}{at:x}.json\n"
        for at in range(8)
    )
    return Message(role="user", parts=(Text(text="".join(lines)[:400]),))


def _seconds(work: Callable[[T], object], items: list[T]) -> float:
    start = time.perf_counter()
    for item in items:
        work(item)
    return time.perf_counter() - start


_SECTIONS: dict[str, Callable[[list[Session]], Failures]] = {
    "equality": equality,
    "fallback": fallback,
    "prompts": prompts,
    "framing": framing,
    "speed": speed,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
