"""What the databases have in common: columns for people, words for the index, rows back to entries."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import cast
from unicodedata import normalize

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import Compacted, Entry, ModelChanged, Opened, ViewItem
from lowwater.core.events import Compaction, Event, Skip, TurnRecord
from lowwater.core.ledger import Numbered
from lowwater.core.messages import Message, texts_of
from lowwater.core.stored import Append, Landmark, LandmarkKind
from lowwater.errors import DamagedStore, UnknownForm
from lowwater.stores.packing import (
    Base,
    Broken,
    CompactedSince,
    Content,
    digest,
    joined_items,
    keys_in,
    unpack,
    unpack_event,
    unpack_message,
    unpack_record,
    unpack_stored,
    unseal,
)

_log = logging.getLogger("lowwater")


class UnwritableAccounts(Exception):
    """The tables of records and events cannot be written; never leaves the store."""


class AccountFallback:
    """Writes appends, without their record and events where these alone make it fail; the log says so once."""

    def __init__(self, place: object) -> None:
        self._place = place
        self._told = False

    def written(self, new: Append, write: Callable[[Append], int]) -> int:
        """Return the version that `write` gave to what is new, or to as much of it as can be written."""
        try:
            return write(new)
        except UnwritableAccounts as error:
            said = str(error)
        if not self._told:
            self._told = True
            _log.warning(
                "the store %s cannot record what its sessions do and cost (%s): everything else is kept; restore a copy with all "
                "of its tables, or choose another place",
                self._place,
                said,
            )
        return write(replace(new, record=None, events=()))


Value = int | float | str | None

TURN_COLUMNS = (
    *("at", "model", "uncached", "cache_read", "cache_write", "cache_write_long", "output"),
    *("cost", "untouched", "removed", "decision"),
)
EVENT_COLUMNS = (
    *("at", "kind", "reason", "model", "mode", "mechanisms", "number", "tokens_before", "tokens_after"),
    *("reclaimed", "ratio", "items_before", "items_after", "first_changed", "disturbed", "summary_tokens"),
    *("summarizer", "score", "seconds", "cost", "price", "saves", "payback", "rejected"),
)


def turn_values(record: TurnRecord) -> tuple[Value, ...]:
    """Return a record's columns; the usage is all NULL where the provider reported none."""
    used = record.usage
    usage: tuple[Value, ...] = (
        (None,) * 5
        if used is None
        else (used.uncached, used.cache_read, used.cache_write, used.cache_write_long, used.output)
    )
    rest = (record.cost, record.untouched, record.removed, record.decision)
    return (record.at, record.model, *usage, *rest)


def event_values(event: Event) -> tuple[Value, ...]:
    """Return an event's columns; of a skip, the prompt that was left as it is stands before and after."""
    match event:
        case Compaction():
            return (
                *(event.at, "compaction", event.because.code, event.model, event.mode),
                *(",".join(event.mechanisms), event.number, event.before, event.after),
                *(event.reclaimed, event.ratio, event.items_before, event.items_after),
                *(event.first_changed, event.disturbed, event.summary_tokens, event.summarizer),
                *(event.score, event.seconds, event.cost, event.price, event.saves, event.payback),
                len(event.rejected),
            )
        case Skip():
            told: dict[str, Value] = {
                "at": event.at,
                "kind": "skip",
                "reason": event.because.code,
                "tokens_before": event.prompt,
                "tokens_after": event.prompt,
                "reclaimed": 0,
                "rejected": len(event.rejected),
            }
            return tuple(told.get(column) for column in EVENT_COLUMNS)


class Growth(Struct, frozen=True, kw_only=True):
    """Figures to add up; times and model are None where the append says nothing of them."""

    entries: int
    messages: int
    tokens: int
    turns: int
    compactions: int
    model: str | None
    first: float | None
    """The earliest time of anything in it."""
    last: float | None


def growth_of(new: Append, contents: Sequence[Content]) -> Growth:
    """Return what an append adds, of which `contents` are all messages."""
    records = () if new.record is None else (new.record,)
    times = [happened.at for happened in (*new.entries, *new.events, *records)]
    models = [entry.model for entry in new.entries if isinstance(entry, Opened | ModelChanged)]
    return Growth(
        entries=len(new.entries),
        messages=len(contents),
        tokens=sum(content.tokens for content in contents),
        turns=len(records),
        compactions=sum(isinstance(entry, Compacted) for entry in new.entries),
        model=models[-1] if models else None,
        first=min(times, default=None),
        last=max(times, default=None),
    )


Conceal = Callable[[str], str]
"""Takes secrets out of a text before its words are indexed."""

MOST_WORDS = 200
"""How many different words of a search are looked for; whoever pastes a whole log means its beginning too."""

_UNSPACED = re.compile(
    r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f])"
)
_BETWEEN_WORDS = re.compile(r"[\s\u3000-\u303f\uff01-\uff0f\uff1a-\uff20]+")
_TERM = re.compile(r"[^\W_]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")


def conceal_nothing(text: str) -> str:
    """Return the text: nothing is concealed."""
    return text


def spaced(text: str) -> str:
    """Return the text with each Chinese, Japanese and Korean character a word, for these are written without spaces.

    A query has to be spaced likewise: the characters of a word, next to each other, find it.
    """
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", normalize("NFC", text))


def words_of(message: Message, conceal: Conceal = conceal_nothing) -> str:
    """Return all text of a message that may be found, ready for the index."""
    return spaced(conceal("\n".join(texts_of(message))))


def phrases_in(words: str) -> list[str]:
    """Return the different words of a search, each as the terms that have to follow each other, with a space between.

    Terms are letters and digits only: what stands between them has no meaning to an index, nor can it have one to a query.
    """
    phrases = (" ".join(_TERM.findall(spaced(word))) for word in _BETWEEN_WORDS.split(words))
    return list(dict.fromkeys(phrase for phrase in phrases if phrase))[:MOST_WORDS]


def folded_terms(text: str) -> list[str]:
    """Return the terms of a spaced text with case and accents taken away, as SQLite's index compares them."""
    plain = text if text.isascii() else normalize("NFC", _ACCENTS.sub("", normalize("NFD", text)))
    return _TERM.findall(plain.lower())


MESSAGES_PER_QUERY = 500
"""Messages asked for in one query; SQLite takes at least 999 values."""


class EntryRow(Struct, frozen=True, kw_only=True):
    """An entry as it is stored."""

    version: int
    position: int
    sealed: object


class DamagedVersion(Exception):
    """What a version brought cannot be read; never leaves the store."""

    def __init__(self, version: int, what: str, *, intact: bool = False) -> None:
        """Note the version; `intact` says that the bytes are what was written, so that only their form is unknown."""
        super().__init__(what)
        self.version = version
        self.intact = intact

    def reported(self, session: str, whole: int) -> DamagedStore:
        """Return what the caller is told; `whole` is the version before the damage, 0 if there is none."""
        if self.intact:
            upto = f", or read it here up to version {whole}" if whole else ""
            return UnknownForm(
                f"session {session!r} has {self}, which this Lowwater does not know: "
                f"use the Lowwater that stored it, or a newer one{upto}",
                session,
                whole,
            )
        way_out = f"read it up to version {whole}, or delete it" if whole else "delete it"
        salvage = "`lowwater sessions salvage NEW.db` writes everything else into a new store"
        return DamagedStore(f"session {session!r} is damaged at {self}: {way_out}; {salvage}", session, whole)


Fetch = Callable[[Sequence[bytes]], Iterable[tuple[bytes, object]]]
"""Finds content by its keys: yields key and bytes of what there is, in any order."""


FetchEntry = Callable[[int], object]
"""Finds the stored bytes of one entry of the same session by its position; None if there is none."""


def load_base(position: int, fetch: FetchEntry, known: dict[int, tuple[ViewItem, ...]] | None = None) -> Base:
    """Return a stored compaction, reading those that it is told by, or raise Broken or msgspec.MsgspecError."""
    known = {} if known is None else known
    waiting: list[tuple[int, CompactedSince]] = []
    at, depth = position, 0
    while at not in known:
        kept = unpack_stored(unseal(fetch(at)))
        if isinstance(kept, Compacted):
            known[at] = kept.stands
        elif isinstance(kept, CompactedSince) and kept.base < at:
            waiting.append((at, kept))
            depth = depth or kept.depth
            at = kept.base
        else:
            raise Broken("a compaction before it is gone")
    for at, since in reversed(waiting):
        known[at] = joined_items(known[since.base], since.pieces)
    return Base(position=position, stands=known[position], depth=depth)


def restore_entries(rows: Iterable[EntryRow], fetch: Fetch, fetch_entry: FetchEntry) -> Iterator[Entry]:
    """Yield the entries of these rows or raise DamagedVersion; messages are fetched for many at once, so that no row costs a query."""
    waiting = iter(rows)
    stands: dict[int, tuple[ViewItem, ...]] = {}
    while batch := list(islice(waiting, MESSAGES_PER_QUERY)):
        messages, unknown = _messages(_keys(batch), fetch)
        for row in batch:
            try:
                entry = _entry(row, messages, stands, fetch_entry)
            except (Broken, msgspec.MsgspecError) as error:
                intact = isinstance(error, msgspec.MsgspecError)
                raise DamagedVersion(row.version, f"entry {row.position} ({error})", intact=intact) from error
            except KeyError as error:
                why = unknown.get(error.args[0])
                said = f"entry {row.position} ({why or 'a message of it is gone or changed'})"
                raise DamagedVersion(row.version, said, intact=why is not None) from error
            yield entry


def _entry(
    row: EntryRow,
    messages: dict[bytes, Message],
    stands: dict[int, tuple[ViewItem, ...]],
    fetch_entry: FetchEntry,
) -> Entry:
    body = unseal(row.sealed)
    kept = unpack_stored(body)
    if isinstance(kept, CompactedSince):
        load_base(kept.base, fetch_entry, stands)
    entry = unpack(body, messages, stands)
    if isinstance(entry, Compacted):
        stands[row.position] = entry.stands
    return entry


class MessageRow(Struct, frozen=True, kw_only=True):
    """A message as a session holds it: its number and size, and the content it was stored as."""

    number: int
    tokens: int
    key: object
    body: object


def restore_messages(
    numbers: range, found: Iterable[MessageRow], version_of: Callable[[int], int]
) -> Iterator[Numbered]:
    """Yield the messages with these numbers, found in their order, or raise DamagedVersion at the first that is gone or changed.

    `version_of` tells with which version a message came.
    """
    waiting = iter(found)
    for number in numbers:
        held = next(waiting, None)
        if held is None or held.number != number or not _is_intact(held):
            raise DamagedVersion(version_of(number), f"message {number} (it is gone or changed)")
        try:
            message = unpack_message(cast("bytes", held.body))
        except msgspec.MsgspecError as error:
            raise DamagedVersion(version_of(number), f"message {number} ({error})", intact=True) from error
        yield Numbered(message=message, tokens=held.tokens)


def _is_intact(held: MessageRow) -> bool:
    return isinstance(held.body, bytes) and digest(held.body) == held.key


def restore_event(version: int, sealed: object) -> Event:
    """Return an event that was stored with this version, or raise DamagedVersion."""
    try:
        return unpack_event(unseal(sealed))
    except (Broken, msgspec.MsgspecError) as error:
        intact = isinstance(error, msgspec.MsgspecError)
        raise DamagedVersion(version, f"an event ({error})", intact=intact) from error


def restore_carried(session: str, sealed: object) -> bytes:
    """Return what a session carries besides its entries, nothing if nothing was stored.

    If that is damaged it is logged and left aside: a session goes on without it, for its ledger is whole.
    """
    if sealed is None:
        return b""
    try:
        return unseal(sealed)
    except Broken:
        _log.warning("session %r: what it carries besides its entries is damaged, and left aside", session)
        return b""


def landmark(position: int, kind: str, at: float, messages: int, tokens: int) -> Landmark:
    """Return a landmark from what is stored of it."""
    return Landmark(
        position=position, kind=cast("LandmarkKind", kind), at=at, messages=messages, tokens=tokens
    )


def restore_record(version: int, sealed: object) -> TurnRecord:
    """Return the record that was stored with this version, or raise DamagedVersion."""
    try:
        return unpack_record(unseal(sealed))
    except (Broken, msgspec.MsgspecError) as error:
        intact = isinstance(error, msgspec.MsgspecError)
        raise DamagedVersion(version, f"a turn record ({error})", intact=intact) from error


def _keys(rows: Iterable[EntryRow]) -> list[bytes]:
    """Return the keys that these rows name; a damaged row names none, and is found out when it is unpacked."""
    keys: dict[bytes, None] = {}
    for row in rows:
        try:
            keys.update(dict.fromkeys(keys_in(unseal(row.sealed))))
        except (Broken, msgspec.MsgspecError):
            continue
    return list(keys)


def _messages(
    keys: Sequence[bytes], fetch: Fetch
) -> tuple[dict[bytes, Message], dict[bytes, msgspec.MsgspecError]]:
    """Return the messages with these keys, and why some are unknown; one whose bytes do not match its key is in neither."""
    messages: dict[bytes, Message] = {}
    unknown: dict[bytes, msgspec.MsgspecError] = {}
    for start in range(0, len(keys), MESSAGES_PER_QUERY):
        for key, body in fetch(keys[start : start + MESSAGES_PER_QUERY]):
            if not isinstance(body, bytes) or digest(body) != key:
                continue
            try:
                messages[key] = unpack_message(body)
            except msgspec.MsgspecError as error:
                unknown[key] = error
    return messages, unknown
