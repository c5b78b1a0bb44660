"""What a status means for a summary, in words that quote nobody."""

from email.utils import formatdate

import pytest

from lowwater.summarizers.exchange import asked_to_wait, failure_of

TOO_LONG = {
    "Anthropic": (400, b'{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}'),
    "OpenAI": (
        400,
        b'{"error":{"message":"This model\'s maximum context length is 200000 tokens","code":"context_length_exceeded"}}',
    ),
    "llama.cpp": (
        400,
        b'{"error":{"message":"request (210000 tokens) exceeds the available context size (200000 tokens)"}}',
    ),
    "as a server error": (500, b'{"error":"maximum context length of 200000"}'),
}


@pytest.mark.parametrize("provider", TOO_LONG)
def test_a_prompt_that_is_too_long_is_refused_for_good_with_the_limit(provider: str) -> None:
    failure = failure_of(*TOO_LONG[provider])
    assert failure.kind == "refused"
    assert "200,000 tokens" in str(failure)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, b"", "auth"),
        (403, b"", "auth"),
        (429, b'{"error":{"code":"insufficient_quota"}}', "auth"),
        (400, b'{"error":{"message":"Your credit balance is too low"}}', "auth"),
        (413, b"", "refused"),
        (404, b'{"error":{"message":"model: no-such"}}', "refused"),
        (302, b"", "refused"),
        (429, b'{"error":{"message":"too many tokens per minute"}}', "network"),
        (
            429,
            b'{"error":{"message":"Request too large for m on tokens per min: Limit 9, Requested 20"}}',
            "refused",
        ),
        (
            429,
            b'{"error":{"message":"Rate limit reached; see https://example.org/account/billing"}}',
            "network",
        ),
        (503, b'{"error":{"message":"the load is too large"}}', "network"),
        (529, b"\xff\xfe", "network"),
        (599, b"", "network"),
    ],
)
def test_the_kind_says_whether_asking_again_can_help(status: int, body: bytes, kind: str) -> None:
    assert failure_of(status, body).kind == kind


@pytest.mark.parametrize("status", [400, 401, 404, 413, 429, 500])
def test_nothing_the_provider_says_is_repeated(status: int) -> None:
    said = failure_of(status, b'{"error":{"message":"Incorrect API key sk-secret; you sent: my diary"}}')
    assert "secret" not in str(said)
    assert "diary" not in str(said)
    assert str(status) in str(said)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "12", "retry-after-ms": "80"}, 0.08),
        ({"retry-after": formatdate(0, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Mon, 99 Foo 99999"}, None),
    ],
)
def test_how_long_to_wait_is_read_from_the_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_to_wait(headers) == seconds
