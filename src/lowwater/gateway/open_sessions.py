"""Sessions that are open in this process, each with the library of its model; all of them in one store."""

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.ledger import Ledger
from lowwater.core.reconcile import branch_of, likeness, numbers_in, position_before
from lowwater.core.stored import About
from lowwater.gateway.credentials import summarizers_of
from lowwater.gateway.options import Options, source_of
from lowwater.gateway.session_lookup import LookupKey, Match, SessionLookup, chain_of
from lowwater.protocols import Clock, Sink, Store
from lowwater.session.factories import SystemClock
from lowwater.session.library import Lowwater
from lowwater.session.repository import new_name
from lowwater.session.session import Session
from lowwater.settings import Settings

_Key = tuple[str, str, str]
"""Tenant, model and URL."""
_MODELS = 1_000
"""Models of tenants kept ready: a client may name as many as it likes."""
_BRANCHES = 8
"""Branches of a session in which it is looked for where another left it."""


class Belongs(Struct, frozen=True, kw_only=True):
    """The session that a client's list belongs to."""

    session: Session
    is_begun: bool
    """Whether it is a new one, and nothing leads to it yet."""


class OpenSessions:
    """Opens sessions and keeps those used last ready; any thread may use it."""

    def __init__(
        self, store: Store, options: Options, *, sinks: tuple[Sink, ...] = (), clock: Clock | None = None
    ) -> None:
        self._store = store
        self._options = options
        self._sinks = sinks
        self._clock = clock or SystemClock()
        self._settings = with_hygiene(options.settings)
        self._finding = SessionLookup(store, joins_by_summary=options.joins_by_summary)
        self._libraries: OrderedDict[_Key, Lowwater] = OrderedDict()
        self._open: OrderedDict[str, Session] = OrderedDict()
        self._sizes: dict[str, int] = {}
        """How many messages each open session had when it was last asked for."""
        self._messages = 0
        self._lock = Lock()

    @property
    def open(self) -> int:
        """How many sessions are kept ready."""
        return len(self._open)

    def session_for(self, sought: LookupKey, *, model: str, base_url: str) -> Belongs:
        """Return the session that a client's list belongs to, on the model it asks; a new one if it belongs to none.

        Nothing of a new one is kept before something happens to it.
        """
        key = (sought.tenant, model, base_url)
        match = self._found(sought, key)
        if match is None or match.kind != "same":
            return Belongs(session=self._begun(match, sought, key), is_begun=True)
        session = self._refreshed(match.session, key)
        if session.route.model != model or session.route.base_url != base_url:
            session.use(model, base_url=base_url)
        return Belongs(session=session, is_begun=False)

    def like(self, sought: LookupKey, *, model: str, base_url: str) -> Session:
        """Return a session in which a list can be looked at as `session_for` would have it, only to look: nothing is kept."""
        key = (sought.tenant, model, base_url)
        match = self._found(sought, key)
        if match is None or match.kind != "same":
            # It is not kept ready: it would take the place of one that goes on.
            return self._begun(match, sought, key, is_kept=False)
        return self._refreshed(match.session, key)

    def has_gone_on(self, session: Session, keys: Sequence[bytes]) -> bool:
        """Return whether a session has a list with these keys, and more behind it."""
        numbers = branch_of(session.ledger)
        return len(numbers) > len(keys) and _holds(session.ledger, numbers, keys)

    def record_fingerprint(self, sought: LookupKey, session: Session, *further: bytes) -> None:
        """Note that a session was seen with this list, and with it and its answer."""
        self._finding.record_fingerprint(sought, session.name, *further)
        with self._lock:
            if session.name in self._open:
                self._weigh(session.name, session)

    def leave_summary(self, sought: LookupKey, lines: Sequence[bytes]) -> None:
        """Note a summary that a client asked for apart from its conversation."""
        self._finding.leave_summary(sought, lines)

    def _found(self, sought: LookupKey, key: _Key) -> Match | None:
        """Return the session that has the beginning of a list, and whether it is the same: of several branches it is one's own.

        A client that goes back leaves what it takes back. If a list that was taken back goes on after all, two branches
        run at the same time, and would undo each other turn by turn in one session.
        """
        match = self._finding.find(sought)
        if match is None or match.kind != "back":
            return match
        ledger = self._refreshed(match.session, key).ledger
        holds = _holds(ledger, branch_of(ledger), sought.keys[: match.length])
        return replace(match, kind="same" if holds else "fork")

    def _refreshed(self, name: str, key: _Key) -> Session:
        """Return a session as all replicas left it."""
        session = self._opened(name, key)
        session.refresh()
        return session

    def _begun(self, match: Match | None, sought: LookupKey, key: _Key, *, is_kept: bool = True) -> Session:
        """Return a new session; one that left another has what the other had until then, and nothing that came later."""
        # Long enough that two replicas never draw the same: a name decides whose session it is.
        name = f"{new_name(self._clock.now())}{secrets.token_hex(8)}"
        session = self._opened(name, key) if is_kept else self._read(name, key)
        if match is None:
            session.begin(About(source=self._source(sought)))
            return session
        parent = self._refreshed(match.session, key)
        session.begin(
            About(source=self._source(sought), parent=match.session),
            parent=parent,
            upto=_left_at(parent.ledger, sought.keys[: match.length]),
        )
        return session

    def _source(self, sought: LookupKey) -> str:
        """Return the source of a client's sessions: its tenant, by the operator's name if there is one, and the project."""
        return source_of(self._options.tenant or sought.tenant[:8], self._options.project)

    def _opened(self, name: str, key: _Key) -> Session:
        with self._lock:
            session = self._open.get(name)
            if session is not None:
                self._open.move_to_end(name)
                self._weigh(name, session)
                return session
        session = self._read(name, key)
        with self._lock:
            session = self._open.setdefault(name, session)
            self._open.move_to_end(name)
            self._weigh(name, session)
        return session

    def _read(self, name: str, key: _Key) -> Session:
        """Return a session as it was left, of which nobody else knows yet."""
        library = self._library(key)
        session = library.session(name, as_left=True)
        library.release(name)
        return session

    def _weigh(self, name: str, session: Session) -> None:
        """Note a session's size, and let go of those asked for least lately where all of them are too many or too large."""
        size = len(session.ledger.messages)
        self._messages += size - self._sizes.get(name, 0)
        self._sizes[name] = size
        options = self._options
        while len(self._open) > 1 and (
            len(self._open) > options.open_sessions or self._messages > options.open_messages
        ):
            oldest, _ = self._open.popitem(last=False)
            self._messages -= self._sizes.pop(oldest, 0)

    def _library(self, key: _Key) -> Lowwater:
        """Return the library of a tenant's model: what one tenant's refusals teach of a window is no other's business."""
        _, model, base_url = key
        with self._lock:
            library = self._libraries.get(key)
            if library is not None:
                self._libraries.move_to_end(key)
            else:
                while len(self._libraries) >= _MODELS:
                    self._libraries.popitem(last=False)
                library = self._libraries[key] = Lowwater(
                    model=model,
                    base_url=base_url,
                    policy=self._options.policy,
                    settings=self._settings,
                    summarizer=summarizers_of(self._options, model),
                    store=self._store,
                    sinks=self._sinks,
                    clock=self._clock,
                )
            return library


def with_hygiene(settings: Settings) -> Settings:
    """Return settings with hygiene around the policy, and a session's name that never changes (docs/specification.md: A, H).

    Who writes summaries is said to the gateway, and not by the settings.
    """
    compression = replace(settings.compression, hygiene=True, split=False, summary_model=None)
    return replace(settings, compression=compression)


def _holds(ledger: Ledger, numbers: Sequence[int], keys: Sequence[bytes]) -> bool:
    """Return whether the messages with these numbers begin with a list that has these keys."""
    numbers = numbers[: len(keys)]
    if not keys or len(numbers) < len(keys):
        return False
    # At once: where they lie elsewhere, each look is a journey.
    came = ledger.messages[: numbers[-1]]
    return chain_of([likeness(came[number - 1].message) for number in numbers])[-1] == keys[-1]


def _left_at(ledger: Ledger, keys: Sequence[bytes]) -> int:
    """Return how many entries a ledger had when it held no more than a list with these keys; 0 if it is not found there.

    It is looked for in the branch that is in effect, and in the newest of those that were taken back.
    """
    rewinds = [saved for saved in ledger.saved if saved.kind == "rewound"][-_BRANCHES:]
    for view in (ledger.view, *(ledger.view_before(saved) for saved in reversed(rewinds))):
        numbers = numbers_in(view)
        if _holds(ledger, numbers, keys):
            return position_before(ledger, numbers[len(keys) - 1] + 1)
    return 0
