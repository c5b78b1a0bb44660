"""Summaries on somebody's credential: a client's own while its request is open, or the operator's."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from types import MappingProxyType

from msgspec import Struct

from lowwater.adapters.models import load_registry
from lowwater.core.messages import Format
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.errors import LowwaterError, SummaryFailed
from lowwater.gateway.options import Options
from lowwater.gateway.upstream import url_of
from lowwater.protocols import AsyncSummarizer, Summarizer
from lowwater.session.factories import counter_for, installed_writer
from lowwater.session.session import Session
from lowwater.summarizers.model import AsyncModelSummarizer

_LENT: "ContextVar[Credential | None]" = ContextVar("lent", default=None)

_GOES_ALONG = (
    "authorization",
    "x-api-key",
    "api-key",
    "anthropic-version",
    "anthropic-beta",
    "openai-organization",
    "openai-project",
    "chatgpt-account-id",
)
"""Headers by which a provider knows whose request it is, and what it may be asked."""
_PATHS: MappingProxyType[Format, str] = MappingProxyType(
    {
        "anthropic": "/v1/messages",
        "openai_chat": "/v1/chat/completions",
        "openai_responses": "/v1/responses",
    }
)


class Credential(Struct, frozen=True, kw_only=True):
    """What a client's own requests are sent with."""

    format: Format
    url: str
    """Where requests of this format go."""
    headers: dict[str, str]

    def __repr__(self) -> str:
        return f"Credential(format={self.format!r})"


def credential_in(headers: Mapping[str, str], *, format: Format, base_url: str) -> Credential:
    """Return what a request was sent with."""
    kept = {name: headers[name] for name in _GOES_ALONG if headers.get(name)}
    # A provider's URL is read as it is for the client's own requests: with the version in it, without, or with another.
    url = url_of(base_url, _PATHS[format], named_by_base=format != "anthropic")
    return Credential(format=format, url=url, headers=kept)


class BorrowedCredentials:
    """Has a client's own model write summaries, with the credential that is lent at that moment and with no other."""

    def __init__(self, model: str) -> None:
        self.model = model

    async def summarize(self, request: SummaryRequest, /) -> Written:
        """Return what the model wrote, or raise SummaryFailed if nobody lends a credential."""
        lent = _LENT.get()
        if lent is None:
            raise SummaryFailed("no request of the client is open", "auth")
        summarizer = AsyncModelSummarizer(
            model=self.model,
            base_url=lent.url,
            api_key="",
            format=lent.format,
            context_length=load_registry().find(self.model).context_length,
            tokenizer=counter_for(self.model),
            headers=lent.headers,
        )
        return await summarizer.summarize(request)


def summarizers_of(options: Options, model: str) -> tuple[Summarizer | AsyncSummarizer, ...]:
    """Return who may write summaries for sessions on a model; nobody unless the operator said so."""
    writers: list[Summarizer | AsyncSummarizer] = [BorrowedCredentials(model)] if options.summaries else []
    if options.summary_model:
        name = options.summary_model
        context = load_registry().find(name).context_length
        writers.append(
            installed_writer(name)
            or AsyncModelSummarizer(model=name, context_length=context, tokenizer=counter_for(name))
        )
    return tuple(writers)


class IdlePrefetch:
    """Has summaries prepared beside the answers; what a client lends ends with its request."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, session: Session, credential: Credential) -> "asyncio.Task[None] | None":
        """Begin to have a summary prepared for a session, if anybody may write one."""
        if not self._options.summaries and not self._options.summary_model:
            return None
        task = asyncio.create_task(self._park(session, credential))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def waited(self, task: "asyncio.Task[None] | None") -> None:
        """Wait for a summary on a client's credential, for so long as the operator lets the end of an answer wait.

        One that is given up was asked for in vain, and is paid all the same.
        """
        if task is not None and self._options.summaries:
            await asyncio.wait({task}, timeout=self._options.summary_seconds)

    def end(self, task: "asyncio.Task[None] | None") -> None:
        """Take note that the client's request is answered: nothing more is asked on its credential."""
        if task is not None and self._options.summaries:
            task.cancel()

    async def close(self) -> None:
        """Give up what is being prepared."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _park(self, session: Session, credential: Credential) -> None:
        if self._options.summaries:
            _LENT.set(credential)
        with suppress(LowwaterError):
            await session.aprefetch_summary()
