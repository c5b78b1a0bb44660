"""Hermes' conversations: their sessions, how messages are compared, the full history behind a shortened list, and model calls."""

import json
import os
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from msgspec import Struct
from msgspec.structs import replace

from lowwater.adapters.settings import load_settings
from lowwater.core.ledger import Ledger
from lowwater.core.reconcile import branch_of
from lowwater.core.view import Item, Summary
from lowwater.protocols import Store
from lowwater.session.factories import VARIABLE, default_address, resolve_store
from lowwater.session.library import Lowwater
from lowwater.session.plugins import policy_names
from lowwater.session.session import Session
from lowwater.settings import Settings
from lowwater.stores.addresses import SQLITE
from lowwater.summarizers.model import ModelSummarizer

if TYPE_CHECKING:
    from lowwater.integrations.hermes.engine import LowwaterEngine

Json = dict[str, Any]
_SENT_INSTEAD = "api_content"
"""The field with the text that Hermes sends instead of the one that it displays."""
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
FILE = "lowwater.db"
_STORES: dict[str, Store] = {}
_LOCK = threading.Lock()
_MOST_HISTORIES = 3
CHAT = "chat_completions"
ENGINES: "WeakValueDictionary[str, LowwaterEngine]" = WeakValueDictionary()
"""The engines in use, by Hermes' session id, which comes with every call."""


def sent_form(message: Mapping[str, Any]) -> Json:
    """Return a message of Hermes' list as it is sent, without Hermes' own bookkeeping fields."""
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
    """Return a hash of a message's role, text and calls; cache marks, white space, JSON spelling and bookkeeping do not count."""
    compared = [
        message.get("role"),
        _words(message.get("content")),
        [_call(call) for call in message.get("tool_calls") or ()],
        message.get("tool_call_id") or "",
    ]
    return blake2b(json.dumps(compared, sort_keys=True).encode(), digest_size=16).digest()


def with_users_joined(messages: Iterable[Json]) -> list[Json]:
    """Return the list with adjacent user messages merged, as Hermes does it."""
    joined: list[Json] = []
    for message in messages:
        before = joined[-1] if joined else None
        if before is not None and are_joined(before, message):
            joined[-1] = joined_to(before, message)
        else:
            joined.append(message)
    return joined


def are_joined(before: Mapping[str, Any], message: Mapping[str, Any]) -> bool:
    """Return whether Hermes merges two messages."""
    return all(
        each.get("role") == "user" and isinstance(each.get("content"), str) for each in (before, message)
    )


def joined_to(before: Json, message: Json) -> Json:
    """Return two messages merged, as Hermes does it."""
    return {**before, "content": f"{before['content']}\n\n{message['content']}".strip()}


def keys_of(messages: Iterable[Json]) -> list[bytes]:
    """Return the keys of a list."""
    return [key_of(message) for message in messages]


def pick_messages(theirs: Sequence[Json], keys: Iterable[bytes], wanted: Iterable[Json]) -> list[Json]:
    """Return the wanted messages, as the dicts of `theirs` where their `keys` match."""
    known: defaultdict[bytes, deque[Json]] = defaultdict(deque)
    for key, message in zip(keys, theirs, strict=True):
        known[key].append(message)
    return [same.popleft() if (same := known[key_of(message)]) else message for message in wanted]


def sent_for(ours: Json, theirs: Json) -> Json:
    """Return one of two equal messages: ours, whose bytes were sent before, unless Hermes adds something."""
    adds = set(theirs) - set(ours) or _MARK in json.dumps(theirs.get("content"))
    return theirs if adds else ours


def _words(content: object) -> object:
    """Return content without cache marks; a single text block becomes plain text."""
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


class OpenSession(Struct, frozen=True, kw_only=True):
    """How to open the session of a conversation: model, address, key, and folder."""

    model: str = ""
    base_url: str = ""
    api_key: str = ""
    context_length: int = 0
    home: str = ""
    """Hermes' own folder."""

    def __repr__(self) -> str:
        return f"Kept(model={self.model!r}, context_length={self.context_length})"

    def open(self, name: str) -> Session:
        """Return the session with this name, in the store that the environment sets or else in Hermes' folder."""
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
        """Return a summarizer with the conversation's own model, at Hermes' address, if the settings name that model."""
        if settings.compression.summary_model != self.model or not self.base_url:
            return ()
        length = self.context_length or 128_000
        return (
            ModelSummarizer(
                model=self.model, base_url=self.base_url, api_key=self.api_key, context_length=length
            ),
        )


def _settings() -> Settings:
    """Return Lowwater's settings, except that Hermes decides whether to compact, and sessions are never split."""
    settings = load_settings(config=None, env=os.environ, flags={}, policies=policy_names).settings
    enabled = settings.compression.enabled and _hermes_compacts()
    return replace(settings, compression=replace(settings.compression, enabled=enabled, split=False))


def _hermes_compacts() -> bool:
    from hermes_cli.config import load_config  # type: ignore[import-not-found]  # noqa: PLC0415 - only in Hermes

    enabled = (load_config().get("compression") or {}).get("enabled", True)
    return str(enabled).strip().lower() not in ("false", "0", "no", "off")


def _store(home: str, settings: Settings) -> Store:
    """Return the store at an address, opened once for all conversations of this process."""
    beside = bool(home) and not os.environ.get(VARIABLE, "").strip()
    address = f"{SQLITE}{Path(home) / FILE}" if beside else default_address()
    with _LOCK:
        if address not in _STORES:
            _STORES[address] = resolve_store(address, redact=settings.privacy.redact)
        return _STORES[address]


class ShownHistory(Struct, frozen=True, kw_only=True):
    """A list of Hermes', by its keys, and the full history behind it."""

    keys: tuple[bytes, ...] = ()
    ends: tuple[int | None, ...] = ()
    """For each message of the list, how many messages of the history are covered up to it; None if these are not the first ones."""
    whole: tuple[Json, ...] = ()

    def in_common(self, keys: Sequence[bytes]) -> int:
        """Return how many leading messages a list shares with this one, up to where the history is known."""
        same = 0
        for ours, theirs in zip(self.keys, keys, strict=False):
            if ours != theirs:
                break
            same += 1
        while same and self.ends[same - 1] is None:
            same -= 1
        return same

    def continued_by(self, listed: Sequence[Json], keys: Sequence[bytes]) -> "ShownHistory":
        """Return the history behind a list that continues this one or branches off from it."""
        same = self.in_common(keys)
        start = (self.ends[same - 1] or 0) if same else 0
        new = listed[same:]
        return ShownHistory(
            keys=tuple(keys),
            ends=(*self.ends[:same], *range(start + 1, start + 1 + len(new))),
            whole=(*self.whole[:start], *new),
        )


class ShownHistories:
    """The histories behind the last lists of Hermes', newest first; older ones are kept in case it goes back."""

    def __init__(self) -> None:
        self._known: list[ShownHistory] = [ShownHistory()]

    @property
    def are_new(self) -> bool:
        """Whether no list has been seen yet."""
        return len(self._known) == 1 and not self._known[0].keys

    def whole_of(self, listed: Sequence[Json]) -> tuple[Json, ...]:
        """Return the full history behind a list."""
        keys = keys_of(listed)
        nearest = max(self._known, key=lambda each: each.in_common(keys))
        found = nearest.continued_by(listed, keys)
        self._known = [each for each in self._known if each is not nearest]
        self._remember(found)
        return found.whole

    def resume(self, ledger: Ledger, view: Sequence[Json], history: Sequence[Json]) -> None:
        """Start from a stored session: behind a list that equals its view are all its messages."""
        whole = tuple(history[number - 1] for number in branch_of(ledger))
        self._show(ledger, view, whole)

    def publish(self, ledger: Ledger, view: Sequence[Json]) -> list[Json] | None:
        """Return the shortened list for Hermes, with the same history as its newest one; None if they do not match."""
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
        self._remember(ShownHistory(keys=tuple(keys_of(shown)), ends=tuple(ends), whole=whole))
        return shown

    def _remember(self, shown: ShownHistory) -> None:
        self._known = [shown, *self._known][:_MOST_HISTORIES]


def _numbers(item: Item) -> list[int]:
    if isinstance(item, Summary):
        return [number for span in item.sources for number in range(span.first, span.last + 1)]
    return [item.number]


def around_call(
    *,
    request: Json,
    next_call: Callable[[Json], object],
    session_id: str = "",
    api_mode: str = "",
    **_: object,
) -> object:
    """Make one call of a model (Hermes' middleware `llm_execution`).

    If this raises before the call, Hermes makes the call itself without Lowwater; after the call, Hermes only logs the error.
    """
    engine = ENGINES.get(session_id)
    if engine is None or api_mode != CHAT or not isinstance(request.get("messages"), list):
        return next_call(request)
    response = next_call(engine.prepare(request))
    engine.record(response)
    return response


def answer_of(response: object) -> object:
    """Return the client's answer as a chat completion; Hermes assembles streams into objects of its own."""
    if hasattr(response, "model_dump"):
        return response
    choice = response.choices[0]  # type: ignore[attr-defined]
    answer = choice.message
    message = {
        "role": "assistant",
        "content": answer.content,
        "tool_calls": [_recorded_call(call) for call in answer.tool_calls or ()],
        "reasoning_content": getattr(answer, "reasoning_content", None),
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
