"""The view as a framework gets it: its own messages where they stand as they came, and what changed of the others."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from lowwater.core.entries import Edit
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message, Text, ToolCall
from lowwater.core.reconcile import branch_of
from lowwater.core.view import Edited, Summary, items_shown
from lowwater.integrations.units import Unit
from lowwater.session.request import PreparedRequest

S = TypeVar("S")
Mark = dict[str, Any]
_MARKS = ("cache_control", "prompt_cache_breakpoint")
_WHOLE = -1
"""The position of what is no piece of a message's content."""


class Shown(Struct, Generic[S], frozen=True, kw_only=True):
    """One message of the view."""

    message: Message
    source: S | None = None
    """What the framework holds; None for what Lowwater wrote."""
    changes: Mapping[int, str | None] = {}
    """By position in the source: the text that stands there now, or None where it was dropped."""
    calls: Mapping[str, str] = {}
    """By the id of a call: the arguments, as JSON, that it is shown with now."""
    mark: Mark = {}
    """The cache mark for its last block, as a field with its value; empty for none."""

    @property
    def is_changed(self) -> bool:
        """Return whether it differs from its source; what does not is sent as it is."""
        return bool(self.changes or self.calls)


class Sending(Struct, Generic[S], frozen=True, kw_only=True):
    """A request as a framework is to send it."""

    view: list[Shown[S]]
    system_mark: Mark
    """The cache mark for the system prompt; empty for none."""
    request: PreparedRequest

    @property
    def thinking(self) -> Any:  # noqa: ANN401 - as the framework has it
        """Claude's `thinking` as it may be sent with this view; None if it was not given."""
        return self.request.as_anthropic().get("thinking") if self.request.thinking else None

    def is_folded(self, at: int) -> bool:
        """Return whether a message of the view is written into the user message before it."""
        return at in self.request.folds


def sending(request: PreparedRequest, ledger: Ledger, units: Sequence[Unit[S]]) -> Sending[S]:
    """Return a request that was prepared from all `units` of a conversation."""
    known = dict(zip(branch_of(ledger), units, strict=False))
    items = items_shown(request.messages, ledger.view.items)
    marks = _marks(request)
    view: list[Shown[S]] = []
    for at, message in enumerate(request.messages):
        item, mark = items[at], marks.messages.get(at, {})
        unit = None if item is None or isinstance(item, Summary) else known.get(item.number)
        if unit is None:
            view.append(Shown(message=message, mark=mark))
            continue
        edits = item.edits if isinstance(item, Edited) else ()
        changes, calls = dict(_changes(edits, unit)), dict(_calls(edits, unit))
        view.append(Shown(message=message, source=unit.source, changes=changes, calls=calls, mark=mark))
    return Sending(view=view, system_mark=marks.system, request=request)


def _changes(edits: Sequence[Edit], unit: Unit[S]) -> Iterator[tuple[int, str | None]]:
    for edit in edits:
        if isinstance(edit.by, ToolCall):
            continue
        text = edit.by.text if isinstance(edit.by, Text) else None
        if len(edit.path) == 2:
            yield edit.path[1], text
            continue
        first, *rest = unit.places[edit.path[0]] or (_WHOLE,)
        yield first, text
        yield from ((position, None) for position in rest)


def _calls(edits: Sequence[Edit], unit: Unit[S]) -> Iterator[tuple[str, str]]:
    """Return calls with other arguments by their ids in the framework: a call is shortened, never dropped."""
    for edit in edits:
        call = unit.message.parts[edit.path[0]]
        if isinstance(edit.by, ToolCall) and isinstance(call, ToolCall):
            yield call.id, edit.by.arguments


class _Marks(Struct, frozen=True, kw_only=True):
    """Cache marks of a request: that of the system prompt, and those of messages by their place."""

    system: Mark
    messages: dict[int, Mark]


def _marks(request: PreparedRequest) -> _Marks:
    """Return the marks that the request carries in its provider's form, if its messages leave one by one."""
    if request.marks is None:
        return _Marks(system={}, messages={})
    if request.told == "openai_chat" or request.marks.breakpoints or request.marks.in_chat:
        whole = request.as_openai()["messages"]
        first = len(whole) - len(request.lasts)
        system, messages = whole[:first], whole[max(0, first) :]
    else:
        fields = request.as_anthropic()
        system, messages = [{"content": fields.get("system", [])}], fields["messages"]
    if len(messages) != len(request.lasts):
        messages = []
    placed = zip(request.lasts, messages, strict=False)
    found = {at: mark for at, message in placed if (mark := _mark_on(message))}
    return _Marks(system=next(map(_mark_on, system), {}), messages=found)


def _mark_on(message: Mapping[str, Any]) -> Mark:
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return next(({key: block[key]} for block in blocks for key in _MARKS if key in block), {})
