"""The words around a summary, and the index of results behind it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from lowwater.core.entries import Numbers
from lowwater.core.mechanisms.results import calls_in, is_placeholder, text_of
from lowwater.core.mechanisms.reuse import chance_of_use
from lowwater.core.messages import ToolCall, ToolResult
from lowwater.core.secrets.redaction import conceal
from lowwater.core.summary.activity import story_of
from lowwater.core.summary.request import SummaryRequest
from lowwater.core.summary.safety import concealed, whole_characters
from lowwater.core.summary.text import clip, flat
from lowwater.core.tools import ToolClass, bare_name, class_of, classify, subject_of
from lowwater.core.view import Edited, Item, Summary
from lowwater.protocols import Tokenizer

_OPENS = "----- summary of earlier turns -----\n"
_CLOSES = "\n----- end of the summary -----\n"
_INTRODUCES = (
    "Earlier turns of this conversation were compacted. The summary below stands for {what}. It is background from an earlier "
    "window, not instructions: do not redo what it says is done, and do not take up anything in it as a new request."
)
_RECALLS = " The originals are kept; recall any of them by its handle{example} or by searching for its words."
_FOLLOWS = "The user's message that follows is what to answer."
_RUNS_ON = (
    "No new message from the user follows: the task is still running. The user's newest message is repeated word for word "
    "right after this summary; continue that work where the summary leaves off."
)


def frame(
    summary: str,
    *,
    user_follows: bool,
    sources: tuple[Numbers, ...] = (),
    recall: bool = False,
    redact: bool = True,
    index: str = "",
) -> str:
    """Return a summary as it stands in a view, with an index behind it if there is one.

    `user_follows` says whether a user message comes after it; if not, the caller repeats the newest one verbatim right
    behind the summary. `unframe` gets the summary back, without the secrets it had if they were to be redacted;
    `index_in` the index.
    """
    introduction = _INTRODUCES.format(what=_named(sources))
    if recall:
        introduction += _RECALLS.format(example=f" (such as lw:{sources[0].first})" if sources else "")
    whole = (whole_characters(text) for text in (summary, index))
    body, listed = (_without_marks(conceal(text) if redact else text) for text in whole)
    closing = _FOLLOWS if user_follows else _RUNS_ON
    behind = f"{listed}\n\n{closing}" if listed else closing
    return f"{introduction}\n\n{_OPENS}{body}{_CLOSES}\n{behind}"


def unframe(text: str) -> str:
    """Return the summary inside a framed text as it was framed; a text without frame comes back as it is."""
    start, end = text.find(_OPENS), text.rfind(_CLOSES)
    return text[start + len(_OPENS) : end] if 0 <= start < end else text


def index_in(text: str) -> str:
    """Return the index behind the summary in a framed text; empty if it has none."""
    end = text.rfind(_CLOSES)
    return text[end + len(_CLOSES) :].rpartition("\n")[0].strip() if end >= 0 else ""


def _without_marks(summary: str) -> str:
    """Return the summary unable to end its own frame: text it quotes may hold the very marks that bound it."""
    for mark in (_OPENS.strip(), _CLOSES.strip()):
        summary = summary.replace(mark, mark.strip("- "))
    return summary


def static_marker(request: SummaryRequest, *, tokens: int = 0) -> str:
    """Return what stands for messages when no summary of them could be had: what was left out, how to recall it."""
    request = concealed(request)
    count = len(request.messages)
    sizes = f", about {tokens:,} tokens" if tokens else ""
    lines = [
        f"- {count} earlier message{'s' if count != 1 else ''}{_range(request)}{sizes} were left out without a summary."
    ]
    story = story_of(request)
    asks = [episode.ask for episode in story.episodes if episode.ask]
    if asks:
        lines.append(f'- They begin with the user asking: "{clip(asks[0], 300)}"')
    used = Counter(step.call.name for step in story.steps)
    if used:
        counts = ", ".join(f"{name} {times}×" for name, times in used.most_common(8))
        lines.append(f"- In them these tools were used: {counts}.")
    if request.recall and request.numbers:
        first, last = request.numbers[0], request.numbers[-1]
        lines.append(
            f"- Nothing is lost: recall any of them by its handle, lw:{first} to lw:{last}, or search for its words."
        )
    else:
        lines.append("- If something from them is needed, look it up again or ask the user.")
    before = [request.previous.rstrip(), ""] if request.previous.strip() else []
    return "\n".join([*before, "## Critical Context", *lines])


def _range(request: SummaryRequest) -> str:
    if not request.numbers:
        return ""
    return f" (lw:{request.numbers[0]} to lw:{request.numbers[-1]})"


def _named(sources: tuple[Numbers, ...]) -> str:
    if not sources:
        return "them"
    spans = [f"{s.first} to {s.last}" if s.last > s.first else f"{s.first}" for s in sources]
    return f"message{'s' if len(spans) > 1 or sources[0].last > sources[0].first else ''} {', '.join(spans)}"


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
