"""A session's state as the request that its user sends."""

from lowwater.core.cache.marks import cache_key_for, seams_of
from lowwater.core.messages import Message
from lowwater.core.turns.cache import marks_of
from lowwater.core.turns.state import Setup, State
from lowwater.core.view import folded
from lowwater.wiring.brought import Brought
from lowwater.wiring.last_sent import thinking_as_set
from lowwater.wiring.request import PreparedRequest


def handed_out(
    state: State, messages: tuple[Message, ...], brought: Brought, setup: Setup, *, session: str
) -> PreparedRequest:
    """Return what to send of a state: these messages, and everything around them."""
    view = state.ledger.view
    return PreparedRequest(
        messages=messages,
        told=state.format,
        assumed=state.assumed,
        system=view.system,
        tools=view.tools,
        thinking=thinking_as_set(brought.thinking_json, state, setup),
        tool_choice=brought.tool_choice_json,
        marks=marks_of(state, setup),
        seams=seams_of(state.ledger, messages),
        cache_key=cache_key_for(state.model, session=session),
        tokens=state.prompt,
        decision=state.decision,
        whole=view.whole == view.tokens,
        folds=folded(messages, view.items),
    )
