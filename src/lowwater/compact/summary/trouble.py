"""Finding error lines in outputs: what failed, not every line of code that mentions an error."""

import re
from collections.abc import Iterable, Iterator

from lowwater.compact.summary.commands import aim_of
from lowwater.compact.summary.hygiene import plain, untagged
from lowwater.compact.summary.phrases import flat
from lowwater.compact.summary.story import Step
from lowwater.values.trouble import ERRORS_AND_FRAMES, signed_lines

COMPARED = 100
"""Error lines are the same when this many first characters are."""
_TELLING = frozenset({"shell", "other"})
"""Tools whose output may hold errors though the call succeeded."""
_MOST = 10
"""Error lines taken from one output."""
_FRAME = re.compile(r'\s*File "[^"\n]+", line \d+')
_CODE_BEGINS = re.compile(
    r"""\s*(?:[+>|]|-(?!--)|//|\#|\*|/\*|\d+[:\-→\t│|]|["'`{\[]|undefined,|std(?:err|out):|at\s
        |def\s|class\s|func\s|import\s|from\s|if\s|else|elif\s|return\b|raise\b|except\b|throw\b
        |const\s|let\s|var\s|case\s|type\s)""",
    re.VERBOSE | re.IGNORECASE,
)
_CODE_ENDS = ("{", ";", "=>", "(", "&&", "||")
_CODE = re.compile(
    r"""\b(?:
      (?:Errorf|errors\.(?:New|Is|As)|t\.(?:Error|Fatal)\w*|console\.error|new\ \w*Error|logger?\.\w+
        |assert\w*\.\w+|require\.\w+)\s*\(
    | err\s*[!:=]=?\s | 0\ (?:errors?|fail) | PASS(?:ED)?\b | ok\s*$
    ) | [✓✔] | \(pass\)""",
    re.VERBOSE | re.IGNORECASE,
)
_GREPPED = re.compile(r"^[\w@./+-]+[:-]\d+[:-]\s*(?P<rest>.*)")
_ANCHORED = re.compile(
    r"""\W*(?:[\w./@-]+:\ )?(?:
      error(?:\[\w+\])?: | fatal: | panic: | Error: | ERROR\b | FAIL(?:ED|URE)?\b | CONFLICT\b
    | [A-Z][\w.]*(?:Error|Exception)\b
    ) | \s*---\ FAIL | \s*File\ " """,
    re.VERBOSE,
)
"""How an error line begins in the output of a command that did not say it failed."""
_TIMING = re.compile(r"\s*[(\[]?\b\d+(?:\.\d+)?\s?(?:ms|s|µs)\b[)\]]?")
_TIMED = re.compile(r"\d\s?(?:ms|s|µs)\b")
_DIGITS = re.compile(r"\d+")


def error_lines(step: Step) -> tuple[str, ...]:
    """Return the distinct error lines of a step's output, in order, at most ten, each on one line."""
    return tuple(errors_in(step).values())


def errors_in(step: Step) -> dict[str, str]:
    """Return the error lines of a step's output by their `same_error`."""
    if not step.answered or step.refused or (step.kind not in _TELLING and not step.failed):
        return {}
    aim = aim_of(step)
    if aim == "view" and not step.failed:
        return {}
    certain = step.failed or aim in {"test", "check", "build"}
    lines = _distinct(_lines(step.output, None if certain else _ANCHORED))
    if lines or step.kind == "shell" or not step.failed:
        return lines
    first = next(filter(None, (flat(untagged(line)) for line in step.output[:2_000].splitlines())), "")
    return {same_error(first): first} if first else {}


def compared(line: str) -> str:
    """Return what of an error line counts when it is looked for: its first hundred characters, without half a word."""
    text = flat(line)
    if len(text) <= COMPARED:
        return text
    cut = text[:COMPARED]
    return cut if text[COMPARED].isspace() else cut.rpartition(" ")[0] or cut


def same_error(line: str) -> str:
    """Return a key that is equal for error lines which differ in timings and counts only."""
    text = flat(line)
    return _DIGITS.sub("0", _TIMING.sub("", text) if _TIMED.search(text) else text)[:COMPARED]


def _lines(output: str, begins: re.Pattern[str] | None) -> Iterator[str]:
    """Yield error lines that begin so, if that is asked; of a traceback's frames only the deepest, before its error."""
    frame = ""
    for signed in signed_lines(output, ERRORS_AND_FRAMES):
        line = plain(output[signed.start : min(signed.end, signed.start + 400)])
        if _FRAME.match(line):
            frame = line
            continue
        if begins and not begins.match(line):
            continue
        if _is_code(line) or ((grepped := _GREPPED.match(line)) and _is_code(grepped["rest"])):
            continue
        if frame:
            yield flat(frame)
            frame = ""
        yield flat(untagged(line) if "<" in line else line)


def _is_code(line: str) -> bool:
    """Tell whether a line looks as if it mentioned an error without being one: code, diffs, passing tests."""
    return bool(_CODE_BEGINS.match(line) or line.rstrip().endswith(_CODE_ENDS) or _CODE.search(line))


def _distinct(lines: Iterable[str]) -> dict[str, str]:
    """Return the first of the lines that differ, by what makes them differ."""
    found: dict[str, str] = {}
    for line in lines:
        if len(line) > 8:
            found.setdefault(same_error(line), line)
            if len(found) == _MOST:
                break
    return found
