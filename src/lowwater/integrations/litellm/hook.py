"""The hook of LiteLLM's proxy: what goes out is the view, what comes back is recorded before it is passed on."""

import logging
from collections.abc import AsyncIterator
from typing import Any

from litellm.integrations.custom_logger import (  # type: ignore[import-not-found]  # only in its environment
    CustomLogger,
)
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.formats.refusals import refuses_images
from lowwater.core.messages import Format
from lowwater.errors import BadInput, LowwaterError
from lowwater.integrations.framework import LruCache
from lowwater.integrations.litellm.messages import Json, StreamListener, answer_of, name_of
from lowwater.session.library import Lowwater
from lowwater.session.session import Session

_log = logging.getLogger("lowwater")

_FORMATS: dict[str, Format] = {
    "completion": "openai_chat",
    "acompletion": "openai_chat",
    "anthropic_messages": "anthropic",
}
_CALLS = 1_000
"""Calls under way that are remembered; one that never ends is forgotten when as many came later."""
_WINDOWS = 1_000
"""Conversations of which is remembered that they were told their window; one that rested longer is told again."""


class LowwaterHook(CustomLogger):  # type: ignore[misc]  # its types are LiteLLM's affair
    """Keeps every conversation that passes through the proxy inside its model's window.

    `models` says which model an alias of the proxy stands for, where its own list does not. A conversation is told by the
    client's session id (`x-litellm-session-id`, `litellm_session_id`, `metadata.session_id`) and by how it begins. If Lowwater
    fails, the request leaves as it came.
    """

    def __init__(self, lowwater: Lowwater | None = None, *, models: dict[str, str] | None = None) -> None:
        super().__init__()
        self._lowwater = lowwater
        self._models = models or {}
        self._calls: LruCache[str, Session] = LruCache(_CALLS)
        self._windows: LruCache[tuple[str, str], int] = LruCache(_WINDOWS)

    def session(self, name: str, model: str) -> Session:
        """Return the Lowwater session with this name, which goes on with this model."""
        if self._lowwater is None:
            self._lowwater = Lowwater(model=model)
        session = self._lowwater.session(name, source="litellm")
        if session.route.model != model:
            session.use(model)
        return session

    async def async_pre_call_hook(
        self,
        user_api_key_dict: Any,  # noqa: ANN401 - LiteLLM's UserAPIKeyAuth
        cache: Any,  # noqa: ANN401, ARG002 - LiteLLM's signature
        data: Json,
        call_type: str,
    ) -> Json:
        """Put the view in place of the messages."""
        format = _FORMATS.get(call_type)
        if format is None or not isinstance(data.get("messages"), list) or not data["messages"]:
            return data
        try:
            return await self._prepared(data, format, owner=_owner(user_api_key_dict))
        except LowwaterError as error:
            _log.warning("a request passes as it came: %s", error)
            return data

    async def async_post_call_success_hook(
        self,
        data: Json,
        user_api_key_dict: Any,  # noqa: ANN401, ARG002 - LiteLLM's signature
        response: Any,  # noqa: ANN401 - one of LiteLLM's answers
    ) -> Any:  # noqa: ANN401 - the same
        """Record an answer; the client gets it as it is."""
        await self._record(data, answer_of(response))
        return response

    async def async_post_call_streaming_iterator_hook(
        self,
        user_api_key_dict: Any,  # noqa: ANN401, ARG002 - LiteLLM's signature
        response: Any,  # noqa: ANN401 - a stream of LiteLLM's
        request_data: Json,
    ) -> AsyncIterator[Any]:
        """Pass a stream on, and record its answer before the client sees the end."""
        listening = StreamListener("openai_chat" if "completion" in _kind(request_data) else "anthropic")
        async for chunk in response:
            listening.hear(chunk)
            yield chunk
        await self._record(request_data, listening.answer())

    async def async_post_call_failure_hook(
        self,
        request_data: Json,
        original_exception: Exception,
        user_api_key_dict: Any,  # noqa: ANN401, ARG002 - LiteLLM's signature
        traceback_str: str | None = None,  # noqa: ARG002 - LiteLLM's signature
    ) -> None:
        """Learn the window from a refusal, so that the next request fits."""
        session = self._calls.pop(_id(request_data))
        if session is None:
            return
        if refuses_images(str(original_exception)):
            session.drop_images()
            return
        try:
            session.learn_context_length(original_exception)
        except BadInput:
            return

    async def _prepared(self, data: Json, format: Format, *, owner: str) -> Json:
        asked = self._asked(str(data.get("model") or ""))
        name = name_of(data, owner=owner)
        session = self.session(name, asked.model)
        if asked.window and self._windows.get((name, asked.model)) != asked.window:
            # Once: what a refusal teaches later holds.
            self._windows[name, asked.model] = session.learn_context_length(asked.window)
        request = await session.aprepare(
            data["messages"],
            system=data.get("system"),
            tools=data.get("tools"),
            max_tokens=data.get("max_completion_tokens") or data.get("max_tokens"),
            starts_over=True,
        )
        self._calls[_id(data)] = session
        if format == "anthropic":
            return {**data, **request.as_anthropic()}
        # Cache marks of a chat request stay the client's: LiteLLM may ask a provider that knows none.
        return {**data, "messages": replace(request, marks=None).as_openai(cache_key=False)["messages"]}

    async def _record(self, data: Json, answer: Json | None) -> None:
        session = self._calls.pop(_id(data))
        if session is None or answer is None:
            return
        try:
            await session.arecord(answer)
        except LowwaterError as error:
            _log.warning("an answer was not recorded: %s", error)

    def _asked(self, alias: str) -> "ProxyRequest":
        """Return the model that is asked under a name of the proxy's list, and the window that its list tells."""
        from litellm.proxy import proxy_server  # type: ignore[import-not-found]  # noqa: PLC0415 - runs in the proxy only

        router = getattr(proxy_server, "llm_router", None)
        for deployment in (router.model_list if router is not None else None) or ():
            if deployment.get("model_name") == alias:
                named = str(deployment["litellm_params"]["model"])
                window = (deployment.get("model_info") or {}).get("max_input_tokens")
                model = self._models.get(alias) or named.partition("/")[2] or named
                return ProxyRequest(model=model, window=int(window or 0))
        return ProxyRequest(model=self._models.get(alias) or alias)


class ProxyRequest(Struct, frozen=True, kw_only=True):
    """What stands behind a name of the proxy's list."""

    model: str
    window: int = 0
    """Its size in tokens as the list tells it; 0 if it does not."""


def _id(data: Json) -> str:
    return str(data.get("litellm_call_id") or "")


def _kind(data: Json) -> str:
    """Return the path a request came by."""
    request = data.get("proxy_server_request") or {}
    return str(request.get("url") or "")


def _owner(key: Any) -> str:  # noqa: ANN401 - LiteLLM's UserAPIKeyAuth
    """Return whose request it is: LiteLLM has the hash of the key, never the key; a part of that is enough."""
    return str(getattr(key, "token", None) or "")[:12]
