"""What a rule is: a function over one incoming request that yields how it is broken, or nothing."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from lowwater.testing.provider.prompt import Count

Json: TypeAlias = dict[str, Any]


class Violation(Struct, frozen=True, kw_only=True):
    """How a request breaks a rule, in the provider's words."""

    message: str
    status: int = 400
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None


class Refusal(Struct, frozen=True, kw_only=True):
    """The rule a request broke, by name, and what the provider said about it."""

    rule: str
    violation: Violation


class Incoming(Struct, frozen=True, kw_only=True):
    """One request as the rules see it: plain decoded JSON and what the provider knows about the model."""

    headers: Mapping[str, str]
    """By lower-case name; of a key it only matters that there is one."""
    size: int
    """Bytes of the body."""
    body: Json
    """The decoded body; empty if `problem` says why there is none."""
    problem: str = ""
    context_length: int
    count: Count
    counting: bool = False
    """True when only a token count is asked for: nothing is generated, so no output has to fit."""

    @property
    def model(self) -> str:
        """The model's name without what a router put before it."""
        return str(self.body.get("model", "")).rpartition("/")[2]

    @property
    def messages(self) -> list[Json]:
        """The messages; call it only behind the rules that check their shape."""
        messages: list[Json] = self.body["messages"]
        return messages


Rule: TypeAlias = Callable[[Incoming], Iterator[Violation]]


def first_refusal(rules: Iterable[Rule], incoming: Incoming) -> Refusal | None:
    """Return the first rule broken, in the order given: later rules may rely on what earlier ones checked."""
    for rule in rules:
        for violation in rule(incoming):
            return Refusal(rule=rule.__name__, violation=violation)
    return None
