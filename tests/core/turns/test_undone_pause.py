"""After a rewind nothing is bought for some calls, also where the mechanisms are asked for another reason."""

from msgspec.structs import replace

from lowwater import Lowwater
from lowwater.core.policies.safety_rules import decide
from lowwater.core.turns.candidates import with_proposals
from lowwater.core.turns.decision_context import decision_context, without_proposals


def test_a_pause_outlasts_asking_the_mechanisms() -> None:
    session = Lowwater(model="claude-opus-5-5", store="memory:").session("paused")
    page = " ".join(f"Line {number} of the page." for number in range(800))
    for number in range(30):
        call = {"type": "tool_use", "id": f"t{number}", "name": "bash", "input": {"command": f"cat {number}"}}
        session.append({"role": "assistant", "content": [call]})
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number} {page}"}
        session.append({"role": "user", "content": [result]})
    shared = session._shared
    state = replace(shared.state, paused_until=shared.state.totals.turns + 5)
    inputs = decision_context(state, shared.setup, at=1_000.0)
    asked = with_proposals(inputs)
    assert asked.now.candidates is not None
    assert asked.now.candidates.plans, "there is something to buy"
    assert decide(asked.now, shared.setup.settings, policy=shared.setup.policy).because.code == "undone"
    nothing = without_proposals(inputs).now.candidates
    assert nothing is not None
    assert nothing.paused_calls == 5
