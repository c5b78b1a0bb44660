"""What a provider writes around the content of a message, in tokens.

In tokens of the o200k vocabulary, from the usage of recorded sessions; bench/README.md says how each was found.
"""

from typing import Literal

from msgspec import Struct

from lowwater.values.message import Message


class Framing(Struct, frozen=True, kw_only=True):
    """The tokens around content, and how arguments and pictures are rendered."""

    message: int
    """Around one message: its start, role and end."""
    call: int
    """Around one tool call."""
    result: int
    """Around one tool result, beyond its message."""
    argument: int
    """Around one argument, where arguments are rendered one by one."""
    arguments: Literal["text", "values"]
    """Rendered as the JSON text the model wrote, or as a list of names and bare values."""
    pictures: Literal["tiles", "area"]
    """Counted in tiles of 512 pixels, or by width × height."""


CHAT = Framing(message=4, call=11, result=5, argument=0, arguments="text", pictures="tiles")
"""OpenAI's, assumed of every model that is not Claude.

What Codex's models write beyond text, names, arguments and reasoning is nearly always 4 for a text, 11 for a call, 18 for
both and 7 n more than 20 for n parallel calls; a result adds 9 to the next prompt. `python -m bench.counting framing`.
"""

CLAUDE = Framing(message=4, call=24, result=8, argument=18, arguments="values", pictures="area")
"""Claude's: a call is spelled out with a start and an end for each argument, which costs more than its JSON."""


def framing_of(message: Message) -> Framing:
    """Return the framing of the format a message came in, for callers that do not know the model."""
    return CLAUDE if message.wire is not None and message.wire.format == "anthropic" else CHAT
