"""What came of a command: passed or failed, the figures of its test runner, the names of failing tests."""

import re
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from lowwater.compact.summary.hygiene import plain
from lowwater.compact.summary.phrases import flat
from lowwater.compact.summary.story import Step

_READ = 20_000
"""Characters at the end of an output in which runners print their figures."""
_FIGURES = (
    re.compile(r"^=+ (?P<said>(?=.*\b(?:passed|failed|error))[^=\n]+?) in [\d.]+s.*=+$", re.MULTILINE),
    re.compile(r"^(?P<said>\d+ (?:passed|failed)(?:, \d+ \w+)*) in [\d.]+s", re.MULTILINE),
    re.compile(r"^[ \t]*Tests:?\s+(?P<said>\d+ (?:failed|passed|skipped|todo)\b[^\n]*)$", re.MULTILINE),
    re.compile(r"^test result: \w+\. (?P<said>\d+ passed; \d+ failed)", re.MULTILINE),
    re.compile(r"^[ \t]*(?P<said>\d+ pass\s*\n(?:\s*\d+ \w+\s*\n)*?\s*\d+ fail)\b", re.MULTILINE),
    re.compile(
        r"^[ \t]*(?P<said>\d+ passing(?: \([^)]*\))?(?:\s+\d+ pending)?(?:\s+\d+ failing)?)", re.MULTILINE
    ),
    re.compile(r"^(?P<said>Ran \d+ tests? in [\d.]+s\s+(?:OK|FAILED)(?: \([^)]*\))?)", re.MULTILINE),
    re.compile(r"^DONE (?P<said>\d+ tests[^\n]*)", re.MULTILINE),
    re.compile(
        r"^(?P<said>Found \d+ errors?[^\n]*|All checks passed!|Success: no issues found[^\n]*|\d+ issues:?)",
        re.MULTILINE,
    ),
)
_PYTEST_NAME = re.compile(r"^(?:FAILED|ERROR) (\S+::\S+|\S+\.py)", re.MULTILINE)
_NAMES = (
    re.compile(r"^[ \t]*--- FAIL: (\S+)", re.MULTILINE),
    _PYTEST_NAME,
    re.compile(r"^test (\S+) \.\.\. FAILED", re.MULTILINE),
    re.compile(r"^\(fail\) (.+?)(?: \[[\d.]+m?s\])?$", re.MULTILINE),
    re.compile(r"^[ \t]*[✕✗×●] (.{4,120}?)(?: \([\d.]+ m?s\))?$", re.MULTILINE),
)
_GO = re.compile(r"^(ok|FAIL|---)\s+(\S+)\s+(?:\(cached\)|[\d.]+s|\[\w)", re.MULTILINE)
_FAILS = re.compile(r"\b[1-9]\d* (?:failed|fail|failing|errors?|issues)\b|\bFAILED\b|failures=[1-9]")
_MOST_NAMES = 8


class Outcome(Struct, frozen=True, kw_only=True):
    """How a command ended; `figures` is what its runner counted, in its own words."""

    ok: bool
    figures: str = ""
    failing: tuple[str, ...] = ()

    def __str__(self) -> str:
        word = "passed" if self.ok else "failed"
        names = f": {', '.join(self.failing)}" if self.failing else ""
        return f"{word} ({self.figures}){names}" if self.figures else word + names


def outcome_of(step: Step) -> Outcome:
    """Read the outcome out of a step's output."""
    text = plain(step.output[-_READ:])
    figures = next((flat(match["said"]) for match in (_last(p, text) for p in _FIGURES) if match), "")
    failing = tuple(dict.fromkeys(islice(_failing(text), 40)))[:_MOST_NAMES]
    packages = _GO.findall(text)
    if not figures and packages:
        good = sum(word == "ok" for word, _ in packages)
        bad = sum(word == "FAIL" for word, _ in packages)
        plural = "" if good == 1 else "s"
        figures = f"{good} package{plural} ok" + (f", {bad} failed" if bad else "")
    ok = not (step.failed or failing or (figures and _FAILS.search(figures)))
    return Outcome(ok=ok, figures=figures, failing=failing)


def _failing(text: str) -> Iterator[str]:
    for pattern in _NAMES:
        yield from (flat(name) for name in pattern.findall(text))


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = None
    for found in pattern.finditer(text):  # noqa: B007  # the last one is wanted
        pass
    return found
