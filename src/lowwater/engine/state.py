"""What changes from turn to turn, as one value."""

import re
from hashlib import blake2b
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from lowwater.count.calibrate import Calibration
from lowwater.economics.after_call import BeliefError
from lowwater.economics.belief import Belief
from lowwater.economics.rent import Meter
from lowwater.engine.ladder import Standing
from lowwater.engine.laying import Laid
from lowwater.engine.parked import Parked
from lowwater.engine.resting import Rest
from lowwater.values.decision import Decision
from lowwater.values.events import Compaction, Rejected
from lowwater.values.layout import Layout
from lowwater.values.ledger import Ledger
from lowwater.values.market import Market
from lowwater.values.message import Format
from lowwater.values.model import Model
from lowwater.values.situation import Past
from lowwater.values.stored_form import stored_as
from lowwater.values.usage import Usage


class Totals(Struct, frozen=True, kw_only=True, rename=stored_as("totals"), forbid_unknown_fields=True):
    """What a session has consumed as its provider reported it, and what compaction did."""

    turns: int = 0
    prompt: int = 0
    cache_read: int = 0
    output: int = 0
    misjudged: int = 0
    """Tokens by which the cache belief was off, over all calls: what it said would be read against what was."""
    compactions: int = 0
    prunes: int = 0
    """Compactions that needed no summary."""
    summaries: int = 0
    summary_tokens: int = 0
    reclaimed: int = 0
    earliest_changed: int | None = None
    """The smallest index of a view at which a compaction began."""
    cost: int | None = 0
    """Nano-dollars for all calls, those for summaries included; None once the price of one was not known."""
    summary_cost: int | None = 0
    """Nano-dollars for the calls that wrote summaries; None once the price of one was not known."""
    thinking_off: int = 0
    """Calls whose thinking was disabled, because the provider would have refused it behind a compaction."""

    def paid(self, cost: int | None, *, for_summaries: bool = False) -> "Totals":
        """Return the totals with the cost of further calls; None if it is not known."""
        total = None if self.cost is None or cost is None else self.cost + cost
        if not for_summaries:
            return replace(self, cost=total)
        part = None if self.summary_cost is None or cost is None else self.summary_cost + cost
        return replace(self, cost=total, summary_cost=part)


class Route(Struct, frozen=True, kw_only=True, rename=stored_as("route"), forbid_unknown_fields=True):
    """Where calls go: the model as the user spells it, and the URL of its API, empty for the provider's own."""

    model: str
    base_url: str = ""

    def storable(self) -> "Route":
        """Return it as it may be stored: a hash stands for all of the URL that may hold a password or a capability."""
        return Route(model=self.model, base_url=_told_apart(self.base_url))


def _told_apart(url: str) -> str:
    """Return a URL's scheme, host and port, and what tells it from others there; nothing more if it is nothing more."""
    try:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        shown = f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        shown = ""
    if not url or url == shown or _STORABLE.fullmatch(url):
        return url
    return f"{shown}#{blake2b(url.encode(errors='surrogatepass'), digest_size=8).hexdigest()}"


_STORABLE = re.compile(r"(?:[a-z][a-z0-9+.-]*://[^/@?#]*)?#[0-9a-f]{16}")
"""A URL that was stored before."""


class Call(Struct, frozen=True, kw_only=True):
    """A call under way: what was sent, to whom and when, and what it should be billed.

    It belongs to the process that makes it: whatever others do to the session meanwhile, its answer is read by this.
    """

    at: float
    layout: Layout
    expected: Usage
    outside: int
    """The number of the newest message that was not in the tail; 0 if all were."""
    model: Model
    counted: int
    """The size of what was sent, as counted."""
    removed: int
    """The model's tokens that compactions kept out of it."""
    removed_before: int
    """Those of them that earlier calls went without, too."""
    bought: int | None
    """Nano-dollars that the compactions since then make it cost more; None if that is not known."""
    decision: str = ""
    """The reason code of the decision before it."""
    thinking_off: bool = False
    """Its thinking is disabled, because the provider would refuse it in a tool loop whose beginning was compacted."""


class State(Struct, frozen=True, kw_only=True):
    """A session between two calls."""

    ledger: Ledger
    route: Route
    model: Model
    calibration: Calibration
    format: Format | None = None
    """The format its messages told; None as long as they read the same in both."""
    assumed: Format | None = None
    """The format that messages were read in before one told it."""
    past: Past = Past()
    standing: Standing = Standing()
    totals: Totals = Totals()
    reported: int = 0
    """The size of the last prompt as its provider reported it; 0 if it never did, or another model answered."""
    windows: tuple[tuple[str, int], ...] = ()
    """Context lengths that a caller set for this session, by provider, URL and model."""
    taught: tuple[tuple[str, int], ...] = ()
    """Context lengths that providers' errors told in this session, by provider, URL and model."""
    doubted: int = 0
    """The size of the last prompt as its provider reported it, where that was not believed; 0 if it was."""
    sent: int = 0
    """The size of what was last prepared for sending, as counted."""
    growth: float = 0.0
    growths: int = 0
    """How many turns the growth was measured over."""
    grown: tuple[int, ...] = ()
    """What each of the newest turns added to the prompt, as counted, the newest last."""
    warned: frozenset[str] = frozenset()
    decision: Decision | None = None
    last: Compaction | None = None
    """The newest compaction."""
    rejected: tuple[Rejected, ...] = ()
    """The summaries that were not accepted as they were when the last decision was carried out."""
    parked: Parked | None = None
    """A summary that was prepared ahead of its time; it may be stale."""
    policy: str = ""
    """The policy that decided last; empty before the first turn."""
    max_tokens: int | None = None
    belief: Belief = Belief()
    """What the provider's cache should hold."""
    misjudged: BeliefError | None = None
    """What the last call was expected to read and write, beside what was reported."""
    meter: Meter = Meter()
    """The rent paid so far."""
    ahead: int | None = 0
    """Nano-dollars for summaries that no compaction's bill has yet: parked, or of no use; None if that is not known."""
    ahead_prompts: int = 0
    """Tokens of the prompts that asked for parked summaries, which no event tells of yet."""
    bought: int | None = 0
    """Nano-dollars that compactions since the last answer make the next call cost more; None if that is not known."""
    kept_out: int = 0
    """The model's tokens that compactions kept out of the last call that was answered."""
    held_until: int = 0
    """The turn up to which nothing is bought, because a compaction was undone."""
    rest: Rest | None = None
    """How long not to look for something to buy; None if the next turn has to look."""
    market: Market | None = None
    """What was on sale at the last decision; None if the policy compares no prices."""
    laid: Laid | None = None
    outside: int = 0
    """The number of the newest message that is not in the tail; 0 if all are."""
    call: Call | None = None
    called_at: float | None = None
    """When the last call that was answered was sent."""
    gaps: tuple[float, ...] = ()
    """Seconds between calls, the newest last."""
    parameters: bytes = b""
    """What else of the request the provider's cache depends on."""
    offers_recall: bool = False
    noted: bool = False
    """The system prompt says that earlier turns were compacted."""
    binds_thinking: bool = False
    """Some model that was used so far refuses thinking behind messages that changed."""
    thinking_off: bool = False
    """The last request had its thinking disabled."""
    unbound: int | None = None
    """Thinking in messages with a higher number was thought behind a prefix that is gone."""

    @property
    def counted(self) -> int:
        """The size of the view and its preamble, as counted."""
        return self.ledger.view.total_tokens

    @property
    def scale(self) -> float:
        """The model's tokens per counted token, no more than what was reported allows for the view as a whole."""
        return min(self.calibration.scale, self.prompt / max(1, self.counted))

    @property
    def prompt(self) -> int:
        """The size of the next prompt in the model's tokens."""
        return self.calibration.next_prompt(self.counted)
