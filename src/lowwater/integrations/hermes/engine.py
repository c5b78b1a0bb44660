"""Lowwater as Hermes' context engine: when Hermes' list is to be shortened, to what, and what is recorded."""

import json
import logging
from typing import TYPE_CHECKING, Any

from agent.context_engine import ContextEngine  # type: ignore[import-not-found]  # only in Hermes' environment
from msgspec.structs import replace

from lowwater.core.recall.recalled import openai_tools
from lowwater.errors import LowwaterError
from lowwater.integrations.hermes.history import (
    CHAT,
    ENGINES,
    Json,
    OpenSession,
    ShownHistories,
    answer_of,
    keys_of,
    sent_for,
    sent_form,
    taken_from,
    with_users_joined,
)
from lowwater.session.session import Session

if TYPE_CHECKING:
    pass


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
    _standings: ShownHistories
    _is_behind: bool
    """Whether the view was compacted, and Hermes' list not yet."""

    def __init__(self, *, sees_calls: bool = False) -> None:
        self._sees_calls = sees_calls
        self._kept = OpenSession()
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
        self._standings = ShownHistories()
        self._is_behind = False

    def _take_in(self, messages: list[Json]) -> Session:
        session = self.session
        session.sync_messages(list(self._standings.whole_of([sent_form(message) for message in messages])))
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
