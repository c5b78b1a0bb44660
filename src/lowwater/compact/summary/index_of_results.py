"""The index behind a summary: which tool results it stands for, by handle, so that each is one recall away.

One line for each tool and subject, such as `read_file app/main.py lw:12,45`. Short results, acknowledgements and what recall
itself answered are left out. What does not fit is counted in a last line, and so is what an earlier index left out.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from lowwater.compact.results import calls_in, is_placeholder, text_of
from lowwater.compact.summary.framing import index_in
from lowwater.compact.summary.phrases import flat
from lowwater.compact.worth import chance_of_use
from lowwater.ports import Tokenizer
from lowwater.values.parts import ToolCall, ToolResult
from lowwater.values.secrets import conceal
from lowwater.values.tools import ToolClass, bare_name, class_of, classify, subject_of
from lowwater.values.view import Edited, Item, Summary

LEAST_CHARS = 400
"""What is shorter is sooner done again than recalled."""
SHARE, MOST_TOKENS = 0.25, 2_000
"""How much an index may take of what the summary saves without it, beside what earlier indexes took; and at most."""

_HEADING = "Tool results in these messages, by handle:"
_LINE = re.compile(r"(.*\S) lw:(\d{1,15}(?:,\d{1,15})*)")
_MORE = re.compile(r"and (\d{1,15}) more, lw:(\d{1,15}) to lw:(\d{1,15})")
_ACKNOWLEDGED: frozenset[ToolClass] = frozenset({"write", "todo"})
_OWN = "lowwater_"
"""How the tools of recall are named; what they answer has a handle of its own."""
_WIDTH = 30
_READ = 400
"""Characters of a subject that are looked at."""
_USUAL_CHARS = 2_000
"""The length of a result that only an earlier index tells of."""


class _Listed(Struct, frozen=True, kw_only=True, gc=False):
    """A result that may stand in the index."""

    label: str
    number: int
    kind: ToolClass
    chars: int = _USUAL_CHARS


class _Left(Struct, frozen=True, kw_only=True, gc=False):
    """Results that an index has no room for: how many, and among which messages."""

    count: int
    first: int
    last: int


def index_of_results(replaced: Sequence[Item], *, tokens: int, tokenizer: Tokenizer, redact: bool) -> str:
    """Return the index of the results among the items that a summary replaces, within `tokens`; empty if there is none.

    Lines of an earlier summary's index are carried over. What is most likely to be used again comes first.
    """
    earlier = [index_in(item.message.text) for item in replaced if isinstance(item, Summary)]
    listed = _once([*_carried(earlier), *_found(replaced, redact=redact)])
    left = list(_left_before(earlier))
    newest = max((each.number for each in listed), default=0)
    listed.sort(key=lambda each: (-_chance(each, newest), -each.number, each.label))
    keep = _fitting(listed, tokens, tokenizer)
    while keep:
        text = _written(listed[:keep], [*left, *(_alone(each) for each in listed[keep:])])
        if tokenizer.count(text) <= tokens:
            return text
        keep -= 1 + keep // 20
    return ""


def _found(items: Sequence[Item], *, redact: bool) -> list[_Listed]:
    """Return the results in these items that are worth a line, from the originals."""
    calls = calls_in(items)
    found: list[tuple[int, ToolCall, int]] = []
    for item in items:
        if isinstance(item, Summary):
            continue
        original = item.original if isinstance(item, Edited) else item.message
        for part in original.parts:
            if isinstance(part, ToolResult) and not is_placeholder(part):
                call, chars = calls.get(part.call_id), len(text_of(part))
                if call is not None and chars >= LEAST_CHARS and _is_worth(call):
                    found.append((item.number, call, chars))
    subjects = _subjects([call for _, call, _ in found], redact=redact)
    return [
        _Listed(label=f"{_tool(call)} {subject}".strip(), number=number, kind=class_of(call), chars=chars)
        for (number, call, chars), subject in zip(found, subjects, strict=True)
    ]


def _is_worth(call: ToolCall) -> bool:
    return class_of(call) not in _ACKNOWLEDGED and not bare_name(call.name).startswith(_OWN)


def _tool(call: ToolCall) -> str:
    return "_".join(bare_name(call.name).split())[:_WIDTH] or "tool"


def _subjects(calls: Sequence[ToolCall], *, redact: bool) -> list[str]:
    """Return what calls are about in a few words; secrets go before the cut, which could leave an unknown half."""
    whole = [flat(subject_of(call)[:_READ]) for call in calls]
    if redact and conceal(together := "\n".join(whole)) is not together:
        whole = [conceal(subject) for subject in whole]
    return [_short(subject) for subject in whole]


def _short(subject: str) -> str:
    """Return the end of a path, the start of anything else."""
    if "/" in subject and " " not in subject:
        return "/".join(subject.rstrip("/").split("/")[-2:])[-_WIDTH:]
    return subject[:_WIDTH].rstrip()


def _carried(indexes: Iterable[str]) -> Iterator[_Listed]:
    for index in indexes:
        for line in index.splitlines():
            if found := _LINE.fullmatch(line):
                kind = classify(found[1].partition(" ")[0])
                for number in found[2].split(","):
                    # An editor in an index was asked to view a file.
                    yield _Listed(
                        label=found[1], number=int(number), kind="read" if kind == "write" else kind
                    )


def _left_before(indexes: Iterable[str]) -> Iterator[_Left]:
    for index in indexes:
        for found in map(_MORE.match, index.splitlines()):
            if found:
                yield _Left(count=int(found[1]), first=int(found[2]), last=int(found[3]))


def _alone(listed: _Listed) -> _Left:
    return _Left(count=1, first=listed.number, last=listed.number)


def _once(listed: Iterable[_Listed]) -> list[_Listed]:
    return list({(each.label, each.number): each for each in listed}.values())


def _chance(listed: _Listed, newest: int) -> float:
    """Return how likely a result is to be used again; a call and its results are two messages at least."""
    return chance_of_use(listed.kind, listed.chars, (newest - listed.number) // 2)


def _fitting(listed: Sequence[_Listed], tokens: int, tokenizer: Tokenizer) -> int:
    """Return about how many of these fit, counted one by one."""
    labels: set[str] = set()
    room = tokens - tokenizer.count(_HEADING)
    for at, each in enumerate(listed):
        line = f",{each.number}" if each.label in labels else f"{each.label} lw:{each.number}\n"
        labels.add(each.label)
        room -= tokenizer.count(line)
        if room < 0:
            return at
    return len(listed)


def _written(listed: Iterable[_Listed], left: Sequence[_Left]) -> str:
    groups: dict[str, list[int]] = {}
    for each in listed:
        groups.setdefault(each.label, []).append(each.number)
    lines = [f"{label} lw:{','.join(map(str, sorted(numbers)))}" for label, numbers in groups.items()]
    if left:
        first, last = min(each.first for each in left), max(each.last for each in left)
        lines.append(
            f"and {sum(each.count for each in left)} more, lw:{first} to lw:{last}: search for their words"
        )
    return "\n".join([_HEADING, *lines])
