"""Legal transcripts in the chat-completions format, every kind of content part included."""

from hypothesis import strategies as st

from lowwater.testing.strategies.skeleton import Slot, skeletons
from lowwater.testing.strategies.spelling import Fields, Json, Spelling, arguments, extras, spellings
from lowwater.testing.strategies.text import base64s, names, spoken, texts

_TEXT: st.SearchStrategy[Fields] = spoken().map(lambda text: {"type": "text", "text": text})
_IMAGE: st.SearchStrategy[Fields] = st.one_of(
    base64s().map(lambda data: {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}),
    st.just({"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "high"}}),
)
_FILE: st.SearchStrategy[Fields] = st.one_of(
    base64s().map(
        lambda data: {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{data}"},
        }
    ),
    st.just({"type": "file", "file": {"file_id": "file-6F2ksmvXxt4VdoqmHRw6kL"}}),
)
_AUDIO: st.SearchStrategy[Fields] = base64s().map(
    lambda data: {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
)
_MARK: st.SearchStrategy[Fields] = st.just({"cache_control": {"type": "ephemeral"}})


def _with_extras(parts: st.SearchStrategy[Fields]) -> st.SearchStrategy[Fields]:
    return st.builds(lambda part, more: {**part, **more}, parts, extras() | _MARK)


_SAID: st.SearchStrategy[Json] = spoken() | st.lists(
    _with_extras(_TEXT | _IMAGE | _FILE | _AUDIO), min_size=1, max_size=3
)
_ANSWERED: st.SearchStrategy[Json] = spoken() | st.lists(
    _with_extras(_TEXT) | st.just({"type": "refusal", "refusal": "I will not."}), min_size=1, max_size=2
)
_WITH_CALLS: st.SearchStrategy[Fields] = st.one_of(
    st.just({}),
    st.just({"content": None}),
    st.just({"content": ""}),
    _ANSWERED.map(lambda said: {"content": said}),
)
_OUTPUT: st.SearchStrategy[Json] = texts() | st.lists(_with_extras(_TEXT | _IMAGE), min_size=1, max_size=2)
_REASONING: st.SearchStrategy[Fields] = st.one_of(
    st.just({}),
    texts().map(lambda text: {"reasoning_content": text}),
    texts().map(
        lambda text: {"reasoning": text, "reasoning_details": [{"type": "reasoning.text", "text": text}]}
    ),
)
_FUNCTION: st.SearchStrategy[Fields] = st.builds(
    lambda name, given, spelling, more: {
        "type": "function",
        "function": {"name": name, "arguments": spelling.write(given)},
        **more,
    },
    names(),
    arguments(),
    spellings(),
    extras(),
)
_CUSTOM: st.SearchStrategy[Fields] = st.builds(
    lambda name, given: {"type": "custom", "custom": {"name": name, "input": given}}, names(), texts()
)
_NAMED: st.SearchStrategy[Fields] = st.just({}) | names().map(lambda name: {"name": name})


@st.composite
def openai_chat_transcripts(draw: st.DrawFn) -> list[bytes]:
    """Draw a list of raw messages that a chat-completions request may carry."""
    messages: list[Fields] = []
    if draw(st.booleans()):
        role = draw(st.sampled_from(("system", "developer")))
        messages.append(
            {"role": role, "content": draw(spoken() | st.lists(_with_extras(_TEXT), min_size=1, max_size=2))}
        )
    for slot in draw(skeletons()):
        messages += [{**message, **draw(extras())} for message in _messages(draw, slot)]
    return [_spelled(draw(spellings()), message) for message in messages]


def _messages(draw: st.DrawFn, slot: Slot) -> list[Fields]:
    match slot.speaker:
        case "user":
            return [{"role": "user", **draw(_NAMED), "content": draw(_SAID)}]
        case "tools":
            return [
                {"role": "tool", "tool_call_id": call_id, **draw(_NAMED), "content": draw(_OUTPUT)}
                for call_id in slot.call_ids
            ]
        case "model":
            return [_answer(draw, slot)]


def _answer(draw: st.DrawFn, slot: Slot) -> Fields:
    message: Fields = {"role": "assistant", **draw(_REASONING)}
    if not slot.call_ids:
        return {**message, "content": draw(_ANSWERED), **draw(st.sampled_from(({}, {"refusal": None})))}
    content = draw(_WITH_CALLS)
    calls = [{"id": call_id, **draw(_FUNCTION | _CUSTOM)} for call_id in slot.call_ids]
    return {**message, **content, "tool_calls": calls}


def _spelled(spelling: Spelling, message: Fields) -> bytes:
    return spelling.write(message).encode()
