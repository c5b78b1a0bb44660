"""Hypothesis strategies for raw messages that each provider accepts, with every kind of content."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from hypothesis import strategies as st
from msgspec import Struct

# Strings, and JSON in every spelling

_NOTABLE = (
    "ok",
    "日本語のテキストと中文文本、그리고 한국어",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301",
    "\u202eright to left\u202c שלום",
    "tab\tline\nreturn\r\x7f\x01",
    'quote " backslash \\ slash / </script>',
    "\u2028\u2029\ufeff\u0000\uffff",
    "{not: json} [text] $1 {{}}",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U0010ffff",
    "lw:412 [elided]",
)
_CHARACTERS = st.characters(exclude_categories=["Cs"])
_TEXTS = st.sampled_from(_NOTABLE) | st.text(_CHARACTERS, max_size=24)


def texts() -> st.SearchStrategy[str]:
    """Return a strategy for strings without lone surrogates; they may be empty."""
    return _TEXTS


def spoken() -> st.SearchStrategy[str]:
    """Return a strategy for strings that providers accept as text: not blank, without white space at the end."""
    return _TEXTS.map(lambda text: f"say {text}".rstrip() if not text.strip() else text.rstrip())


def names() -> st.SearchStrategy[str]:
    """Return a strategy for names of tools and people."""
    return st.sampled_from(("read_file", "terminal", "Bash", "mcp__docs__search", "a", "get-weather_2"))


def base64s() -> st.SearchStrategy[str]:
    """Return a strategy for short base64 data."""
    return st.sampled_from(("iVBORw0KGgo=", "R0lGODlhAQABAAAAACw=", "JVBERi0xLjcK"))


_ODD = (
    "1.0",
    "1e5",
    "1E+2",
    "-0",
    "0.10",
    "-1.50e-7",
    "123456789012345678901234567890",
    "9007199254740993",
    "1e400",
)
_UNKNOWN = ("x_trace", "x-vendor", "annotations2", "ключ", "key with blanks", "_", "0")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


class SpelledNumber(Struct, frozen=True, kw_only=True):
    """A number, spelled as it is to be written."""

    spelled: str


Json: TypeAlias = bool | int | str | SpelledNumber | Sequence["Json"] | Mapping[str, "Json"] | None
Fields: TypeAlias = dict[str, Json]


class JsonSpelling(Struct, frozen=True, kw_only=True):
    """One way of writing JSON."""

    comma: str = ","
    colon: str = ":"
    margin: str = ""
    ascii_only: bool = False
    escapes_slash: bool = False

    def write(self, value: Json) -> str:
        """Return `value` as JSON text."""
        match value:
            case None:
                return "null"
            case bool():
                return "true" if value else "false"
            case int():
                return str(value)
            case SpelledNumber():
                return value.spelled
            case str():
                return self._string(value)
            case Mapping():
                fields = [self._string(key) + self.colon + self.write(item) for key, item in value.items()]
                return "{" + self.margin + self.comma.join(fields) + self.margin + "}"
            case _:
                items = [self.write(item) for item in value]
                return "[" + self.margin + self.comma.join(items) + self.margin + "]"

    def _string(self, text: str) -> str:
        return '"' + "".join(self._character(character) for character in text) + '"'

    def _character(self, character: str) -> str:
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character == "/" and self.escapes_slash:
            return "\\/"
        if character >= " " and (character < "\x7f" or not self.ascii_only):
            return character
        units = character.encode("utf-16-be").hex()
        return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def spellings() -> st.SearchStrategy[JsonSpelling]:
    """Return a strategy for ways of writing JSON; it shrinks to the plainest."""
    return st.sampled_from(
        (
            JsonSpelling(),
            JsonSpelling(comma=", ", colon=": "),
            JsonSpelling(ascii_only=True),
            JsonSpelling(comma=",\n  ", colon=" : ", margin="\n  "),
            JsonSpelling(escapes_slash=True, ascii_only=True, comma=" ,"),
            JsonSpelling(margin="\t \r\n"),
        )
    )


_LEAVES: st.SearchStrategy[Json] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(_ODD).map(lambda odd: SpelledNumber(spelled=odd))
    | texts()
)
_VALUES: st.SearchStrategy[Json] = (
    _LEAVES | st.lists(_LEAVES, max_size=3) | st.dictionaries(texts(), _LEAVES, max_size=2)
)
_EXTRAS: st.SearchStrategy[Fields] = st.just({}) | st.dictionaries(
    st.sampled_from(_UNKNOWN), _VALUES, max_size=2
)


def extras() -> st.SearchStrategy[Fields]:
    """Return a strategy for unknown fields; often there are none."""
    return _EXTRAS


def _with_extras(parts: st.SearchStrategy[Fields]) -> st.SearchStrategy[Fields]:
    return st.builds(lambda part, more: {**part, **more}, parts, extras())


def arguments() -> st.SearchStrategy[Fields]:
    """Return a strategy for the arguments of a tool call."""
    return st.dictionaries(st.sampled_from(("path", "limit", "pattern", "値")), _VALUES, max_size=3)


# Who speaks when

_ROUNDS = st.sampled_from(((), (1,), (2,), (1, 1), (3, 1)))
_EXCHANGES = st.lists(st.tuples(_ROUNDS, st.booleans()), min_size=1, max_size=3)


class Slot(Struct, frozen=True, kw_only=True):
    """The place of one message: the model may make calls, and the next slot answers all of them."""

    speaker: Literal["user", "model", "tools"]
    call_ids: tuple[str, ...] = ()


def skeletons() -> st.SearchStrategy[list[Slot]]:
    """Return a strategy for conversations in which every call is answered; they end where a request may be sent."""
    return _EXCHANGES.map(_slots)


def _slots(exchanges: list[tuple[tuple[int, ...], bool]]) -> list[Slot]:
    slots: list[Slot] = []
    for number, (rounds, answered) in enumerate(exchanges):
        slots.append(Slot(speaker="user"))
        for at, calls in enumerate(rounds):
            ids = tuple(f"call_{number}-{at}{'abc'[call]}" for call in range(calls))
            slots += [Slot(speaker="model", call_ids=ids), Slot(speaker="tools", call_ids=ids)]
        is_last = number == len(exchanges) - 1
        if answered or not (rounds or is_last):
            slots.append(Slot(speaker="model"))
    return slots


# Anthropic Messages

_MOST_MARKS = 4
_SIGNATURES = st.sampled_from(("EqQBCkYIBhgCKkD==", "ErcCsig/with+base64=="))
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
    """Return a single text block as a string, sometimes."""
    if len(blocks) == 1 and list(blocks[0]) == ["type", "text"] and draw(st.booleans()):
        return blocks[0]["text"]
    return blocks


def _join(message: Fields, blocks: list[Fields]) -> None:
    """Append what the user says to the results before it: the API wants both in one message."""
    content = message["content"]
    assert isinstance(content, list)
    message["content"] = [*content, *blocks]


# OpenAI Chat Completions

_CHAT_IMAGE: st.SearchStrategy[Fields] = st.one_of(
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


def _chat_with_extras(parts: st.SearchStrategy[Fields]) -> st.SearchStrategy[Fields]:
    return st.builds(lambda part, more: {**part, **more}, parts, extras() | _MARK)


_CHAT_SAID: st.SearchStrategy[Json] = spoken() | st.lists(
    _chat_with_extras(_TEXT | _CHAT_IMAGE | _FILE | _AUDIO), min_size=1, max_size=3
)
_ANSWERED: st.SearchStrategy[Json] = spoken() | st.lists(
    _chat_with_extras(_TEXT) | st.just({"type": "refusal", "refusal": "I will not."}), min_size=1, max_size=2
)
_WITH_CALLS: st.SearchStrategy[Fields] = st.one_of(
    st.just({}),
    st.just({"content": None}),
    st.just({"content": ""}),
    _ANSWERED.map(lambda said: {"content": said}),
)
_OUTPUT: st.SearchStrategy[Json] = texts() | st.lists(
    _chat_with_extras(_TEXT | _CHAT_IMAGE), min_size=1, max_size=2
)
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
    """Draw a list of raw messages that the Chat Completions API accepts."""
    messages: list[Fields] = []
    if draw(st.booleans()):
        role = draw(st.sampled_from(("system", "developer")))
        messages.append(
            {
                "role": role,
                "content": draw(spoken() | st.lists(_chat_with_extras(_TEXT), min_size=1, max_size=2)),
            }
        )
    for slot in draw(skeletons()):
        messages += [{**message, **draw(extras())} for message in _messages(draw, slot)]
    return [draw(spellings()).write(message).encode() for message in messages]


def _messages(draw: st.DrawFn, slot: Slot) -> list[Fields]:
    match slot.speaker:
        case "user":
            return [{"role": "user", **draw(_NAMED), "content": draw(_CHAT_SAID)}]
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


# OpenAI Responses

_ITEM_TEXT: st.SearchStrategy[Fields] = spoken().map(lambda text: {"type": "input_text", "text": text})
_ITEM_IMAGE: st.SearchStrategy[Fields] = st.one_of(
    base64s().map(lambda data: {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}),
    st.just({"type": "input_image", "image_url": "https://example.com/a.png", "detail": "high"}),
    st.just({"type": "input_image", "file_id": "file-6F2ksmvXxt4VdoqmHRw6kL", "detail": "auto"}),
)
_ITEM_FILE: st.SearchStrategy[Fields] = st.one_of(
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
_ITEM_SAID: st.SearchStrategy[Json] = spoken() | st.lists(
    _with_extras(_ITEM_TEXT | _ITEM_IMAGE | _ITEM_FILE), min_size=1, max_size=3
)
_ITEM_ANSWERED: st.SearchStrategy[Json] = spoken() | st.lists(_with_extras(_ANSWER), min_size=1, max_size=2)
_ITEM_OUTPUT: st.SearchStrategy[Json] = texts() | st.lists(
    _with_extras(_ITEM_TEXT | _ITEM_IMAGE), min_size=1, max_size=2
)
_TYPED: st.SearchStrategy[Fields] = st.sampled_from(({}, {"type": "message"}))
_ITEM_REASONING: st.SearchStrategy[Fields] = st.builds(
    lambda said, sealed: {"type": "reasoning", "summary": said, **sealed},
    st.lists(texts().map(lambda text: {"type": "summary_text", "text": text}), max_size=2),
    st.sampled_from(({}, {"encrypted_content": "gAAAAABo"}, {"encrypted_content": None, "status": None})),
)
_ITEM_FUNCTION: st.SearchStrategy[Fields] = st.builds(
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
_ITEM_CUSTOM: st.SearchStrategy[Fields] = st.builds(
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
    """Draw a list of raw items that the Responses API accepts."""
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
            return [{**draw(_TYPED), "role": "user", "content": draw(_ITEM_SAID)}]
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
            return _item_answer(draw, slot, kinds)


def _output(draw: st.DrawFn, kind: Json) -> Json:
    return draw(texts() if kind == "local_shell_call" else _ITEM_OUTPUT)


def _item_answer(draw: st.DrawFn, slot: Slot, kinds: dict[str, Json]) -> list[Fields]:
    named: Fields = draw(st.sampled_from(({}, {"id": ""})))
    before = [{**thought, "id": ""} for thought in draw(st.lists(_ITEM_REASONING, max_size=1))]
    searched = draw(st.lists(_SEARCH, max_size=1))
    said: Fields = {**draw(_TYPED), "role": "assistant", "content": draw(_ITEM_ANSWERED), **named}
    if not slot.call_ids:
        return [*before, *searched, said]
    calls = [
        {**draw(_ITEM_FUNCTION | _ITEM_CUSTOM | _SHELL), "call_id": call_id, **named}
        for call_id in slot.call_ids
    ]
    kinds |= {call_id: call["type"] for call_id, call in zip(slot.call_ids, calls, strict=True)}
    return [*before, *searched, *([said] if draw(st.booleans()) else []), *calls]
