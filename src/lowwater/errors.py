"""Every error Lowwater raises, as one tree.

LowwaterError
├── BadInput                 what the caller gave cannot be used; the message says what to change
│   ├── UnreadableJson       not JSON, cut short, nested too deeply, or text no provider accepts
│   ├── UnknownFormat        JSON, but no conversation in a form Lowwater knows
│   ├── MalformedMessage     one message is wrong; carries its index
│   ├── BadSetting           a setting has a value that makes no sense
│   ├── UnreadableFile       a file is missing or cannot be read
│   └── NoVocabulary         the tokenizer package is missing or lacks a vocabulary
├── IllegalEntry             a ledger entry refers to what the ledger does not hold
├── IllegalView              what would be sent breaks the provider's rules
├── StoreFailed              a store cannot do what was asked
│   ├── StaleLedger          the session has moved on since it was read; carries the version it has now
│   ├── DeletedSession       a session that was open here is gone from its store
│   ├── UnusableStore        a store cannot be opened, read or written: no right, no room, locked, closed
│   ├── DamagedStore         something stored cannot be read; carries the session and where it broke
│   │   └── UnknownForm      it is what was written, but in a form that this Lowwater does not know
│   └── NewerSchema          a newer Lowwater wrote the store, or the state of a session
├── SummaryFailed            a summarizer has no usable summary; carries whether asking again can help
└── AnswerFailed             a model gave no whole answer; carries what came of it
    └── PromptTooLong        its provider says that the prompt does not fit; carries the context length it named
"""

from typing import Literal


class LowwaterError(Exception):
    """The base of all errors raised on purpose; its text is one sentence for a person."""


class BadInput(LowwaterError):
    """What the caller gave cannot be used."""


class UnreadableJson(BadInput):
    """The bytes are not JSON that a provider would accept."""


class UnknownFormat(BadInput):
    """The JSON holds no conversation in a form Lowwater knows."""


class MalformedMessage(BadInput):
    """The message at `index` breaks its format; `problem` says how."""

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(f"message {index}: {problem}")
        self.index = index
        self.problem = problem

    def __reduce__(self) -> tuple[type["MalformedMessage"], tuple[int, str]]:
        return (type(self), (self.index, self.problem))


class BadSetting(BadInput):
    """A setting has a value that makes no sense."""


class UnreadableFile(BadInput):
    """A file is missing or cannot be read."""


class NoVocabulary(BadInput):
    """The tokenizer package is missing or lacks the vocabulary asked for."""


class IllegalEntry(LowwaterError):
    """A ledger entry refers to what the ledger does not hold."""


class IllegalView(LowwaterError):
    """What would be sent breaks the provider's rules."""


class StoreFailed(LowwaterError):
    """A store cannot do what was asked; nothing of it was done."""


class StaleLedger(StoreFailed):
    """The session is not at the version the caller read: read what came since (or all of it) and try again."""

    def __init__(self, session: str, *, expected: int, found: int) -> None:
        super().__init__(
            f"session {session!r} is at version {found}, not {expected}: read it again and retry"
        )
        self.session = session
        self.expected = expected
        self.found = found

    def __reduce__(self) -> tuple[object, ...]:
        return (_stale_ledger, (self.session, self.expected, self.found))


def _stale_ledger(session: str, expected: int, found: int) -> StaleLedger:
    return StaleLedger(session, expected=expected, found=found)


class DeletedSession(StoreFailed):
    """A session that was open here was deleted elsewhere; it is not begun anew unless that is asked for."""


class UnusableStore(StoreFailed):
    """A store cannot be opened, read or written."""


class DamagedStore(StoreFailed):
    """Something stored cannot be read; what other sessions hold is not affected.

    `session` is None where the whole store is damaged. A session can be read up to the version `whole`.
    """

    def __init__(self, said: str, session: str | None = None, whole: int = 0) -> None:
        super().__init__(said)
        self.session = session
        self.whole = whole

    def __reduce__(self) -> tuple[type["DamagedStore"], tuple[str, str | None, int]]:
        return (type(self), (str(self), self.session, self.whole))


class UnknownForm(DamagedStore):
    """Something stored is what was written, but has a tag, a field or a value that this Lowwater does not know."""


class NewerSchema(StoreFailed):
    """A newer Lowwater wrote the store or the state of a session; this one does not touch it."""


class SummaryFailed(LowwaterError):
    """A summarizer has no usable summary; `kind` says whether asking again, or elsewhere, can help.

    What `failed`, or broke on the `network`, may go well the next time; what is `refused` never will. `spent` is the usage
    of a call that was answered, and is billed although it was in vain.
    """

    def __init__(
        self,
        said: str,
        kind: Literal["failed", "refused", "timeout", "auth", "network"] = "failed",
        *,
        spent: object = None,
    ) -> None:
        super().__init__(said)
        self.kind = kind
        self.spent = spent


class AnswerFailed(LowwaterError):
    """A model gave no whole answer; `text` is what came of it before, `usage` what the provider told it consumed."""

    def __init__(self, said: str, *, text: str = "", usage: object = None) -> None:
        super().__init__(said)
        self.text = text
        self.usage = usage


class PromptTooLong(AnswerFailed):
    """A provider refused a prompt for its size; `limit` is the context length that it named, None if it named none."""

    def __init__(self, said: str, *, limit: int | None = None) -> None:
        super().__init__(said)
        self.limit = limit


def defect(error: Exception) -> str:
    """Return the words for an error that should not have happened, where a report goes on without what it was about."""
    return f"a defect in Lowwater ({type(error).__name__}: {error})"[:300]
