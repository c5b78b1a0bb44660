"""The view to items of the Responses API: those that stand as they came are the very objects of the history."""

import json
from collections.abc import Mapping, Sequence

from lowwater.core.messages import Message
from lowwater.integrations.openai_agents.reading import APART, Item, Source, blocks_of
from lowwater.integrations.shown import Sending, Shown

_NAMES = ("type", "id", "call_id", "name", "status")
"""What the API tells a call by."""


def items_of(sent: Sending[Source]) -> list[Item]:
    """Return the items to send."""
    items: list[Item] = []
    for at, shown in enumerate(sent.view):
        written = _written(shown)
        if sent.is_folded(at) and items and written:
            written[0] = _joined(items.pop(), written[0])
        items.extend(written)
    return items


def _joined(before: Item, item: Item) -> Item:
    """Return two items in which the user speaks as one."""
    content = [
        {"type": "input_text", "text": block} if isinstance(block, str) else block
        for each in (before, item)
        for block in _blocks(each)
    ]
    return {**before, **item, "content": content}


def _blocks(item: Item) -> list[object]:
    content = item.get("content")
    return list(content) if isinstance(content, list) else [content]


def _written(shown: Shown[Source]) -> list[Item]:
    if shown.source is None:
        return _new(shown.message)
    if not shown.is_changed:
        return list(shown.source)
    if str(shown.source[0].get("type")).endswith("_output"):
        return [_with_output(shown.source[0], shown.changes)]
    return _changed([_called(item, shown.calls) for item in shown.source], shown.changes)


def _called(item: Item, calls: Mapping[str, str]) -> Item:
    """Return a call with other arguments; one of another kind than a function's was read as its own JSON."""
    arguments = calls.get(str(item.get("call_id") or ""))
    if arguments is None:
        return item
    if item["type"] == "function_call":
        return {**item, "arguments": arguments}
    return {**json.loads(arguments), **{key: item[key] for key in _NAMES if key in item}}


def _with_output(item: Item, changes: Mapping[int, str | None]) -> Item:
    """Return what a tool put out, changed; an output of another kind than a function's was read whole, and only words give way."""
    if item["type"] == "function_call_output":
        return {**item, "output": _output(item, changes)}
    text = changes.get(0)
    return {**item, "output": text} if text is not None and isinstance(item.get("output"), str) else item


def _output(item: Item, changes: Mapping[int, str | None]) -> object:
    """Return what a tool put out with other text in some places; a single text stays one."""
    blocks = []
    for at, block in enumerate(blocks_of(item)):
        text = changes.get(at)
        if text is not None:
            blocks.append({"type": "input_text", "text": text})
        elif at not in changes:
            blocks.append({"type": "input_text", "text": block} if isinstance(block, str) else block)
    match blocks:
        case [{"type": "input_text", "text": str(text)}]:
            return text
        case _:
            return blocks


def _changed(items: Sequence[Item], changes: Mapping[int, str | None]) -> list[Item]:
    """Return items without what was dropped.

    What is left of an answer whose reasoning went loses its ids: by them the API would miss the reasoning.
    """
    left: list[Item] = []
    dropped = False
    for at, item in enumerate(items):
        here = {place % APART: text for place, text in changes.items() if place // APART == at}
        if not here:
            left.append(item)
        elif item.get("type") == "reasoning":
            dropped = True
        elif item.get("type", "message") == "message":
            left.append({**item, "content": _content(item, here)})
        else:
            # What the provider's own tools did was read as its JSON; cut, it is that no more.
            left.append({"role": "assistant", "content": here.get(0) or ""})
    return [{key: value for key, value in item.items() if key != "id"} for item in left] if dropped else left


def _content(item: Item, changes: Mapping[int, str | None]) -> list[Item]:
    kind = "output_text" if item.get("role") == "assistant" else "input_text"
    content: list[Item] = []
    for at, block in enumerate(blocks_of(item)):
        text = changes.get(at)
        if text is not None:
            content.append({"type": kind, "text": text})
        elif at not in changes:
            content.append({"type": kind, "text": block} if isinstance(block, str) else block)
    return content


def _new(message: Message) -> list[Item]:
    """Return items for what Lowwater wrote: a summary, an output that nobody recorded."""
    outputs = [
        {"type": "function_call_output", "call_id": result.call_id, "output": result.text}
        for result in message.results
    ]
    if outputs and not message.text:
        return outputs
    role = message.role if message.role in {"assistant", "system"} else "user"
    return [*outputs, {"role": role, "content": message.text}]
