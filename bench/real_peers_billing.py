"""What a run of requests is billed, by the project's cost engine: the cache's rules, its lifetimes and the model's prices.

Every request is marked as a good client would: behind tools and system, where it leaves the request before, and at its
end. So whoever sent it, the same bytes at the same times cost the same.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bench.real_peers_sent import Asked, Sent, lost
from lowwater.core.api_calls import Usage
from lowwater.core.cache.belief import (
    Belief,
    Block,
    Layout,
    MarkLifetime,
    after_call,
    chained,
    expected_usage,
)
from lowwater.core.costs.prices import cost_of
from lowwater.core.messages import Message
from lowwater.core.models.model import Model
from lowwater.core.tokens.counting import count_message, count_preamble, rules_for
from lowwater.lab.references.uses import LaterUse
from lowwater.lab.replay.script import ReplayScript, sheet_of
from lowwater.session.factories import counter_for, framing_for

Asks = Literal["fresh", "extended", "other"]
"""Who writes a peer's summaries: the same model that reads nothing cached, or what it read last; or a cheaper one."""


class Bill(Struct, frozen=True, kw_only=True):
    """What a session came to; money in nano-dollars, sizes in the model's tokens."""

    cost: int
    """Calls and summaries."""
    summaries: int
    """The part of it that went into summaries."""
    rework: int
    """A recall of each result that is used and no longer in the request: the prompt read again, the result written."""
    prompts: tuple[int, ...]
    read: int
    asked: int
    """Tokens that summarisers were shown."""
    too_large: int
    """Requests beyond the model's window."""

    @property
    def total(self) -> int:
        """All it cost, rework included."""
        return self.cost + self.rework


class Sizes:
    """Sizes of messages and texts in a model's tokens, each counted once."""

    def __init__(self, model: Model) -> None:
        self._tokenizer, self._framing = counter_for(model.name), framing_for(model.name)
        self._scale = rules_for(model.name).scale
        self._known: dict[bytes, int] = {}

    def of(self, message: Message) -> int:
        """Return the size of a message."""
        size = self._known.get(message.digest)
        if size is None:
            size = round(self._scale * count_message(message, self._tokenizer, framing=self._framing))
            self._known[message.digest] = size
        return size

    def of_text(self, text: str) -> int:
        """Return the size of a text."""
        return round(self._scale * self._tokenizer.count(text))

    def preamble(self, script: ReplayScript) -> int:
        """Return the size of tools alone: where a system prompt is known, it is a message."""
        return round(self._scale * count_preamble(b"", script.tools, self._tokenizer))


class Biller:
    """Bills requests one by one, as one conversation with a provider; `fixed` is what no message shows."""

    def __init__(self, model: Model, fixed: int, asks: Asks = "fresh", sizes: Sizes | None = None) -> None:
        self._model, self._fixed, self._asks = model, fixed, asks
        self._sizes = sizes or Sizes(model)
        self._sheet = sheet_of(model)
        self._belief = Belief()
        self._before: Layout | None = None
        self._called = 0.0

    def ask(self, asked: Asked, at: float) -> tuple[int, int]:
        """Return the tokens that a summariser was shown, and what its call costs."""
        shown, written = self._sizes.of_text(asked.prompt), self._sizes.of_text(asked.answer)
        if self._asks == "other":
            sheet = self._sheet
            return shown, (sheet.other_input * shown + sheet.other_output * written) // 1_000
        is_warm = self._before is not None and at - self._called <= self._sheet.ttl
        read = 0
        if self._asks == "extended" and is_warm and self._before is not None:
            read = min(shown, self._before.total)
        return shown, self._cost(Usage(cache_read=read, uncached=shown - read, output=written))

    def call(self, sent: Sent) -> tuple[Usage, int]:
        """Return what a request is billed, and its cost with the answer."""
        layout = self._layout(sent.messages)
        output = self._sizes.of(sent.answer)
        usage = replace(expected_usage(self._belief, layout, self._model, sent.at), output=output)
        self._belief = after_call(
            self._belief,
            layout,
            self._model,
            sent.at,
            output_key=chained([sent.answer.digest], start=layout.blocks[-1].key)[0],
            output_tokens=output,
        ).belief
        self._before, self._called = layout, sent.at
        return usage, self._cost(usage)

    def recall(self, prompt: int, tokens: int) -> int:
        """Return what one recall costs."""
        return self._cost(Usage(cache_read=prompt, cache_write=tokens))

    def _layout(self, messages: Sequence[Message]) -> Layout:
        keys = chained([b"preamble", *(message.digest for message in messages)])
        sizes = [self._fixed, *map(self._sizes.of, messages)]
        seam = _common(self._before, keys)
        marks: dict[int, MarkLifetime] = dict.fromkeys((0, seam, len(keys) - 1), "short")
        blocks = [
            Block(key=key, tokens=size, mark=marks.get(at, ""), ends=_ends(messages, at - 1))
            for at, (key, size) in enumerate(zip(keys, sizes, strict=True))
        ]
        return Layout(blocks=tuple(blocks))

    def _cost(self, usage: Usage) -> int:
        cost = cost_of(usage, self._model)
        assert cost is not None, f"no price is known for {self._model.name}"
        return cost


def bill(
    sents: Sequence[Sent],
    model: Model,
    *,
    fixed: int,
    asks: Asks = "fresh",
    uses: Mapping[int, Sequence[LaterUse]],
    sizes: Sizes,
) -> Bill:
    """Return what requests come to; `uses` has for each of them what its answer names of earlier results."""
    biller = Biller(model, fixed, asks, sizes)
    calls, asked, summaries, rework = [], 0, 0, 0
    cost = 0
    for turn, sent in enumerate(sents):
        for each in sent.asked:
            shown, price = biller.ask(each, sent.at)
            asked, summaries = asked + shown, summaries + price
        usage, price = biller.call(sent)
        calls.append(usage)
        cost += price
        for text in dict.fromkeys(use.origin.text for use in lost(sent, uses.get(turn, ()))):
            rework += biller.recall(usage.prompt, sizes.of_text(text))
    return Bill(
        cost=cost + summaries,
        summaries=summaries,
        rework=rework,
        prompts=tuple(usage.prompt for usage in calls),
        read=sum(usage.cache_read for usage in calls),
        asked=asked,
        too_large=sum(usage.prompt > model.context_length for usage in calls),
    )


def _common(before: Layout | None, keys: Sequence[bytes]) -> int:
    """Return the last block that a request shares with the one before."""
    if before is None:
        return 0
    return max((at for at, key in enumerate(keys) if key in before.index), default=0)


def _ends(messages: Sequence[Message], at: int) -> Literal["", "input", "output"]:
    if at < 0:
        return ""
    if messages[at].role == "assistant":
        return "output"
    is_last = at + 1 == len(messages) or messages[at + 1].role == "assistant"
    return "input" if is_last else ""
