"""The calls of a recording in order, each with what the audit asks about it."""

from collections.abc import Collection, Iterator
from hashlib import blake2b

import msgspec
from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.models.model import Model, Prices
from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage, Recording
from lowwater.replay.audit.pricing import Pricing

SUMMARY = "compact_summary"
_TOOL_SEARCH = "ToolSearch"
"""The tool by which a model asks Claude Code for the definitions of tools that it knows by name only."""
_KEY_BYTES = 8


class Call(Struct, frozen=True, kw_only=True):
    """One call to a model."""

    index: int
    """Its answer's place among the messages."""
    model: Model
    """With the prices of its day."""
    usage: Usage | None
    """None if no prompt was recorded; it then has no price either."""
    output: int = 0
    others: tuple[Usage, ...] = ()
    """What calls that were made beside it were billed, such as for a summary."""
    at_list_price: bool = True
    asked: float | None = None
    answered: float | None = None
    begins_turn: bool = False
    """Whether the user said something right before it."""
    loads_tools: bool = False
    """Whether it is the first with tools that the model searched for: Claude Code adds to the list of tools for that."""
    compaction: NativeCompaction | None = None
    """The client's own compaction between the call before and this one."""
    keys: tuple[bytes, ...] = ()
    """What the same call has in another file: by its id, and by its time and usage; empty if nothing tells."""
    made_by: str = ""
    """The session that made it, if this one only repeats it."""
    copied: bool = False
    """A file before told it already, or another session made it: it is known, and not counted here."""

    @property
    def at(self) -> float | None:
        """When it was made, as well as that is known."""
        return self.answered if self.asked is None else self.asked

    @property
    def prices(self) -> Prices | None:
        """What it was billed at; None if that is not known."""
        return None if self.usage is None else self.prices_of(self.usage)

    @property
    def billed(self) -> tuple[Usage, ...]:
        """What was billed for it, its own prompt first."""
        return self.others if self.usage is None else (self.usage, *self.others)

    def prices_of(self, usage: Usage) -> Prices | None:
        """Return what a usage of its model was billed at when it was made; None if that is not known."""
        return self.model.prices_at(usage.prompt, self.at) if self.at_list_price else None


def calls_of(recording: Recording, pricing: Pricing, told: Collection[bytes] = ()) -> tuple[Call, ...]:
    """Return the calls of a recording; those whose keys were `told` before are copies."""
    return tuple(_calls(recording, pricing, told))


def _calls(recording: Recording, pricing: Pricing, told: Collection[bytes]) -> Iterator[Call]:
    compactions = {
        each.index: each for each in sorted(recording.compactions, key=lambda each: each.kind == "summary")
    }
    begins_turn, crossed, last = False, None, None
    searched, loaded = False, False
    for index, recorded in enumerate(recording.messages):
        found = compactions.get(index)
        if found is not None and (crossed is None or crossed.kind == "prune"):
            crossed = found
        if recorded.call is not None:
            name = recorded.call.model or recording.model
            asked = recorded.call.asked_at if recorded.call.asked_at is not None else last
            keys = tuple(_keys(recorded.call, recorded.at))
            yield Call(
                index=index,
                model=pricing.model(name, recorded.at if asked is None else asked),
                usage=_metered(recorded.call.usage),
                output=recorded.call.usage.output if recorded.call.usage else 0,
                others=recorded.call.others,
                at_list_price=recorded.call.list_price,
                asked=_before(asked, recorded.at),
                answered=recorded.at,
                begins_turn=begins_turn,
                loads_tools=searched and not loaded,
                compaction=crossed,
                keys=keys,
                made_by=recorded.call.made_by,
                copied=any(key in told for key in keys),
            )
            begins_turn, crossed, loaded = False, None, searched
        searched = searched or any(call.name == _TOOL_SEARCH for call in recorded.message.calls)
        begins_turn = begins_turn or _is_said(recorded)
        last = last if recorded.at is None else recorded.at


def _is_said(recorded: RecordedMessage) -> bool:
    """Whether the user said it; results of tools come as a user's message in some formats."""
    message = recorded.message
    return message.role == "user" and recorded.kind != SUMMARY and not message.results


def _metered(usage: Usage | None) -> Usage | None:
    """Return the usage if it has a prompt: some clients record what was written and nothing else."""
    return usage if usage is not None and usage.prompt else None


def _before(asked: float | None, answered: float | None) -> float | None:
    """Return when it was asked, which is never after the answer whatever a clock says."""
    return asked if asked is None or answered is None else min(asked, answered)


def _keys(call: RecordedCall, at: float | None) -> Iterator[bytes]:
    """Yield what a call is known by: a copy may have another time, and another format no ids."""
    if call.id:
        yield _digest(("id", call.id))
    if at is not None and call.usage is not None:
        yield _digest((at, call.model, call.usage))


def _digest(told: object) -> bytes:
    return blake2b(msgspec.json.encode(told), digest_size=_KEY_BYTES).digest()
