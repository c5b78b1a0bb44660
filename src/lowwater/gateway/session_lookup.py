"""Finds the session that a client's list of messages belongs to, by the list's content and within a tenant.

The store keeps fingerprints: keys of lists that sessions were seen with. A list that grew has an earlier list as its beginning,
and so its keys lead to the session.
"""

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

_NEWEST_KEYS = 48
"""How many of a list's newest keys are looked up first; they nearly always find a list that was seen before."""
_MIN_COMMON = 3
"""From this many messages in common, another conversation with the same beginning is unlikely."""
_MIN_LINES = 3
"""This many long lines in common identify a summary."""
_BILLING_LINE = re.compile(rb'"x-anthropic-billing-header:[^"]*"')
"""A line at the head of Claude Code's system prompt that changes within one conversation."""
GROUP_HINT = "prompt_cache_key="
"""Prefix of a hint that several conversations may share: different ones keep lists apart, equal ones do not join them."""
LookupKind = Literal["fork", "back", "same"]
_KIND_ORDER: tuple[LookupKind, ...] = ("fork", "back", "same")
"""Of matches of the same length, the kind that comes last here wins."""
_OVERHEAD = 1_000
"""Bytes that a decoded message takes on top of its text, as measured with messages of one or two parts."""


class ReadMessage(Struct, frozen=True, kw_only=True, weakref=True, eq=False):
    """A decoded message with its `likeness`, which is equal for messages that differ only in how a client wrote them."""

    message: Message
    likeness: bytes
    raw: bytes = b""
    """The bytes it was read from."""
    next: "ref[ReadMessage] | None" = None
    """The message that followed it last time; set by MessageCache only."""
    chained: tuple[bytes, bytes] = (b"", b"")
    """The key before it and the key of the list up to it, as computed last; set by `prefix_keys` only."""


class MessageCache:
    """Decodes messages and keeps those used last, up to `most_bytes`; any thread may use it."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._read: OrderedDict[tuple[Format, bytes], ReadMessage] = OrderedDict()
        self._lock = Lock()

    @property
    def size(self) -> int:
        """Roughly the memory that the cached messages take, in bytes."""
        return self._bytes

    def read(self, raws: Sequence[bytes], format: Format) -> list[ReadMessage]:
        """Return the decoded messages, or raise BadInput."""
        raws = messages_in(raws, format)
        known = self._cached(raws, format)
        missing = [raw for raw, read in zip(raws, known, strict=True) if read is None]
        new = iter(map(_read, decode_messages(missing, format), missing))
        all_read = [next(new) if read is None else read for read in known]
        self._keep(all_read, format)
        return all_read

    def _cached(self, raws: Sequence[bytes], format: Format) -> list[ReadMessage | None]:
        """Return what is cached; a list that only grew is compared with the last one, message by message, instead of hashed."""
        known: list[ReadMessage | None] = []
        found: ReadMessage | None = None
        with self._lock:
            for raw in raws:
                last = None if found is None or found.next is None else found.next()
                found = last if last is not None and last.raw == raw else self._read.get((format, raw))
                known.append(found)
        return known

    def _keep(self, all_read: Sequence[ReadMessage], format: Format) -> None:
        with self._lock:
            before: ReadMessage | None = None
            for read in all_read:
                key = (format, read.raw)
                if key in self._read:
                    self._read.move_to_end(key)
                else:
                    self._read[key] = read
                    self._bytes += len(read.raw) + _OVERHEAD
                if before is not None and (before.next is None or before.next() is not read):
                    force_setattr(before, "next", ref(read))
                before = read
            while self._bytes > self._most and self._read:
                (_, oldest), _ = self._read.popitem(last=False)
                self._bytes -= len(oldest) + _OVERHEAD


def _read(message: Message, raw: bytes) -> ReadMessage:
    return ReadMessage(message=message, likeness=likeness(message), raw=raw)


def prefix_keys(read: Sequence[ReadMessage]) -> tuple[bytes, ...]:
    """Return for each message the key of the whole list up to it, as `chain_keys` does, reusing those computed last time."""
    keys: list[bytes] = []
    before = b""
    for each in read:
        # Read once: another thread may compute it for the same message in another list.
        behind, key = each.chained
        if behind != before or not key:
            (key,) = chain_keys([each.likeness], before)
            force_setattr(each, "chained", (before, key))
        before = key
        keys.append(key)
    return tuple(keys)


def chain_keys(likenesses: Sequence[bytes], before: bytes = b"") -> list[bytes]:
    """Return for each message the key of the whole list up to it."""
    keys: list[bytes] = []
    for each in likenesses:
        before = blake2b(before + each, digest_size=16).digest()
        keys.append(before)
    return keys


class SessionMatch(Struct, frozen=True, kw_only=True):
    """A session that has the beginning of a client's list."""

    session: str
    kind: LookupKind
    """`same`: the list continues from the session's end. `back`: the client names the same session, but that has gone on since.
    `fork`: another conversation branches off there."""
    length: int
    """How many of the list's messages the session has."""


class LookupKey(Struct, frozen=True, kw_only=True):
    """What a client's list is looked up by: the keys of its beginnings, and what distinguishes it from similar lists."""

    tenant: str
    keys: tuple[bytes, ...]
    hint: str
    """The client's own name for the session or conversation, if it sends one."""
    agent: str
    """Fingerprint of the kind of agent: `agent_fingerprint`."""
    lines: tuple[bytes, ...] = ()
    """Keys of the long lines at the edges of the list: after a client's own compaction they include those of a known summary."""

    @property
    def stored_hint(self) -> str:
        """What the store keeps with a fingerprint: agent and hint."""
        return f"{self.agent} {self.hint}"


def agent_fingerprint(system: bytes, tools: bytes) -> str:
    """Return a short hash of an agent's tools and the beginning of its system prompt."""
    beginning = _BILLING_LINE.sub(b"", system[:400])
    return blake2b(tools + b"\0" + beginning, digest_size=4).hexdigest()


def unanswered_key(key: bytes) -> bytes:
    """Return the key under which a list without an answer is recorded."""
    return blake2b(b"unanswered\0" + key, digest_size=16).digest()


def side_summary_key(line: bytes) -> bytes:
    """Return the key of a line of a summary whose conversation the client did not name."""
    return blake2b(b"beside\0" + line, digest_size=16).digest()


def hint_key(hint: str) -> bytes:
    """Return the key of the conversation that a client names by this hint."""
    return blake2b(b"named\0" + hint.encode(errors="replace"), digest_size=16).digest()


class SessionLookup:
    """Looks sessions up in the store, which all replicas of the gateway share."""

    def __init__(self, fingerprints: Fingerprints, *, joins_by_summary: bool = False) -> None:
        self._fingerprints = fingerprints
        self._joins_by_summary = joins_by_summary

    def find(self, lookup: LookupKey) -> SessionMatch | None:
        """Return the session that shares the longest beginning with the list; None if there is none."""
        keys = lookup.keys
        earlier = max(0, len(keys) - _NEWEST_KEYS)
        for start, keys_asked in ((earlier, keys[earlier:]), (0, keys[:earlier])):
            if not keys_asked:
                continue
            places = {key: start + index + 1 for index, key in enumerate(keys_asked)}
            match = _best(self._fingerprints.lookup_fingerprints(lookup.tenant, keys_asked), places, lookup)
            if match is not None:
                # A branch may have been sent before and got no answer.
                if match.kind != "fork":
                    return match
                return self._find_unanswered(lookup) or self._find_compacted_middle(lookup, match) or match
        return self._find_unanswered(lookup) or self._find_compacted(lookup)

    def _find_unanswered(self, lookup: LookupKey) -> SessionMatch | None:
        """Return the session that began with this very request, if that got no answer."""
        for found in self._fingerprints.lookup_fingerprints(lookup.tenant, [unanswered_key(lookup.keys[-1])]):
            if found.newest and found.hint == lookup.stored_hint:
                return SessionMatch(session=found.session, kind="same", length=len(lookup.keys))
        return None

    def _find_compacted_middle(self, lookup: LookupKey, match: SessionMatch) -> SessionMatch | None:
        """Return the session whose client, which names none, has replaced the middle of its list by a summary.

        Only if the operator allows it (`joins_by_summary`): anybody may quote a summary.
        """
        if not self._joins_by_summary or lookup.hint or not lookup.lines:
            return None
        apart = [side_summary_key(line) for line in lookup.lines]
        found = [each for each in self._fingerprints.lookup_fingerprints(lookup.tenant, apart) if each.newest]
        is_compacted = len({each.key for each in found}) >= _MIN_LINES
        return SessionMatch(session=match.session, kind="same", length=match.length) if is_compacted else None

    def _find_compacted(self, lookup: LookupKey) -> SessionMatch | None:
        """Return the session whose client has compacted its list, which now begins with a summary that the session knows.

        Anybody may quote a summary. So it leads only to a session of the same name; where neither client named one, only if the
        operator allows it (`joins_by_summary`).
        """
        if not lookup.lines:
            return None
        lines = Counter(
            found.session
            for found in self._fingerprints.lookup_fingerprints(lookup.tenant, lookup.lines)
            # A client may continue for a while before it uses the summary: with a name, older fingerprints count too.
            if (_names_conversation(lookup) and found.hint == lookup.stored_hint)
            or (found.newest and self._may_continue(found, lookup))
        )
        session, count = max(lines.items(), default=("", 0), key=lambda each: (each[1], each[0]))
        return SessionMatch(session=session, kind="same", length=0) if count >= _MIN_LINES else None

    def _may_continue(self, found: FingerprintMatch, lookup: LookupKey) -> bool:
        hint = found.hint.partition(" ")[2]
        if _names_conversation(lookup):
            return hint == lookup.hint
        return self._joins_by_summary and not _has_other_hint(found, lookup)

    def record_fingerprint(self, lookup: LookupKey, session: str, *further: bytes) -> None:
        """Record that a session was seen with this list; `further` are other keys that lead to it, such as the list with its answer."""
        keys = (lookup.keys[-1], *further)
        self._fingerprints.record_fingerprint(
            Fingerprint(tenant=lookup.tenant, session=session, keys=keys, hint=lookup.stored_hint)
        )

    def record_summary(self, lookup: LookupKey, lines: Sequence[bytes]) -> None:
        """Record a summary that a client asked for outside its conversation, for the conversation with the same hint."""
        if not _names_conversation(lookup):
            return
        known = self._fingerprints.lookup_fingerprints(lookup.tenant, [hint_key(lookup.hint)])
        # After an answer that broke off, the hint is no longer on the newest fingerprint, but still leads to the session.
        owners = [each for each in known if each.newest] or known
        if len(owners) == 1:
            keys = (hint_key(lookup.hint), *lines)
            self._fingerprints.record_fingerprint(
                Fingerprint(tenant=lookup.tenant, session=owners[0].session, keys=keys, hint=owners[0].hint)
            )


def _best(
    found: Sequence[FingerprintMatch], places: dict[bytes, int], lookup: LookupKey
) -> SessionMatch | None:
    """Return the longest match, preferring those without a different hint; of the same length, by `_KIND_ORDER`."""
    matches = [
        (
            not _has_other_hint(each, lookup),
            places[each.key],
            _KIND_ORDER.index(kind),
            each.hint == lookup.stored_hint,
            each.session,
            kind,
        )
        for each in found
        if (kind := _kind(each, places[each.key], lookup)) is not None
    ]
    if not matches:
        return None
    _, length, _, _, session, kind = max(matches)
    return SessionMatch(session=session, kind=kind, length=length)


def _has_other_hint(found: FingerprintMatch, lookup: LookupKey) -> bool:
    """Return whether both clients gave a hint, and the hints differ."""
    hint = found.hint.partition(" ")[2]
    return bool(hint and lookup.hint) and hint != lookup.hint


def _names_conversation(lookup: LookupKey) -> bool:
    """Return whether the hint names this one conversation."""
    return bool(lookup.hint) and not lookup.hint.startswith(GROUP_HINT)


def _kind(found: FingerprintMatch, length: int, lookup: LookupKey) -> LookupKind | None:
    """Return how a list relates to a session that has its first `length` messages; None if that match is worthless.

    A hint never leads to a session, it only keeps lists apart: another hint means another conversation. Without hints, a list
    that leaves a session before its end is a fork, and a short list with nothing new begins a session of its own.
    """
    agent, _, hint = found.hint.partition(" ")
    apart = _has_other_hint(found, lookup)
    has_same_hint = _names_conversation(lookup) and hint == lookup.hint
    if length < _MIN_COMMON and (apart or agent != lookup.agent):
        return None
    if apart:
        return "fork"
    if length < _MIN_COMMON and not has_same_hint and length == len(lookup.keys):
        return None
    if found.newest:
        return "same"
    return "back" if has_same_hint else "fork"
