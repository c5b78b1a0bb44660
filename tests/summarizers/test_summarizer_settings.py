"""What a model-backed summarizer refuses before it sends anything, and what it then sends."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from lowwater.errors import BadSetting, SummaryFailed
from lowwater.summarizers.model import AsyncModelSummarizer, ModelSummarizer
from lowwater.testing.provider import Provider, Say
from tests.summarizers.conftest import request_of


@pytest.mark.parametrize(
    "options",
    [{"timeout": 0}, {"timeout": -1}, {"timeout": float("nan")}, {"context_length": 0}],
    ids=["no time", "less than none", "no number", "no window"],
)
@pytest.mark.parametrize("kind", [ModelSummarizer, AsyncModelSummarizer])
def test_a_setting_that_makes_no_sense_is_refused(kind: Any, options: dict[str, Any]) -> None:
    with pytest.raises(BadSetting, match="makes no sense"):
        kind(model="m", **options)


def test_text_no_provider_accepts_is_refused_before_it_is_sent() -> None:
    with pytest.raises(SummaryFailed, match="cannot be sent") as caught:
        ModelSummarizer(model="m", base_url="http://127.0.0.1:9").summarize(
            replace(request_of(), focus="half \ud83d")
        )
    assert caught.value.kind == "refused"


def test_what_is_sent_is_what_the_provider_takes() -> None:
    with Provider(default=Say("## Goal")) as provider:
        ModelSummarizer(model="m", base_url=provider.openai_base_url, api_key="k").summarize(
            request_of("openai_chat")
        )
        (seen,) = provider.requests
    assert list(seen.body) == ["model", "max_tokens", "messages"]
    assert json.loads(seen.raw) == seen.body
    assert [message["role"] for message in seen.body["messages"]] == ["system", "user"]
