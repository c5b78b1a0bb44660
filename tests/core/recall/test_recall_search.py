"""Messages are found by the words in them, each with its group, its neighbours, its size and the place that matched."""

from collections.abc import Sequence

import pytest

from lowwater.core.entries import Appended, Numbers
from lowwater.core.ledger import Ledger, Numbered
from lowwater.core.messages import Format
from lowwater.core.recall.search import recall
from lowwater.core.sequences import AppendOnlyList, LazySequence
from lowwater.core.stored import Append, Hit
from lowwater.stores.memory import MemoryStore
from lowwater.testing.views import Script, lines

TRACE = lines(40) + "\nTypeError: cannot unpack int in billing/invoice.py\n" + lines(40, "more")


def story(format: Format = "openai_chat") -> Script:
    script = Script(format)
    script.user("Why does the nightly job fail?").calls("terminal", {"command": "make nightly"}, TRACE)
    script.says("The invoice module is broken.").user("数据库连接失败时应该重试三次").says(
        "わかりました。再試行します。"
    )
    return (
        script.asks(("read_file", {"path": "a.py"}), ("read_file", {"path": "b.py"}))
        .answers("call_2")
        .answers("call_3")
    )


def indexed(ledger: Ledger):
    """The ledger's messages in a real index, which is not told of any other session."""
    store = MemoryStore()
    messages = tuple(numbered.message for numbered in ledger.messages)
    tokens = tuple(numbered.tokens for numbered in ledger.messages)
    store.append("mine", 0, Append(entries=(Appended(at=0.0, messages=messages, tokens=tokens),)))
    return lambda words, limit: store.search(words, session="mine", limit=limit)


@pytest.fixture(params=[False, True], ids=["scan", "index"])
def find(request):
    def found(ledger: Ledger, words: str, **options):
        return recall(ledger, words, search=indexed(ledger) if request.param else None, **options)

    return found


def test_a_hit_comes_with_its_size_and_the_place_that_matched(find) -> None:
    ledger = story().ledger()
    hit = find(ledger, "TypeError cannot unpack")[0]
    assert (hit.handle, hit.tokens) == ("lw:3", ledger.messages[2].tokens)
    assert "TypeError: cannot unpack int in billing/invoice.py" in hit.excerpt
    assert "\n" not in hit.excerpt
    assert len(hit.excerpt) < 250
    assert hit.text == TRACE


@pytest.mark.parametrize("format", ["openai_chat", "anthropic"])
def test_a_result_comes_with_its_call_and_a_call_with_its_results(format) -> None:
    ledger = story(format).ledger()
    result, call = recall(ledger, "lw:3")[0], recall(ledger, "lw:2")[0]
    assert result.group == call.group == Numbers(first=2, last=3)
    assert [told.number for told in result.near] == [1, 2, 4]
    assert [told.number for told in call.near] == [1, 3, 4]
    assert call.text == 'terminal {"command":"make nightly"}'
    assert result.tokens_with_near == sum(numbered.tokens for numbered in ledger.messages[:4])


def test_parallel_calls_are_one_group_from_wherever_it_is_looked_at() -> None:
    ledger = story().ledger()
    assert len(ledger.messages) == 9
    assert {recall(ledger, f"{n}")[0].group for n in (7, 8, 9)} == {Numbers(first=7, last=9)}


def test_more_or_fewer_neighbours_can_be_asked_for() -> None:
    ledger = story().ledger()
    assert [told.number for told in recall(ledger, "lw:5", near=2)[0].near] == [3, 4, 6, 7]
    assert recall(ledger, "lw:5", near=0)[0].near == ()


@pytest.mark.parametrize(
    ("words", "handle"),
    [("连接失败", "lw:5"), ("数据库 重试", "lw:5"), ("再試行", "lw:6"), ("nightly job", "lw:1")],
)
def test_words_of_any_script_are_found_and_shown(find, words, handle) -> None:
    hit = find(story().ledger(), words)[0]
    assert hit.handle == handle
    assert words.split()[0] in hit.excerpt


def test_an_excerpt_shows_what_matched_of_a_word_written_without_spaces() -> None:
    text = "日" * 900 + "数据库连接在夜里失败了" + "月" * 900
    ledger = Script().user(text).ledger()
    (hit,) = recall(
        ledger, "数据库失败", search=lambda words, limit: [Hit(session="", number=1, tokens=1, score=1.0)]
    )
    assert "数据库连接" in hit.excerpt


def test_what_recall_was_asked_and_answered_is_not_found_again(find) -> None:
    script = story().calls("lowwater_search", {"query": "cannot unpack invoice"}, f"lw:3 {TRACE}")
    script.calls("mcp__lowwater__lowwater_expand", {"handle": "lw:3"}, TRACE)
    assert [hit.handle for hit in find(script.ledger(), "cannot unpack TypeError")] == ["lw:3"]


def test_no_more_are_returned_than_wanted(find) -> None:
    script = Script()
    for number in range(12):
        script.user(f"Ticket {number}.").says("Noted.")
    assert len(find(script.ledger(), "ticket")) == 5
    assert len(find(script.ledger(), "ticket", limit=2)) == 2
    assert find(script.ledger(), "xyzzy") == []
    assert find(script.ledger(), " … ") == []


def test_a_number_with_dashes_is_searched_for_and_one_with_lw_is_a_handle() -> None:
    ledger = Script().user("Released on 2024-11.").says("Fine.").ledger()
    assert recall(ledger, "2024-11")[0].handle == "lw:1"
    assert [hit.handle for hit in recall(ledger, "lw:1-2")] == ["lw:1", "lw:2"]


def test_a_hit_that_another_process_appended_since_is_left_out() -> None:
    ledger = story().ledger()
    hits = [Hit(session="", number=number, tokens=1, score=1.0) for number in (40, 1)]
    assert [hit.number for hit in recall(ledger, "fail", search=lambda words, limit: hits)] == [1]


def test_with_an_index_only_hits_and_their_neighbourhood_are_read() -> None:
    """A stored session of a hundred thousand messages is not read to find five."""
    (numbered,) = Script().user("again and again").ledger().messages
    fetched: list[int] = []

    def fetch(first: int, end: int) -> Sequence[Numbered]:
        fetched.extend(range(first, end))
        return [numbered] * (end - first)

    ledger = Ledger(messages=AppendOnlyList(before=LazySequence(100_000, fetch)))
    hits = [Hit(session="", number=number, tokens=1, score=1.0) for number in range(500, 100_000, 20_000)]
    found = recall(ledger, "again", search=lambda words, limit: hits)
    assert [hit.number for hit in found] == [hit.number for hit in hits]
    assert len(fetched) == 3 * len(hits)
