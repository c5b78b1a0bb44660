"""Qwen2 in PyTorch, from the weights of a GGUF file: nothing but the forward pass over one prompt with a cached beginning.

It imports torch and numpy, and of this project only the reader of GGUF files, so that it runs on a borrowed machine.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch  # type: ignore[import-not-found]  # only there
from torch import Tensor
from torch.nn import functional  # type: ignore[import-not-found]  # only there

from bench.likelihood.gguf import Gguf

Attention = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""Given the number of a layer, and queries, keys and values of new tokens, what they attend to."""
PIECE = 4096
"""Tokens that are computed at once behind a cached beginning, or on a processor."""


class Cache:
    """The keys and values of the tokens so far."""

    def __init__(self, layers: int) -> None:
        self.tokens: list[int] = []
        self.keys: list[Tensor | None] = [None] * layers
        self.values: list[Tensor | None] = [None] * layers

    def beginning(self, length: int) -> "Cache":
        """Return the cache of the first tokens; it shares memory with this one."""
        cut = Cache(len(self.keys))
        cut.tokens = self.tokens[:length]
        cut.keys = [None if each is None else each[:, :, :length] for each in self.keys]
        cut.values = [None if each is None else each[:, :, :length] for each in self.values]
        return cut


class Qwen:
    """The model; weights in bfloat16 unless asked for in float32, norms and probabilities in float32."""

    def __init__(self, path: Path, *, device: str = "cpu", precise: bool = False) -> None:
        file = Gguf(path)
        told = {
            key.partition(".")[2]: value for key, value in file.metadata.items() if key.startswith("qwen2.")
        }
        self.window = int(told["context_length"])
        self._layers = int(told["block_count"])
        self._heads, self._groups = int(told["attention.head_count"]), int(told["attention.head_count_kv"])
        self._width = int(told["embedding_length"]) // self._heads
        self._epsilon = float(told["attention.layer_norm_rms_epsilon"])
        base = float(told["rope.freq_base"])
        self.device = device
        self._rates = base ** (-torch.arange(0, self._width, 2, dtype=torch.float64) / self._width)
        self._rates = self._rates.to(device=device)

        def weight(name: str) -> Tensor:
            kind = torch.float32 if precise else torch.bfloat16
            return torch.from_numpy(file.tensor(name)).to(kind).to(device)

        self._embedding = weight("token_embd.weight")
        self._head = weight("output.weight") if "output.weight" in file.names else self._embedding
        self._norm = weight("output_norm.weight")
        self._blocks = [
            {
                "attn_norm": weight(f"blk.{at}.attn_norm.weight"),
                "ffn_norm": weight(f"blk.{at}.ffn_norm.weight"),
                "qkv": torch.cat([weight(f"blk.{at}.attn_{each}.weight") for each in "qkv"]),
                "qkv_bias": torch.cat([weight(f"blk.{at}.attn_{each}.bias") for each in "qkv"]),
                "out": weight(f"blk.{at}.attn_output.weight"),
                "gate_up": torch.cat([weight(f"blk.{at}.ffn_{each}.weight") for each in ("gate", "up")]),
                "down": weight(f"blk.{at}.ffn_down.weight"),
            }
            for at in range(self._layers)
        ]

    @torch.inference_mode()  # type: ignore[untyped-decorator]  # only there
    def extend(self, cache: Cache | None, tokens: Sequence[int], *, last: int) -> tuple[Cache, Tensor]:
        """Return the cache with these tokens behind it, and what the model knows at each of the `last` tokens of them."""
        cache = cache.beginning(len(cache.tokens)) if cache is not None else Cache(self._layers)
        known: list[Tensor] = []
        at_once = PIECE if cache.tokens or self.device == "cpu" else len(tokens)
        for start in range(0, len(tokens), at_once):
            known.append(self._step(cache, tokens[start : start + at_once])[-last:])
        return cache, torch.cat(known)[-last:]

    @torch.inference_mode()  # type: ignore[untyped-decorator]  # only there
    def logits(self, known: Tensor) -> Tensor:
        """Return how likely each token is after each state, not normalised."""
        return (known @ self._head.T).float()

    def log_probabilities(self, known: Tensor) -> Tensor:
        """Return the log-probabilities of all tokens after each state, in float32."""
        return torch.log_softmax(self.logits(known), dim=-1)

    def beside(self, caches: Sequence[Cache], room: int) -> "Beside":
        """Return several conversations that go on beside each other, each by up to `room` tokens."""
        return Beside(self, caches, room)

    def _step(self, cache: Cache, tokens: Sequence[int]) -> Tensor:
        start = len(cache.tokens)
        places = torch.arange(start, start + len(tokens), device=self.device)
        state = self.through(
            torch.tensor(list(tokens), device=self.device),
            places,
            lambda at, query, key, value: self._behind(cache, at, query, key, value),
        )
        cache.tokens = [*cache.tokens, *tokens]
        return state

    def through(self, tokens: Tensor, places: Tensor, attention: Attention) -> Tensor:
        """Return what the model knows after each of these tokens at these places."""
        angles = torch.outer(places.to(torch.float64), self._rates)
        turns = (angles.cos().to(torch.float32), angles.sin().to(torch.float32))
        state = self._embedding[tokens]
        for at, block in enumerate(self._blocks):
            state = state + self._attend(at, block, self._normed(state, block["attn_norm"]), turns, attention)
            gate, up = (self._normed(state, block["ffn_norm"]) @ block["gate_up"].T).chunk(2, dim=-1)
            state = state + (functional.silu(gate) * up) @ block["down"].T
        return self._normed(state, self._norm)

    def _attend(
        self,
        at: int,
        block: dict[str, Tensor],
        state: Tensor,
        turns: tuple[Tensor, Tensor],
        attention: Attention,
    ) -> Tensor:
        count = state.shape[0]
        mixed = torch.addmm(block["qkv_bias"], state, block["qkv"].T)
        sizes = [self._heads * self._width, self._groups * self._width, self._groups * self._width]
        query, key, value = (
            each.view(1, count, -1, self._width).transpose(1, 2) for each in mixed.split(sizes, dim=-1)
        )
        query, key = _turned(query, turns), _turned(key, turns)
        return attention(at, query, key, value).transpose(1, 2).reshape(count, -1) @ block["out"].T

    def _behind(self, cache: Cache, at: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Add keys and values to the cache and return attention over all of it."""
        before_keys, before_values = cache.keys[at], cache.values[at]
        if before_keys is not None and before_values is not None:
            key, value = torch.cat([before_keys, key], dim=2), torch.cat([before_values, value], dim=2)
        cache.keys[at], cache.values[at] = key, value
        return self._attention(query, key, value)

    def _attention(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return causal attention; with a cached beginning, in pieces that need no mask of the whole."""
        count, whole = query.shape[2], key.shape[2]
        if count == whole:
            return functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        mask = torch.ones(count, whole, dtype=torch.bool, device=self.device).tril(whole - count)
        key, value = (each.repeat_interleave(self._heads // self._groups, dim=1) for each in (key, value))
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    def _normed(self, state: Tensor, weight: Tensor) -> Tensor:
        return (
            functional.rms_norm(state.float(), (state.shape[-1],), None, self._epsilon).to(state.dtype)
            * weight
        )


class Beside:
    """Conversations of different lengths that each go on by a token at a time, all at once."""

    def __init__(self, model: Qwen, caches: Sequence[Cache], room: int) -> None:
        self._model = model
        self._lengths = torch.tensor([len(each.tokens) for each in caches], device=model.device)
        width = int(self._lengths.max()) + room
        self._keys, self._values = (
            [_padded(list(layer), width) for layer in zip(*kept, strict=True)]
            for kept in ([each.keys for each in caches], [each.values for each in caches])
        )
        self._rows = torch.arange(len(caches), device=model.device)
        self._places = torch.arange(width, device=model.device)

    @torch.inference_mode()  # type: ignore[untyped-decorator]  # only there
    def step(self, tokens: Tensor) -> Tensor:
        """Return what the model knows after one more token of each."""
        state = self._model.through(tokens, self._lengths, self._attention)
        self._lengths = self._lengths + 1
        return state

    def _attention(self, at: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return the attention of each conversation's newest token; the rows are conversations, not places of one."""
        keys, values = self._keys[at], self._values[at]
        keys[self._rows, :, self._lengths] = key[0].transpose(0, 1)
        values[self._rows, :, self._lengths] = value[0].transpose(0, 1)
        width = int(keys.shape[2])
        # Several heads of queries share a head of keys: they are rows of one product, so that keys are read once.
        grouped = query[0].transpose(0, 1).reshape(len(self._rows), keys.shape[1], -1, keys.shape[3])
        weights = (grouped @ keys.transpose(2, 3)).float() / keys.shape[3] ** 0.5
        hidden = self._places[None, :] > self._lengths[:, None]
        weights = weights.masked_fill(hidden.view(-1, 1, 1, width), -torch.inf).softmax(dim=-1)
        mixed = (weights.to(values.dtype) @ values).reshape(len(self._rows), -1, values.shape[3])
        return mixed.transpose(0, 1)[None]


def _padded(kept: Sequence[Tensor | None], width: int) -> Tensor:
    """Return keys or values of several conversations in one tensor, with room behind each."""
    given = [each for each in kept if each is not None]
    one = given[0]
    whole = one.new_zeros(len(given), one.shape[1], width, one.shape[3])
    for row, each in enumerate(given):
        whole[row, :, : each.shape[2]] = each[0]
    return whole


def _turned(heads: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    """Return queries or keys with their places written into them (NEOX order: the halves are the pairs)."""
    cosines, sines = (each.to(torch.float32) for each in turns)
    left, right = heads.float().chunk(2, dim=-1)
    return torch.cat([left * cosines - right * sines, right * cosines + left * sines], dim=-1).to(heads.dtype)
