"""Makes the clock, the tokenizer, the store and the summarizers for a model and the settings; checks and repairs stores."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from platformdirs import user_data_path

from lowwater.adapters.models import load_registry
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.models.model import Model
from lowwater.core.models.registry import Registry
from lowwater.core.secrets.redaction import conceal as conceal_secrets
from lowwater.core.tokens.calibration import Calibration
from lowwater.core.tokens.counting import Framing, count_message, count_preamble, rules_for
from lowwater.core.turns.state import Setup
from lowwater.errors import BadInput, BadSetting, DamagedStore
from lowwater.protocols import AsyncSummarizer, Store, Summarizer, Tokenizer
from lowwater.session.plugins import EXPLICIT, names_of, store_at, summarizer_called
from lowwater.settings import Settings
from lowwater.stores import opening
from lowwater.stores.shared import Conceal, conceal_nothing
from lowwater.stores.sqlite.connections import SQLITE, sqlite_address
from lowwater.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from lowwater.stores.sqlite.salvage import SalvagedSession


VARIABLE = "LOWWATER_STORE"
"""The environment variable with the address of the default store."""

FORGETFUL = "memory:"
"""The address of a store that lasts as long as the process."""

_CHECK: ContextVar[Callable[[], None] | None] = ContextVar("lowwater_check", default=None)

Writer = Summarizer | AsyncSummarizer | str
"""A summarizer, the name of a model to ask at its provider's own URL, or the name of an installed summarizer."""


class SystemClock:
    """Reads the system's clock."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time()


class ManualClock:
    """A clock that moves only when told to: for sessions that are replayed at the times they were recorded."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        """Return the time it was last moved to."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        if not seconds >= 0:
            raise BadSetting(f"cannot advance a clock by {seconds} seconds: time only goes forward")
        self._now += seconds


@contextmanager
def checked_while_counting(check: Callable[[], None]) -> Iterator[None]:
    """Call `check` repeatedly while a session is worked on inside the block; an exception from it ends that work.

    The core has no I/O and cannot be interrupted otherwise, but long work in it always counts tokens.
    """
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


class CheckedTokenizer:
    """A tokenizer that runs the check of `checked_while_counting` before each text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    @property
    def vocabulary(self) -> str:
        """The name of the vocabulary it counts in."""
        return self._tokenizer.vocabulary

    def count(self, text: str, /) -> int:
        """Return the number of tokens in `text`."""
        if (check := _CHECK.get()) is not None:
            check()
        return self._tokenizer.count(text)


def vocabulary_for(model: str) -> str:
    """Return the name of the vocabulary `model` is counted in; Claude's is not public, so o200k is used."""
    return rules_for(model).vocabulary


def counter_for(model: str) -> Tokenizer:
    """Return the tokenizer for `model`: exact for its vocabulary, or the estimate without the tokenizer package."""
    return tokenizer_for(vocabulary_for(model))


def framing_for(model: str) -> Framing:
    """Return how many tokens the provider of `model` adds around messages and parts."""
    return rules_for(model).framing


def calibration_for(model: str) -> Calibration:
    """Return the calibration a session with `model` starts from."""
    return Calibration(prior=rules_for(model).scale)


def counted_in(setup: Setup, tokenizer: Tokenizer, model: str) -> Setup:
    """Return the setup with messages counted in another vocabulary, framed as `model` frames them."""
    framing = framing_for(model)
    return replace(
        setup,
        tokenizer=tokenizer,
        size=lambda message: count_message(message, tokenizer, framing=framing),
        size_preamble=lambda system, tools: count_preamble(system, tools, tokenizer),
    )


def opened_store(given: Store | str | None = None, *, redact: bool = True) -> Store:
    """Return the given store, or open the one at the given address or else at the default address.

    With `redact`, secrets are kept out of its search index.
    """
    if given is not None and not isinstance(given, str):
        return given
    address = given or default_address()
    return open_store(address) if redact else open_store(address, conceal=conceal_nothing)


def open_store(address: str, *, conceal: Conceal = conceal_secrets) -> Store:
    """Return the store at `memory:`, `sqlite:///PATH` or `postgresql://…`, or at an address of an installed package.

    A PATH that begins with a slash (`sqlite:////var/lib/lowwater.db`) is absolute; any other is relative to the current folder
    or, with `~/`, to the home directory. Every `memory:` is a new store. `conceal` removes secrets from a text before its words
    are indexed.
    """
    if opening.is_own(address):
        return opening.open_store(address, conceal=conceal)
    store = store_at(address, conceal=conceal)
    others = tuple(f"{name}:…" for name in names_of("store"))
    return store or opening.open_store(address, conceal=conceal, others=others)


def default_address() -> str:
    """Return the address in LOWWATER_STORE, or else that of the default file."""
    return os.environ.get(VARIABLE, "").strip() or f"{SQLITE}{default_path()}"


def file_at(address: str) -> Path | None:
    """Return the file of the SQLite store at this address; None if it is another kind of store."""
    file = sqlite_address(address)
    return None if file is None else file.path


def default_path() -> Path:
    """Return the default file, in the user's data directory."""
    return user_data_path("lowwater", appauthor=False) / "sessions.db"


class Verified(Struct, frozen=True, kw_only=True):
    """A stored session, and what is wrong with it; empty if nothing is."""

    name: str
    messages: int
    problem: str = ""


class Verification(Struct, frozen=True, kw_only=True):
    """What is wrong with a store as a whole, and with each session in it."""

    problems: tuple[str, ...]
    sessions: tuple[Verified, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems and not any(session.problem for session in self.sessions)


def verify(address: str) -> Verification:
    """Read everything in the store at an address, without changing it, and return what cannot be read."""
    from lowwater.stores.sqlite.salvage import examine  # noqa: PLC0415 - loaded when it is asked for

    path = file_at(address)
    if path is not None:
        found = examine(_existing(path))
        return Verification(
            problems=found.problems,
            sessions=tuple(
                Verified(name=each.name, messages=each.messages, problem=lost_words(each))
                for each in found.sessions
            ),
        )
    store = open_store(address)
    try:
        return Verification(
            problems=(),
            sessions=tuple(
                Verified(name=each.name, messages=each.messages, problem=_problem(store, each.name))
                for each in store.sessions()
            ),
        )
    finally:
        store.close()


def salvaged(address: str, to: Path, *, redact: bool = True) -> "list[SalvagedSession]":
    """Write what is intact in a damaged SQLite store into a new one at `to`; the damaged one is only read."""
    from lowwater.stores.sqlite.salvage import salvage  # noqa: PLC0415 - loaded when it is asked for

    path = _sqlite_only(address, "salvage", "restore a dump of the database, or see PostgreSQL's manual")
    _refuse_existing(to)
    # Nobody uses the new file before it is complete, so single commits need not wait for the disk.
    store = SqliteStore(to, conceal=conceal_secrets if redact else conceal_nothing, sync="normal")
    try:
        return salvage(path, store)
    finally:
        store.close()


def backed_up(address: str, to: Path) -> None:
    """Write a consistent copy of a SQLite store into a new file, while others go on writing."""
    store = SqliteStore(_sqlite_only(address, "backup", "use pg_dump"))
    try:
        _refuse_existing(to)
        store.backup(to)
    finally:
        store.close()


def lost_words(session: "SalvagedSession") -> str:
    """Return what is lost of a session, in words; empty if nothing is."""
    losses = (
        (session.lost_messages, "damaged message", "become tombstones"),
        (session.missing_messages, "message", "are gone from the end"),
        (session.lost_entries, "compaction or other entry", "are gone"),
        (session.lost_accounts, "turn record or event", "are gone"),
        (int(session.lost_state), "state", "is gone: rent and cache belief begin anew"),
    )
    return "; ".join(f"{number:,} × {what} ({fate})" for number, what, fate in losses if number)


def _problem(store: Store, name: str) -> str:
    try:
        store.read(name)
        store.accounts([name])
    except DamagedStore as error:
        return str(error)
    return ""


def _sqlite_only(address: str, what: str, instead: str) -> Path:
    path = file_at(address)
    if path is None:
        raise BadInput(f"`sessions {what}` is for SQLite files: {instead}")
    return _existing(path)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise BadInput(f"there is no file {path}: --store or LOWWATER_STORE name another place")
    return path


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise BadInput(f"there is a file {path} already: choose another name")


def summarizers_for(
    given: Writer | Sequence[Writer], settings: Settings
) -> tuple[Summarizer | AsyncSummarizer, ...]:
    """Return the given summarizers, or else the one for the model that the settings name."""
    named = settings.compression.summary_model
    writers = (given,) if isinstance(given, str) or not isinstance(given, Sequence) else tuple(given)
    return tuple(_writer(each) for each in writers or ((named,) if named else ()))


def installed_writer(name: str) -> Summarizer | AsyncSummarizer | None:
    """Return the summarizer that an installed package adds under a name that is not a model's; None if there is none.

    `plugin:NAME` always means one that is installed.
    """
    is_model = not name.startswith(EXPLICIT) and load_registry().match(name).how != "unknown"
    return None if is_model else summarizer_called(name)


def model_of(summarizer: Summarizer | AsyncSummarizer, registry: Registry) -> Model | None:
    """Return the model a summarizer asks, if it says which."""
    name = getattr(summarizer, "model", None)
    return registry.find(name) if isinstance(name, str) and name else None


def compacts(summarizer: Summarizer | AsyncSummarizer) -> bool:
    """Return whether a summarizer can ask its provider to compact by itself."""
    return getattr(summarizer, "compacts", False) is True


def _writer(given: Writer) -> Summarizer | AsyncSummarizer:
    if isinstance(given, str):
        from lowwater.summarizers.model import ModelSummarizer  # noqa: PLC0415 - for those who name a model

        context = load_registry().find(given).context_length
        return installed_writer(given) or ModelSummarizer(
            model=given, context_length=context, tokenizer=counter_for(given)
        )
    if not callable(getattr(given, "summarize", None)):
        raise BadSetting(f"a {type(given).__name__} is no summarizer: it needs a method `summarize`")
    return given
