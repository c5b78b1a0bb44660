"""The request a session handed out last: a summary can be asked for by extending it."""

from msgspec import Struct

from lowwater.values.entries import Rewound, TakenBack
from lowwater.values.ledger import Ledger
from lowwater.values.message import Format
from lowwater.values.summaries import Riding
from lowwater.wire.reading import write_json
from lowwater.wiring.request import PreparedRequest


class LastSent(Struct, frozen=True, kw_only=True):
    """A request as it was handed out, for a model as the user spells it, and the ledger at that moment."""

    request: PreparedRequest
    model: str
    ledger: Ledger

    def riding(self, ledger: Ledger, format: Format) -> Riding | None:
        """Return it as it went out, with what came after it; None if the conversation went back since."""
        later = ledger.entries[len(self.ledger.entries) :]
        if any(isinstance(entry, Rewound | TakenBack) for entry in later):
            return None
        fields = self.request.as_anthropic() if format == "anthropic" else self.request.as_openai()
        since = [numbered.message for numbered in ledger.messages[len(self.ledger.messages) :]]
        return Riding(format=format, body=write_json({"model": self.model, **fields}), since=tuple(since))
