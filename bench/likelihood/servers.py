"""The scoring model behind a server: vLLM anywhere, or llama.cpp in this process."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from bench.likelihood.score import Scored

WINDOW = 32_768
_FORCED = 1_000.0


class Vllm:
    """A vLLM server: one request a view, which returns the log-probabilities of the prompt."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._model = _get(f"{self._url}/v1/models")["data"][0]["id"]

    def score(self, prompt: Sequence[int], action: Sequence[int]) -> Scored:
        """Return how likely the action is behind the prompt."""
        tokens = [*prompt, *action]
        body = {
            "model": self._model,
            "prompt": tokens,
            "max_tokens": 1,
            "temperature": 0,
            "prompt_logprobs": 1,
        }
        told = _post(f"{self._url}/v1/completions", body)["choices"][0]["prompt_logprobs"]
        found = [
            each[str(token)] for each, token in zip(told[len(prompt) : len(tokens)], action, strict=True)
        ]
        return Scored(logs=[each["logprob"] for each in found], hits=[each["rank"] == 1 for each in found])


class Llama:
    """llama.cpp's server, which returns no log-probabilities of prompts: each token is forced over the cached prefix.

    What it reports of a token is its probability before the force.
    """

    def __init__(self, path: Path) -> None:
        import xllamacpp  # noqa: PLC0415  # only there

        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx, params.n_parallel = WINDOW, 1
        params.hostnames, params.port = ["127.0.0.1"], 0
        params.cache_ram_mib = 0
        params.warmup, params.verbosity = False, -1
        self._server = xllamacpp.Server(params)
        self._url = self._server.listening_address

    def score(self, prompt: Sequence[int], action: Sequence[int]) -> Scored:
        """Return how likely the action is behind the prompt."""
        logs: list[float] = []
        hits: list[bool] = []
        for at, token in enumerate(action):
            body = {
                "prompt": [*prompt, *action[:at]],
                "n_predict": 1,
                "n_probs": 1,
                "cache_prompt": True,
                "samplers": ["top_k"],
                "logit_bias": [[token, _FORCED]],
            }
            told = _post(f"{self._url}/completion", body)["completion_probabilities"][0]
            if told["id"] != token:
                raise ValueError(f"the server wrote token {told['id']} where {token} was forced")
            logs.append(told["logprob"])
            hits.append(told["top_logprobs"][0]["id"] == token)
        return Scored(logs=logs, hits=hits)

    def tokens(self, text: str) -> list[int]:
        """Return the model's own tokens of a plain text."""
        body = {"content": text, "add_special": False, "parse_special": False}
        found: list[int] = _post(f"{self._url}/tokenize", body)["tokens"]
        return found

    def text(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""
        return str(_post(f"{self._url}/detokenize", {"tokens": list(tokens)})["content"])


def _get(url: str) -> Any:  # noqa: ANN401  # JSON
    with urlopen(url, timeout=60) as answer:
        return json.load(answer)


def _post(url: str, body: object) -> Any:  # noqa: ANN401  # JSON
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=3_600) as answer:
        return json.load(answer)
