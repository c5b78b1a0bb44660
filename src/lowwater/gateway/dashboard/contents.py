"""What the dashboard shows of messages, to those who may see them: differences, search, pins, exports; always as plain text."""

import re

from lowwater.core.accounts.difference import Change, PartChange
from lowwater.core.formats.files import message_lines
from lowwater.core.recall.recalled import recalled_text, who_of
from lowwater.core.secrets.redaction import conceal, conceal_message
from lowwater.core.stored import Listed
from lowwater.errors import BadInput
from lowwater.protocols import Store
from lowwater.session.internals import internals
from lowwater.session.reopen import open_kept
from lowwater.session.session import Session
from lowwater.settings import Settings

_MOST_CHARACTERS = 6_000
"""Characters of one text that are shown; of the rest, the number."""
_MOST_CHANGES = 400
_MOST_ORIGINALS = 60
"""Messages of which a summary's side says the beginning."""
_EXCERPT = 240
_MOST_HITS = 20
_WORD = re.compile(r"\w+")


class Contents:
    """Reads the messages of sessions; secrets are concealed unless the settings say otherwise."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._conceals = settings.privacy.redact

    def compaction(self, listed: Listed, number: int) -> dict[str, object]:
        """Return the views before and after a compaction, change by change."""
        session = open_kept(self._store, listed, self._settings)
        name = f"before-compaction-{number}"
        found = next((each for each in session.checkpoints() if each.name == name), None)
        if found is None:
            raise BadInput(f"session {listed.name!r} has no compaction {number}")
        difference = session.diff(name, after=found.position + 1)
        changes = difference.changes[:_MOST_CHANGES]
        return {
            "number": number,
            "before": difference.before,
            "after": difference.after,
            "changes": [self._change(session, each) for each in changes],
            "left_out": len(difference.changes) - len(changes),
        }

    def _change(self, session: Session, change: Change) -> dict[str, object]:
        told: dict[str, object] = {
            "kind": change.kind,
            "numbers": [[span.first, span.last] for span in change.numbers],
            "messages": change.messages,
            "before": change.before.tokens,
            "after": change.after.tokens,
            "parts": [self._part(each) for each in change.parts],
        }
        if change.kind == "summarised":
            numbers = [each for span in change.numbers for each in range(span.first, span.last + 1)]
            told["originals"] = [self._original(session, each) for each in numbers[:_MOST_ORIGINALS]]
        return told

    def _part(self, part: PartChange) -> dict[str, object]:
        return {"what": part.what, "was": self._shown(part.was), "now": self._shown(part.now)}

    def _original(self, session: Session, number: int) -> dict[str, object]:
        message = internals(session).ledger.message(number)
        return {
            "number": number,
            "who": who_of(message),
            "text": self._shown(recalled_text(message), most=_EXCERPT),
        }

    def _shown(self, text: str, most: int = _MOST_CHARACTERS) -> str:
        told = conceal(text) if self._conceals else text
        return told if len(told) <= most else f"{told[:most]}… ({len(told) - most:,} more characters)"

    def message(self, listed: Listed, number: int) -> dict[str, object]:
        """Return one original message."""
        ledger = internals(open_kept(self._store, listed, self._settings)).ledger
        if not 1 <= number <= len(ledger.messages):
            raise BadInput(f"session {listed.name!r} has no message {number}")
        message = ledger.message(number)
        text = self._shown(recalled_text(message), most=20 * _MOST_CHARACTERS)
        return {"number": number, "who": who_of(message), "text": text}

    def pins(self, listed: Listed) -> list[dict[str, object]]:
        """Return the standing instructions of a session."""
        return [
            {
                "text": self._shown(pin.text),
                "handle": pin.handle,
                "source": pin.source,
                "status": pin.status,
            }
            for pin in open_kept(self._store, listed, self._settings).pins()
        ]

    def search(self, words: str, visible: dict[str, Listed], *, session: str = "") -> list[dict[str, object]]:
        """Return the messages that match words best, in one session or in all that may be seen."""
        if not words.strip():
            return []
        hits = self._store.search(words, session=session or None, limit=10 * _MOST_HITS)
        seen = [hit for hit in hits if hit.session in visible][:_MOST_HITS]
        return [
            {
                "session": hit.session,
                "title": visible[hit.session].about.title,
                "number": hit.number,
                "tokens": hit.tokens,
                **self._excerpt(hit.session, hit.number, visible[hit.session].version, words),
            }
            for hit in seen
        ]

    def _excerpt(self, session: str, number: int, version: int, words: str) -> dict[str, object]:
        message = self._store.messages(session, number, number + 1, version=version)[0].message
        text = recalled_text(message)
        places = [text.lower().find(word.lower()) for word in _WORD.findall(words)]
        begin = max(0, min((place for place in places if place >= 0), default=0) - _EXCERPT // 3)
        excerpt = self._shown(text[begin : begin + _EXCERPT])
        more = len(text) > begin + _EXCERPT
        return {
            "who": who_of(message),
            "text": f"{'… ' if begin else ''}{excerpt}{' …' if more else ''}",
        }

    def export(self, listed: Listed) -> bytes:
        """Return every message of a session as JSON lines."""
        messages = internals(open_kept(self._store, listed, self._settings)).ledger.history()
        told = [conceal_message(each) for each in messages] if self._conceals else messages
        return b"".join(line + b"\n" for line in message_lines(told))
