"""Every rule of the Chat Completions API, in the order in which a request is refused."""

from lowwater.testing.provider.openai import conversation, limits, marks, shape
from lowwater.testing.provider.rule import Rule


def rules() -> tuple[Rule, ...]:
    """Return the rules; each may rely on those before it."""
    return (
        shape.api_key,
        shape.readable_json,
        shape.model_given,
        shape.messages_given,
        shape.message_shape,
        shape.known_roles,
        shape.content_given,
        shape.content_shape,
        shape.tool_calls_not_empty,
        shape.tool_call_shape,
        shape.tool_message_shape,
        shape.tools_not_empty,
        shape.tool_names,
        conversation.call_ids_unique,
        conversation.calls_answered,
        conversation.answers_called,
        conversation.one_answer_per_call,
        limits.output_limit_positive,
        limits.stream_options_need_stream,
        marks.mark_not_on_message,
        marks.mark_on_text,
        marks.mark_where_router_looks,
        marks.at_most_four_chat_marks,
        limits.breakpoints_supported,
        limits.at_most_four_breakpoints,
        limits.lifetime_sold,
        limits.prompt_fits,
        limits.output_fits,
    )
