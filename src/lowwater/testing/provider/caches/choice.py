"""Which provider caches a model's prompts, told by the model's name, and how it reports what it did."""

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

from msgspec import Struct

from lowwater.testing.provider.caches.blocks import BlockCache
from lowwater.testing.provider.caches.breakpoints import BreakpointCache
from lowwater.testing.provider.caches.cache import Cache
from lowwater.testing.provider.caches.marked import EitherCache, MarkedCache
from lowwater.testing.provider.caches.stepped import SteppedCache
from lowwater.testing.provider.caches.units import UnitCache

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0

Reports: TypeAlias = Literal["reads", "writes", "creation", "units"]
"""What a chat answer tells beside the tokens read: nothing, writes, writes by Qwen's name, or hits and misses."""


class Caching(Struct, frozen=True, kw_only=True):
    """One provider's cache: how to make an empty one for a model, and what its chat usage tells."""

    name: str
    new: Callable[[str], Cache]
    reports: Reports = "reads"


_CLAUDE = re.compile(r"claude-(?P<name>[a-z]+-\d)(?:[-.](?P<minor>\d)(?!\d))?")
_CLAUDE_LEAST = {
    "opus-4.5": 4_096,
    "opus-4.6": 4_096,
    "opus-4.7": 2_048,
    "haiku-4.5": 4_096,
    "fable-5": 512,
    "fable-5.1": 512,
    "opus-5": 512,
    "opus-5.5": 512,
    "sonnet-5.5": 512,
    "haiku-5.5": 512,
}
_CLAUDE_OTHERS = 1_024


def least_of_claude(model: str) -> int:
    """Return how many tokens a prefix needs to be cached on a Claude model."""
    found = _CLAUDE.search(model)
    if found is None:
        return 0
    name = found["name"] + (f".{found['minor']}" if found["minor"] else "")
    return _CLAUDE_LEAST.get(name, _CLAUDE_OTHERS)


def _least_of_gemini(model: str) -> int:
    if "flash-lite" in model:
        return 0
    return 2_048 if "gemini-2.5" in model else 4_096


_ALL = (
    Caching(name="anthropic", new=lambda model: MarkedCache(least=least_of_claude(model)), reports="writes"),
    Caching(name="openai", new=lambda _: BreakpointCache(), reports="writes"),
    Caching(
        name="openai-5.5",
        new=lambda _: SteppedCache(step=128, least=1_024, lifetime=5 * MINUTE, long=DAY),
    ),
    Caching(name="gemini", new=lambda model: SteppedCache(least=_least_of_gemini(model), lifetime=DAY)),
    Caching(name="deepseek", new=lambda _: UnitCache(), reports="units"),
    Caching(
        name="kimi",
        new=lambda _: SteppedCache(step=256, lifetime=5 * MINUTE, long=HOUR, tells_writes=True),
        reports="writes",
    ),
    Caching(
        name="qwen",
        new=lambda _: EitherCache(
            marked=MarkedCache(least=1_024, lifetimes={"5m": 5 * MINUTE}),
            unmarked=SteppedCache(least=1_024),
        ),
        reports="creation",
    ),
    Caching(name="grok", new=lambda _: SteppedCache(step=128)),
    Caching(name="automatic", new=lambda _: SteppedCache()),
    Caching(name="vllm", new=lambda _: BlockCache(block=16)),
    Caching(name="sglang", new=lambda _: BlockCache(block=1)),
)
CACHINGS = {caching.name: caching for caching in _ALL}
"""By name; `automatic` is the longest prefix for as long as it pleases, as of Mistral, GLM and MiniMax."""

_NAMES = (
    ("vllm", r"^vllm/"),
    ("sglang", r"^sglang/"),
    ("anthropic", r"claude-"),
    ("openai", r"(^|/)gpt-(5\.[6-9]|[6-9]|\d\d)"),
    ("openai-5.5", r"(^|/)(gpt-[345]|chatgpt|codex|o[134](-|$))"),
    ("gemini", r"(^|/)gemini"),
    ("deepseek", r"(^|/)deepseek"),
    ("kimi", r"(^|/)(kimi|moonshot)"),
    ("qwen", r"(^|/)qw(en|q)"),
    ("grok", r"(^|/)grok"),
    ("automatic", r"(^|/)(mistral|codestral|glm|minimax)"),
)


def caching_of(model: str) -> Caching | None:
    """Return how a model's provider caches, or None for a name that tells nothing."""
    for name, pattern in _NAMES:
        if re.search(pattern, model):
            return CACHINGS[name]
    return None
