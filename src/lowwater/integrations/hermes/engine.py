"""Lowwater as Hermes' context engine: when Hermes' list is to be shortened, to what, and what is recorded."""

import json
import logging
import os
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from agent.context_engine import ContextEngine  # type: ignore[import-not-found]  # only in Hermes' environment
from msgspec import Struct
from msgspec.structs import replace

from lowwater.adapters.settings import load_settings
from lowwater.core.ledger import Ledger
from lowwater.core.recall.recalled import openai_tools
from lowwater.core.reconcile import branch_of
from lowwater.core.view import Item, Summary
from lowwater.errors import LowwaterError
from lowwater.protocols import Store
from lowwater.session.factories import VARIABLE, default_address, opened_store
from lowwater.session.library import Lowwater
from lowwater.session.plugins import policy_names
from lowwater.session.session import Session
from lowwater.settings import Settings
from lowwater.stores.sqlite.connections import SQLITE
from lowwater.summarizers.model import ModelSummarizer

if TYPE_CHECKING:
    pass


Json = dict[str, Any]

_SENT_INSTEAD = "api_content"
"""The field in which Hermes keeps the text that it sends in place of the one that it shows."""
_BOOKKEEPING = frozenset(
    {
        _SENT_INSTEAD,
        "reasoning",
        "finish_reason",
        "timestamp",
        "tool_name",
        "effect_disposition",
        "codex_reasoning_items",
        "codex_message_items",
    }
)
_MARK = "cache_control"


def sent_form(message: Mapping[str, Any]) -> Json:
    """Return a message of Hermes' own list as it is sent: without what Hermes notes on it."""
    sent = {
        name: value
        for name, value in message.items()
        if name not in _BOOKKEEPING and not name.startswith("_") and value is not None
    }
    if message.get("role") in ("user", "assistant") and isinstance(message.get(_SENT_INSTEAD), str):
        sent["content"] = message[_SENT_INSTEAD] or message.get("content")
    content = sent.setdefault("content", "" if "tool_calls" not in sent else None)
    if isinstance(content, str):
        sent["content"] = content.strip()
    return sent


def key_of(message: Mapping[str, Any]) -> bytes:
    """Return what tells a message from others: role, words, calls; not marks, blanks, spelling or notes."""
    said = [
        message.get("role"),
        _words(message.get("content")),
        [_call(call) for call in message.get("tool_calls") or ()],
        message.get("tool_call_id") or "",
    ]
    return blake2b(json.dumps(said, sort_keys=True).encode(), digest_size=16).digest()


def with_users_joined(messages: Iterable[Json]) -> list[Json]:
    """Return the list with neighbouring user messages as one, which is what Hermes makes of them."""
    joined: list[Json] = []
    for message in messages:
        before = joined[-1] if joined else None
        if before is not None and are_joined(before, message):
            joined[-1] = joined_to(before, message)
        else:
            joined.append(message)
    return joined


def are_joined(before: Mapping[str, Any], message: Mapping[str, Any]) -> bool:
    """Return whether Hermes makes one message of two."""
    return all(
        each.get("role") == "user" and isinstance(each.get("content"), str) for each in (before, message)
    )


def joined_to(before: Json, message: Json) -> Json:
    """Return the one message that Hermes makes of two."""
    return {**before, "content": f"{before['content']}\n\n{message['content']}".strip()}


def keys_of(messages: Iterable[Json]) -> list[bytes]:
    """Return the keys of a list."""
    return [key_of(message) for message in messages]


def taken_from(theirs: Sequence[Json], keys: Iterable[bytes], wanted: Iterable[Json]) -> list[Json]:
    """Return the wanted messages, as the dicts of `theirs` wherever those say the same by their `keys`."""
    known: defaultdict[bytes, deque[Json]] = defaultdict(deque)
    for key, message in zip(keys, theirs, strict=True):
        known[key].append(message)
    return [same.popleft() if (same := known[key_of(message)]) else message for message in wanted]


def sent_for(ours: Json, theirs: Json) -> Json:
    """Return one of two messages that say the same: ours, whose bytes were sent before, unless Hermes adds something."""
    adds = set(theirs) - set(ours) or _MARK in json.dumps(theirs.get("content"))
    return theirs if adds else ours


def _words(content: object) -> object:
    """Return content without marks; text alone is text, however it is wrapped."""
    if not isinstance(content, list):
        return content.strip() if isinstance(content, str) else content or ""
    blocks = [
        {name: value for name, value in block.items() if name != _MARK} if isinstance(block, dict) else block
        for block in content
    ]
    if len(blocks) == 1 and isinstance(blocks[0], dict) and set(blocks[0]) == {"type", "text"}:
        return str(blocks[0]["text"]).strip()
    return blocks


def _call(call: Mapping[str, Any]) -> list[object]:
    function = call.get("function") or {}
    arguments: object = function.get("arguments") or ""
    with suppress(ValueError):
        arguments = json.loads(str(arguments))
    return [call.get("id"), function.get("name"), arguments]


FILE = "lowwater.db"
_STORES: dict[str, Store] = {}
_LOCK = threading.Lock()


class Kept(Struct, frozen=True, kw_only=True):
    """What a conversation is opened with."""

    model: str = ""
    base_url: str = ""
    api_key: str = ""
    context_length: int = 0
    home: str = ""
    """Hermes' own folder."""

    def __repr__(self) -> str:
        return f"Kept(model={self.model!r}, context_length={self.context_length})"

    def open(self, name: str) -> Session:
        """Return the session of this name, in the store that the environment names or else in Hermes' folder."""
        settings = _settings()
        session = Lowwater(
            model=self.model,
            base_url=self.base_url,
            settings=settings,
            store=_store(self.home, settings),
            summarizer=self._writers(settings),
        ).session(name or None, source="hermes")
        if self.context_length:
            session.learn_context_length(self.context_length)
        return session

    def _writers(self, settings: Settings) -> tuple[ModelSummarizer, ...]:
        """Return the conversation's own model as the one that writes summaries, if the settings name it: asked where Hermes asks it."""
        if settings.compression.summary_model != self.model or not self.base_url:
            return ()
        length = self.context_length or 128_000
        return (
            ModelSummarizer(
                model=self.model, base_url=self.base_url, api_key=self.api_key, context_length=length
            ),
        )


def _settings() -> Settings:
    """Return the settings that hold: Lowwater's own, but Hermes says whether to compact, and a conversation is never split."""
    settings = load_settings(config=None, env=os.environ, flags={}, policies=policy_names).settings
    enabled = settings.compression.enabled and _hermes_compacts()
    return replace(settings, compression=replace(settings.compression, enabled=enabled, split=False))


def _hermes_compacts() -> bool:
    from hermes_cli.config import load_config  # type: ignore[import-not-found]  # noqa: PLC0415 - only in Hermes

    said = (load_config().get("compression") or {}).get("enabled", True)
    return str(said).strip().lower() not in ("false", "0", "no", "off")


def _store(home: str, settings: Settings) -> Store:
    """Return the one open store at its address, for all conversations of this process."""
    beside = bool(home) and not os.environ.get(VARIABLE, "").strip()
    address = f"{SQLITE}{Path(home) / FILE}" if beside else default_address()
    with _LOCK:
        if address not in _STORES:
            _STORES[address] = opened_store(address, redact=settings.privacy.redact)
        return _STORES[address]


_REMEMBERED = 3


class Standing(Struct, frozen=True, kw_only=True):
    """A list, by its keys, and the history that it stands for."""

    keys: tuple[bytes, ...] = ()
    ends: tuple[int | None, ...] = ()
    """How many messages of the history the list stands for up to and with each of its own; None if not the first ones."""
    whole: tuple[Json, ...] = ()

    def in_common(self, keys: Sequence[bytes]) -> int:
        """Return how many messages a list has in common with this one, up to where its history can be told."""
        same = 0
        for ours, theirs in zip(self.keys, keys, strict=False):
            if ours != theirs:
                break
            same += 1
        while same and self.ends[same - 1] is None:
            same -= 1
        return same

    def going_on(self, listed: Sequence[Json], keys: Sequence[bytes]) -> "Standing":
        """Return what a list stands for that goes on from this one, or goes another way from somewhere in it."""
        same = self.in_common(keys)
        start = (self.ends[same - 1] or 0) if same else 0
        new = listed[same:]
        return Standing(
            keys=tuple(keys),
            ends=(*self.ends[:same], *range(start + 1, start + 1 + len(new))),
            whole=(*self.whole[:start], *new),
        )


class Standings:
    """What the lists stand for that Hermes had last: the newest first, and those before if it goes back to one."""

    def __init__(self) -> None:
        self._known: list[Standing] = [Standing()]

    @property
    def are_new(self) -> bool:
        """Whether no list was seen yet."""
        return len(self._known) == 1 and not self._known[0].keys

    def whole_of(self, listed: Sequence[Json]) -> tuple[Json, ...]:
        """Return the whole history that a list stands for."""
        keys = keys_of(listed)
        nearest = max(self._known, key=lambda each: each.in_common(keys))
        found = nearest.going_on(listed, keys)
        self._known = [each for each in self._known if each is not nearest]
        self._remember(found)
        return found.whole

    def resume(self, ledger: Ledger, view: Sequence[Json], history: Sequence[Json]) -> None:
        """Begin with what a session holds: a list that shows its view stands for its messages."""
        whole = tuple(history[number - 1] for number in branch_of(ledger))
        self._show(ledger, view, whole)

    def publish(self, ledger: Ledger, view: Sequence[Json]) -> list[Json] | None:
        """Return the list that Hermes is to go on with, which stands for what the newest one does; None if that cannot be told."""
        return self._show(ledger, view, self._known[0].whole)

    def _show(self, ledger: Ledger, view: Sequence[Json], whole: tuple[Json, ...]) -> list[Json] | None:
        branch, items = branch_of(ledger), list(ledger.view.items)
        if len(branch) != len(whole) or len(items) != len(view):
            return None
        place = {number: at for at, number in enumerate(branch, start=1)}
        shown: list[Json] = []
        ends: list[int | None] = []
        covered: set[int] = set()
        for item, message in zip(items, view, strict=True):
            covered.update(place[number] for number in _numbers(item))
            end = len(covered) if max(covered, default=0) == len(covered) else None
            if shown and are_joined(shown[-1], message):
                shown[-1], ends[-1] = joined_to(shown[-1], message), end
            else:
                shown.append(message)
                ends.append(end)
        self._remember(Standing(keys=tuple(keys_of(shown)), ends=tuple(ends), whole=whole))
        return shown

    def _remember(self, standing: Standing) -> None:
        self._known = [standing, *self._known][:_REMEMBERED]


def _numbers(item: Item) -> list[int]:
    if isinstance(item, Summary):
        return [number for span in item.sources for number in range(span.first, span.last + 1)]
    return [item.number]


NAME = "lowwater"
_log = logging.getLogger("lowwater")
_INSTRUCTIONS = ("system", "developer")


class LowwaterEngine(ContextEngine):  # type: ignore[misc]  # its types are Hermes' affair
    """One conversation of one agent; Hermes makes a deep copy of the registered engine for each.

    Where calls go through `around_call`, each is decided when it is made, and what was compacted there is handed to Hermes
    at its next question. Where they do not, Hermes' own count of tokens decides, at the threshold of the settings.
    """

    threshold_percent = 0.5
    model = base_url = api_key = provider = api_mode = ""
    _session: Session | None
    _standings: Standings
    _is_behind: bool
    """Whether the view was compacted, and Hermes' list not yet."""

    def __init__(self, *, sees_calls: bool = False) -> None:
        self._sees_calls = sees_calls
        self._kept = Kept()
        self._database: Any = None
        self._session_id = ""
        self._name = ""
        self._begin()

    def __deepcopy__(self, memo: dict[int, object]) -> "LowwaterEngine":
        """Return an engine for another agent: the same model and folder, no conversation."""
        other = LowwaterEngine(sees_calls=self._sees_calls)
        other._kept = self._kept
        for field in (
            "model",
            "base_url",
            "api_key",
            "provider",
            "api_mode",
            "context_length",
            "threshold_tokens",
        ):
            setattr(other, field, getattr(self, field))
        return other

    @property
    def name(self) -> str:
        """What `context.engine` says to choose it."""
        return NAME

    @property
    def session(self) -> Session:
        """The session that the conversation is kept in."""
        if self._session is None:
            self._session = session = self._kept.open(self._name)
            self.threshold_tokens = session.status().threshold
            if self._standings.are_new:
                self._standings.resume(session.ledger, session.view(apart=True), session.history())
        return self._session

    def update_model(  # noqa: PLR0917 - Hermes' signature
        self,
        model: str,
        context_length: int,
        base_url: str = "",
        api_key: Any = "",  # noqa: ANN401 - Hermes may hold a function that returns it
        provider: str = "",
        api_mode: str = "",
    ) -> None:
        """Go on with another model, or with a window that a provider's error told."""
        super().update_model(model, context_length, base_url, api_key, provider, api_mode)
        self.model, self.base_url, self.api_key, self.provider = model, base_url, api_key, provider
        self.api_mode = api_mode or self.api_mode
        before = self._kept
        key = api_key if isinstance(api_key, str) else ""
        self._kept = replace(
            before, model=model, base_url=base_url, api_key=key, context_length=context_length
        )
        if self._kept != before:
            self._session = None

    def bind_session_state(self, session_db: Any = None, session_id: str = "") -> None:  # noqa: ANN401
        """Go on with a conversation: one that Hermes' rotation gave another id keeps the name it began with."""
        self._database = session_db or self._database
        if session_id != self._session_id or not self._name:
            self._begin()
            self._name = _first_id(self._database, session_id)
        self._session_id = session_id
        if session_id:
            ENGINES[session_id] = self

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:  # noqa: ANN401
        """Begin or go on with a conversation; at a compaction it goes on, whatever id Hermes has for it now."""
        self._kept = replace(self._kept, home=kwargs.get("hermes_home") or self._kept.home)
        if kwargs.get("boundary_reason") == "compression":
            self._session_id = session_id
            if session_id:
                ENGINES[session_id] = self
        else:
            self.bind_session_state(self._database, session_id)

    def on_session_end(self, session_id: str, messages: list[Json]) -> None:
        """Take in what came last. Hermes also calls this at each compaction, so nothing is closed here."""
        if messages and session_id == self._session_id:
            self._take_in(messages)

    def on_session_reset(self) -> None:
        """Forget the conversation; the next one is told by its id."""
        super().on_session_reset()
        self._session_id = self._name = ""
        self._begin()

    def update_from_response(self, usage: Json) -> None:
        """Note what Hermes shows of the last call; the session has learned from the answer itself."""
        self.last_prompt_tokens = usage.get("prompt_tokens") or 0
        self.last_completion_tokens = usage.get("completion_tokens") or 0
        self.last_total_tokens = usage.get("total_tokens") or 0
        self.awaiting_real_usage_after_compression = False

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Return whether Hermes' list is to be shortened: the view was compacted, or its size says so where calls are not seen."""
        if self._sees_calls and self.api_mode == CHAT:
            return self._is_behind
        try:
            return self.session.should_compress(prompt_tokens)
        except LowwaterError as error:
            _log.warning("nothing is compacted: %s", error)
            return False

    def compress(
        self,
        messages: list[Json],
        current_tokens: int | None = None,  # noqa: ARG002 - the session's own count is better
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> list[Json]:
        """Return the list to go on with; the same list if nothing helps.

        Asked by a person, or after a provider's refusal, the view is compacted first.
        """
        try:
            return self._compressed(messages, focus_topic or memory_context, force=force)
        except LowwaterError as error:
            _log.warning("nothing is compacted: %s", error)
            return messages

    def _compressed(self, messages: list[Json], focus: str, *, force: bool) -> list[Json]:
        was_behind, self._is_behind = self._is_behind, False
        session = self._take_in(messages)
        if force or not was_behind:
            session.compress(focus or None)
        shown = self._standings.publish(session.ledger, session.view(apart=True))
        keys = keys_of(sent_form(message) for message in messages)
        if shown is None or keys_of(shown) == keys:
            return messages
        self.compression_count += 1
        return [_unmarked(message) for message in taken_from(messages, keys, shown)]

    def get_tool_schemas(self) -> list[Json]:
        """Return the tools to search and expand what the list no longer shows."""
        return [tool["function"] for tool in openai_tools()]

    def handle_tool_call(self, name: str, args: Json, **kwargs: Any) -> str:  # noqa: ANN401
        """Return the answer to one of them, as JSON."""
        tools = self.session.recall_tools()
        if not tools.owns(name):
            return str(super().handle_tool_call(name, args, **kwargs))
        return json.dumps({"result": tools.handle(name, args)}, ensure_ascii=False)

    def get_status(self) -> Json:
        """Return what Hermes shows, and the session in a few lines for a person."""
        return {**super().get_status(), "lowwater": str(self.session.status())}

    def prepare(self, request: Json) -> Json:
        """Return the request with the view in place of Hermes' list."""
        messages = request["messages"]
        head = messages[:1] if messages and messages[0].get("role") in _INSTRUCTIONS else []
        listed, session = messages[len(head) :], self.session
        prepared = session.prepare(
            list(self._standings.whole_of(listed)),
            system=head[0]["content"] if head else "",
            tools=request.get("tools") or [],
            max_tokens=request.get("max_completion_tokens") or request.get("max_tokens"),
            starts_over=True,
        )
        # The marks are Hermes': it sets them on what it sends, wherever it knows that the provider takes them.
        view = replace(prepared, marks=None, system=b"").as_openai(cache_key=False)["messages"]
        self._is_behind = keys_of(with_users_joined(view)) != keys_of(with_users_joined(listed))
        theirs = taken_from(listed, keys_of(listed), view)
        return {**request, "messages": [*head, *map(sent_for, view, theirs)]}

    def record(self, response: object) -> None:
        """Let the session learn from the answer."""
        self.session.record(answer_of(response))

    def _begin(self) -> None:
        self._session = None
        self._standings = Standings()
        self._is_behind = False

    def _take_in(self, messages: list[Json]) -> Session:
        session = self.session
        session.take_in(list(self._standings.whole_of([sent_form(message) for message in messages])))
        return session


def _first_id(database: Any, session_id: str) -> str:  # noqa: ANN401 - Hermes' SessionDB
    """Return the id that a conversation had before compactions gave it others."""
    seen: set[str] = set()
    while database is not None and session_id and session_id not in seen:
        seen.add(session_id)
        row = database.get_session(session_id) or {}
        parent = str(row.get("parent_session_id") or "")
        above = database.get_session(parent) if parent else None
        if not above or above.get("end_reason") != "compression":
            break
        session_id = parent
    return session_id


def _unmarked(message: Json) -> Json:
    """Return a copy that Hermes has not written to its database yet."""
    return {name: value for name, value in message.items() if name != "_db_persisted"}


CHAT = "chat_completions"
ENGINES: "WeakValueDictionary[str, LowwaterEngine]" = WeakValueDictionary()
"""The engines in use, by the ids that Hermes has for their sessions; Hermes says for which one a call is made."""


def around_call(
    *,
    request: Json,
    next_call: Callable[[Json], object],
    session_id: str = "",
    api_mode: str = "",
    **_: object,
) -> object:
    """Carry out one call of a model (Hermes' middleware `llm_execution`).

    What is raised here before the call lets Hermes make it as if there were no Lowwater; what is raised behind it is only logged.
    """
    engine = ENGINES.get(session_id)
    if engine is None or api_mode != CHAT or not isinstance(request.get("messages"), list):
        return next_call(request)
    response = next_call(engine.prepare(request))
    engine.record(response)
    return response


def answer_of(response: object) -> object:
    """Return what the client returned as a chat completion; Hermes puts streams together into objects of its own."""
    if hasattr(response, "model_dump"):
        return response
    choice = response.choices[0]  # type: ignore[attr-defined]
    said = choice.message
    message = {
        "role": "assistant",
        "content": said.content,
        "tool_calls": [_recorded_call(call) for call in said.tool_calls or ()],
        "reasoning_content": getattr(said, "reasoning_content", None),
    }
    return {
        "choices": [
            {
                "message": {name: value for name, value in message.items() if value or name == "content"},
                "finish_reason": choice.finish_reason,
            }
        ],
        "model": getattr(response, "model", None),
        "usage": getattr(response, "usage", None),
    }


def _recorded_call(call: Any) -> Json:  # noqa: ANN401 - an object of Hermes' or of an SDK
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}
