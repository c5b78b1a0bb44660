"""A session's messages gathered into a recording: the model of most of its calls, and when it began."""

from collections.abc import Sequence

from msgspec import Raw

from lowwater.core.strict_json import read_json
from lowwater.errors import BadInput
from lowwater.logs.recording import NativeCompaction, RecordedMessage, Recording
from lowwater.replay.importing.decoding import model_of_most
from lowwater.replay.importing.lines import RecordedFile

STUB = "[no result was recorded]"
"""The result of a tool call that has none in the recording: without one it could not be sent again."""


def gathered(
    file: RecordedFile,
    *,
    id: str,
    agent: str,
    messages: Sequence[RecordedMessage],
    compactions: Sequence[NativeCompaction] = (),
    system: bytes = b"",
    tools: bytes = b"",
    model: str = "",
    started_at: float | None = None,
) -> Recording:
    """Return the recording; `model` and `started_at` count where calls name no model and the file says when it began."""
    times = (said.at for said in messages if said.at is not None)
    return Recording(
        id=id,
        agent=agent,
        path=str(file.path),
        messages=tuple(messages),
        model=model_of_most(messages) or model,
        started_at=next(times, None) if started_at is None else started_at,
        system=system,
        tools=tools,
        compactions=tuple(compactions),
    )


def text_of(value: Raw) -> str:
    """Return JSON as a model reads it: a string as it is, anything else as it was written."""
    raw = bytes(value)
    try:
        return read_json(raw, str)
    except BadInput:
        return raw.decode(errors="replace")
