"""A summary that was written before it is needed: what it stands for, and whether it still may."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.compact import summarize
from lowwater.compact.propose import Asked, survey
from lowwater.compact.spans import offer_span, request_for
from lowwater.engine.summaries import OVERSHOOT
from lowwater.values.groups import Span
from lowwater.values.proposal import Proposal
from lowwater.values.stored_form import stored_as
from lowwater.values.summaries import Judged, SummaryRequest
from lowwater.values.view import Item


class Parked(Struct, frozen=True, kw_only=True, rename=stored_as("parked"), forbid_unknown_fields=True):
    """A summary that was asked for, judged and billed, and is not in the view yet.

    What it stands for is named as in its request: the numbers of the originals, and the summary it updates. It was made
    from the originals, so placeholders inside its span do not make it stale; any other change there does.
    """

    span: Span
    """The items it would replace."""
    numbers: tuple[int, ...]
    previous: str
    recall: bool
    """Whether its reader can call messages back."""
    tokens: int
    """The size of its text, as counted."""
    judged: Judged

    def fits(self, items: Sequence[Item]) -> bool:
        """Return whether its span still holds just what it stands for."""
        stands = request_for(items, self.span, max_tokens=0, focus="", recall=self.recall)
        return self.answers(stands)

    def answers(self, request: SummaryRequest) -> bool:
        """Return whether it is what this request asks for; one with a focus asks for another."""
        same = (request.numbers, request.previous, request.recall) == (
            self.numbers,
            self.previous,
            self.recall,
        )
        return same and not request.focus

    def is_ready(self, asked: Asked) -> bool:
        """Return whether it may be published now: it fits, lies between head and tail, and is not too long for the model."""
        zones, span = survey(asked).zones, self.span
        return (
            zones.head <= span.start < span.stop <= zones.tail
            and {span.start, span.stop} <= set(zones.cuts)
            and self.recall == asked.making.offers_recall
            and self.tokens <= OVERSHOOT * asked.counted(asked.limits.summary)
            and self.fits(asked.items)
        )

    def offer(self, items: Sequence[Item]) -> Proposal | None:
        """Return the proposal to publish it, which takes no call; None if that would be no gain."""
        offer = offer_span(summarize.NAME, items, self.span, self.tokens)
        return None if offer is None else replace(offer, calls=0)
