"""The index behind a summary: the tool results that it replaces, by handle, with the names that would be lost with them.

It is computed, never written by a model. A name is listed if it stands in the replaced results only: what the conversation says
elsewhere, the summary covers or the view still shows. The names most likely to be used for their tokens come first, and a later
summary's index takes over the lines of the earlier one's and ranks them anew, so that it does not grow for ever.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.mechanisms.digest import (
    Name,
    Priced,
    UnnumberedText,
    choose_names,
    distinct_names,
    read_content,
)
from lowwater.core.mechanisms.results import calls_in, is_placeholder, result_text
from lowwater.core.mechanisms.reuse import chance_of_use
from lowwater.core.messages import Message, Text, ToolCall, ToolResult
from lowwater.core.references import NAME, ContentKind, reference_kind
from lowwater.core.secrets.redaction import conceal
from lowwater.core.summary.frame import index_in
from lowwater.core.summary.text import flat
from lowwater.core.tools import (
    ToolClass,
    bare_name,
    class_of,
    classify,
    subject_of,
)
from lowwater.core.view import Edited, Item, Summary
from lowwater.protocols import Tokenizer

SHARE, MOST_TOKENS = 0.35, 8_000
"""The index may use this share of the tokens that the summary saves, plus what earlier indexes used, and at most so many."""
EXPECTED_SHARE = 0.06
"""What the first one usually has of the tokens that are replaced; a later one is hardly larger than the one it takes over."""
_LEAST_CHARS = 400
"""Results that are shorter are listed only for their names: running the call again is as quick as recalling them."""
_NAMES_SHARE = 0.85
"""The share of the index for names; the rest is for the lines of results without any."""

_HEADING = "Index of removed tool results, with names only they had:"
_LINE = re.compile(r"(.*\S) lw:(\d{1,15}(?:,\d{1,15})*)(?:: (.*))?")
_MORE = re.compile(r"and (\d{1,15}) more, lw:(\d{1,15}) to lw:(\d{1,15})")
_PIECE = re.compile(r"[^/]+\Z|\w+")
_HANDLE = re.compile(r"\blw:(?=\s?\d)", re.IGNORECASE)
_UNLISTED: frozenset[ToolClass] = frozenset({"write", "todo"})
_RECALL_TOOLS = "lowwater_"
"""The prefix of the recall tools; what they return has a handle already."""
_LINE_TOKENS, _NAME_TOKENS = 14, 6
"""About how many tokens a result's line and a name have at most."""
_WIDTH = 30
_READ = 400
"""Characters of a subject that are read."""
_MOST_READ = 500_000
"""Characters of a result that are read."""
_USUAL_CHARS = 2_000
"""The assumed length of a result that is known only from an earlier index."""
_USUAL_KINDS: dict[ToolClass, ContentKind] = {
    "read": "code",
    "search": "search",
    "list": "search",
    "shell": "log",
}
"""The kind of content that is assumed of such a result."""

_TOOL_WORTH: dict[ToolClass, float] = {"read": 1.0, "search": 0.7}
_OTHER_WORTH = 0.4
_RARELY = 0.2
"""How much less numbers, addresses and hashes are used again than in a digest, where they stand beside what they belong to."""
_REPEATED = 1.5
"""How much more often a name is needed that several of the results have."""
_USES_PER_WORTH = 0.0018
"""How many later uses there are for each token of a name, by its worth per token (`python -m bench.index_worth`)."""
_LOST_USE = 12.0
"""How many recalls a use is worth: besides the call, the model has to notice that it lacks something, and often does not."""
_HASH = re.compile(r"[0-9a-f]{7,64}|[0-9a-f]{8}-[0-9a-f-]{27}")


class ListedResult(Struct, frozen=True, kw_only=True, gc=False):
    """A tool result that may be listed, and the names that only results have, each with its worth in comparison with others."""

    label: str
    number: int
    kind: ToolClass
    chars: int
    names: tuple[Name, ...] = ()


class _Omitted(Struct, frozen=True, kw_only=True, gc=False):
    """Results that did not fit into an index: how many, and the first and last message they are in."""

    count: int
    first: int
    last: int


def index_of_results(
    replaced: Sequence[Item],
    *,
    beside: Sequence[Item] = (),
    summary: str = "",
    tokens: int,
    tokenizer: Tokenizer,
    redact: bool,
    break_even: float = 0.0,
) -> str:
    """Return an index of the tool results in the items that a summary replaces, within `tokens`; empty if there are none.

    `beside` are the items that stay in view. Lines of an earlier summary's index are carried over. Results most likely to be
    used again come first. A name is left out if its chance of being used is below `break_even` for each of its tokens,
    because carrying it then costs more than the recalls that it saves.
    """
    earlier = [index_in(item.message.text) for item in replaced if isinstance(item, Summary)]
    listed = results_to_list(replaced, beside=beside, summary=summary, redact=redact)
    newest = max((each.number for each in listed), default=0)
    listed.sort(key=lambda each: (-_reuse_chance(each, newest), -each.number, each.label))
    least = break_even / (_USES_PER_WORTH * _LOST_USE)
    names = _chosen(listed, int(tokens * _NAMES_SHARE), tokenizer, least=least)
    return _fitted(listed, names, list(_carried_omissions(earlier)), tokens, tokenizer)


def tokens_of_indexes(items: Iterable[Item]) -> int:
    """Return about how many tokens of these items are indexes of summaries."""
    texts = [(item.tokens, item.message.text) for item in items if isinstance(item, Summary)]
    return sum(int(tokens * len(index_in(text)) / max(1, len(text))) for tokens, text in texts)


def listed_in(index: str) -> Iterator[ListedResult]:
    """Yield the results that an index lists, each with its names."""
    yield from _carried_results([index], frozenset())


def expected_tokens(replaced: Sequence[Item]) -> int:
    """Return about how many tokens the index behind a summary of these items will have, for a model that can recall."""
    carried = tokens_of_indexes(replaced)
    raw = sum(item.tokens for item in replaced if not isinstance(item, Summary))
    return min(MOST_TOKENS, max(carried, int(EXPECTED_SHARE * raw)))


# What is listed


def results_to_list(
    replaced: Sequence[Item], *, beside: Sequence[Item] = (), summary: str = "", redact: bool
) -> list[ListedResult]:
    """Return the results that an index could list, each name with the newest of those that have it."""
    earlier = [index_in(item.message.text) for item in replaced if isinstance(item, Summary)]
    known = _known_names(replaced, beside, summary)
    return _without_repeats([*_carried_results(earlier, known), *_results_in(replaced, known, redact=redact)])


def _results_in(items: Sequence[Item], known: frozenset[str], *, redact: bool) -> Iterator[ListedResult]:
    """Yield the results in these items that are worth listing, as they originally were."""
    calls = calls_in(items)
    found: list[tuple[int, ToolCall, str]] = []
    for item in items:
        if isinstance(item, Summary):
            continue
        original = item.original if isinstance(item, Edited) else item.message
        for part in original.parts:
            if isinstance(part, ToolResult) and not is_placeholder(part):
                call = calls.get(part.call_id)
                if call is not None and not bare_name(call.name).startswith(_RECALL_TOOLS):
                    found.append((item.number, call, result_text(part)))
    subjects = _subjects([call for _, call, _ in found], redact=redact)
    for (number, call, text), subject in zip(found, subjects, strict=True):
        kind = class_of(call)
        if kind in _UNLISTED:
            continue
        safe = conceal(text) if redact else text
        content = read_content(safe[:_MOST_READ], tool=kind, subject=subject_of(call))
        yield ListedResult(
            label=f"{_tool_label(call)} {subject}".strip(),
            number=number,
            kind=kind,
            chars=len(text),
            names=tuple(distinct_names(content, known)),
        )


def _known_names(replaced: Iterable[Item], beside: Iterable[Item], summary: str) -> frozenset[str]:
    """Return the names that the summary or the rest of the view says, and those that were said beside results in what is replaced."""
    texts = [summary]
    for item in beside:
        texts += _said(item.message)
        texts += (result.text for result in item.message.results)
    for item in replaced:
        if not isinstance(item, Summary):
            texts += _said(item.original if isinstance(item, Edited) else item.message)
    known = {name for text in texts for name in NAME.findall(text)}
    # Who says a path has said the name of its file, too.
    known.update([word for name in known for word in _PIECE.findall(name)])
    return frozenset(known)


def _said(message: Message) -> Iterator[str]:
    """Yield the text and the calls of a message; what was thought is in no summary, and may leave the view by itself."""
    for part in message.parts:
        match part:
            case Text():
                yield part.text
            case ToolCall():
                yield part.name
                yield part.arguments.replace("\\n", " ").replace("\\t", " ")
            case _:
                pass


def _tool_label(call: ToolCall) -> str:
    return "_".join(bare_name(call.name).split())[:_WIDTH] or "tool"


def _subjects(calls: Sequence[ToolCall], *, redact: bool) -> list[str]:
    """Return the subjects of calls, shortened; secrets are removed first, because half a secret would not be recognised."""
    whole = [flat(subject_of(call)[:_READ]) for call in calls]
    if redact and conceal(together := "\n".join(whole)) is not together:
        whole = [conceal(subject) for subject in whole]
    # A handle that a call was about would be read as that of its result.
    return [_shorten(_HANDLE.sub("lw ", subject)) for subject in whole]


def _shorten(subject: str) -> str:
    """Return the end of a path, or the start of anything else."""
    if "/" in subject and " " not in subject:
        return "/".join(subject.rstrip("/").split("/")[-2:])[-_WIDTH:]
    return subject[:_WIDTH].rstrip()


def _carried_results(indexes: Iterable[str], known: frozenset[str]) -> Iterator[ListedResult]:
    for index in indexes:
        for line in index.splitlines():
            if (found := _LINE.fullmatch(line)) and not _MORE.match(line):
                kind = classify(found[1].partition(" ")[0])
                # Writes are not listed, so an editor in an index was used to view a file.
                kind = "read" if kind == "write" else kind
                content = UnnumberedText(kind=_USUAL_KINDS.get(kind, "prose"), text=found[3] or "")
                names = tuple(distinct_names(content, known))
                numbers = sorted(map(int, found[2].split(",")))
                for number in numbers:
                    yield ListedResult(
                        label=found[1],
                        number=number,
                        kind=kind,
                        chars=_USUAL_CHARS,
                        names=names if number == numbers[-1] else (),
                    )


def _carried_omissions(indexes: Iterable[str]) -> Iterator[_Omitted]:
    for index in indexes:
        for found in map(_MORE.match, index.splitlines()):
            if found:
                yield _Omitted(count=int(found[1]), first=int(found[2]), last=int(found[3]))


def _omit(listed: ListedResult) -> _Omitted:
    return _Omitted(count=1, first=listed.number, last=listed.number)


def _without_repeats(listed: Iterable[ListedResult]) -> list[ListedResult]:
    """Return each result once, and each name with the last of the results that have it."""
    results = list({(each.label, each.number): each for each in listed}.values())
    count: dict[str, int] = {}
    for each in results:
        for name in each.names:
            count[name.text] = count.get(name.text, 0) + 1
    seen: set[str] = set()
    kept: list[ListedResult] = []
    for each in reversed(results):
        names = [name for name in each.names if name.text not in seen]
        seen.update(name.text for name in names)
        worth = tuple(replace(name, worth=_worth(name, each.kind, count[name.text])) for name in names)
        if each.chars >= _LEAST_CHARS or worth:
            kept.append(replace(each, names=worth))
    return kept[::-1]


# What is chosen


def _reuse_chance(listed: ListedResult, newest: int) -> float:
    """Return how likely a result is to be used again; its age in turns is half that in messages, a call and its result."""
    return chance_of_use(listed.kind, listed.chars, (newest - listed.number) // 2)


def _worth(name: Name, tool: ToolClass, results: int) -> float:
    """Return how likely a name is to be needed again, in comparison with others."""
    worth = name.worth * _TOOL_WORTH.get(tool, _OTHER_WORTH)
    if reference_kind(name.text) == "number" or "://" in name.text or _HASH.fullmatch(name.text):
        worth *= _RARELY
    return worth * _REPEATED if results > 1 else worth


def _chosen(
    listed: Sequence[ListedResult], tokens: int, tokenizer: Tokenizer, *, least: float
) -> list[Priced]:
    """Return the names that are worth most for their tokens, and `least` at least, the most valuable first."""
    offers = choose_names([name for each in listed for name in each.names], tokens, tokenizer)
    worthwhile = (offer for offer in offers if offer.value >= least)
    return sorted(worthwhile, key=lambda offer: (-offer.value, offer.order))


# How it is written


def _fitted(
    listed: Sequence[ListedResult],
    names: Sequence[Priced],
    left: Sequence[_Omitted],
    tokens: int,
    tokenizer: Tokenizer,
) -> str:
    """Return the index within `tokens`: lines without names are left out first, then the names that are worth least."""
    named = {offer.name.text for offer in names}
    bare = sum(not any(name.text in named for name in each.names) for each in listed)
    if names:
        bare = min(bare, int((1 - _NAMES_SHARE) * tokens) // _LINE_TOKENS)
    keep = len(names)
    while keep or bare:
        text = _rendered(listed, {offer.name.text: offer.name.shown for offer in names[:keep]}, bare, left)
        over = tokenizer.count(text) - tokens
        if over <= 0:
            return text
        if bare:
            bare = max(0, bare - 1 - over // _LINE_TOKENS)
        else:
            keep = max(0, keep - 1 - over // _NAME_TOKENS)
    # Not one name fits; a handle still may.
    return _fitted(listed, (), left, tokens, tokenizer) if names else ""


def _rendered(
    listed: Sequence[ListedResult], shown: dict[str, str], bare: int, left: Sequence[_Omitted]
) -> str:
    """Return the index with these names, and with the first `bare` of the results that have none of them."""
    groups: dict[str, tuple[list[int], list[str]]] = {}
    omitted = list(left)
    for each in listed:
        names = [shown[name.text] for name in each.names if name.text in shown]
        if not names and bare <= 0:
            omitted.append(_omit(each))
            continue
        bare -= not names
        numbers, said = groups.setdefault(each.label, ([], []))
        numbers.append(each.number)
        said += names
    if not groups:
        return ""
    lines: list[str] = [_HEADING]
    for label, (numbers, said) in groups.items():
        line = f"{label} lw:{','.join(map(str, sorted(numbers)))}"
        lines.append(f"{line}: {' '.join(said)}" if said else line)
    if omitted:
        first, last = min(each.first for each in omitted), max(each.last for each in omitted)
        count = sum(each.count for each in omitted)
        lines.append(f"and {count} more, lw:{first} to lw:{last}: search for their words")
    return "\n".join(lines)
