"""Legal transcripts in Anthropic's format, every kind of block included."""

from hypothesis import strategies as st

from lowwater.testing.strategies.skeleton import Slot, skeletons
from lowwater.testing.strategies.spelling import Fields, Json, arguments, extras, spellings
from lowwater.testing.strategies.text import base64s, names, spoken, texts

_SIGNATURES = st.sampled_from(("EqQBCkYIBhgCKkD==", "ErcCsig/with+base64=="))
_MOST_MARKS = 4

_TEXT: st.SearchStrategy[Fields] = spoken().map(lambda text: {"type": "text", "text": text})
_SOURCE: st.SearchStrategy[Fields] = st.one_of(
    base64s().map(lambda data: {"type": "base64", "media_type": "image/png", "data": data}),
    st.just({"type": "url", "url": "https://example.com/a.png?x=1&y=2"}),
    st.just({"type": "file", "file_id": "file_011CNha8iCJcU1wXNR6q4V8w"}),
)
_IMAGE: st.SearchStrategy[Fields] = _SOURCE.map(lambda source: {"type": "image", "source": source})
_DOCUMENT: st.SearchStrategy[Fields] = st.one_of(
    base64s().map(
        lambda data: {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": data},
            "title": None,
        }
    ),
    spoken().map(
        lambda text: {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": text},
            "title": "notes",
            "citations": {"enabled": True},
        }
    ),
    spoken().map(
        lambda text: {
            "type": "document",
            "source": {"type": "content", "content": [{"type": "text", "text": text}]},
        }
    ),
)
_UNHEARD_OF: st.SearchStrategy[Fields] = st.just(
    {"type": "container_upload", "file_id": "file_1", "mode": "rw"}
)
_THOUGHT: st.SearchStrategy[Fields] = st.one_of(
    st.builds(
        lambda text, signed: {"type": "thinking", "thinking": text, "signature": signed}, texts(), _SIGNATURES
    ),
    _SIGNATURES.map(lambda data: {"type": "redacted_thinking", "data": data}),
)
_SERVER_TOOL: st.SearchStrategy[list[Fields]] = st.just(
    [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tide"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ]
)


def _with_extras(blocks: st.SearchStrategy[Fields]) -> st.SearchStrategy[Fields]:
    return st.builds(lambda block, more: {**block, **more}, blocks, extras())


_SAID = st.lists(_with_extras(_TEXT | _IMAGE | _DOCUMENT | _UNHEARD_OF), min_size=1, max_size=3)
_RESULT_CONTENT: st.SearchStrategy[Json] = texts() | st.lists(
    _with_extras(_TEXT | _IMAGE | _DOCUMENT), max_size=2
)
_RESULT: st.SearchStrategy[Fields] = st.builds(
    lambda content, failed, more: {**content, **failed, **more},
    st.just({}) | _RESULT_CONTENT.map(lambda content: {"content": content}),
    st.sampled_from(({}, {}, {"is_error": True}, {"is_error": False})),
    extras(),
)
_CALL: st.SearchStrategy[Fields] = st.builds(
    lambda name, given, more: {"name": name, "input": given, **more}, names(), arguments(), extras()
)


@st.composite
def anthropic_transcripts(draw: st.DrawFn) -> list[bytes]:
    """Draw a list of raw messages that the Messages API accepts."""
    messages: list[Fields] = []
    marks = 0
    for slot in draw(skeletons()):
        blocks = _blocks(draw, slot)
        if slot.speaker != "model" and marks < _MOST_MARKS and draw(st.booleans()):
            marks += 1
            blocks[-1]["cache_control"] = {"type": "ephemeral"}
        last = messages[-1] if messages else None
        if last and last["role"] == "user" and slot.speaker == "user":
            _join(last, blocks)
            continue
        role = "assistant" if slot.speaker == "model" else "user"
        messages.append({"role": role, "content": _plain(draw, blocks), **draw(extras())})
    return [draw(spellings()).write(message).encode() for message in messages]


def _blocks(draw: st.DrawFn, slot: Slot) -> list[Fields]:
    match slot.speaker:
        case "user":
            return [dict(block) for block in draw(_SAID)]
        case "tools":
            return [
                {"type": "tool_result", "tool_use_id": call_id, **draw(_RESULT)} for call_id in slot.call_ids
            ]
        case "model":
            blocks = draw(st.lists(_THOUGHT, max_size=2))
            blocks += draw(st.just([]) | _SERVER_TOOL)
            if not slot.call_ids or draw(st.booleans()):
                blocks.append(draw(_with_extras(_TEXT)))
            return blocks + [{"type": "tool_use", "id": call_id, **draw(_CALL)} for call_id in slot.call_ids]


def _plain(draw: st.DrawFn, blocks: list[Fields]) -> Json:
    """Return a lone text block as the string it may also be written as."""
    if len(blocks) == 1 and list(blocks[0]) == ["type", "text"] and draw(st.booleans()):
        return blocks[0]["text"]
    return blocks


def _join(message: Fields, blocks: list[Fields]) -> None:
    """Put what the user says behind the results it follows: the API wants them in one message."""
    content = message["content"]
    assert isinstance(content, list)
    message["content"] = [*content, *blocks]
