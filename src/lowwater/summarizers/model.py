"""Summaries written by a model at an OpenAI- or Anthropic-compatible endpoint, in any of their formats."""

import asyncio
import time
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import urlsplit

from msgspec.structs import replace

from lowwater.core.formats.anthropic import betas_of_body
from lowwater.core.messages import Format
from lowwater.core.secrets.redaction import conceal
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.tokens.estimate import CharacterTokenizer
from lowwater.errors import BadInput, BadSetting, SummaryFailed
from lowwater.protocols import Tokenizer
from lowwater.summarizers.endpoint import Endpoint, endpoint_for, with_betas
from lowwater.summarizers.exchange import ExchangeStep, StepResult, exchange, written_in
from lowwater.summarizers.native import block_written_in, native_body
from lowwater.summarizers.requests import cached_prefix_body, transcript_body

if TYPE_CHECKING:
    import httpx2  # noqa: F401 - in quoted names

_CONTEXT_LENGTH = 128_000
_TIMEOUT = 120.0
Client = TypeVar("Client")


class _ModelEndpoint(Generic[Client]):
    """What the blocking and the async summarizer share: the endpoint, what to send, and when to give up."""

    def __init__(
        self,
        *,
        model: str,
        base_url: str = "",
        api_key: str | None = None,
        format: Format | None = None,
        timeout: float = _TIMEOUT,
        context_length: int = _CONTEXT_LENGTH,
        tokenizer: Tokenizer | None = None,
        headers: Mapping[str, str] | None = None,
        client: Client | None = None,
    ) -> None:
        if not timeout > 0:
            raise BadSetting(f"a timeout of {timeout} seconds makes no sense: it must be above 0")
        if context_length < 1:
            raise BadSetting(f"a context length of {context_length} makes no sense: it must be above 0")
        self._endpoint = endpoint_for(
            model, base_url=base_url, api_key=api_key, format=format, headers=headers
        )
        self._base_url = base_url
        self._timeout = timeout
        self._context_length = context_length
        self._tokenizer = tokenizer or CharacterTokenizer()
        self._client = client

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self._endpoint.model

    def __repr__(self) -> str:
        at = self._endpoint
        return f"{type(self).__name__}(model={at.model!r}, format={at.format!r}, host={at.host!r})"

    @property
    def compacts(self) -> bool:
        """Whether a provider with this format can compact by itself; the registry knows which models can."""
        return self._endpoint.format == "anthropic"

    def reaches(self, base_url: str) -> bool:
        """Return whether it asks the provider that calls to `base_url` go to, which has seen the session's requests already."""
        return urlsplit(base_url).netloc == urlsplit(self._base_url).netloc

    def _until(self, request: SummaryRequest) -> float:
        seconds = self._timeout if request.within is None else min(self._timeout, request.within)
        return time.monotonic() + seconds

    def _steps(self, body: bytes, until: float) -> Generator[ExchangeStep, StepResult, bytes]:
        return exchange(body, lambda: until - time.monotonic())

    def _body(self, request: SummaryRequest) -> bytes:
        try:
            if request.native:
                return native_body(request, self._endpoint)
            return cached_prefix_body(request, self._endpoint) or transcript_body(
                request,
                self._endpoint,
                context_length=self._context_length,
                tokenizer=self._tokenizer,
            )
        except BadInput as error:
            raise SummaryFailed(f"the messages cannot be sent: {error}", "refused") from None

    def _asked_at(self, body: bytes, *, natively: bool) -> Endpoint:
        """Return the endpoint with the beta headers that a body needs."""
        return with_betas(self._endpoint, betas_of_body(body, compacting=natively))

    def _written(self, answer: bytes, request: SummaryRequest) -> Written:
        if request.native:
            # A signed block cannot be changed; secrets in it are found when it is judged.
            return block_written_in(answer, asked=self._endpoint.model)
        written = written_in(answer, asked=self._endpoint.model)
        return replace(written, text=conceal(written.text)) if request.redact else written


class ModelSummarizer(_ModelEndpoint["httpx2.Client"]):
    """Asks a model for summaries, from any number of threads.

    If the session's last request went to the same model in the same format, it is extended, so that the provider reads its
    cache. Otherwise the model is shown a transcript that fits `context_length`. All tries together take at most `timeout`
    seconds. Without an `api_key` the environment's is used, for the provider's own URL only.
    """

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return what the model wrote, with the call's usage, or raise SummaryFailed."""
        until = self._until(request)
        body = self._body(request)
        steps, endpoint = self._steps(body, until), self._asked_at(body, natively=request.native)
        from lowwater.summarizers.http import fulfil  # noqa: PLC0415  # the HTTP library is loaded only if a model is asked

        return self._written(fulfil(steps, endpoint, self._client), request)


class AsyncModelSummarizer(_ModelEndpoint["httpx2.AsyncClient"]):
    """The async `ModelSummarizer`; a `client` belongs to one event loop, without one any loop will do."""

    async def summarize(self, request: SummaryRequest, /) -> Written:
        """Return what the model wrote, with the call's usage, or raise SummaryFailed."""
        until = self._until(request)
        # Counting a long transcript takes a while and would block the event loop.
        body = await asyncio.to_thread(self._body, request)
        steps, endpoint = self._steps(body, until), self._asked_at(body, natively=request.native)
        from lowwater.summarizers.http import afulfil  # noqa: PLC0415  # as above

        return self._written(await afulfil(steps, endpoint, self._client), request)
