"""Each provider's way to say that a prompt is too long, and what only sounds like it."""

import json

import pytest

from lowwater.core.formats.refusals import context_length_in, is_overflow
from lowwater.core.formats.streams import stream_for
from lowwater.testing.provider import Provider
from tests.logs.responses_of import asked, streamed_from

TOO_LONG = [
    pytest.param(
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 213,462 tokens > 200,000 maximum",
            },
        },
        200_000,
        id="Anthropic",
    ),
    pytest.param(
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "input length and `max_tokens` exceed context limit: 189136 + 20000 > 204648, "
                "decrease input length or `max_tokens` and try again",
            },
        },
        204_648,
        id="Anthropic with output",
    ),
    pytest.param(
        413,
        {
            "type": "error",
            "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"},
        },
        None,
        id="Anthropic bytes",
    ),
    pytest.param(
        400,
        {
            "error": {
                "message": "This model's maximum context length is 128000 tokens. However, your messages resulted in "
                "131072 tokens. Please reduce the length of the messages.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
        128_000,
        id="OpenAI chat",
    ),
    pytest.param(
        400,
        {
            "error": {
                "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
                "type": "invalid_request_error",
                "param": "input",
                "code": "context_length_exceeded",
            }
        },
        None,
        id="OpenAI responses",
    ),
    pytest.param(
        400,
        {
            "error": {
                "message": "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 "
                "tokens (42832 of text input). Please reduce the length of either one.",
                "code": 400,
            }
        },
        32_768,
        id="OpenRouter",
    ),
    pytest.param(
        400,
        {
            "error": {
                "message": "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens "
                "(132000 in the messages, 8000 in the completion).",
                "type": "invalid_request_error",
                "param": None,
                "code": "invalid_request_error",
            }
        },
        131_072,
        id="DeepSeek",
    ),
    pytest.param(
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
        1_048_576,
        id="Gemini",
    ),
    pytest.param(
        400,
        {
            "object": "error",
            "message": "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that "
            "`max_model_len` is no smaller than the number of text tokens.",
            "type": "BadRequestError",
            "code": 400,
        },
        4_096,
        id="vLLM",
    ),
    pytest.param(
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 5130,
                "n_ctx": 4096,
            }
        },
        4_096,
        id="llama.cpp",
    ),
    pytest.param(400, {"message": "Input is too long for requested model."}, None, id="Bedrock"),
    pytest.param(
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 65537. Given: 79993 `inputs` tokens"
        },
        65_537,
        id="text-generation-inference",
    ),
    pytest.param(
        400,
        {
            "error": {
                "message": "Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)"
            }
        },
        131_072,
        id="Kimi",
    ),
    pytest.param(
        400,
        {
            "object": "error",
            "message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        },
        32_768,
        id="Mistral",
    ),
    pytest.param(
        400,
        {"error": "This model's maximum prompt length is 131072 but the request contains 140000 tokens."},
        131_072,
        id="xAI",
    ),
]


@pytest.mark.parametrize(("status", "body", "limit"), TOO_LONG)
def test_a_prompt_that_is_too_long(status: int, body: object, limit: int | None) -> None:
    said = json.dumps(body)
    assert is_overflow(status, said.encode())
    assert context_length_in(said) == limit


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (200, "prompt is too long: 3 tokens > 2 maximum"),
        (429, "Request too large for gpt-6 on tokens per min (TPM): Limit 30000, Requested 40000"),
        (
            413,
            "Request too large for model `llama` on tokens per minute (TPM): Limit 6000, Requested 10000; "
            "reduce the length of the messages. code: rate_limit_exceeded",
        ),
        (401, "prompt is too long"),
        (400, "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens"),
        (400, "messages.1.content.0: tool_use ids were found without tool_result blocks"),
        (500, "Internal server error"),
        (529, "Overloaded"),
        (400, ""),
    ],
)
def test_what_only_sounds_like_it(status: int, said: str) -> None:
    assert not is_overflow(status, said.encode())


def test_a_refusal_that_comes_as_a_stream_is_known_before_the_answer_begins() -> None:
    with Provider(default_context=50) as provider:
        items = [{"role": "user", "content": "x" * 4_000}]
        text = streamed_from(provider, asked(items), stream=True)
    stream = stream_for("openai_responses")
    stream.feed(text.encode())
    assert not stream.has_begun
    assert is_overflow(400, stream.broken.encode())
    assert provider.refusals[0].rule == "input_fits"
