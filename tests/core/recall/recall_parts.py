"""Recall tools over a ledger, as the tests of their answers want them."""

from functools import cache
from typing import Any

import msgspec

from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.entries import Appended, Compacted, KeptRange, Numbers, SummarizedSpan
from lowwater.core.formats.codec import decode_messages
from lowwater.core.ledger import Ledger
from lowwater.core.recall.search import RecallRoom
from lowwater.session.recall_tools import RecallTools
from tests.generated import generate_session

O200K = tokenizer_for("o200k")
ENDLESS = RecallRoom(each=1_000_000, left=1_000_000)
REFUSED = "Nothing recalled: "


def tools_for(ledger: Ledger, room: RecallRoom = ENDLESS, **options: Any) -> RecallTools:
    return RecallTools(lambda: ledger, tokenizer=O200K, room=lambda: room, **options)


def within(tokens: int) -> RecallRoom:
    return RecallRoom(each=tokens, left=1_000_000)


def expand(ledger: Ledger, tokens: int = 1_000_000, **arguments: Any) -> str:
    return tools_for(ledger, within(tokens)).handle("lowwater_expand", arguments)


def search(ledger: Ledger, tokens: int = 1_000_000, **arguments: Any) -> str:
    return tools_for(ledger, within(tokens)).handle("lowwater_search", arguments)


@cache
def recorded_ledger() -> Ledger:
    """A session of some length with a summary of a summary in it, counted exactly."""
    messages = decode_messages(
        generate_session("coding", seed=4, target_tokens=60_000).as_anthropic().messages, "anthropic"
    )
    tokens = tuple(
        O200K.count("\n".join(msgspec.json.encode(part).decode() for part in m.parts)) for m in messages
    )
    ledger = Ledger().append(Appended(at=0.0, messages=tuple(messages), tokens=tokens))
    for text, last in (("- Early work.", 30), ("- More work.", 60)):
        summary = SummarizedSpan(text=text, role="user", sources=(Numbers(first=3, last=last),), tokens=5)
        kept = [
            KeptRange(numbers=Numbers(first=first, last=end))
            for first, end in ((1, 2), (last + 1, len(messages)))
        ]
        stands = (kept[0], summary, kept[1])
        ledger = ledger.append(Compacted(at=1.0, mechanisms=("summarize",), items=stands))
    return ledger
