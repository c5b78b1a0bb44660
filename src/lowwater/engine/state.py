"""What changes from turn to turn, as one value."""

from msgspec import Struct

from lowwater.count.calibrate import Calibration
from lowwater.values.chain import Chain
from lowwater.values.decision import Decision
from lowwater.values.events import Event
from lowwater.values.ledger import Ledger
from lowwater.values.model import Model
from lowwater.values.situation import Past
from lowwater.values.usage import Usage


class Totals(Struct, frozen=True, kw_only=True):
    """What a session has consumed as its provider reported it, and what compaction did."""

    turns: int = 0
    prompt: int = 0
    cache_read: int = 0
    output: int = 0
    compactions: int = 0
    summaries: int = 0
    reclaimed: int = 0


class State(Struct, frozen=True, kw_only=True):
    """A session between two calls."""

    ledger: Ledger
    model: Model
    calibration: Calibration
    past: Past = Past()
    totals: Totals = Totals()
    usage: Usage | None = None
    """As last reported."""
    sent: int = 0
    """The size of what was last prepared for sending, as counted."""
    growth: float = 0.0
    growths: int = 0
    """How many turns the growth was measured over."""
    warned: frozenset[str] = frozenset()
    events: Chain[Event] = Chain()
    decision: Decision | None = None
    max_tokens: int | None = None
    offers_recall: bool = False
    learned_context: dict[str, int] = {}
    """Context lengths that providers reported in errors, by model."""

    @property
    def counted(self) -> int:
        """The size of the view and its preamble, as counted."""
        return self.ledger.view.total_tokens

    @property
    def prompt(self) -> int:
        """The size of the next prompt in the model's tokens."""
        return self.calibration.next_prompt(self.counted)

    @property
    def context(self) -> int:
        """The window as sold, or as the provider said it is."""
        return self.learned_context.get(self.model.name, self.model.context_length)
