"""Finding error lines in outputs: what failed, not every line of code that mentions an error."""

import re
from collections.abc import Iterator
from itertools import islice

from lowwater.compact.summary.commands import bare, command_of, purpose
from lowwater.compact.summary.hygiene import plain, untagged
from lowwater.compact.summary.phrases import flat
from lowwater.compact.summary.story import Step

COMPARED = 100
"""Error lines are the same when this many first characters are."""
_TELLING = frozenset({"shell", "other"})
"""Tools whose output may hold errors though the call succeeded."""
_MOST = 10
"""Error lines taken from one output."""
_SIGN = re.compile(
    r"""\b[A-Za-z]\w{0,60}?(?:Error|Exception)(?:\b(?=[:(\s])|$)
    | \bFAIL(?:ED|URE)?\b | \bpanic: | \bfatal: | \b[Ee]rror(?:\[\w+\]|\ [A-Z]{1,5}\d+)?: | \bERROR\b | \bERR! | [✗✕✖❌]
    | \bcommand\ not\ found | \bNo\ such\ file\ or\ directory | \bPermission\ denied | \bundefined: | \bcannot\ find
    | \bdoes\ not\ exist | \bnot\ found\ in\ file | \bCONFLICT\b | \brejected\b | \bFile\ "[^"\n]+",\ line\ \d+""",
    re.VERBOSE | re.MULTILINE,
)
_FRAME = re.compile(r'\s*File "[^"\n]+", line \d+')
_CODE = re.compile(
    r"""^\s*(?:[+>|]|-(?!--)|//|\#|\*|/\*|\d+[:\-→\t│|]|["'`{\[]|undefined,|std(?:err|out):|at\s
        |def\s|class\s|func\s|import\s|from\s|if\s|else|elif\s|return\b|raise\b|except\b|throw\b
        |const\s|let\s|var\s|case\s|type\s)
    | \b(?:Errorf|errors\.(?:New|Is|As)|t\.(?:Error|Fatal)\w*|console\.error|new\ \w*Error|logger?\.\w+
        |assert\w*\.\w+|require\.\w+)\s*\(
    | (?:[{;]|=>|\(|&&|\|\|)\s*$ | \berr\s*[!:=]=?\s | \b0\ (?:errors?|fail)
    | [✓✔] | \(pass\) | \bPASS(?:ED)?\b | \bok\s*$""",
    re.VERBOSE | re.IGNORECASE,
)
"""How a line looks that mentions an error without being one: code, diffs, passing tests."""
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
_DIGITS = re.compile(r"\d+")


def error_lines(step: Step) -> tuple[str, ...]:
    """Return the distinct error lines of a step's output, in order, at most ten, each on one line."""
    if not step.answered or step.refused or (step.kind not in _TELLING and not step.failed):
        return ()
    aim = purpose(bare(command_of(step))) if step.kind == "shell" else "other"
    if aim == "view" and not step.failed:
        return ()
    certain = step.failed or aim in {"test", "check", "build"}
    lines = tuple(islice(_distinct(_lines(step.output, None if certain else _ANCHORED)), _MOST))
    if lines or step.kind == "shell" or not step.failed:
        return lines
    first = next(filter(None, (flat(untagged(line)) for line in step.output[:2_000].splitlines())), "")
    return (first,) if first else ()


def compared(line: str) -> str:
    """Return what of an error line counts when it is looked for: its first hundred characters, without half a word."""
    text = flat(line)
    if len(text) <= COMPARED:
        return text
    cut = text[:COMPARED]
    return cut if text[COMPARED].isspace() else cut.rpartition(" ")[0] or cut


def same_error(line: str) -> str:
    """Return a key that is equal for error lines which differ in timings and counts only."""
    return _DIGITS.sub("0", _TIMING.sub("", flat(line)))[:COMPARED]


def _lines(output: str, begins: re.Pattern[str] | None) -> Iterator[str]:
    """Yield error lines that begin so, if that is asked; of a traceback's frames only the deepest, before its error."""
    frame, end = "", 0
    for sign in _SIGN.finditer(output):
        if sign.start() < end:
            continue
        start = output.rfind("\n", 0, sign.start()) + 1
        end = output.find("\n", sign.end())
        end = len(output) if end < 0 else end
        line = plain(output[start : min(end, start + 400)])
        if _FRAME.match(line):
            frame = line
            continue
        if begins and not begins.match(line):
            continue
        if _CODE.search(line) or ((grepped := _GREPPED.match(line)) and _CODE.search(grepped["rest"])):
            continue
        if frame:
            yield flat(frame)
            frame = ""
        yield flat(untagged(line) if "<" in line else line)


def _distinct(lines: Iterator[str]) -> Iterator[str]:
    seen: set[str] = set()
    for line in lines:
        key = same_error(line)
        if len(line) > 8 and key not in seen:
            seen.add(key)
            yield line
