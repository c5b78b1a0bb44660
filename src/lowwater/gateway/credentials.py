"""Who writes summaries and on whose credential: the client's own while its request is open, or the operator's."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from types import MappingProxyType

from msgspec import Struct

from lowwater.adapters.models import load_registry
from lowwater.core.messages import Format
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.errors import LowwaterError, SummaryFailed
from lowwater.gateway.options import ANTHROPIC, OPENAI, GatewayOptions
from lowwater.gateway.shadow import LAST_PROMPT, ShadowSummarizer
from lowwater.gateway.tenants import CONSENT, UNTOUCHED, credentials_of
from lowwater.gateway.upstream import url_of
from lowwater.protocols import AsyncSummarizer, Summarizer
from lowwater.session.factories import counter_for, installed_writer, is_login
from lowwater.session.internals import internals
from lowwater.session.session import Session
from lowwater.summarizers.model import AsyncModelSummarizer

_AGREED = frozenset({"on", "yes", "true", "1"})
_OAUTH_BETA = "oauth-"
_CREDENTIAL: "ContextVar[Credential | None]" = ContextVar("credential", default=None)
"""The credential of the client whose request is open."""

_CREDENTIAL_HEADERS = (
    "authorization",
    "x-api-key",
    "api-key",
    "anthropic-version",
    "anthropic-beta",
    "openai-organization",
    "openai-project",
    "chatgpt-account-id",
)
"""Headers that identify the client to its provider, or say which features a request may use."""
_PATHS: MappingProxyType[Format, str] = MappingProxyType(
    {
        "anthropic": "/v1/messages",
        "openai_chat": "/v1/chat/completions",
        "openai_responses": "/v1/responses",
    }
)


def is_agreed(said: str) -> bool:
    """Return whether this value of a consent header means yes."""
    return said.strip().lower() in _AGREED


def is_to_be_untouched(headers: Mapping[str, str]) -> bool:
    """Return whether a client wants this one request sent as it is."""
    return is_agreed(headers.get(UNTOUCHED, ""))


def may_pay_for_summaries(headers: Mapping[str, str], options: GatewayOptions) -> bool:
    """Return whether summaries may be written on the credential of a request: it is an API key, and its owner has agreed.

    The operator agrees for all clients (`api-keys`), or each client for itself by a header (`asked`).
    """
    agreed = options.summaries == "api-keys" or (
        options.summaries == "asked" and is_agreed(headers.get(CONSENT, ""))
    )
    return agreed and is_api_key(headers)


def is_api_key(headers: Mapping[str, str]) -> bool:
    """Return whether a request is billed by the token: not by a subscription's login, and not by nobody.

    Logins send OAuth tokens, which Anthropic marks by a prefix and a beta, or signed JSON Web Tokens.
    """
    credentials = credentials_of(headers)
    if not credentials or "chatgpt-account-id" in headers or _OAUTH_BETA in headers.get("anthropic-beta", ""):
        return False
    # Of several, the gateway cannot know which one the provider bills.
    return not any(map(is_login, credentials))


class Credential(Struct, frozen=True, kw_only=True):
    """The URL and headers that a client's own requests are sent with."""

    format: Format
    base_url: str
    url: str
    """Where requests of this format go."""
    headers: dict[str, str]

    def __repr__(self) -> str:
        return f"Credential(format={self.format!r})"


def credential_in(headers: Mapping[str, str], *, format: Format, base_url: str) -> Credential:
    """Return the credential of a request."""
    kept = {name: headers[name] for name in _CREDENTIAL_HEADERS if headers.get(name)}
    # The same rule as for the client's own requests: the base URL may have a version in it, or none.
    url = url_of(base_url, _PATHS[format], named_by_base=format != "anthropic")
    return Credential(format=format, base_url=base_url, url=url, headers=kept)


@contextmanager
def lent(credential: Credential | None) -> Iterator[None]:
    """Let summaries be written on a client's credential inside the block."""
    token = _CREDENTIAL.set(credential)
    try:
        yield
    finally:
        _CREDENTIAL.reset(token)


class BorrowedCredentials:
    """A summarizer that asks a model of the client's provider, with the credential of the request that is open at that moment."""

    def __init__(self, model: str) -> None:
        self.model = model

    def reaches(self, _base_url: str) -> bool:
        """Return True: it asks the provider to which the open request goes."""
        return True

    async def summarize(self, request: SummaryRequest, /) -> Written:
        """Return what the model wrote; raise SummaryFailed if no request is open, too."""
        credential = _CREDENTIAL.get()
        if credential is None:
            raise SummaryFailed("no request of the client is open", "auth")
        summarizer = AsyncModelSummarizer(
            model=self.model,
            base_url=credential.url,
            api_key="",
            format=credential.format,
            context_length=load_registry().find(self.model).context_length,
            tokenizer=counter_for(self.model),
            headers=credential.headers,
        )
        return await summarizer.summarize(request)


def summarizers_of(
    options: GatewayOptions, model: str, *, base_url: str, client_pays: bool
) -> tuple[Summarizer | AsyncSummarizer, ...]:
    """Return the summarizers for sessions on a model: on the client's credential if that may pay, and the operator's own.

    At the provider's own URL its cheaper model competes with the session's own, which can read its cached prefix.
    """
    writers: list[Summarizer | AsyncSummarizer] = []
    borrowed = partial(ShadowSummarizer, is_own=False) if options.shadow else BorrowedCredentials
    if client_pays:
        own = ShadowSummarizer(model, is_own=True) if options.shadow else BorrowedCredentials(model)
        writers.append(own)
        registry = load_registry()
        cheaper = registry.cheaper(registry.find(model)) if base_url in (ANTHROPIC, OPENAI) else None
        writers += [borrowed(cheaper.name)] if cheaper else []
    if options.summary_model and options.shadow:
        writers.append(borrowed(options.summary_model))
    elif options.summary_model:
        name = options.summary_model
        context = load_registry().find(name).context_length
        writers.append(
            installed_writer(name)
            or AsyncModelSummarizer(model=name, context_length=context, tokenizer=counter_for(name))
        )
    return tuple(writers)


class IdlePrefetch:
    """Prepares summaries while answers are passed on; a client's credential is used only as long as its request is open."""

    def __init__(self, options: GatewayOptions) -> None:
        self._options = options
        self._tasks: set[asyncio.Task[None]] = set()
        self._on_client_key: set[asyncio.Task[None]] = set()

    def begin(self, session: Session, credential: Credential | None) -> "asyncio.Task[None] | None":
        """Start to prepare a summary for a session, if there is a summarizer; `credential` is the client's, if that may pay."""
        if credential is None and not self._options.summary_model:
            return None
        task = asyncio.create_task(self._prefetch_summary(session, credential))
        for group in (self._tasks, self._on_client_key) if credential else (self._tasks,):
            group.add(task)
            task.add_done_callback(group.discard)
        return task

    async def wait(self, task: "asyncio.Task[None] | None") -> None:
        """Wait for a summary on a client's credential, at most `summary_seconds`.

        It is worth waiting: a summary that is cancelled has to be paid for all the same.
        """
        if task is not None and task in self._on_client_key:
            await asyncio.wait({task}, timeout=self._options.summary_seconds)

    def end(self, task: "asyncio.Task[None] | None") -> None:
        """Cancel a summary on the client's credential, now that its request is answered."""
        if task is not None and task in self._on_client_key:
            task.cancel()

    async def close(self) -> None:
        """Cancel everything that is being prepared."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _prefetch_summary(self, session: Session, credential: Credential | None) -> None:
        _CREDENTIAL.set(credential)
        LAST_PROMPT.set(internals(session).last_prompt)
        with suppress(LowwaterError):
            await session.aprefetch_summary()
