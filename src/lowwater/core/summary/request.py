"""What a summary is asked for, what came back, and what was found when it was checked."""

from typing import Literal

from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.decisions import Reason
from lowwater.core.messages import Format, Message
from lowwater.core.stored_form import stored_as

CriticalKind = Literal["ask", "forbidden", "error", "path", "identifier", "value"]

VerdictCode = Literal[
    "accepted",
    "repaired",
    "too_short",
    "refusal",
    "cut_off",
    "not_smaller",
    "references_missing",
    "too_long",
    # of a provider's own block
    "no_block",
    "unsigned",
    "holds_secrets",
    "unknown_handles",
    "prohibition_dropped",
]
"""What can be said of a summary."""


class CachedPrefix(Struct, frozen=True, kw_only=True):
    """The request that was sent last: a summary asked for by extending it reads the provider's cache up to its end."""

    format: Format
    body: bytes
    """The JSON as it was sent, with every parameter the cache depends on."""
    since: tuple[Message, ...] = ()
    """What came after it and the next request would hold: the answer, tool results, what the user said."""


class SummaryRequest(Struct, frozen=True, kw_only=True):
    """Condense `messages`, which are originals and never placeholders, into at most `max_tokens`."""

    messages: tuple[Message, ...]
    max_tokens: int
    numbers: tuple[int, ...] = ()
    """The messages' numbers in their session, one each; empty if there are none to refer to."""
    previous: str = ""
    """The summary to update: it stands for what came before `messages`."""
    focus: str = ""
    """A topic to keep in more detail."""
    newest_user: Message | None = None
    """The newest user message of the session, among `messages` or behind them."""
    recall: bool = False
    """Whether the reader can call messages back by their handle."""
    riding: CachedPrefix | None = None
    """Ask by extending this request if the summarizer can; None to show it `messages` as a transcript."""
    native: bool = False
    """Have the provider compact what `riding` holds into a block of its own, rather than a model write about it."""
    redact: bool = True
    """Whether the summary may not hold secrets, nor a transcript that is shown to have it written."""
    within: float | None = None
    """Seconds after which nobody waits for the summary any more; None if that is not known."""


class Written(Struct, frozen=True, kw_only=True, rename=stored_as("written"), forbid_unknown_fields=True):
    """A summary as its summarizer gave it, before anyone checked it."""

    text: str
    by: str
    """Which summarizer wrote it."""
    cut_off: bool = False
    """Whether it ended because its length was used up."""
    usage: Usage | None = None
    """What the call consumed, as its provider reported it; None if no model was asked or none said."""
    model: str = ""
    """The model that wrote it, as its provider names it; empty if none did."""
    block: bytes = b""
    """The provider's signed block as it came, if it compacted by itself; `text` is what it says."""


class Critical(Struct, frozen=True, kw_only=True, rename=stored_as("critical"), forbid_unknown_fields=True):
    """Something a summary should still say; asks are compared by `words`, everything else by `text`."""

    kind: CriticalKind
    text: str
    words: tuple[str, ...] = ()


class Verdict(Struct, frozen=True, kw_only=True, rename=stored_as("verdict"), forbid_unknown_fields=True):
    """Whether a summary may stand for what it replaces, and why."""

    accepted: bool
    because: Reason
    score: float
    """The share of critical references it kept, 0 to 1."""
    missing: tuple[Critical, ...] = ()

    @property
    def first_missing(self) -> tuple[str, ...]:
        """The five missing references to report."""
        return tuple(reference.text for reference in self.missing[:5])


class Judged(Struct, frozen=True, kw_only=True, rename=stored_as("judged"), forbid_unknown_fields=True):
    """A summary together with the verdict on it."""

    written: Written
    verdict: Verdict
