"""What leaves for the provider: the client's own bytes wherever the view is the client's list, else that list replaced."""

from msgspec.structs import replace

from lowwater.core.cache.marks import NOWHERE, Marks
from lowwater.core.formats.anthropic import thinking_for
from lowwater.core.formats.codec import encode_messages
from lowwater.core.legality import begun_by_user
from lowwater.core.mechanisms.native import sent_from
from lowwater.core.strict_json import write_array, write_object
from lowwater.gateway.asked import Asked
from lowwater.gateway.options import Marking
from lowwater.session.request import (
    PreparedRequest,
    with_breakpoints,
    with_chat_marks,
    with_marks,
    with_marks_left,
)

_LONG = b'"1h"'
_NOTHING = frozenset({b"", b"null"})


def outgoing(asked: Asked, request: PreparedRequest, *, marking: Marking = "client") -> bytes:
    """Return the body to send; it is the very one that came if the view is whole and marks are the client's business."""
    if request.whole and marking == "client":
        return asked.body
    match asked.format:
        case "anthropic":
            changed = _messages(asked, request, marking)
        case "openai_chat":
            changed = _chat(asked, request, marking)
        case _:
            changed = {asked.listed: write_array(encode_messages(request.joined, asked.format))}
    return write_object(
        asked.fields | {name: value for name, value in changed.items() if value not in _NOTHING}
    )


def _messages(asked: Asked, request: PreparedRequest, marking: Marking) -> dict[str, bytes]:
    messages = request.joined
    raws = encode_messages(begun_by_user(messages[sent_from(messages) :]), "anthropic")
    system, tools = request.system, asked.tools
    marks = _marks(asked, request, marking)
    if marks is not None and not marks.breakpoints:
        seams = request.seams_in("anthropic", count=len(raws)) if len(raws) == len(messages) else NOWHERE
        marked = with_marks(raws, system, tools, marks=marks, seams=seams)
        raws, system, tools = marked.messages, marked.system, marked.tools
    else:
        raws = with_marks_left(raws, system, tools)
    thinking = asked.fields.get("thinking", b"")
    return {
        "messages": write_array(raws),
        "system": system,
        "tools": tools,
        "thinking": thinking_for(thinking, raws) if thinking not in _NOTHING else b"",
    }


def _chat(asked: Asked, request: PreparedRequest, marking: Marking) -> dict[str, bytes]:
    messages = request.joined
    raws = encode_messages(messages, "openai_chat")
    marks = _marks(asked, request, marking)
    if marks is not None and (marks.breakpoints or marks.in_chat):
        put = with_breakpoints if marks.breakpoints else with_chat_marks
        first = 1 if messages[0].role in {"system", "developer"} else 0
        seams = request.seams_in("openai_chat", count=len(raws)) if len(raws) == len(messages) else NOWHERE
        raws = put(raws, first=first, marks=marks, seams=seams)
    return {"messages": write_array(raws)}


def _marks(asked: Asked, request: PreparedRequest, marking: Marking) -> Marks | None:
    """Return the marks to place: none where the client sets none, and for as long as the client asks where it does."""
    if request.marks is None or (marking == "client" and not asked.has_marks):
        return None
    if asked.format == "anthropic" and asked.has_marks and marking == "client":
        return replace(request.marks, ttl="1h" if _LONG in asked.body else "5m")
    return request.marks
