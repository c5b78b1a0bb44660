"""What a session is billed: the usage that the provider reported, at the prices of the model."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.frameworks.scripted import is_of_agent, messages_in
from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Usage, together
from lowwater.core.costs.prices import cost_of_all
from lowwater.core.formats.usage import decode_anthropic_usage as decode_anthropic
from lowwater.core.formats.usage import decode_openai_usage as decode_chat
from lowwater.testing.provider import Fail, Hang, Say, Seen
from lowwater.testing.provider.answers import Spoken
from lowwater.testing.provider.anthropic import MessagesDialect
from lowwater.testing.provider.caches import Machines
from lowwater.testing.provider.openai import ChatDialect
from lowwater.testing.provider.prompt import Count, Ids, Json, ReceivedRequest
from lowwater.testing.provider.responses_api import ResponsesDialect

_COMPACT = "/v1/responses/compact"
_MARKS = ("cache_control", "prompt_cache_breakpoint")


class Bill(Struct, frozen=True, kw_only=True):
    """All calls of a session together; money in nano-dollars, None if the model has no price."""

    calls: int
    summaries: int
    """Calls that were not turns of the agent."""
    usage: Usage
    largest: int
    """The largest prompt of the agent's turns, in the model's tokens."""
    cost: int | None


class Biller:
    """Gives every request the usage that a provider with a standing clock gave it: the same rules, in the same order."""

    def __init__(self, count: Count, window: int) -> None:
        machines = Machines(now=standing)
        self._count, self._window = count, window
        self._anthropic = MessagesDialect(ids=Ids(), key=b"lowwater", machines=machines)
        self._chat = ChatDialect(ids=Ids(), machines=machines)
        self._responses = ResponsesDialect(ids=Ids(), key=b"lowwater", machines=machines)

    def usage_of(self, seen: Seen) -> Usage | None:
        """Return what a request was billed; None if it got no answer."""
        if seen.answer is None or isinstance(seen.answer, Fail | Hang):
            return None
        is_claude = seen.path.startswith("/v1/messages")
        incoming = ReceivedRequest(
            headers=seen.headers,
            size=len(seen.raw),
            body=seen.body,
            context_length=self._window,
            count=self._count,
        )
        reported = msgspec.json.encode(self._replying(seen.path)(seen.answer, incoming)["usage"])
        usage = decode_anthropic(reported) if is_claude else decode_chat(reported)
        if seen.path.startswith(_COMPACT) and isinstance(seen.answer, Say):
            # The provider leaves it out; who writes a summary is paid for it, sealed or not.
            return replace(usage, output=self._count(seen.answer.text))
        return usage

    def _replying(self, path: str) -> Callable[[Spoken, ReceivedRequest], Json]:
        if path.startswith(_COMPACT):
            return self._responses.compacted
        if path.startswith("/v1/responses"):
            return self._responses.reply
        return self._anthropic.reply if path.startswith("/v1/messages") else self._chat.reply


def standing() -> float:
    """The clock of provider and biller: a session takes no time, so that no cache expires."""
    return 0.0


def bill_of(requests: Iterable[Seen], model: str, *, count: Count, window: int) -> Bill:
    """Return the bill of all requests of one session, in the order in which they came."""
    biller = Biller(count, window)
    billed = [(seen, usage) for seen in requests if (usage := biller.usage_of(seen)) is not None]
    usages = [usage for _, usage in billed]
    return Bill(
        calls=len(billed),
        summaries=sum(not is_of_agent(seen) for seen, _ in billed),
        usage=together(usages),
        largest=max((usage.prompt for seen, usage in billed if is_of_agent(seen)), default=0),
        cost=cost_of_all(usages, load_registry().find(model)),
    )


def moved_prefixes(requests: Sequence[Seen]) -> int:
    """Return how often a turn of the agent did not begin with all that the turn before it sent; cache marks do not count."""
    turns = [seen for seen in requests if seen.answer is not None and is_of_agent(seen)]
    return sum(not _extends(before.body, after.body) for before, after in pairwise(turns))


def _extends(before: dict[str, Any], after: dict[str, Any]) -> bool:
    old, new = _bare(messages_in(before)), _bare(messages_in(after))
    preamble = ("system", "instructions", "tools")
    same = all(_bare(before.get(name)) == _bare(after.get(name)) for name in preamble)
    return same and new[: len(old)] == old


def _bare(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return JSON without cache marks; a text and the one block that it becomes to carry a mark are the same."""
    if isinstance(value, list):
        return [_bare(each) for each in value]
    if not isinstance(value, dict):
        return value
    bare = {key: _bare(each) for key, each in value.items() if key not in _MARKS}
    content = bare.get("content")
    if isinstance(content, list) and len(content) == 1 and set(content[0]) == {"type", "text"}:
        bare["content"] = content[0]["text"]
    return bare
