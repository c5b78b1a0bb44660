"""A summary can be walked back, level by level, to every message it stands for."""

import pytest

from lowwater.core.entries import Rewound
from lowwater.core.ledger import Ledger
from lowwater.core.recall.expand import expand
from lowwater.core.recall.recalled import recalled_text
from lowwater.core.recall.search import recall
from lowwater.errors import BadInput
from tests.core.recall.recall_ledgers import Elsewhere, compact, kept, summed, talk


def condensed() -> Ledger:
    """Two summaries and the message between them, made into one: nineteen messages under three levels."""
    ledger = compact(talk(10), summed("Early things.", (1, 8)), kept(9, 20))
    ledger = compact(
        ledger, summed("Early things.", (1, 8)), kept(9, 9), summed("Later.", (10, 16)), kept(17, 20)
    )
    return compact(ledger, summed("## Goal\n- All of it.", (1, 19), depth=2), kept(20, 20))


def test_a_deep_summary_leads_to_the_summaries_it_was_made_of_and_the_messages_between() -> None:
    ledger = condensed()
    expansion = expand(ledger, "lw:1-19")
    lines = [(child.handle, child.kind, child.messages, child.first_line) for child in expansion.children]
    assert lines == [
        ("lw:1-8", "summary", 8, "Early things."),
        ("lw:9", "message", 1, "Ask 5."),
        ("lw:10-16", "summary", 7, "Later."),
        *((f"lw:{n}", "message", 1, recalled_text(ledger.message(n))) for n in (17, 18, 19)),
    ]
    assert expansion.text == "## Goal\n- All of it."
    assert [child.handle for child in expand(ledger, "lw:1-8").children] == [f"lw:{n}" for n in range(1, 9)]


def test_an_updated_summary_leads_to_the_one_it_updates() -> None:
    ledger = compact(talk(5), summed("Before.", (1, 4)), kept(5, 10))
    ledger = compact(ledger, summed("After.", (1, 8)), kept(9, 10))
    assert [child.handle for child in expand(ledger, "1-8").children] == [
        "lw:1-4",
        "lw:5",
        "lw:6",
        "lw:7",
        "lw:8",
    ]


def test_a_summary_of_messages_with_gaps_has_a_handle_with_gaps() -> None:
    ledger = compact(talk(5), summed("Gap.", (1, 4), (6, 8)), kept(5, 5), kept(9, 10))
    by_ends, exactly = expand(ledger, "lw:1-8"), expand(ledger, "lw:1-4,6-8")
    assert by_ends.text == exactly.text == "Gap."
    assert [child.handle for child in by_ends.children] == [f"lw:{n}" for n in range(1, 9)], (
        "nothing is skipped"
    )
    assert exactly.handle == "lw:1-4,6-8"
    assert [child.handle for child in exactly.children] == [f"lw:{n}" for n in (1, 2, 3, 4, 6, 7, 8)]


def test_a_summary_written_anew_is_no_level_of_its_own() -> None:
    ledger = compact(talk(5), summed("A.", (1, 3)), summed("B.", (4, 8)), kept(9, 10))
    ledger = compact(ledger, summed("Both.", (1, 8), depth=2), kept(9, 10))
    ledger = compact(ledger, summed("Both, better.", (1, 8), depth=3), kept(9, 10))
    expansion = expand(ledger, "lw:1-8")
    assert expansion.text == "Both, better."
    assert [child.first_line for child in expansion.children] == ["A.", "B."]


def test_what_a_rewind_has_undone_is_not_mistaken_for_what_a_summary_was_made_of() -> None:
    ledger = compact(talk(10), summed("Undone.", (1, 12)), kept(13, 20))
    ledger = ledger.append(Rewound(at=2.0, to=1))
    ledger = compact(ledger, summed("Anew.", (1, 6)), kept(7, 20))
    ledger = compact(ledger, summed("All.", (1, 16)), kept(17, 20))
    kinds = [(child.handle, child.kind) for child in expand(ledger, "lw:1-16").children]
    assert kinds[0] == ("lw:1-6", "summary")
    assert kinds[1:] == [(f"lw:{n}", "message") for n in range(7, 17)]


def test_after_a_rewind_of_a_rewind_the_first_way_is_known_again() -> None:
    ledger = compact(talk(10), summed("First.", (1, 6)), kept(7, 20))
    ledger = compact(ledger, summed("Second.", (1, 12)), kept(13, 20))
    position = len(ledger.entries)
    ledger = ledger.append(Rewound(at=2.0, to=1))
    ledger = compact(ledger, summed("Other.", (1, 9)), kept(10, 20))
    ledger = ledger.append(Rewound(at=3.0, to=position))
    ledger = compact(ledger, summed("Second.", (1, 12)), summed("Third.", (13, 16)), kept(17, 20))
    assert expand(ledger, "lw:1-12").children[0].handle == "lw:1-6"


@pytest.mark.parametrize(
    ("handle", "said"),
    [
        ("lw:0", "there is no message lw:0: the session has 20"),
        ("lw:21", "there is no message lw:21"),
        ("lw:3-21", "there is no message lw:21"),
        ("lw:9-3", "lw:9-3 runs backwards: write lw:3-9"),
        ("", "is no handle"),
        ("lw:", "is no handle"),
        ("lw:-3", "is no handle"),
        ("lw:1..4", "is no handle"),
        ("lw:four", "is no handle"),
        ("lw:1,", "is no handle"),
        ("9" * 40, "is no handle"),
        ("lw:" + "1," * 5_000, "is no handle"),
        ("\x00\ud800" * 500, "is no handle"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_strange_handle_is_refused_in_one_short_sentence(handle: str, said: str) -> None:
    with pytest.raises(BadInput, match=said) as refused:
        expand(talk(10), handle)
    assert len(str(refused.value)) < 200
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "handle",
    [
        "lw:3-5",
        "LW:3-LW:5",
        "lw:3 - lw:5",
        "3–5",
        "[lw:3 to lw:5]",
        " `lw:3,4,5` ",
        "lw:4-5,3",
        "(recall: 3-5)"[9:],
    ],
)
def test_handles_are_read_as_people_and_models_write_them(handle: str) -> None:
    assert [child.handle for child in expand(talk(10), handle).children] == ["lw:3", "lw:4", "lw:5"]


def test_a_stored_ledger_is_read_no_further_than_the_question_needs() -> None:
    ledger = talk(3_000)
    ledger = compact(ledger, summed("Old.", (1, 5_000)), kept(5_001, 6_000))
    ledger = compact(ledger, summed("New.", (1, 5_900)), kept(5_901, 6_000))
    stored = Elsewhere(ledger)
    assert [one.number for one in recall(stored.reopened, "lw:300")[0].near] == [299, 301]
    assert set(stored.messages) == {298, 299, 300}
    stored.messages.clear()
    expansion = expand(stored.reopened, "lw:1-5900")
    assert [child.messages for child in expansion.children] == [5_000, *[1] * 900]
    assert set(stored.messages) <= set(range(5_000, 5_900)), "not what the older summary stands for"
