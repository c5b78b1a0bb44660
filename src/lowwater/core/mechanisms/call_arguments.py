"""`call_arguments`: long texts that old calls passed to their tools are replaced by digests; the calls stay calls of their tools.

What an agent wrote into files, its patches and its long commands are a large part of a conversation and are hardly ever used
again. Of such a call only the long values change: every key, every short value and all bytes between them stay.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import Edit
from lowwater.core.mechanisms.digest import digest
from lowwater.core.mechanisms.edits import edit_if_smaller, offer_edits
from lowwater.core.mechanisms.mechanism import EditContext, Mechanism, Zones
from lowwater.core.mechanisms.placeholder import way_back
from lowwater.core.mechanisms.results import tokens_of_parts, weight_of
from lowwater.core.messages import ToolCall, ToolResult
from lowwater.core.proposals import Proposal, Target
from lowwater.core.references import NAME as NAMES
from lowwater.core.tools import ToolClass, arguments_of, classify, path_in, subject_in
from lowwater.core.view import Edited, Item, Summary, shown_parts

NAME = "call_arguments"
_FRAME, _SHORT_FRAME = 30, 15
"""Tokens of what is said about the first long value of a call, and about each further one."""
_LONG = 2
"""A value may go if it is longer than `elide_limit_chars` divided by this; the long values of a call must exceed the limit together."""
_DIGEST_SHARE = 3
"""The digest of a value is this many times smaller than that of a result: what a call passed is used again far more rarely than
what it returned (`make bench-recall`)."""
_BEGINNING = 120
"""At most this many characters of a command stay: its first line."""
_LOST = 0.97
"""The share of later uses of a call's arguments that their digests no longer serve (measured: `make bench-recall`)."""
_USED = 0.2
"""Arguments are used so many times as often as a result of the same size from an unknown tool, by which messages of the assistant
are priced: 0.011 times per 1,000 characters (measured: `make bench-recall`) instead of 0.06."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"(\s*+:)?+', re.DOTALL)
"""A string in JSON text; with the colon behind it, it is a key."""
_KEPT_KEYS = re.compile(
    r"path|name|dir|url|uri|pattern|regex|query|(?:^|_)id$|^(?:key|plan)$|^question", re.IGNORECASE
)
"""Keys whose values say what a call is about, or what was agreed with the user: they stay, however long they are."""
_COMMANDS = frozenset({"command", "cmd", "script"})
_SHORTENED = re.compile(
    r"\[[\d,]+ (?:lines|characters)[^\n\[\]]* shortened only in this view[^\n\[\]]*\blw:\d+"
)
_PLAIN = re.compile(r"[\[\]]")
_FREE_TEXT, _JSON = ("custom", "custom_tool_call"), ("", "function", "function_call", "tool_use")
"""Types of calls, as the formats write them, whose arguments are free text or a JSON object."""


class _Value(Struct, frozen=True, kw_only=True):
    """A long text in the arguments of a call: where its JSON string starts and ends, its key, and what it says."""

    start: int
    end: int
    text: str
    key: str = ""
    is_json: bool = True
    """False if the arguments as a whole are this text."""


class _Typed(Struct):
    type: str = ""


def propose(items: Sequence[Item], zones: Zones, context: EditContext) -> Proposal | None:
    """Propose to digest the long values of calls in the middle, except those of never-prune tools."""
    if not context.preset.digests_arguments:
        return None
    answered = _answered(items)
    targets: list[Target] = []
    left = 0
    for at in zones.middle:
        item = items[at]
        if isinstance(item, Summary) or item.message.role != "assistant":
            continue
        total = 0
        for path, call in _calls(item):
            if call.id not in answered or context.preset.protects(call.name):
                continue
            values = long_values(call, context.preset.elide_limit_chars)
            if not values:
                continue
            total = total or weight_of(item.message.parts)
            whole = tokens_of_parts(item.tokens, total, [call])
            long = sum(value.end - value.start for value in values)
            tokens = whole * long // max(1, len(call.name) + len(call.arguments))
            targets.append(Target(item=at, path=path, tokens=tokens))
            frames = _FRAME + _SHORT_FRAME * (len(values) - 1)
            left += min(tokens, frames + int(tokens * context.digest_ratio / _DIGEST_SHARE))
    return offer_edits(NAME, items, targets, left=left)


def apply(items: Sequence[Item], proposal: Proposal, context: EditContext) -> list[Item]:
    """Return the items with the long values of the proposal's calls digested, each call only if that makes it smaller."""
    kept = list(items)
    for target in proposal.targets:
        item = kept[target.item]
        call = dict(_calls(item)).get(target.path)
        if call is None or isinstance(item, Summary):
            continue
        shorter = digested(call, item.number, context)
        if shorter is not call:
            kept[target.item] = edit_if_smaller(item, [Edit(path=target.path, by=shorter)], context.size)
    return kept


def digested(call: ToolCall, number: int, context: EditContext) -> ToolCall:
    """Return the call, which is in message `number`, with digests in place of its long values."""
    values = long_values(call, context.preset.elide_limit_chars)
    pieces: list[str] = []
    at = 0
    for value in values:
        text = _digest_of(value, call, number, context, is_first=not pieces)
        written = msgspec.json.encode(text).decode() if value.is_json else text
        if len(written) >= value.end - value.start:
            continue
        pieces += [call.arguments[at : value.start], written]
        at = value.end
    return replace(call, arguments="".join([*pieces, call.arguments[at:]])) if pieces else call


def long_values(call: ToolCall, limit: int) -> list[_Value]:
    """Return the values of a call that may be digested, in order: together they have more than `limit` characters."""
    if len(call.arguments) <= limit or _SHORTENED.search(call.arguments):
        return []
    kind = _type_of(call)
    if kind in _FREE_TEXT:
        found = [_Value(start=0, end=len(call.arguments), text=call.arguments, is_json=False)]
    elif kind in _JSON and arguments_of(call):
        found = [*_long_strings(call.arguments, limit // _LONG)]
    else:
        # What a provider defines itself, and what should be a JSON object but is none, has rules of its own.
        found = []
    return found if sum(len(value.text) for value in found) > limit else []


def _long_strings(arguments: str, limit: int) -> Iterator[_Value]:
    key = ""
    for match in _STRING.finditer(arguments):
        if match[1]:
            key = match[0][: -len(match[1])][1:-1]
        elif match.end() - match.start() > limit and not _stays(key):
            text = msgspec.json.decode(match[0], type=str)
            if len(text) > limit:
                yield _Value(start=match.start(), end=match.end(), key=key, text=text)


def _type_of(call: ToolCall) -> str:
    try:
        return msgspec.json.decode(call.extra, type=_Typed).type if call.extra else ""
    except msgspec.MsgspecError:
        return "unreadable"


def _stays(key: str) -> bool:
    return bool(_KEPT_KEYS.search(key))


def _calls(item: Item) -> Iterator[tuple[tuple[int, ...], ToolCall]]:
    """Yield the calls of an item that no compaction has changed, with their paths."""
    original = item.original if isinstance(item, Edited) else item.message
    for path, part in shown_parts(item):
        if isinstance(part, ToolCall) and part is original.parts[path[0]]:
            yield path, part


def _answered(items: Sequence[Item]) -> frozenset[str]:
    return frozenset(
        part.call_id for item in items for part in item.message.parts if isinstance(part, ToolResult)
    )


def _digest_of(value: _Value, call: ToolCall, number: int, context: EditContext, *, is_first: bool) -> str:
    """Return what stands in place of a value: of a command its first line, then what it was, a handle, and names."""
    beginning = _first_line(value.text) if value.key in _COMMANDS else ""
    rest = value.text[len(beginning) :]
    lines, characters = rest.count("\n") + 1, len(rest)
    size = f"{lines:,} lines, {characters:,} characters" if lines > 1 else f"{characters:,} characters"
    back = way_back(number, None, offers_recall=context.offers_recall)
    if is_first:
        frame = f"{size}, passed in full; shortened only in this view · {back}"
    else:
        frame = f"{size}, also in lw:{number}"
    names = _names(value, rest, call, context)
    return f"{beginning}[{frame}{' · ' if names else ''}{names}]"


def _first_line(command: str) -> str:
    line = command.lstrip().split("\n", 1)[0][:_BEGINNING]
    return f"{line} " if command.startswith(line) and line else ""


def _names(value: _Value, text: str, call: ToolCall, context: EditContext) -> str:
    """Return a digest of a value in one line, without the characters that would end the frame around it."""
    if context.preset.plain_placeholders:
        return ""
    tokens = int(context.tokenizer.count(value.text) * context.digest_ratio / _DIGEST_SHARE)
    tool: ToolClass = "shell" if classify(call.name) == "shell" else "read"
    arguments = arguments_of(call)
    found = digest(
        text,
        tool=tool,
        subject=path_in(arguments) if tool == "read" else "",
        tokens=tokens,
        tokenizer=context.tokenizer,
        known=frozenset(NAMES.findall(subject_in(arguments))) if value.key not in _COMMANDS else frozenset(),
    )
    return _PLAIN.sub("", " ".join(found.split()))


MECHANISMS = (
    Mechanism(
        name=NAME,
        propose=propose,
        apply=apply,
        loses=_LOST * _USED,
        label="long arguments of old calls",
        sentence="Put digests in place of the long texts that old calls passed",
        order=15,  # before `elide`, whose digests leave out what calls still show
        shares_parts=True,
    ),
)
