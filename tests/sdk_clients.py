"""Clients of the official SDKs for a server on this machine: they try once, and read no certificates, which takes longer than most tests."""

from typing import Any

import anthropic
import openai

from lowwater.testing.provider import Provider


def anthropic_client(at: Provider | str, **options: Any) -> anthropic.Anthropic:
    http = anthropic.DefaultHttpxClient(verify=False)
    given = {"api_key": "k", "max_retries": 0, **options}
    return anthropic.Anthropic(base_url=_url(at), http_client=http, **given)


def async_anthropic_client(at: Provider | str, **options: Any) -> anthropic.AsyncAnthropic:
    http = anthropic.DefaultAsyncHttpxClient(verify=False)
    given = {"api_key": "k", "max_retries": 0, **options}
    return anthropic.AsyncAnthropic(base_url=_url(at), http_client=http, **given)


def openai_client(at: Provider | str, **options: Any) -> openai.OpenAI:
    http = openai.DefaultHttpxClient(verify=False)
    given = {"api_key": "k", "max_retries": 0, **options}
    return openai.OpenAI(base_url=f"{_url(at)}/v1", http_client=http, **given)


def async_openai_client(at: Provider | str, **options: Any) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(verify=False)
    given = {"api_key": "k", "max_retries": 0, **options}
    return openai.AsyncOpenAI(base_url=f"{_url(at)}/v1", http_client=http, **given)


def _url(at: Provider | str) -> str:
    return at if isinstance(at, str) else at.anthropic_base_url
