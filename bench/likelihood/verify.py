"""Compares the model in PyTorch and the tokens with llama.cpp, on the shortest views of the points of a file of inputs.

    python -m bench.likelihood.verify INPUTS MODEL.gguf [--views 3] [--tokens 24]

It ends with status 1 if the mean difference of log-probabilities is above a tenth of a nat, or if a text has other tokens.
"""

import argparse
import sys
from pathlib import Path

from bench.likelihood.gguf import Gguf
from bench.likelihood.inputs import read_cases
from bench.likelihood.score import Torch
from bench.likelihood.servers import Llama

MOST = 0.1
"""llama.cpp multiplies with activations of 8 bits, and PyTorch here in bfloat16; a wrong model is off by nats."""


def main() -> int:
    """Print the differences."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("inputs", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--views", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=24, help="of each action, the first so many")
    asked = parser.parse_args()
    views = [
        (min(map(case.tokens, case.views), key=len), case.action[: asked.tokens])
        for case in read_cases(asked.inputs)
    ]
    shortest = sorted(views, key=lambda each: len(each[0]))[: asked.views]
    llama, torch = Llama(asked.model), Torch(asked.model, device="cpu", threads=2)
    tokens = Gguf(asked.model).metadata["tokenizer.ggml.tokens"]
    differences: list[float] = []
    wrong = 0
    for prompt, action in shortest:
        plain = [token for token in action if not tokens[token].startswith("<|")]
        wrong += llama.tokens(llama.text(plain)) != plain
        theirs, ours = llama.score(prompt, action), torch.score(prompt, action)
        each = [abs(one - other) for one, other in zip(theirs.logs, ours.logs, strict=True)]
        differences += each
        same = sum(one == other for one, other in zip(theirs.hits, ours.hits, strict=True))
        print(
            f"prompt of {len(prompt)} tokens: sum {sum(theirs.logs):.3f} and {sum(ours.logs):.3f}, mean difference "
            f"{sum(each) / len(each):.4f}, largest {max(each):.3f}; likeliest the same for {same} of {len(action)}"
        )
    mean = sum(differences) / len(differences)
    print(
        f"mean difference {mean:.4f} nats over {len(differences)} tokens; {wrong} actions with other tokens"
    )
    return int(mean > MOST or wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
