"""The request a session handed out last: a summary can be asked for by extending it."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.cache.marks import seams_of
from lowwater.core.entries import Rewound, TakenBack
from lowwater.core.formats.anthropic import dropping
from lowwater.core.ledger import Ledger
from lowwater.core.legality import mend
from lowwater.core.messages import Format
from lowwater.core.strict_json import write_json
from lowwater.core.summary.request import Riding
from lowwater.core.turns.cache import laid_out, marks_of, warmth_of
from lowwater.core.turns.state import Setup, State
from lowwater.core.view import Summary, folded
from lowwater.wiring.request import PreparedRequest


class LastSent(Struct, frozen=True, kw_only=True):
    """A request as it was handed out, for a model as the user spells it, and the ledger at that moment."""

    request: PreparedRequest
    model: str
    ledger: Ledger
    body: bytes = b""
    """The very bytes that were sent, where somebody told; its own writing of them otherwise."""

    def riding(self, ledger: Ledger, format: Format) -> Riding | None:
        """Return it as it went out, with what came after it; None if the conversation went back since."""
        later = ledger.entries[len(self.ledger.entries) :]
        if any(isinstance(entry, Rewound | TakenBack) for entry in later):
            return None
        sent = len(self.ledger.messages)
        # As the view shows them: what was shortened at the door is shorter than the ledger's.
        since = [
            item.message for item in ledger.view.items if not isinstance(item, Summary) and item.number > sent
        ]
        return Riding(
            format=format,
            body=self.body or write_json({"model": self.model, **self._fields(format)}),
            since=tuple(since),
        )

    def _fields(self, format: Format) -> dict[str, Any]:
        match format:
            case "anthropic":
                return self.request.as_anthropic()
            case "openai_chat":
                return self.request.as_openai()
            case "openai_responses":
                return self.request.as_responses()


def compacting(state: State, ledger: Ledger, upto: int, setup: Setup, at: float) -> Riding:
    """Return the request that ends behind the first `upto` items of a view, as it is sent: what a provider is to compact.

    It is marked at its end, where an earlier request of the session ended or nearly so: there the cache is read. Where
    nothing is cached it has no marks, for what they would have written is about to be replaced.
    """
    view, layout = ledger.view, laid_out(replace(state, ledger=ledger), setup).layout
    warm = warmth_of(state, layout, at).hit() > 0
    messages = tuple(mend(view.messages[:upto]))
    thinking, _, tool_choice = state.parameters.partition(b"\0")
    request = PreparedRequest(
        messages=messages,
        told=state.format,
        assumed=state.assumed,
        system=view.system,
        tools=view.tools,
        thinking=thinking_as_set(thinking, state, setup),
        tool_choice=tool_choice,
        marks=marks_of(state, setup) if warm else None,
        seams=replace(seams_of(ledger, messages), shared=len(messages)),
        folds=folded(messages, view.items[:upto]),
    )
    fields = request.as_anthropic()
    return Riding(format="anthropic", body=write_json({"model": state.route.model, **fields}))


def thinking_as_set(thinking: bytes, state: State, setup: Setup) -> bytes:
    """Return a request's `thinking` with what the settings ask of the provider about thinking behind a change."""
    asks = state.binds_thinking and setup.settings.model.bound_thinking == "drop"
    return dropping(thinking) if asks else thinking
