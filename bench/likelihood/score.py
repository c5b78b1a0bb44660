"""Scores the views of a file of inputs: how likely each token of the action is, and whether the model would write it itself.

    python -m bench.likelihood.score INPUTS RESULTS --model FILE.gguf [--device cuda] [--minutes 9] [--views full,named,…] [--most N]
    python -m bench.likelihood.score INPUTS RESULTS --server URL        # a vLLM server with the same model
    python -m bench.likelihood.score INPUTS RESULTS --llama FILE.gguf   # llama.cpp, from the package xllamacpp

Each view is one line of the results, numbers only; what is there is not scored again, so that a run can stop at any time. It runs where
only PyTorch and numpy are installed.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

sys.path.append(str(Path(__file__).parents[2]))

from bench.likelihood.inputs import FULL, Case, digest_of, opened, read_cases


@dataclass(frozen=True, kw_only=True)
class Scored:
    """An action under one view: the log-probability of each token, and whether it was the likeliest."""

    logs: list[float]
    hits: list[bool]


class Backend(Protocol):
    """Something that runs the model."""

    def score(self, prompt: Sequence[int], action: Sequence[int]) -> Scored:
        """Return how likely the action is behind the prompt."""
        ...


class Torch:
    """The model in PyTorch; what prompts have in common at the start with the last full one is computed once."""

    def __init__(self, path: Path, *, device: str, threads: int, precise: bool = False) -> None:
        import torch  # type: ignore[import-not-found]  # noqa: PLC0415  # only there

        from bench.likelihood.qwen import Qwen  # noqa: PLC0415

        if device == "cpu":
            torch.set_num_threads(threads)
        self._torch, self._model = torch, Qwen(path, device=device, precise=precise)
        self._last: Any = None

    def score(self, prompt: Sequence[int], action: Sequence[int]) -> Scored:
        """Return how likely the action is behind the prompt."""
        tokens = [*prompt, *action[:-1]]
        shared = 0 if self._last is None else common_beginning(self._last.tokens, prompt[:-1])
        # A beginning that is hardly shared is another conversation, whose own beginning will be shared from here on.
        begun = self._last.beginning(shared) if shared > len(prompt) // 20 else None
        cache, known = self._model.extend(
            begun, tokens[len(begun.tokens) if begun else 0 :], last=len(action)
        )
        if begun is None or len(tokens) > len(self._last.tokens):
            self._last = cache
        logs = self._model.log_probabilities(known)
        wanted = self._torch.tensor(list(action), device=logs.device)
        chosen = logs.gather(1, wanted[:, None])[:, 0]
        hits = logs.argmax(dim=1) == wanted
        return Scored(logs=chosen.tolist(), hits=hits.tolist())


def common_beginning(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens two sequences begin with alike."""
    for at, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return at
    return min(len(one), len(other))


def row_of(case: Case, view: str, prompt: Sequence[int], scored: Scored) -> dict[str, Any]:
    """Return a line of the results: log-likelihood by kind of token, and which references the model would write itself."""
    by_kind: dict[str, float] = {}
    for kind, log in zip(case.kinds, scored.logs, strict=True):
        by_kind[kind] = by_kind.get(kind, 0.0) + log
    return {
        "point": case.point,
        "view": view,
        "digest": digest_of(prompt),
        "tokens": len(prompt),
        "counts": dict(Counter(case.kinds)),
        "logs": {kind: round(log, 4) for kind, log in by_kind.items()},
        "hits": "".join("01"[hit] for hit in scored.hits),
        "spots": "".join("01"[all(scored.hits[at] for at in spot.tokens)] for spot in case.spots),
    }


def score_all(
    cases: Iterable[Case],
    results: Path,
    backend: Backend,
    *,
    until: float,
    views: Sequence[str] = (),
    most: int = 0,
) -> Iterator[dict[str, Any]]:
    """Append a line for each view that has none, until that time, and yield it; `views` are the beginnings of names."""
    known = {(row["point"], row["view"]): row for row in read_rows(results)}
    with results.open("a") as file:
        for case in cases:
            full = case.tokens(FULL)
            if most and len(full) > most:
                continue
            done: dict[str, dict[str, Any]] = {}
            for view in case.views:
                if views and not any(view.startswith(each) for each in views):
                    continue
                prompt = full if view == FULL else case.tokens(view)
                digest = digest_of(prompt)
                had = known.get((case.point, view))
                if had is not None and had["digest"] == digest:
                    done[digest] = had
                    continue
                if time.monotonic() > until:
                    return
                if digest in done:
                    row = {**done[digest], "view": view}
                else:
                    row = row_of(case, view, prompt, backend.score(prompt, case.action))
                done[digest] = row
                file.write(json.dumps(row, separators=(",", ":")) + "\n")
                file.flush()
                yield row


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the results of a file; of a view that was scored in two states, the last."""
    if not path.exists():
        return []
    with opened(path) as file:
        return latest(json.loads(line) for line in file if line.endswith(b"}\n"))


def latest(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the last row of each view."""
    return list({(row["point"], row["view"]): row for row in rows}.values())


def main() -> int:
    """Score."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("inputs", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--model", type=Path, help="a GGUF file, run by PyTorch")
    parser.add_argument("--llama", type=Path, help="a GGUF file, run by llama.cpp")
    parser.add_argument("--server", help="the address of a vLLM server")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precise", action="store_true", help="in float32, slowly")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=180.0)
    parser.add_argument("--views", default="", help="beginnings of the names of views; all if empty")
    parser.add_argument("--most", type=int, default=0, help="leave out points with longer prompts")
    parser.add_argument("--points", type=int, default=0, help="score so many points at most")
    asked = parser.parse_args()
    until = time.monotonic() + 60 * asked.minutes
    cases = [
        case for case in read_cases(asked.inputs) if not asked.most or len(case.tokens(FULL)) <= asked.most
    ]
    views = [each for each in asked.views.split(",") if each]
    begun, count, tokens = time.monotonic(), 0, 0
    for row in score_all(
        cases[: asked.points or None],
        asked.results,
        _backend(asked),
        until=until,
        views=views,
        most=asked.most,
    ):
        count += 1
        tokens += row["tokens"]
        if count % 20 == 0:
            print(
                f"{count} views, {tokens} tokens, {time.monotonic() - begun:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    print(f"{count} views, {tokens} tokens of prompts, {time.monotonic() - begun:.0f} s")
    return 0


def _backend(asked: argparse.Namespace) -> Backend:
    if asked.model is not None:
        return Torch(asked.model, device=asked.device, threads=asked.threads, precise=asked.precise)
    from bench.likelihood.servers import Llama, Vllm  # noqa: PLC0415  # only here

    return Llama(asked.llama) if asked.llama is not None else Vllm(asked.server)


if __name__ == "__main__":
    sys.exit(main())
