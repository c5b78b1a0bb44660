"""The hook for LiteLLM's proxy: sends the view instead of the client's messages, and records answers before they are passed on."""

import logging
from collections.abc import AsyncIterator
from typing import Any

from litellm.integrations.custom_logger import (  # type: ignore[import-not-found]  # only in its environment
    CustomLogger,
)
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.messages import Format
from lowwater.errors import LowwaterError
from lowwater.integrations.framework import LruCache, learn_limit
from lowwater.integrations.litellm.messages import Json, StreamListener, answer_of, name_of
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session

_log = logging.getLogger("lowwater")

_FORMATS: dict[str, Format] = {
    "completion": "openai_chat",
    "acompletion": "openai_chat",
    "anthropic_messages": "anthropic",
}
_CALLS = 1_000
"""Most calls under way that are remembered; one that never ends is displaced by later ones."""
_WINDOWS = 1_000
"""Most conversations whose context length is remembered as set; it is set again for an older one."""


class LowwaterHook(CustomLogger):  # type: ignore[misc]  # its types are LiteLLM's affair
    """Keeps every conversation that passes through the proxy inside its model's context.

    `models` maps an alias of the proxy to its model where the proxy's own list does not. A conversation is identified by the
    client's session id (`x-litellm-session-id`, `litellm_session_id`, `metadata.session_id`) and its beginning. If Lowwater
    fails, the request is sent unchanged.
    """

    def __init__(self, lowwater: Lowwater | None = None, *, models: dict[str, str] | None = None) -> None:
        super().__init__()
        self._lowwater = lowwater
        self._models = models or {}
        self._calls: LruCache[str, Session] = LruCache(_CALLS)
        self._windows: LruCache[tuple[str, str], int] = LruCache(_WINDOWS)

    def session(self, name: str, model: str) -> Session:
        """Return the Lowwater session with this name, switched to this model."""
        if self._lowwater is None:
            self._lowwater = Lowwater(model=model, summarizer=())
        session = self._lowwater.session(name, source="litellm")
        if internals(session).route.model != model:
            session.use(model)
        return session

    async def async_pre_call_hook(
        self,
        user_api_key_dict: Any,  # noqa: ANN401 - LiteLLM's UserAPIKeyAuth
        cache: Any,  # noqa: ANN401, ARG002 - LiteLLM's signature
        data: Json,
        call_type: str,
    ) -> Json:
        """Replace the messages by the view."""
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
        listener = StreamListener("openai_chat" if "completion" in _kind(request_data) else "anthropic")
        async for chunk in response:
            listener.hear(chunk)
            yield chunk
        await self._record(request_data, listener.answer())

    async def async_post_call_failure_hook(
        self,
        request_data: Json,
        original_exception: Exception,
        user_api_key_dict: Any,  # noqa: ANN401, ARG002 - LiteLLM's signature
        traceback_str: str | None = None,  # noqa: ARG002 - LiteLLM's signature
    ) -> None:
        """Learn the context length from a refusal, so that the next request fits."""
        session = self._calls.pop(_id(request_data))
        if session is not None:
            learn_limit(session, original_exception)

    async def _prepared(self, data: Json, format: Format, *, owner: str) -> Json:
        deployment_model = self._deployed_model(str(data.get("model") or ""))
        name = name_of(data, owner=owner)
        session = self.session(name, deployment_model.model)
        if (
            deployment_model.window
            and self._windows.get((name, deployment_model.model)) != deployment_model.window
        ):
            # Only once: what is learned from a later refusal takes precedence.
            self._windows[name, deployment_model.model] = session.learn_context_length(
                deployment_model.window
            )
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
        # No cache marks of ours in a chat request: LiteLLM may send it to a provider that does not know them.
        return {**data, "messages": replace(request, marks=None).as_openai(cache_key=False)["messages"]}

    async def _record(self, data: Json, answer: Json | None) -> None:
        session = self._calls.pop(_id(data))
        if session is None or answer is None:
            return
        try:
            await session.arecord(answer)
        except LowwaterError as error:
            _log.warning("an answer was not recorded: %s", error)

    def _deployed_model(self, alias: str) -> "DeployedModel":
        """Return the model behind a name in the proxy's list, with the context length given there."""
        from litellm.proxy import proxy_server  # type: ignore[import-not-found]  # noqa: PLC0415 - runs in the proxy only

        router = getattr(proxy_server, "llm_router", None)
        for deployment in (router.model_list if router is not None else None) or ():
            if deployment.get("model_name") == alias:
                named = str(deployment["litellm_params"]["model"])
                window = (deployment.get("model_info") or {}).get("max_input_tokens")
                model = self._models.get(alias) or named.partition("/")[2] or named
                return DeployedModel(model=model, window=int(window or 0))
        return DeployedModel(model=self._models.get(alias) or alias)


class DeployedModel(Struct, frozen=True, kw_only=True):
    """The model behind a name in the proxy's list."""

    model: str
    window: int = 0
    """The context length given in the list; 0 if there is none."""


def _id(data: Json) -> str:
    return str(data.get("litellm_call_id") or "")


def _kind(data: Json) -> str:
    """Return the URL of a request."""
    request = data.get("proxy_server_request") or {}
    return str(request.get("url") or "")


def _owner(key: Any) -> str:  # noqa: ANN401 - LiteLLM's UserAPIKeyAuth
    """Return the owner of a request: the beginning of the hash that LiteLLM keeps of the key."""
    return str(getattr(key, "token", None) or "")[:12]
