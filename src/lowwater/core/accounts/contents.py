"""What fills a window: by kind of content, by tool, by age, and the largest pieces."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from lowwater.core.messages import AnyPart, Message, ToolCall, ToolResult, Unpaired, turns, unpaired

_AGES = (("this turn", 0), ("1–5 turns ago", 5), ("6–20 turns ago", 20), ("21–80 turns ago", 80))
_OLDEST = "over 80 turns ago"


class ContentShare(Struct, frozen=True, kw_only=True):
    """Tokens of one label, and how many messages or results they are in."""

    label: str
    tokens: int
    count: int


class LargePart(Struct, frozen=True, kw_only=True):
    """One large part: where it is and what it is."""

    index: int
    label: str
    tokens: int


class Contents(Struct, frozen=True, kw_only=True):
    """What fills the window, largest first within each reading (ages: newest first)."""

    tokens: int
    messages: int
    turns: int
    by_kind: tuple[ContentShare, ...]
    by_tool: tuple[ContentShare, ...]
    by_age: tuple[ContentShare, ...]
    largest: tuple[LargePart, ...]
    unpaired: Unpaired


def contents(
    messages: Sequence[Message],
    part_tokens: Sequence[Sequence[int]],
    *,
    system_tokens: int = 0,
    tool_tokens: int = 0,
    largest: int = 5,
) -> Contents:
    """Break a conversation down; `part_tokens` gives the size of every part of every message."""
    kinds: Counter[str] = Counter({"tools": tool_tokens, "system": system_tokens})
    kind_counts: Counter[str] = Counter(tools=int(tool_tokens > 0), system=int(system_tokens > 0))
    tools: Counter[str] = Counter()
    tool_counts: Counter[str] = Counter()
    ages: Counter[str] = Counter()
    age_counts: Counter[str] = Counter()
    pieces: list[LargePart] = []
    names = _tool_names(messages)
    labels = _age_labels(messages)
    for index, (message, sizes) in enumerate(zip(messages, part_tokens, strict=True)):
        ages[labels[index]] += sum(sizes)
        age_counts[labels[index]] += 1
        for part, tokens in zip(message.parts, sizes, strict=True):
            kind = _kind(message, part)
            kinds[kind] += tokens
            kind_counts[kind] += 1
            if isinstance(part, ToolCall | ToolResult):
                tool = (
                    part.name if isinstance(part, ToolCall) else names.get(part.call_id, message.name or "?")
                )
                tools[tool] += tokens
                tool_counts[tool] += isinstance(part, ToolResult)
                pieces.append(
                    LargePart(index=index, label=f"{kind.removesuffix('s')} · {tool}", tokens=tokens)
                )
            else:
                pieces.append(LargePart(index=index, label=kind, tokens=tokens))
    order = [label for label, _ in _AGES] + [_OLDEST]
    return Contents(
        tokens=sum(kinds.values()),
        messages=len(messages),
        turns=len(turns(messages)),
        by_kind=_shares(kinds, kind_counts),
        by_tool=_shares(tools, tool_counts),
        by_age=tuple(
            ContentShare(label=a, tokens=ages[a], count=age_counts[a]) for a in order if age_counts[a]
        ),
        largest=tuple(sorted(pieces, key=lambda piece: (-piece.tokens, piece.index))[:largest]),
        unpaired=unpaired(messages),
    )


def _kind(message: Message, part: AnyPart) -> str:
    match part.kind:
        case "text" if message.role in {"system", "developer"}:
            return "system"
        case "text":
            return message.role
        case "opaque":
            return "other"
        case "thinking":
            return "thinking"
        case kind:
            return kind.replace("_", " ") + "s"


def _tool_names(messages: Iterable[Message]) -> dict[str, str]:
    return {call.id: call.name for message in messages for call in message.calls}


def _age_labels(messages: Sequence[Message]) -> list[str]:
    """Label each message by how many calls of the model lie between it and now."""
    labels: list[str] = []
    spans = turns(messages)
    for position, span in enumerate(spans):
        age = len(spans) - 1 - position
        label = next((label for label, most in _AGES if age <= most), _OLDEST)
        labels.extend([label] * len(span))
    return labels


def _shares(tokens: Counter[str], counts: Counter[str]) -> tuple[ContentShare, ...]:
    return tuple(
        ContentShare(label=label, tokens=size, count=counts[label])
        for label, size in sorted(tokens.items(), key=lambda item: (-item[1], item[0]))
        if size or counts[label]
    )
