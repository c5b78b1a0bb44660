"""Access to models: at their provider's own address, at a given one, or the scripted model."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

import lowwater
from lowwater.adapters.models import load_registry
from lowwater.chat.protocol import Upstream
from lowwater.chat.scripted import ScriptedUpstream
from lowwater.core.messages import Format
from lowwater.errors import BadInput
from lowwater.session.factories import calibration_for, counter_for
from lowwater.summarizers.endpoint import endpoint_for
from lowwater.summarizers.model import ModelSummarizer

if TYPE_CHECKING:
    import httpx2

# For each variable with a key, the model to begin with.
_DEFAULTS = (("ANTHROPIC_API_KEY", "claude-sonnet-5-5"), ("OPENAI_API_KEY", "gpt-6.1-sol"))
_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
SCRIPTED_MODEL = "claude-haiku-4-5"
SOURCES = Path(lowwater.__file__).parent
"""Files that the scripted model can always work on: the library's own."""


class ModelAccess(Struct, frozen=True, kw_only=True):
    """The address and key for models; the key is never printed."""

    base_url: str = ""
    format: Format | None = None
    api_key: str | None = None
    is_scripted: bool = False
    pace: float = 0.0
    """Seconds between two words of the scripted model."""

    def __repr__(self) -> str:
        return f"ModelAccess(base_url={urlsplit(self.base_url).hostname!r}, is_scripted={self.is_scripted})"

    def upstream(
        self, model: str, client: "Callable[[], httpx2.Client]", note: Callable[[str], None]
    ) -> Upstream:
        """Return the upstream for a model, or raise BadInput that says what is missing."""
        self._check(model)
        if self.is_scripted:
            found, scale = load_registry().find(model), calibration_for(model).prior
            return ScriptedUpstream(
                model, found, counter_for(model), sources=SOURCES, scale=scale, pace=self.pace
            )
        from lowwater.chat.upstream import HttpUpstream  # noqa: PLC0415  # imports the HTTP library

        endpoint = endpoint_for(model, base_url=self.base_url, api_key=self.api_key, format=self.format)
        limit = load_registry().find(model).max_output
        return HttpUpstream(endpoint, client(), base_url=self.base_url, max_output=limit, note=note)

    def summarizers(self, model: str, context_length: int | None) -> tuple[ModelSummarizer, ...]:
        """Return the summarizers: the model itself, which can extend the request that it has cached."""
        if self.is_scripted:
            return ()
        context = context_length or load_registry().find(model).context_length
        return (
            ModelSummarizer(
                model=model,
                base_url=self.base_url,
                api_key=self.api_key,
                format=self.format,
                context_length=context,
                tokenizer=counter_for(model),
            ),
        )

    def _check(self, model: str) -> None:
        found = load_registry().match(model)
        if self.base_url:
            return
        if found.how == "unknown":
            raise BadInput(
                f"no model is called {model[:60]!r}: `lowwater models` lists them; with --base-url any name is accepted"
            )
        if self.is_scripted:
            return
        provider = found.model.provider
        if provider not in _KEYS:
            raise BadInput(f"{model} is sold by {provider}: give its OpenAI-compatible address as --base-url")
        if not os.environ.get(_KEYS[provider]):
            raise BadInput(
                f"{model} needs a key: set {_KEYS[provider]}, or give another address as --base-url"
            )


def model_access_for(
    *,
    base_url: str,
    format: Format | None,
    key_variable: str,
    is_scripted: bool,
    pace: float,
    environment: Mapping[str, str],
) -> ModelAccess:
    """Return the access to models, or raise BadInput; without an address or any key it is the scripted model."""
    key = environment.get(key_variable, "") if key_variable else None
    if key_variable and not key:
        raise BadInput(f"{key_variable} is not set: --api-key-env names the variable that holds the key")
    if is_scripted or (not base_url and not any(environment.get(name) for name, _ in _DEFAULTS)):
        return ModelAccess(is_scripted=True, pace=pace)
    parts = urlsplit(base_url)
    if base_url and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise BadInput("--base-url is not a web address: it must begin with https:// or http://")
    return ModelAccess(base_url=base_url, format=format, api_key=key)


def model_for(named: str, reach: ModelAccess, environment: Mapping[str, str]) -> str:
    """Return the model to begin with: the one named, or the default of the provider for which there is a key."""
    if named:
        return named
    if reach.is_scripted:
        return SCRIPTED_MODEL
    if reach.base_url:
        raise BadInput("--base-url needs --model: name the model that is served there")
    return next(model for variable, model in _DEFAULTS if environment.get(variable))
