"""Generated sessions against caches written down a second time, without a line in common with the engine."""

import random

import pytest

from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Usage
from lowwater.core.cache.belief import Belief, Layout, MarkLifetime, after_call
from tests.core.cache.layouts import layout_of

REGISTRY = load_registry()


class Anthropic:
    """Entries live 300 seconds from when they, or longer ones that contain them, were last read or marked."""

    def __init__(self) -> None:
        self.entries: dict[bytes, float] = {}

    def call(self, layout: Layout, at: float) -> Usage:
        alive = {key for key, used in self.entries.items() if at - used <= 300}
        sizes = [block.tokens for block in layout.blocks]
        marked = [at for at, block in enumerate(layout.blocks) if block.mark and sum(sizes[: at + 1]) >= 512]
        hit = -1
        for mark in marked:
            for back in range(21):
                if mark - back >= 0 and layout.blocks[mark - back].key in alive:
                    hit = max(hit, mark - back)
                    break
        for block in layout.blocks[: hit + 1]:
            if block.key in alive:
                self.entries[block.key] = at
        for mark in marked:
            self.entries[layout.blocks[mark].key] = at
        read, last = sum(sizes[: hit + 1]), sum(sizes[: marked[-1] + 1]) if marked else 0
        return Usage(cache_read=read, cache_write=max(0, last - read), uncached=sum(sizes) - max(read, last))


class OldOpenAI:
    """Every prefix seen in the last 300 seconds is known, in steps of 128 from 1,024 on."""

    def __init__(self) -> None:
        self.entries: dict[bytes, float] = {}

    def call(self, layout: Layout, at: float) -> Usage:
        shared = 0
        for block in layout.blocks:
            if at - self.entries.get(block.key, -1e9) > 300:
                break
            shared += block.tokens
        read = shared - shared % 128 if shared >= 1_024 else 0
        for block in layout.blocks:
            self.entries[block.key] = at
        return Usage(cache_read=read, uncached=sum(block.tokens for block in layout.blocks) - read)


CASES = [("claude-opus-5-5", Anthropic), ("gpt-5", OldOpenAI)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("name", "kind"), CASES, ids=["anthropic", "openai"])
def test_the_belief_predicts_what_is_billed_and_recovers_within_a_turn(
    name: str, kind: type[Anthropic] | type[OldOpenAI], seed: int
):
    draw, model, provider = random.Random(seed), REGISTRY.find(name), kind()
    belief, at, blocks = Belief(), 0.0, [("system", draw.randint(300, 9_000))]
    off = billed = surprises = 0
    evicted = False
    for turn in range(150):
        at += draw.choice([3, 20, 100, 100, 290, 310, 1_000])
        blocks += [(f"{turn} {at}", draw.randint(1, 900)) for at in range(draw.randint(1, 6))]
        if len(blocks) > 30 and draw.random() < 0.1:
            cut = draw.randint(1, len(blocks) - 10)
            blocks[cut : cut + 8] = [(f"summary {turn}", 200)]
        evicted = draw.random() < 0.05
        if evicted:
            provider.entries.clear()
        marks: dict[int, MarkLifetime] = {
            0: "short",
            **{len(blocks) - back: "short" for back in (1, 2, 3) if back < len(blocks)},
        }
        layout = layout_of([size for _, size in blocks], names=[name for name, _ in blocks], marks=marks)
        reported = provider.call(layout, at)
        belief, error = after_call(belief, layout, model, at, reported=reported)
        if evicted:
            surprises += error.tokens > 0
        else:
            off += error.tokens
            billed += reported.prompt
    assert off <= 0.01 * billed
    assert surprises > 0, "an eviction must have been noticed, or this shows nothing"
