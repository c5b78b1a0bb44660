"""Every rule of the Responses API, in the order in which a request is refused."""

from lowwater.testing.provider.openai import shape as chat
from lowwater.testing.provider.prompt import Piece
from lowwater.testing.provider.responses_api import limits, shape
from lowwater.testing.provider.responses_api.body import pieces, resolved
from lowwater.testing.provider.responses_api.conversation import Conversation
from lowwater.testing.provider.responses_api.memory import Memory
from lowwater.testing.provider.responses_api.sealing import Sealing
from lowwater.testing.provider.rule import Incoming, Rule


def rules(memory: Memory, sealing: Sealing) -> tuple[Rule, ...]:
    """Return the rules; each may rely on those before it."""

    def prompt(incoming: Incoming) -> list[Piece]:
        return pieces(incoming.body, resolved(incoming.body, memory), sealing)

    return (
        chat.api_key,
        chat.readable_json,
        chat.model_given,
        shape.parameters_of_chat,
        shape.input_given,
        shape.item_shape,
        shape.known_roles,
        shape.content_given,
        shape.content_shape,
        shape.instructions_are_text,
        shape.tool_shape,
        limits.name_lengths,
        *Conversation(memory, sealing).rules,
        limits.least_output,
        limits.breakpoints_supported,
        limits.lifetime_sold,
        limits.input_fits(prompt),
    )
