"""Legal lists of items in the Responses format, every kind of content part included."""

from hypothesis import strategies as st

from lowwater.testing.strategies.skeleton import Slot, skeletons
from lowwater.testing.strategies.spelling import Fields, Json, arguments, extras, spellings
from lowwater.testing.strategies.text import base64s, names, spoken, texts

_TEXT: st.SearchStrategy[Fields] = spoken().map(lambda text: {"type": "input_text", "text": text})
_IMAGE: st.SearchStrategy[Fields] = st.one_of(
    base64s().map(lambda data: {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}),
    st.just({"type": "input_image", "image_url": "https://example.com/a.png", "detail": "high"}),
    st.just({"type": "input_image", "file_id": "file-6F2ksmvXxt4VdoqmHRw6kL", "detail": "auto"}),
)
_FILE: st.SearchStrategy[Fields] = st.one_of(
    base64s().map(
        lambda data: {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": f"data:application/pdf;base64,{data}",
        }
    ),
    st.just({"type": "input_file", "file_id": "file-6F2ksmvXxt4VdoqmHRw6kL"}),
    st.just({"type": "input_file", "file_url": "https://example.com/a.pdf"}),
)
_ANSWER: st.SearchStrategy[Fields] = st.one_of(
    spoken().map(lambda text: {"type": "output_text", "text": text, "annotations": []}),
    spoken().map(lambda text: {"type": "output_text", "text": text}),
    st.just({"type": "refusal", "refusal": "I will not."}),
)


def _with_extras(parts: st.SearchStrategy[Fields]) -> st.SearchStrategy[Fields]:
    return st.builds(lambda part, more: {**part, **more}, parts, extras())


_SAID: st.SearchStrategy[Json] = spoken() | st.lists(
    _with_extras(_TEXT | _IMAGE | _FILE), min_size=1, max_size=3
)
_ANSWERED: st.SearchStrategy[Json] = spoken() | st.lists(_with_extras(_ANSWER), min_size=1, max_size=2)
_OUTPUT: st.SearchStrategy[Json] = texts() | st.lists(_with_extras(_TEXT | _IMAGE), min_size=1, max_size=2)
_TYPED: st.SearchStrategy[Fields] = st.sampled_from(({}, {"type": "message"}))
_REASONING: st.SearchStrategy[Fields] = st.builds(
    lambda said, sealed: {"type": "reasoning", "summary": said, **sealed},
    st.lists(texts().map(lambda text: {"type": "summary_text", "text": text}), max_size=2),
    st.sampled_from(({}, {"encrypted_content": "gAAAAABo"}, {"encrypted_content": None, "status": None})),
)
_FUNCTION: st.SearchStrategy[Fields] = st.builds(
    lambda name, given, spelling: {
        "type": "function_call",
        "name": name,
        "arguments": spelling.write(given),
        "status": "completed",
    },
    names(),
    arguments(),
    spellings(),
)
_CUSTOM: st.SearchStrategy[Fields] = st.builds(
    lambda name, given: {"type": "custom_tool_call", "name": name, "input": given}, names(), texts()
)
_SHELL: st.SearchStrategy[Fields] = st.just(
    {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls", "-1"], "env": {}}}
)
_SEARCH: st.SearchStrategy[Fields] = st.just(
    {"type": "web_search_call", "id": "", "status": "completed", "action": {"type": "search", "query": "q"}}
)


@st.composite
def openai_responses_transcripts(draw: st.DrawFn) -> list[bytes]:
    """Draw a list of raw items that a Responses request may carry."""
    items: list[Fields] = []
    if draw(st.booleans()):
        role = draw(st.sampled_from(("system", "developer")))
        items.append({**draw(_TYPED), "role": role, "content": draw(spoken())})
    kinds: dict[str, Json] = {}
    for slot in draw(skeletons()):
        items += [{**item, **draw(extras())} for item in _items(draw, slot, kinds)]
    numbered = [{**item, "id": f"item_{at}"} if "id" in item else item for at, item in enumerate(items)]
    return [draw(spellings()).write(item).encode() for item in numbered]


def _items(draw: st.DrawFn, slot: Slot, kinds: dict[str, Json]) -> list[Fields]:
    match slot.speaker:
        case "user":
            return [{**draw(_TYPED), "role": "user", "content": draw(_SAID)}]
        case "tools":
            return [
                {
                    "type": f"{kinds[call_id]}_output",
                    "call_id": call_id,
                    "output": _output(draw, kinds[call_id]),
                }
                for call_id in slot.call_ids
            ]
        case "model":
            return _answer(draw, slot, kinds)


def _output(draw: st.DrawFn, kind: Json) -> Json:
    return draw(texts() if kind == "local_shell_call" else _OUTPUT)


def _answer(draw: st.DrawFn, slot: Slot, kinds: dict[str, Json]) -> list[Fields]:
    named: Fields = draw(st.sampled_from(({}, {"id": ""})))
    before = [{**thought, "id": ""} for thought in draw(st.lists(_REASONING, max_size=1))]
    searched = draw(st.lists(_SEARCH, max_size=1))
    said: Fields = {**draw(_TYPED), "role": "assistant", "content": draw(_ANSWERED), **named}
    if not slot.call_ids:
        return [*before, *searched, said]
    calls = [{**draw(_FUNCTION | _CUSTOM | _SHELL), "call_id": call_id, **named} for call_id in slot.call_ids]
    kinds |= {call_id: call["type"] for call_id, call in zip(slot.call_ids, calls, strict=True)}
    return [*before, *searched, *([said] if draw(st.booleans()) else []), *calls]
