"""Who should write a summary: the same model riding its cached prefix, or another one; by cost, and by what fits."""

from typing import Literal

from msgspec import Struct

from lowwater.economics.bill import cost_of
from lowwater.values.layout import Lifetime
from lowwater.values.model import Model
from lowwater.values.usage import Usage


class SummaryWork(Struct, frozen=True, kw_only=True):
    """A summary to be written, in tokens."""

    prompt: int
    """The request it would follow."""
    hit: int
    """How much of that would be read from the cache."""
    replaced: int
    """What it stands for: all that another model has to see."""
    instruction: int
    summary: int


class SummaryCall(Struct, frozen=True, kw_only=True):
    """One way to get a summary written."""

    how: Literal["riding", "cold", "other", "native"]
    """After the same request with its prefix cached, after the same request with nothing cached, elsewhere, or by the
    provider itself over the beginning of the request."""
    model: str
    usage: Usage
    cost: int | None
    """In nano-dollars; None if that model's price is unknown."""


def summary_calls(
    work: SummaryWork, model: Model, *, other: Model | None = None, at: float | None = None
) -> list[SummaryCall]:
    """Return the ways to get a summary written that fit their model's window, the session's own model first.

    After the same request everything not read is plain input: no mark is added, for what would be written is about to
    be replaced.
    """
    fresh = work.prompt - work.hit + work.instruction
    own = Usage(cache_read=work.hit, uncached=fresh, output=work.summary)
    calls: list[SummaryCall] = []
    if _fits(own, model):
        how: Literal["riding", "cold"] = "riding" if work.hit > 0 else "cold"
        calls.append(SummaryCall(how=how, model=model.name, usage=own, cost=cost_of(own, model, at)))
    alone = Usage(uncached=work.replaced + work.instruction, output=work.summary)
    if other is not None and _fits(alone, other):
        cost = cost_of(alone, other, at)
        calls.append(SummaryCall(how="other", model=other.name, usage=alone, cost=cost))
    return calls


def native_call(
    work: SummaryWork, model: Model, *, lifetime: Lifetime = "short", at: float | None = None
) -> SummaryCall | None:
    """Return what it takes to have the provider compact the first `prompt` tokens itself; None if they do not fit its window.

    The request ends where the block is to end, with a mark there to read by: what the cache does not hold yet is written.
    Where it holds nothing, the request has no mark. The provider bills it as a call of its own (`usage.iterations`).
    """
    fresh = max(0, work.prompt - work.hit)
    used = Usage(uncached=fresh + work.instruction, output=work.summary)
    if work.hit:
        used = Usage(
            cache_read=work.hit,
            cache_write=0 if lifetime == "long" else fresh,
            cache_write_long=fresh if lifetime == "long" else 0,
            uncached=work.instruction,
            output=work.summary,
        )
    if not _fits(used, model):
        return None
    return SummaryCall(how="native", model=model.name, usage=used, cost=cost_of(used, model, at))


def _fits(usage: Usage, model: Model) -> bool:
    output_fits = model.max_output is None or usage.output <= model.max_output
    return output_fits and usage.prompt + usage.output <= model.context_length
