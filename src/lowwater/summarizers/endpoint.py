"""The endpoint of a model that writes summaries: URL, headers and key, and the limit of its output."""

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.messages import Format
from lowwater.errors import BadSetting

_BASE_URLS: MappingProxyType[Format, str] = MappingProxyType(
    {
        "anthropic": "https://api.anthropic.com",
        "openai_chat": "https://api.openai.com/v1",
        "openai_responses": "https://api.openai.com/v1",
    }
)

_KEYS: MappingProxyType[Format, str] = MappingProxyType(
    {
        "anthropic": "ANTHROPIC_API_KEY",
        "openai_chat": "OPENAI_API_KEY",
        "openai_responses": "OPENAI_API_KEY",
    }
)

_PATHS: MappingProxyType[Format, str] = MappingProxyType(
    {"anthropic": "/messages", "openai_chat": "/chat/completions", "openai_responses": "/responses"}
)

_BETA = "anthropic-beta"

_ANTHROPIC_VERSION = "2023-06-01"

_HEADROOM = 2
"""The limit is this many times the wanted size: models count other tokens, and a summary must not be cut off."""

THINKING = 8_000
"""Tokens allowed for thinking if it counts against the limit and its budget is not known."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """A model at a URL."""

    model: str
    format: Format
    url: str
    headers: Mapping[str, str]
    """All headers that are sent, the key included."""

    def __repr__(self) -> str:
        return f"Endpoint(model={self.model!r}, format={self.format!r}, host={self.host!r})"

    @property
    def host(self) -> str:
        """The host; nothing else of the URL may be shown, because its query may hold a key."""
        return urlsplit(self.url).hostname or ""

    @property
    def limits_completion(self) -> bool:
        """Whether the limit of the output is `max_completion_tokens`, as OpenAI demands; it includes thinking."""
        return self.format == "openai_chat" and self.host.endswith(("openai.com", "openai.azure.com"))

    @property
    def only_streams(self) -> bool:
        """Whether it refuses requests without `stream` or with an output limit, as the backend of a ChatGPT login does."""
        return self.format == "openai_responses" and self.host.endswith("chatgpt.com")


class OutputLimit(Struct, frozen=True, kw_only=True):
    """The name and the value of the request's limit; one without a name is not sent."""

    field: str
    tokens: int

    def fields(self) -> dict[str, int]:
        """Return the field of the request, if there is one."""
        return {self.field: self.tokens} if self.field else {}


def endpoint_for(
    model: str,
    *,
    base_url: str = "",
    api_key: str | None = None,
    format: Format | None = None,
    headers: Mapping[str, str] | None = None,
) -> Endpoint:
    """Return the endpoint, or raise BadSetting.

    Without a `format` it is derived from the URL, or else from the model. Without an `api_key` the environment's is used, but
    only for the provider's own URL: it is never sent anywhere else.
    """
    if not model:
        raise BadSetting("the summarizer's model is empty: name one")
    spoken = format or format_at(model, base_url)
    if spoken not in _BASE_URLS:
        raise BadSetting(f"unknown format {spoken!r}: expected one of {', '.join(_BASE_URLS)}")
    key = api_key if api_key is not None else "" if base_url else os.environ.get(_KEYS[spoken], "")
    own = {"content-type": "application/json", "accept": "application/json", **_credentials(spoken, key)}
    return Endpoint(
        model=model,
        format=spoken,
        url=_url(base_url or _BASE_URLS[spoken], spoken),
        headers=MappingProxyType({**own, **{name.lower(): value for name, value in (headers or {}).items()}}),
    )


def format_at(model: str, base_url: str) -> Format:
    """Return the format of an endpoint, guessed from its URL and the model's name."""
    if not base_url:
        return "anthropic" if model.lower().startswith("claude") else "openai_chat"
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/")
    theirs = "anthropic" in (parts.hostname or "") or path.endswith(("/anthropic", "/messages"))
    if theirs or "/anthropic/" in path:
        return "anthropic"
    if path.endswith(_PATHS["openai_responses"]):
        return "openai_responses"
    return "anthropic" if not path and model.lower().startswith("claude") else "openai_chat"


def _credentials(format: Format, key: str) -> dict[str, str]:
    if not key.isascii() or not key.isprintable() or " " in key:
        raise BadSetting(
            "the API key holds a character that no header can carry: check what was read into it"
        )
    if format == "anthropic":
        return {"anthropic-version": _ANTHROPIC_VERSION} | ({"x-api-key": key} if key else {})
    return {"authorization": f"Bearer {key}"} if key else {}


def _url(base_url: str, format: Format) -> str:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadSetting(
            "the summarizer's base_url is no web address: it must begin with https:// or http://"
        )
    if parts.username or parts.password:
        raise BadSetting("the summarizer's base_url holds a password: give it as `api_key` or in `headers`")
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=_path(path, format), fragment=""))


def _path(path: str, format: Format) -> str:
    end = _PATHS[format]
    if path.endswith(end):
        return path
    return f"{path}/v1{end}" if format == "anthropic" and not path.endswith("/v1") else path + end


def with_betas(endpoint: Endpoint, betas: Sequence[str]) -> Endpoint:
    """Return the endpoint with these Anthropic betas in its header, in addition to those it has."""
    named = [each for each in endpoint.headers.get(_BETA, "").split(",") if each.strip()]
    wanted = list(dict.fromkeys(each.strip() for each in (*named, *betas)))
    if len(wanted) == len(named):
        return endpoint
    return replace(endpoint, headers=MappingProxyType({**endpoint.headers, _BETA: ",".join(wanted)}))


def output_limit(endpoint: Endpoint, wanted: int) -> OutputLimit:
    """Return the limit for a summary of `wanted` tokens."""
    if endpoint.format == "openai_responses":
        field = "" if endpoint.only_streams else "max_output_tokens"
        return OutputLimit(field=field, tokens=_HEADROOM * wanted + THINKING)
    if endpoint.limits_completion:
        return OutputLimit(field="max_completion_tokens", tokens=_HEADROOM * wanted + THINKING)
    return OutputLimit(field="max_tokens", tokens=_HEADROOM * wanted)
