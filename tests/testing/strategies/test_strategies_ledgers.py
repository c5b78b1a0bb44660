import itertools
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings

from lowwater.core.entries import (
    AlteredMessage,
    Appended,
    Checkpointed,
    Compacted,
    Entry,
    KeptRange,
    ModelChanged,
    Opened,
    PreambleChanged,
    Rewound,
    SummarizedSpan,
)
from lowwater.core.ledger import Ledger
from lowwater.testing.strategies import ledger_entries

QUICK = settings(max_examples=80)
FINDING = settings(max_examples=4_000, database=None, phases=[Phase.generate])


def folded(entries: list[Entry]) -> list[Ledger]:
    """Return the ledger after each entry."""
    ledgers_so_far = [Ledger()]
    for entry in entries:
        ledgers_so_far.append(ledgers_so_far[-1].append(entry))
    return ledgers_so_far


@QUICK
@given(ledger_entries())
def test_every_ledger_folds_and_its_view_is_the_sum_of_its_items(entries: list[Entry]) -> None:
    for ledger in folded(entries):
        assert ledger.view.tokens == sum(item.tokens for item in ledger.view.items)


@QUICK
@given(ledger_entries())
def test_a_compaction_makes_the_view_smaller_and_keeps_the_newest_user_message(entries: list[Entry]) -> None:
    for before, entry, after in zip(folded(entries), entries, folded(entries)[1:], strict=False):
        if isinstance(entry, Compacted):
            assert after.view.tokens < before.view.tokens
            newest = [m for m in before.view.messages if m.role == "user" and not m.results][-1:]
            assert all(message in after.view.messages for message in newest)
            assert after.view.shown_numbers() == before.view.shown_numbers()


@QUICK
@given(ledger_entries())
def test_a_ledger_opens_once_and_time_does_not_run_backwards(entries: list[Entry]) -> None:
    assert [isinstance(entry, Opened) for entry in entries] == [True, *[False] * (len(entries) - 1)]
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)


def stands(entries: list[Entry], kind: type) -> bool:
    return any(isinstance(s, kind) for entry in entries if isinstance(entry, Compacted) for s in entry.items)


WANTED = {
    "appended": lambda entries: any(isinstance(entry, Appended) for entry in entries),
    "preamble": lambda entries: any(isinstance(entry, PreambleChanged) for entry in entries),
    "model": lambda entries: any(isinstance(entry, ModelChanged) for entry in entries),
    "checkpoint": lambda entries: any(isinstance(entry, Checkpointed) for entry in entries),
    "kept": lambda entries: stands(entries, KeptRange),
    "altered": lambda entries: stands(entries, AlteredMessage),
    "summarized": lambda entries: stands(entries, SummarizedSpan),
    "two compactions": lambda entries: sum(isinstance(entry, Compacted) for entry in entries) > 1,
    "a summary of a summary": lambda entries: any(
        isinstance(s, SummarizedSpan) and s.depth > 1
        for e in entries
        if isinstance(e, Compacted)
        for s in e.items
    ),
    "rewound": lambda entries: any(
        isinstance(entry, Rewound) and not entry.discard_later for entry in entries
    ),
    "back in time": lambda entries: any(
        isinstance(entry, Rewound) and entry.discard_later for entry in entries
    ),
    "a compaction while a call is open": lambda entries: any(
        isinstance(before, Appended) and before.messages[-1].calls and isinstance(after, Compacted)
        for before, after in itertools.pairwise(entries)
    ),
    "an open call": lambda entries: any(
        isinstance(entry, Appended) and entry.messages[-1].calls for entry in entries
    ),
}


@pytest.mark.parametrize("wanted", WANTED.values(), ids=WANTED.keys())
def test_ledgers_contain(wanted: Any) -> None:
    assert wanted(find(ledger_entries(), wanted, settings=FINDING))
