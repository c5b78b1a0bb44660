"""Every rule of the Messages API, in the order in which a request is refused."""

from lowwater.testing.provider.anthropic import conversation, limits, marks, shape, thinking
from lowwater.testing.provider.anthropic.signatures import Signer
from lowwater.testing.provider.rule import Rule


def rules(signer: Signer) -> tuple[Rule, ...]:
    """Return the rules; each may rely on those before it."""
    return (
        shape.body_size,
        shape.api_key,
        shape.version_header,
        shape.readable_json,
        shape.required_fields,
        shape.max_tokens_positive,
        shape.messages_given,
        shape.message_shape,
        shape.block_shape,
        shape.system_shape,
        shape.tool_shape,
        shape.tool_name_pattern,
        conversation.known_roles,
        conversation.first_message_is_user,
        conversation.system_message_follows_user,
        conversation.blocks_fit_roles,
        marks.mark_shape,
        marks.at_most_four_marks,
        marks.no_mark_on_thinking,
        marks.no_mark_on_empty_text,
        marks.long_marks_first,
        conversation.content_not_empty,
        conversation.text_not_empty,
        conversation.text_not_blank,
        conversation.system_text_not_empty,
        conversation.prefill_supported,
        conversation.no_trailing_whitespace,
        conversation.tools_defined,
        conversation.tool_names_unique,
        conversation.tool_use_id_pattern,
        conversation.tool_use_ids_unique,
        conversation.calls_answered,
        conversation.results_first,
        conversation.results_called,
        conversation.one_result_per_call,
        thinking.thinking_config,
        thinking.binding_controls_need_beta,
        thinking.thinking_leads_message,
        thinking.thinking_opens_tool_loop,
        *thinking.thinking_rules(signer),
        limits.prompt_fits,
        limits.output_fits,
    )
