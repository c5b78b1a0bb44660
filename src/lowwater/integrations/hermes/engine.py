"""Lowwater as Hermes' context engine: decides when Hermes' list of messages is shortened and to what, and records answers."""

import json
import logging
from typing import Any

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
    pick_messages,
    sent_for,
    sent_form,
    with_users_joined,
)
from lowwater.session.internals import internals
from lowwater.session.session import Session

NAME = "lowwater"
_log = logging.getLogger("lowwater")
_INSTRUCTIONS = ("system", "developer")


class LowwaterEngine(ContextEngine):  # type: ignore[misc]  # its types are Hermes' affair
    """One conversation of one agent; Hermes makes a deep copy of the registered engine for each.

    If calls go through `around_call`, the decision is made at each call, and Hermes gets the compacted list when it asks next.
    Otherwise Hermes' own token count decides, at the threshold of the settings.
    """

    threshold_percent = 0.5
    model = base_url = api_key = provider = api_mode = ""
    _session: Session | None
    _histories: ShownHistories
    _is_behind: bool
    """Whether the view was compacted, but Hermes' list has not been replaced yet."""

    def __init__(self, *, wraps_calls: bool = False) -> None:
        self._wraps_calls = wraps_calls
        self._opening = OpenSession()
        self._database: Any = None
        self._session_id = ""
        self._name = ""
        self._reset()

    def __deepcopy__(self, memo: dict[int, object]) -> "LowwaterEngine":
        """Return an engine for another agent, with the same model and folder but without the conversation."""
        other = LowwaterEngine(wraps_calls=self._wraps_calls)
        other._opening = self._opening
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
        """The value of `context.engine` that selects it."""
        return NAME

    @property
    def session(self) -> Session:
        """The session of the conversation."""
        if self._session is None:
            self._session = session = self._opening.open(self._name)
            self.threshold_tokens = session.status().threshold
            if self._histories.are_new:
                self._histories.resume(internals(session).ledger, session.view(apart=True), session.history())
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
        """Switch to another model, or to a context length learned from a provider's error."""
        super().update_model(model, context_length, base_url, api_key, provider, api_mode)
        self.model, self.base_url, self.api_key, self.provider = model, base_url, api_key, provider
        self.api_mode = api_mode or self.api_mode
        before = self._opening
        key = api_key if isinstance(api_key, str) else ""
        self._opening = replace(
            before, model=model, base_url=base_url, api_key=key, context_length=context_length
        )
        if self._opening != before:
            self._session = None

    def bind_session_state(self, session_db: Any = None, session_id: str = "") -> None:  # noqa: ANN401
        """Switch to a conversation; one that got a new id in Hermes' rotation keeps the session name it began with."""
        self._database = session_db or self._database
        if session_id != self._session_id or not self._name:
            self._reset()
            self._name = _first_id(self._database, session_id)
        self._session_id = session_id
        if session_id:
            ENGINES[session_id] = self

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:  # noqa: ANN401
        """Begin or resume a conversation; after a compaction it is the same one, whatever id Hermes gives it."""
        self._opening = replace(self._opening, home=kwargs.get("hermes_home") or self._opening.home)
        if kwargs.get("boundary_reason") == "compression":
            self._session_id = session_id
            if session_id:
                ENGINES[session_id] = self
        else:
            self.bind_session_state(self._database, session_id)

    def on_session_end(self, session_id: str, messages: list[Json]) -> None:
        """Sync the last messages. Hermes also calls this at each compaction, so nothing is closed here."""
        if messages and session_id == self._session_id:
            self._sync(messages)

    def on_session_reset(self) -> None:
        """Forget the conversation; the next one is identified by its id."""
        super().on_session_reset()
        self._session_id = self._name = ""
        self._reset()

    def update_from_response(self, usage: Json) -> None:
        """Keep the figures that Hermes displays; the session has recorded the answer itself."""
        self.last_prompt_tokens = usage.get("prompt_tokens") or 0
        self.last_completion_tokens = usage.get("completion_tokens") or 0
        self.last_total_tokens = usage.get("total_tokens") or 0
        self.awaiting_real_usage_after_compression = False

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Return whether to shorten Hermes' list: the view was compacted, or, if calls are not wrapped, it has reached the threshold."""
        if self._wraps_calls and self.api_mode == CHAT:
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
        """Return the shortened list; the same list if nothing helps.

        If a person asks for it, or after a provider's refusal, the view is compacted first.
        """
        try:
            return self._compress(messages, focus_topic or memory_context, force=force)
        except LowwaterError as error:
            _log.warning("nothing is compacted: %s", error)
            return messages

    def _compress(self, messages: list[Json], focus: str, *, force: bool) -> list[Json]:
        was_behind, self._is_behind = self._is_behind, False
        session = self._sync(messages)
        if force or not was_behind:
            session.compress(focus or None)
        shown = self._histories.publish(internals(session).ledger, session.view(apart=True))
        keys = keys_of(sent_form(message) for message in messages)
        if shown is None or keys_of(shown) == keys:
            return messages
        self.compression_count += 1
        return [_unmarked(message) for message in pick_messages(messages, keys, shown)]

    def get_tool_schemas(self) -> list[Json]:
        """Return the recall tools, which search and expand what the list no longer shows."""
        return [tool["function"] for tool in openai_tools()]

    def handle_tool_call(self, name: str, args: Json, **kwargs: Any) -> str:  # noqa: ANN401
        """Return the result of a recall tool as JSON."""
        tools = self.session.recall_tools()
        if not tools.owns(name):
            return str(super().handle_tool_call(name, args, **kwargs))
        return json.dumps({"result": tools.handle(name, args)}, ensure_ascii=False)

    def get_status(self) -> Json:
        """Return Hermes' own status and, as text, that of the session."""
        return {**super().get_status(), "lowwater": str(self.session.status())}

    def prepare(self, request: Json) -> Json:
        """Return the request with the view in place of Hermes' list."""
        messages = request["messages"]
        head = messages[:1] if messages and messages[0].get("role") in _INSTRUCTIONS else []
        listed, session = messages[len(head) :], self.session
        prepared = session.prepare(
            list(self._histories.whole_of(listed)),
            system=head[0]["content"] if head else "",
            tools=request.get("tools") or [],
            max_tokens=request.get("max_completion_tokens") or request.get("max_tokens"),
            starts_over=True,
        )
        # Hermes places the cache marks itself when it sends, wherever it knows that the provider takes them.
        view = replace(prepared, marks=None, system=b"").as_openai(cache_key=False)["messages"]
        self._is_behind = keys_of(with_users_joined(view)) != keys_of(with_users_joined(listed))
        theirs = pick_messages(listed, keys_of(listed), view)
        return {**request, "messages": [*head, *map(sent_for, view, theirs)]}

    def record(self, response: object) -> None:
        """Record the answer in the session."""
        self.session.record(answer_of(response))

    def _reset(self) -> None:
        self._session = None
        self._histories = ShownHistories()
        self._is_behind = False

    def _sync(self, messages: list[Json]) -> Session:
        session = self.session
        session.sync_messages(list(self._histories.whole_of([sent_form(message) for message in messages])))
        return session


def _first_id(database: Any, session_id: str) -> str:  # noqa: ANN401 - Hermes' SessionDB
    """Return the id that a conversation had before compactions changed it."""
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
    """Return a copy without the mark of a message that is in Hermes' database already."""
    return {name: value for name, value in message.items() if name != "_db_persisted"}
