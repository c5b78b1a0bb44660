"""Every error Lowwater raises, as one tree.

LowwaterError
├── BadInput                 the caller's input cannot be used; the message says what to change
│   ├── UnreadableJson       not JSON, cut short, nested too deeply, or text that no provider accepts
│   ├── UnknownFormat        JSON, but not a conversation in a format that Lowwater knows
│   ├── MalformedMessage     one message is wrong; carries its index
│   ├── BadSetting           a setting has an invalid value
│   ├── UnreadableFile       a file is missing or cannot be read
│   └── NoVocabulary         the tokenizer package is missing or lacks a vocabulary
├── IllegalEntry             a ledger entry refers to something that the ledger does not have
├── IllegalView              the messages to send break the provider's rules
├── StoreFailed              a store operation failed
│   ├── StaleLedger          the session has changed since it was read; carries its current version
│   ├── DeletedSession       a session that was open here was deleted from its store
│   ├── UnusableStore        a store cannot be opened, read or written: no permission, no space, locked, closed
│   ├── DamagedStore         stored data cannot be read; carries the session and the last version that can
│   │   └── UnknownForm      the data is intact, but in a form that this version of Lowwater does not know
│   └── NewerSchema          a newer version of Lowwater wrote the store or the state of a session
├── SummaryFailed            a summarizer gave no usable summary; carries whether a retry can help
└── AnswerFailed             a model gave no complete answer; carries what arrived of it
    └── PromptTooLong        the provider says that the prompt does not fit; carries the context length it named
"""

from typing import Literal


class LowwaterError(Exception):
    """The base class of all errors that Lowwater raises; the text is one sentence for people."""


class BadInput(LowwaterError):
    """The caller's input cannot be used."""


class UnreadableJson(BadInput):
    """The bytes are not JSON that a provider would accept."""


class UnknownFormat(BadInput):
    """The JSON is not a conversation in a format that Lowwater knows."""


class MalformedMessage(BadInput):
    """The message at `index` breaks its format; `problem` says how."""

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(f"message {index}: {problem}")
        self.index = index
        self.problem = problem

    def __reduce__(self) -> tuple[type["MalformedMessage"], tuple[int, str]]:
        return (type(self), (self.index, self.problem))


class BadSetting(BadInput):
    """A setting has an invalid value."""


class UnreadableFile(BadInput):
    """A file is missing or cannot be read."""


class NoVocabulary(BadInput):
    """The tokenizer package is missing or lacks the vocabulary asked for."""


class IllegalEntry(LowwaterError):
    """A ledger entry refers to something that the ledger does not have."""


class IllegalView(LowwaterError):
    """The messages to send break the provider's rules."""


class StoreFailed(LowwaterError):
    """A store operation failed; nothing was changed."""


class StaleLedger(StoreFailed):
    """The session is not at the version that the caller read: read the changes (or all of it) and try again."""

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
    """A session that was open here was deleted elsewhere; it is not created again unless the caller asks for that."""


class UnusableStore(StoreFailed):
    """A store cannot be opened, read or written."""


class DamagedStore(StoreFailed):
    """Stored data cannot be read; other sessions are not affected.

    `session` is None if the whole store is damaged. The session can be read up to the version `last_good_version`.
    """

    def __init__(self, message: str, session: str | None = None, last_good_version: int = 0) -> None:
        super().__init__(message)
        self.session = session
        self.last_good_version = last_good_version

    def __reduce__(self) -> tuple[type["DamagedStore"], tuple[str, str | None, int]]:
        return (type(self), (str(self), self.session, self.last_good_version))


class UnknownForm(DamagedStore):
    """Stored data is intact, but has a tag, a field or a value that this version of Lowwater does not know."""


class NewerSchema(StoreFailed):
    """A newer version of Lowwater wrote the store or the state of a session; this one does not modify it."""


class SummaryFailed(LowwaterError):
    """A summarizer gave no usable summary; `kind` says whether a retry, or another summarizer, can help.

    After `failed` or `network` a retry may succeed; after `refused` it never will. `spent` is the usage of a call
    that was answered and is billed although the summary is not usable.
    """

    def __init__(
        self,
        message: str,
        kind: Literal["failed", "refused", "timeout", "auth", "network"] = "failed",
        *,
        spent: object = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.spent = spent


class AnswerFailed(LowwaterError):
    """A model gave no complete answer; `text` is what arrived of it, `usage` what the provider reported."""

    def __init__(self, message: str, *, text: str = "", usage: object = None) -> None:
        super().__init__(message)
        self.text = text
        self.usage = usage


class PromptTooLong(AnswerFailed):
    """A provider rejected a prompt for its size; `limit` is the context length that it named, None if it named none."""

    def __init__(self, message: str, *, limit: int | None = None) -> None:
        super().__init__(message)
        self.limit = limit


def defect(error: Exception) -> str:
    """Return a description of an unexpected error, for a report that continues without the part that failed."""
    return f"a defect in Lowwater ({type(error).__name__}: {error})"[:300]
