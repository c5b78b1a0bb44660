"""Lets the model write: the answers to a file of prompts, many at once.

    python -m bench.likelihood.write PROMPTS TEXTS --model FILE.gguf [--device cuda] [--minutes 9] [--at-once 48]

Each prompt is one line, `{"id": …, "tokens": […], "most": …}`, and so is each answer, as tokens. What is there is not written again. Like
`score`, it runs where only PyTorch and numpy are installed.

Tokens are drawn as the model's makers advise (temperature 0.7, the 20 likeliest, of these the first 80 %), but without their penalty for
repeating what the prompt says: a summary has to. The seed depends on the prompt alone.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))

import torch  # type: ignore[import-not-found]  # only there
from torch import Tensor

from bench.likelihood.inputs import ENDS, digest_of, opened
from bench.likelihood.qwen import Cache, Qwen

TEMPERATURE, LIKELIEST, NUCLEUS = 0.7, 20, 0.8
LOOKED_AT = 16
"""After so many tokens it is seen whether any answer goes on."""


class Draws:
    """Draws tokens for several answers at once, for each from numbers of its own; or takes the likeliest."""

    def __init__(self, prompts: Sequence[Sequence[int]], most: int, *, device: str, greedy: bool) -> None:
        numbers = []
        for prompt in prompts:
            seed = int(sha256(digest_of(prompt).encode()).hexdigest()[:8], 16)
            numbers.append(torch.rand(most, generator=torch.Generator().manual_seed(seed)))
        self._numbers = torch.stack(numbers, dim=1).to(device)
        self._greedy, self._at = greedy, 0

    def next(self, logits: Tensor) -> Tensor:
        """Return a token for each row."""
        if self._greedy:
            return logits.argmax(dim=-1)
        values, tokens = (logits.float() / TEMPERATURE).topk(LIKELIEST, dim=-1)
        chances = values.softmax(dim=-1)
        before = chances.cumsum(dim=-1) - chances
        chances = torch.where(before < NUCLEUS, chances, torch.zeros_like(chances))
        ends = chances.cumsum(dim=-1)
        drawn = self._numbers[self._at][:, None] * ends[:, -1:]
        self._at += 1
        place = (drawn >= ends).sum(dim=-1, keepdim=True).clamp(max=LIKELIEST - 1)
        return tokens.gather(1, place)[:, 0]


def written(
    model: Qwen, prompts: Sequence[Sequence[int]], most: Sequence[int], *, greedy: bool = False
) -> list[list[int]]:
    """Return the model's answers, each up to its end or to so many tokens."""
    longest = max(most)
    draws = Draws(prompts, longest, device=model.device, greedy=greedy)
    caches: list[Cache] = []
    states = []
    for prompt in prompts:
        cache, known = model.extend(None, prompt, last=1)
        caches.append(cache)
        states.append(known)
    beside = model.beside(caches, longest)
    del caches
    drawn: list[Tensor] = [draws.next(model.logits(torch.cat(states)))]
    ended = torch.zeros_like(drawn[0], dtype=torch.bool)
    ends = torch.tensor(ENDS, device=model.device)
    for at in range(1, longest):
        ended |= torch.isin(drawn[-1], ends)
        if at % LOOKED_AT == 0 and bool(ended.all()):
            break
        drawn.append(draws.next(model.logits(beside.step(drawn[-1]))))
    rows = torch.stack(drawn, dim=1).tolist()
    return [_until_end(row[:limit]) for row, limit in zip(rows, most, strict=True)]


def _until_end(tokens: list[int]) -> list[int]:
    """Return the tokens with the end they have, if they have one."""
    return next((tokens[: at + 1] for at, token in enumerate(tokens) if token in ENDS), tokens)


def write_all(
    model: Qwen, prompts: Sequence[dict[str, Any]], texts: Path, *, until: float, at_once: int
) -> Iterator[dict[str, Any]]:
    """Append an answer for each prompt that has none, until that time, and yield it; prompts of like length together."""
    there = (
        {json.loads(line)["id"] for line in texts.read_text().splitlines() if line.endswith("}")}
        if texts.exists()
        else set()
    )
    left = sorted((each for each in prompts if each["id"] not in there), key=lambda each: len(each["tokens"]))
    with texts.open("a") as file:
        for start in range(0, len(left), at_once):
            if time.monotonic() > until:
                return
            group = left[start : start + at_once]
            answers = written(model, [each["tokens"] for each in group], [each["most"] for each in group])
            for each, tokens in zip(group, answers, strict=True):
                row = {"id": each["id"], "tokens": tokens}
                file.write(json.dumps(row, separators=(",", ":")) + "\n")
                yield row
            file.flush()


def main() -> int:
    """Write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("prompts", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--minutes", type=float, default=180.0)
    parser.add_argument("--at-once", type=int, default=48)
    asked = parser.parse_args()
    begun = time.monotonic()
    model = Qwen(asked.model, device=asked.device)
    with opened(asked.prompts) as file:
        prompts = [json.loads(line) for line in file]
    count = 0
    for row in write_all(
        model, prompts, asked.texts, until=begun + 60 * asked.minutes, at_once=asked.at_once
    ):
        count += 1
        if count % asked.at_once == 0:
            print(
                f"{count} answers, the last of {len(row['tokens'])} tokens, {time.monotonic() - begun:.0f} s",
                flush=True,
            )
    print(f"{count} answers, {time.monotonic() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
