"""The sessions that are open in this process: found for a client's list, created, and kept in memory up to a limit."""

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.ledger import Ledger
from lowwater.core.reconcile import branch_of, likeness, numbers_in_view, position_before
from lowwater.core.stored import About
from lowwater.gateway.credentials import summarizers_of
from lowwater.gateway.options import SHADOW_TENANT, GatewayOptions, short_tenant, source_of
from lowwater.gateway.session_lookup import LookupKey, SessionLookup, SessionMatch, chain_keys
from lowwater.protocols import Clock, Sink, Store
from lowwater.session.dependencies import SystemClock
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.repository import new_name
from lowwater.session.session import Session
from lowwater.settings import CacheTtl, Settings


class Terms(Struct, frozen=True, kw_only=True):
    """What a client's requests agree in: sessions with other terms belong to another library."""

    tenant: str
    model: str
    base_url: str
    client_pays: bool = False
    """Whether summaries may be written on the client's credential."""
    cache_ttl: CacheTtl | None = None
    """The cache lifetime that the client asks for with marks of its own; None if Lowwater places them."""


_MOST_LIBRARIES = 1_000
"""Libraries kept in memory, one per tenant and model: a client may name as many models as it likes."""
_MOST_BRANCHES = 8
"""Rewound branches of a session that are searched for the place where another one forked off."""


class OpenedSession(Struct, frozen=True, kw_only=True):
    """The session that a client's list belongs to."""

    session: Session
    is_new: bool
    """Whether it was created for this list, so that no fingerprint leads to it yet."""


class OpenSessions:
    """Opens sessions and keeps those used last in memory; any thread may use it."""

    def __init__(
        self,
        store: Store,
        options: GatewayOptions,
        *,
        sinks: tuple[Sink, ...] = (),
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._options = options
        self._sinks = sinks
        self._clock = clock or SystemClock()
        self._settings = with_hygiene(options.settings)
        self._lookup = SessionLookup(store, joins_by_summary=options.joins_by_summary)
        self._libraries: OrderedDict[Terms, Lowwater] = OrderedDict()
        self._open: OrderedDict[str, Session] = OrderedDict()
        self._opened_with: dict[str, Terms] = {}
        self._sizes: dict[str, int] = {}
        """How many messages each open session had when it was last used."""
        self._messages = 0
        self._lock = Lock()

    @property
    def open(self) -> int:
        """How many sessions are in memory."""
        return len(self._open)

    def session_for(self, lookup: LookupKey, terms: Terms) -> OpenedSession:
        """Return the session that a client's list belongs to, switched to the model it asks for; a new one if there is none.

        Nothing of a new one is stored until something happens to it.
        """
        match = self._find(lookup, terms)
        if match is None or match.kind != "same":
            return OpenedSession(session=self._create(match, lookup, terms), is_new=True)
        session = self._open_fresh(match.session, terms)
        route = internals(session).route
        if (route.model, route.base_url) != (terms.model, terms.base_url):
            session.use(terms.model, base_url=terms.base_url)
        return OpenedSession(session=session, is_new=False)

    def preview_session(self, lookup: LookupKey, terms: Terms) -> Session:
        """Return the session that `session_for` would return, only to look at: nothing is stored or switched."""
        match = self._find(lookup, terms)
        if match is None or match.kind != "same":
            # It is not kept in memory, where it would displace one that is in use.
            return self._create(match, lookup, terms, is_kept=False)
        return self._open_fresh(match.session, terms)

    def has_moved_past(self, session: Session, keys: Sequence[bytes]) -> bool:
        """Return whether a session has a list with these keys, and more messages after it."""
        numbers = branch_of(internals(session).ledger)
        return len(numbers) > len(keys) and _begins_with(internals(session).ledger, numbers, keys)

    def record_fingerprint(self, lookup: LookupKey, session: Session, *further: bytes) -> None:
        """Record that a session was seen with this list; `further` are other keys that lead to it."""
        self._lookup.record_fingerprint(lookup, session.name, *further)
        with self._lock:
            if session.name in self._open:
                self._update_size(session.name, session)

    def record_summary(self, lookup: LookupKey, lines: Sequence[bytes]) -> None:
        """Record a summary that a client asked for outside its conversation."""
        self._lookup.record_summary(lookup, lines)

    def _find(self, lookup: LookupKey, terms: Terms) -> SessionMatch | None:
        """Return the session that has the beginning of a list; a match of the kind `back` is resolved to `same` or `fork`.

        A client that goes back abandons what it rewinds. If it continues an abandoned list after all, two branches are running
        at the same time: in one session they would rewind each other turn by turn, so that each gets its own.
        """
        match = self._lookup.find(lookup)
        if match is None or match.kind != "back":
            return match
        ledger = internals(self._open_fresh(match.session, terms)).ledger
        is_current = _begins_with(ledger, branch_of(ledger), lookup.keys[: match.length])
        return replace(match, kind="same" if is_current else "fork")

    def _open_fresh(self, name: str, terms: Terms) -> Session:
        """Return a session with everything that other replicas have stored."""
        session = self._open_session(name, terms)
        session.refresh()
        return session

    def _create(
        self, match: SessionMatch | None, lookup: LookupKey, terms: Terms, *, is_kept: bool = True
    ) -> Session:
        """Return a new session; a fork begins with what its parent had at that point."""
        # Random enough that two replicas never choose the same name, which would make two clients share a session.
        name = f"{new_name(self._clock.now())}{secrets.token_hex(8)}"
        session = self._open_session(name, terms) if is_kept else self._load(name, terms)
        if match is None:
            internals(session).begin(About(source=self._source(lookup)))
            return session
        parent = self._open_fresh(match.session, terms)
        internals(session).begin(
            About(source=self._source(lookup), parent=match.session),
            parent=parent,
            upto=_entries_up_to(internals(parent).ledger, lookup.keys[: match.length]),
        )
        return session

    def _source(self, lookup: LookupKey) -> str:
        """Return the source of a client's sessions: the operator's name for the tenant or its hash, and the project."""
        options, tenant = self._options, lookup.tenant.removeprefix(SHADOW_TENANT)
        return source_of(options.tenant or short_tenant(tenant), options.project, shadow=options.shadow)

    def _open_session(self, name: str, terms: Terms) -> Session:
        with self._lock:
            session = self._open.get(name)
            # Summarizers belong to the library that opened it: with another model or consent it is opened again.
            if session is not None and self._opened_with.get(name, terms) == terms:
                self._open.move_to_end(name)
                self._update_size(name, session)
                return session
        session = self._load(name, terms)
        with self._lock:
            if self._opened_with.get(name) == terms:
                session = self._open[name]
            self._open[name], self._opened_with[name] = session, terms
            self._open.move_to_end(name)
            self._update_size(name, session)
        return session

    def _load(self, name: str, terms: Terms) -> Session:
        """Return a session as it was stored, without adding it to those in memory."""
        library = self._library(terms)
        session = library.session(name, as_left=True)
        library.release(name)
        return session

    def _update_size(self, name: str, session: Session) -> None:
        """Note a session's size, and drop the least recently used ones if there are too many sessions or messages."""
        size = len(internals(session).ledger.messages)
        self._messages += size - self._sizes.get(name, 0)
        self._sizes[name] = size
        options = self._options
        while len(self._open) > 1 and (
            len(self._open) > options.open_sessions or self._messages > options.open_messages
        ):
            oldest, _ = self._open.popitem(last=False)
            self._opened_with.pop(oldest, None)
            self._messages -= self._sizes.pop(oldest, 0)

    def _library(self, terms: Terms) -> Lowwater:
        """Return the library for a tenant's model: what it learns of the context length must not come from another tenant."""
        with self._lock:
            library = self._libraries.get(terms)
            if library is not None:
                self._libraries.move_to_end(terms)
            else:
                while len(self._libraries) >= _MOST_LIBRARIES:
                    self._libraries.popitem(last=False)
                library = self._libraries[terms] = Lowwater(
                    model=terms.model,
                    base_url=terms.base_url,
                    policy=self._options.policy,
                    settings=with_lifetime(self._settings, terms.cache_ttl),
                    summarizer=summarizers_of(
                        self._options,
                        terms.model,
                        base_url=terms.base_url,
                        client_pays=terms.client_pays,
                    ),
                    store=self._store,
                    sinks=self._sinks,
                    clock=self._clock,
                )
            return library


def with_lifetime(settings: Settings, cache_ttl: CacheTtl | None) -> Settings:
    """Return settings with the cache lifetime that a client's own marks ask for; the same ones if it sets none."""
    if cache_ttl is None:
        return settings
    return replace(settings, model=replace(settings.model, cache_ttl=cache_ttl))


def with_hygiene(settings: Settings) -> Settings:
    """Return settings with hygiene around the policy, and sessions that keep their name (docs/specification.md: A, H).

    Who writes summaries is up to the gateway's own options, so that `summary_model` is cleared.
    """
    compression = replace(settings.compression, hygiene=True, split=False, summary_model=None)
    return replace(settings, compression=compression)


def _begins_with(ledger: Ledger, numbers: Sequence[int], keys: Sequence[bytes]) -> bool:
    """Return whether the messages with these numbers begin with the list that has these keys."""
    numbers = numbers[: len(keys)]
    if not keys or len(numbers) < len(keys):
        return False
    # As one slice: messages that are still in the store are fetched in a single query.
    messages = ledger.messages[: numbers[-1]]
    return chain_keys([likeness(messages[number - 1].message) for number in numbers])[-1] == keys[-1]


def _entries_up_to(ledger: Ledger, keys: Sequence[bytes]) -> int:
    """Return how many entries a ledger had when it held exactly the list with these keys; 0 if it never did.

    The current branch and the newest rewound ones are searched.
    """
    rewinds = [saved for saved in ledger.saved if saved.kind == "rewound"][-_MOST_BRANCHES:]
    for view in (ledger.view, *(ledger.view_before(saved) for saved in reversed(rewinds))):
        numbers = numbers_in_view(view)
        if _begins_with(ledger, numbers, keys):
            return position_before(ledger, numbers[len(keys) - 1] + 1)
    return 0
