"""Requests for a summary, the summaries written for them, and the verdicts on those."""

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
    "request_dropped",
    "too_long",
    "tool_call",
    "echo",
    "says_nothing",
    "other_language",
    "answers_user",
    "turned_around",
    "gives_orders",
    "invented",
    "prohibition_dropped",
    # verdicts on a provider's compaction block
    "no_block",
    "unsigned",
    "holds_secrets",
    "unknown_handles",
]
"""The reason codes of a verdict."""


class CachedPrefix(Struct, frozen=True, kw_only=True):
    """The last request sent; a summary request that extends it reads the provider's cache up to its end."""

    format: Format
    body: bytes
    """The JSON as it was sent, with every parameter that the cache depends on."""
    since: tuple[Message, ...] = ()
    """What the next request would add: the answer, tool results, the user's message."""


class SummaryRequest(Struct, frozen=True, kw_only=True):
    """Condense `messages`, which are originals and never placeholders, into at most `max_tokens`."""

    messages: tuple[Message, ...]
    max_tokens: int
    numbers: tuple[int, ...] = ()
    """The messages' numbers in their session, one each; empty if they have none."""
    previous: str = ""
    """The summary to update, which covers what came before `messages`."""
    focus: str = ""
    """A topic to keep in more detail."""
    instructions: str = ""
    """What the user wants of every summary, from the settings."""
    newest_user: Message | None = None
    """The newest user message of the session, among `messages` or after them."""
    recall: bool = False
    """Whether the reader can recall messages by their handle."""
    cached_prefix: CachedPrefix | None = None
    """The request to extend, if the summarizer can; None to show it `messages` as a transcript."""
    native: bool = False
    """Whether the provider is to compact the request in `cached_prefix` into its own block, instead of a model writing a summary."""
    redact: bool = True
    """Whether secrets must be kept out of the summary and of the transcript that the summarizer is shown."""
    within: float | None = None
    """Seconds after which the caller no longer waits for the summary; None if that is not known."""


class Written(Struct, frozen=True, kw_only=True, rename=stored_as("written"), forbid_unknown_fields=True):
    """A summary as its summarizer returned it, not yet validated."""

    text: str
    by: str
    """Which summarizer wrote it."""
    cut_off: bool = False
    """Whether it ended at the output limit."""
    usage: Usage | None = None
    """The usage that the provider reported; None if it reported none or no model was asked."""
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
    """Whether a summary may replace the messages it covers, and why."""

    accepted: bool
    because: Reason
    score: float
    """What it kept of the critical references, by weight, times the share of what it names that occurs in its sources; 0 to 1, as written."""
    missing: tuple[Critical, ...] = ()
    coverage: float = 0.0
    """What it kept of the critical references, by weight."""
    repaired_score: float | None = None
    """The score of the text that was repaired; None if it was not."""

    @property
    def first_missing(self) -> tuple[str, ...]:
        """The first five missing references, for reports."""
        return tuple(reference.text for reference in self.missing[:5])


class Judged(Struct, frozen=True, kw_only=True, rename=stored_as("judged"), forbid_unknown_fields=True):
    """A summary together with the verdict on it."""

    written: Written
    verdict: Verdict
