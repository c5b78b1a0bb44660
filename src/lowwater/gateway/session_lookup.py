"""Which session a client's list belongs to: found by its content, within a tenant."""

import re
from collections import Counter, OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from threading import Lock
from typing import Literal
from weakref import ref

from msgspec import Struct
from msgspec.structs import force_setattr

from lowwater.core.formats.codec import decode_messages, messages_in
from lowwater.core.messages import Format, Message
from lowwater.core.reconcile import likeness
from lowwater.core.stored import Fingerprint, FingerprintMatch
from lowwater.protocols import Fingerprints

_LAST = 48
"""So many of a list's newest keys are asked for first; a list that was seen before is nearly always found by them."""
_TELLING = 3
"""So many messages in common make another conversation with the same beginning unlikely."""

_LINES = 3
"""So many long lines of a summary make it that summary."""

_BILLING = re.compile(rb'"x-anthropic-billing-header:[^"]*"')
"""A line at the head of Claude Code's system prompt that changes within one conversation."""

GROUP = "prompt_cache_key="
"""How a hint begins that names what many conversations may share: it keeps apart, but joins none."""

Kind = Literal["fork", "back", "same"]
_NEARNESS: tuple[Kind, ...] = ("fork", "back", "same")
"""Of matches of one length the one that comes last here is the conversation itself."""


class Match(Struct, frozen=True, kw_only=True):
    """A session that has the beginning of a client's list."""

    session: str
    kind: Kind
    """`same`: the list goes on where the session is; `back`: its client says that it is the same session, which has gone on
    since; `fork`: another conversation left it there."""
    length: int
    """How many of the list's messages it has."""


class LookupKey(Struct, frozen=True, kw_only=True):
    """A client's list as keys of its beginnings, and what tells it from others like it."""

    tenant: str
    keys: tuple[bytes, ...]
    hint: str
    """What the client said; empty if it said nothing."""
    guise: str
    """What kind of agent it is, told from its tools and the beginning of its system prompt."""
    lines: tuple[bytes, ...] = ()
    """Keys of the long lines at the beginning of the list: one that a client compacted begins with a summary seen before."""

    @property
    def noted(self) -> str:
        """What is kept beside a fingerprint: guise and hint."""
        return f"{self.guise} {self.hint}"


def agent_fingerprint(system: bytes, tools: bytes) -> str:
    """Return a few characters for the kind of agent: its tools and how its system prompt begins."""
    begins = _BILLING.sub(b"", system[:400])
    return blake2b(tools + b"\0" + begins, digest_size=4).hexdigest()


def unanswered(key: bytes) -> bytes:
    """Return the key of a list that got no answer."""
    return blake2b(b"unanswered\0" + key, digest_size=16).digest()


def beside(line: bytes) -> bytes:
    """Return the key of a summary's line where nobody told which conversation it is of."""
    return blake2b(b"beside\0" + line, digest_size=16).digest()


def named(hint: str) -> bytes:
    """Return the key of the conversation that a client has this word for."""
    return blake2b(b"named\0" + hint.encode(errors="replace"), digest_size=16).digest()


class SessionLookup:
    """Finds sessions in the store that all replicas share."""

    def __init__(self, trails: Fingerprints, *, joins_by_summary: bool = False) -> None:
        self._fingerprints = trails
        self._joins_by_summary = joins_by_summary

    def find(self, sought: LookupKey) -> Match | None:
        """Return the session that shares the longest beginning with the list; None if none does."""
        keys = sought.keys
        earlier = max(0, len(keys) - _LAST)
        for start, asked in ((earlier, keys[earlier:]), (0, keys[:earlier])):
            if not asked:
                continue
            places = {key: start + index + 1 for index, key in enumerate(asked)}
            match = _best(self._fingerprints.lookup_fingerprints(sought.tenant, asked), places, sought)
            if match is not None:
                # One that left another may have been asked before, in vain.
                if match.kind != "fork":
                    return match
                return self._asked_again(sought) or self._compacted(sought, match) or match
        return self._asked_again(sought) or self._continued(sought)

    def _asked_again(self, sought: LookupKey) -> Match | None:
        """Return the session that began with this very request, if nobody answered it."""
        for found in self._fingerprints.lookup_fingerprints(sought.tenant, [unanswered(sought.keys[-1])]):
            if found.newest and found.hint == sought.noted:
                return Match(session=found.session, kind="same", length=len(sought.keys))
        return None

    def _compacted(self, sought: LookupKey, match: Match) -> Match | None:
        """Return the session whose client has compacted the middle of its list, if it tells no name and what left has a summary in it.

        Anybody may quote a summary: only where the operator says so.
        """
        if not self._joins_by_summary or sought.hint or not sought.lines:
            return None
        apart = [beside(line) for line in sought.lines]
        found = [each for each in self._fingerprints.lookup_fingerprints(sought.tenant, apart) if each.newest]
        is_compacted = len({each.key for each in found}) >= _LINES
        return Match(session=match.session, kind="same", length=match.length) if is_compacted else None

    def _continued(self, sought: LookupKey) -> Match | None:
        """Return the session whose client has compacted its list: that begins with what the session was told in summary.

        Anybody may quote a summary, so that it leads only to a session of the same name; to one that its client did not name
        only where the operator says so, and then only from a client that names none either.
        """
        if not sought.lines:
            return None
        lines = Counter(
            found.session
            for found in self._fingerprints.lookup_fingerprints(sought.tenant, sought.lines)
            # A client may go on for a while before it uses the summary; one that tells a name is believed.
            if (_is_named(sought) and found.hint == sought.noted)
            or (found.newest and self._may_continue(found, sought))
        )
        session, count = max(lines.items(), default=("", 0), key=lambda each: (each[1], each[0]))
        return Match(session=session, kind="same", length=0) if count >= _LINES else None

    def _may_continue(self, found: FingerprintMatch, sought: LookupKey) -> bool:
        hint = found.hint.partition(" ")[2]
        if _is_named(sought):
            return hint == sought.hint
        return self._joins_by_summary and not _is_apart(found, sought)

    def record_fingerprint(self, sought: LookupKey, session: str, *further: bytes) -> None:
        """Note that a session was seen with this list, and with it and its answer."""
        keys = (sought.keys[-1], *further)
        self._fingerprints.record_fingerprint(
            Fingerprint(tenant=sought.tenant, session=session, keys=keys, hint=sought.noted)
        )

    def leave_summary(self, sought: LookupKey, lines: Sequence[bytes]) -> None:
        """Note a summary that a client asked for apart from its conversation, for the one it has the same word for."""
        if not _is_named(sought):
            return
        known = self._fingerprints.lookup_fingerprints(sought.tenant, [named(sought.hint)])
        # An answer that broke off leaves the name behind, and the session has it all the same.
        of = [each for each in known if each.newest] or known
        if len(of) == 1:
            keys = (named(sought.hint), *lines)
            self._fingerprints.record_fingerprint(
                Fingerprint(tenant=sought.tenant, session=of[0].session, keys=keys, hint=of[0].hint)
            )


def _best(found: Sequence[FingerprintMatch], places: dict[bytes, int], sought: LookupKey) -> Match | None:
    """Return the longest match that no hint keeps apart, or else the longest; of several of one length the same conversation."""
    matches = [
        (
            not _is_apart(each, sought),
            places[each.key],
            _NEARNESS.index(kind),
            each.hint == sought.noted,
            each.session,
            kind,
        )
        for each in found
        if (kind := _kind(each, places[each.key], sought)) is not None
    ]
    if not matches:
        return None
    _, length, _, _, session, kind = max(matches)
    return Match(session=session, kind=kind, length=length)


def _is_apart(found: FingerprintMatch, sought: LookupKey) -> bool:
    """Return whether both clients said which session it is, and not the same."""
    hint = found.hint.partition(" ")[2]
    return bool(hint and sought.hint) and hint != sought.hint


def _is_named(sought: LookupKey) -> bool:
    """Return whether the client has a word for this one conversation."""
    return bool(sought.hint) and not sought.hint.startswith(GROUP)


def _kind(found: FingerprintMatch, length: int, sought: LookupKey) -> Kind | None:
    """Return what a session with the first `length` messages of the list is to it; None if it is no use.

    A hint never leads to a session, it only keeps apart: other words mean another conversation. Without any, a list that
    leaves a session before its end is another conversation, and one that is short and has nothing new is begun anew.
    """
    guise, _, hint = found.hint.partition(" ")
    apart = _is_apart(found, sought)
    same_words = _is_named(sought) and hint == sought.hint
    if length < _TELLING and (apart or guise != sought.guise):
        return None
    if apart:
        return "fork"
    if length < _TELLING and not same_words and length == len(sought.keys):
        return None
    if found.newest:
        return "same"
    return "back" if same_words else "fork"


_BESIDES = 1_000
"""Bytes that a decoded message takes beside its own, as measured with messages of one or two parts."""


class ReadMessage(Struct, frozen=True, kw_only=True, weakref=True, eq=False):
    """A message, and what makes it the same as another that a client wrote differently."""

    message: Message
    likeness: bytes
    raw: bytes = b""
    """The bytes it was read from."""
    next: "ref[ReadMessage] | None" = None
    """What came behind it last time; never set it."""
    chained: tuple[bytes, bytes] = (b"", b"")
    """The key of a list up to it that was asked for last, behind the key before it; never set it."""


class MessageCache:
    """Decodes messages; those used last are kept, up to so many bytes. Any thread may use it."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._read: OrderedDict[tuple[Format, bytes], ReadMessage] = OrderedDict()
        self._lock = Lock()

    @property
    def size(self) -> int:
        """The memory that the messages kept take, about."""
        return self._bytes

    def read(self, raws: Sequence[bytes], format: Format) -> list[ReadMessage]:
        """Return the messages in these bytes, or raise a BadInput."""
        raws = messages_in(raws, format)
        known = self._known(raws, format)
        missing = [raw for raw, read in zip(raws, known, strict=True) if read is None]
        new = iter(map(_read, decode_messages(missing, format), missing))
        together = [next(new) if read is None else read for read in known]
        self._keep(together, format)
        return together

    def _known(self, raws: Sequence[bytes], format: Format) -> list[ReadMessage | None]:
        """Return what was read before; a list that only grew is compared with the last one and not looked up."""
        known: list[ReadMessage | None] = []
        found: ReadMessage | None = None
        with self._lock:
            for raw in raws:
                last = None if found is None or found.next is None else found.next()
                found = last if last is not None and last.raw == raw else self._read.get((format, raw))
                known.append(found)
        return known

    def _keep(self, together: Sequence[ReadMessage], format: Format) -> None:
        with self._lock:
            before: ReadMessage | None = None
            for read in together:
                key = (format, read.raw)
                if key in self._read:
                    self._read.move_to_end(key)
                else:
                    self._read[key] = read
                    self._bytes += len(read.raw) + _BESIDES
                if before is not None and (before.next is None or before.next() is not read):
                    force_setattr(before, "next", ref(read))
                before = read
            while self._bytes > self._most and self._read:
                (_, oldest), _ = self._read.popitem(last=False)
                self._bytes -= len(oldest) + _BESIDES


def _read(message: Message, raw: bytes) -> ReadMessage:
    return ReadMessage(message=message, likeness=likeness(message), raw=raw)


def keys_of(read: Sequence[ReadMessage]) -> tuple[bytes, ...]:
    """Return for each message a key of the whole list up to it, as `chain_of` does; those of last time are remembered."""
    keys: list[bytes] = []
    before = b""
    for each in read:
        # Looked at once: another thread may ask for the same message behind others.
        behind, key = each.chained
        if behind != before or not key:
            (key,) = chain_of([each.likeness], before)
            force_setattr(each, "chained", (before, key))
        before = key
        keys.append(key)
    return tuple(keys)


def chain_of(likenesses: Sequence[bytes], before: bytes = b"") -> list[bytes]:
    """Return for each message a key of the whole list up to it."""
    keys: list[bytes] = []
    for each in likenesses:
        before = blake2b(before + each, digest_size=16).digest()
        keys.append(before)
    return keys
