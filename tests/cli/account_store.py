"""Many small sessions whose turns and compactions were put into a real SQLite file, without playing them."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.decisions import Reason
from lowwater.core.entries import Opened
from lowwater.core.events import Compaction, Event, Mode, Rejected, Skip, TurnRecord
from lowwater.core.stored import About, Append
from lowwater.stores.addresses import open_store

START = 1_790_000_000.0
DAY = 86_400.0
SPELLINGS = {
    "claude-opus-5-5": "claude-opus-5-5",
    "openrouter/anthropic/claude-opus-5.5": "claude-opus-5-5",
    "claude-haiku-4-5": "claude-haiku-4-5",
    "claude-haiku-4-5-20251001": "claude-haiku-4-5",
    "gpt-6.1-sol": "gpt-6.1-sol",
    "house-model-7": "house-model-7",
}
"""How calls spell a model, and the name it goes by."""
UNPRICED = "house-model-7"


def book(store: Path, *, sessions: int, turns: int, seed: int = 1, every: int = 4) -> None:
    """Put sessions with about `turns` turns into a store, each a day after the one before, compacted about `every` turns."""
    draw, opened = Random(seed), open_store(f"sqlite:///{store}")  # a dice, not a key
    with closing(opened):
        for number in range(sessions):
            name, version, at = f"s{number}", 0, START + number * DAY
            model = draw.choice(list(SPELLINGS))
            about = About(title=f"Booked {number}", ended_at=at + DAY if number % 7 == 0 else None)
            entry = Opened(at=at, model=SPELLINGS[model], vocabulary="o200k")
            for new in _appends(draw, model, at, turns + draw.randrange(-1, 2), every):
                first = new if version else replace(new, entries=(entry,), about=about)
                version = opened.append(name, version, first)


def _appends(draw: Random, model: str, at: float, turns: int, every: int) -> Iterator[Append]:
    prompt, removed, number = draw.randrange(4_000, 30_000), 0, 0
    for _ in range(turns):
        at += draw.randrange(1, 900)
        events: list[Event] = []
        if draw.randrange(every) == 0:
            number += 1
            event = _compaction(draw, model, at, prompt, number)
            events.append(event)
            prompt, removed = event.after, removed + event.reclaimed
        elif draw.random() < 0.5:
            code = draw.choice(["rent-below-price", "cooling-down"])
            events.append(Skip(at=at, because=Reason(code=code), prompt=prompt))
        yield Append(events=tuple(events), record=_record(draw, model, at + 1, prompt, removed))
        prompt += draw.randrange(500, 9_000)


def _record(draw: Random, model: str, at: float, prompt: int, removed: int) -> TurnRecord:
    read = draw.choice([0, prompt // 2, prompt - 100])
    long = draw.choice([0, 0, 50])
    usage = Usage(
        uncached=20, cache_read=read, cache_write=prompt - read - 20 - long, cache_write_long=long, output=300
    )
    is_reported = draw.random() < 0.95
    is_priced = is_reported and model != UNPRICED and draw.random() < 0.95
    return TurnRecord(
        at=at,
        model=model,
        usage=usage if is_reported else None,
        expected=Usage(cache_read=read, uncached=prompt - read + 7) if draw.random() < 0.8 else None,
        cost=prompt * 300 if is_priced else None,
        untouched=(prompt + removed) * 300 if is_priced else None,
        removed=removed,
        decision="rent-below-price",
    )


def _compaction(draw: Random, model: str, at: float, prompt: int, number: int) -> Compaction:
    modes: list[Mode] = ["prune", "summary", "condense", "shorten"]
    mode = draw.choice(modes)
    writes = mode in {"summary", "condense"}
    return Compaction(
        at=at,
        model=model,
        mode=mode,
        mechanisms=("summarize_all" if writes else "elide",),
        because=Reason(code="rent-paid"),
        before=prompt,
        after=prompt // 3,
        items_before=40,
        items_after=12,
        first_changed=draw.randrange(2, 9),
        disturbed=prompt // 4,
        summary_tokens=draw.randrange(300, 900) if writes else 0,
        summarizer=draw.choice(["claude-haiku-4-5", "extractive"]) if writes else "",
        score=draw.choice([0.8, 1.0]) if writes else None,
        cost=None if model == UNPRICED and writes else 7_000_000 if writes else 0,
        price=9_000_000,
        saves=2_000_000,
        number=number,
        rejected=_rejected(draw) if writes else (),
    )


def _rejected(draw: Random) -> tuple[Rejected, ...]:
    refused = Rejected(by="gpt-6.1-sol", code="failed", missing=0, first_missing=(), error="it timed out")
    return (refused,) if draw.random() < 0.2 else ()
