"""What changes from turn to turn, as one value."""

from msgspec import Struct

from lowwater.count.calibrate import Calibration
from lowwater.engine.ladder import Standing
from lowwater.values.decision import Decision
from lowwater.values.events import Compaction
from lowwater.values.ledger import Ledger
from lowwater.values.message import Format
from lowwater.values.model import Model
from lowwater.values.situation import Past


class Totals(Struct, frozen=True, kw_only=True):
    """What a session has consumed as its provider reported it, and what compaction did."""

    turns: int = 0
    prompt: int = 0
    cache_read: int = 0
    output: int = 0
    compactions: int = 0
    prunes: int = 0
    """Compactions that needed no summary."""
    summaries: int = 0
    summary_tokens: int = 0
    reclaimed: int = 0
    earliest_changed: int | None = None
    """The smallest index of a view at which a compaction began."""


class Route(Struct, frozen=True, kw_only=True):
    """Where calls go: the model as the user spells it, and the URL of its API, empty for the provider's own."""

    model: str
    base_url: str = ""


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
    sent: int = 0
    """The size of what was last prepared for sending, as counted."""
    growth: float = 0.0
    growths: int = 0
    """How many turns the growth was measured over."""
    warned: frozenset[str] = frozenset()
    decision: Decision | None = None
    last: Compaction | None = None
    """The newest compaction."""
    max_tokens: int | None = None
    offers_recall: bool = False
    noted: bool = False
    """The system prompt says that earlier turns were compacted."""
    binds_thinking: bool = False
    """Some model that was used so far refuses thinking behind messages that changed."""
    unbound: int | None = None
    """Thinking in messages with a higher number was thought behind a prefix that is gone."""

    @property
    def counted(self) -> int:
        """The size of the view and its preamble, as counted."""
        return self.ledger.view.total_tokens

    @property
    def prompt(self) -> int:
        """The size of the next prompt in the model's tokens."""
        return self.calibration.next_prompt(self.counted)
