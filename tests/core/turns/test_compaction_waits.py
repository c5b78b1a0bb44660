"""What a summary replaces is not pruned first where no prune can be enough."""

import msgspec

import lowwater
from lowwater.settings import OutputSettings, Settings
from tests.generated import generate_session


def test_by_hand_only_the_summary_is_carried_out_and_told_of() -> None:
    messages = [
        msgspec.json.decode(raw) for raw in generate_session("coding", seed=1, turns=60).as_openai_chat()
    ]
    done = lowwater.compress(
        messages,
        model="gpt-4o",
        policy="hermes-classic",
        force=True,
        settings=Settings(output=OutputSettings(quiet=True)),
    )
    assert done.event is not None
    assert done.event.mechanisms == ("summarize",)
    assert sum(phase.removed for phase in done.event.phases) >= done.event.reclaimed > 0
    assert not any("chars elided" in str(message.get("content")) for message in done.messages)
