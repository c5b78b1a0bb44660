"""Recordings to replay: generated sessions, as an importer would give them."""

from functools import lru_cache

from lowwater.core.api_calls import Usage
from lowwater.logs.recording import RecordedCall, RecordedMessage, Recording
from tests.generated import generate_session


@lru_cache
def recording(
    seed: int = 1, *, turns: int = 30, model: str = "claude-opus-4-5", prompt: int = 20_000
) -> Recording:
    """Return a coding session whose first call was billed for `prompt` tokens."""
    made = generate_session("coding", seed=seed, turns=turns)
    told = False
    messages = []
    for message, at in zip(made.messages, made.times, strict=True):
        call = None
        if message.role == "assistant":
            call = RecordedCall(model=model, usage=None if told else Usage(uncached=prompt))
            told = True
        messages.append(RecordedMessage(message=message, at=at, call=call))
    return Recording(
        id=f"session-{seed}", agent="tests", path=f"{seed}.jsonl", messages=tuple(messages), model=model
    )
