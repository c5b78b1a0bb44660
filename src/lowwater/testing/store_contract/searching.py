"""What a store has to find by words."""

from lowwater.core.entries import Appended
from lowwater.core.messages import Message, Text, Thinking, ToolCall, ToolResult
from lowwater.protocols import Store
from lowwater.testing.store_contract.samples import Check, ConcealingCheck, Open, OpenConcealing, add, said


def _found(store: Store, words: str, *, session: str | None = None, limit: int = 5) -> list[tuple[str, int]]:
    return [(hit.session, hit.number) for hit in store.search(words, session=session, limit=limit)]


def _any_of_the_words_finds_a_message(reopen: Open) -> None:
    store = reopen()
    add(store, "s", 0, said("The kernel panicked in Tokyo"), said("a naïve test_auth.py"), said("nothing"))
    for words in ("kernel", "KERNEL", "absent kernel", "panicked, they said", "tokyo\tabsent\nwords"):
        assert _found(store, words) == [("s", 1)], words
    for words in ("test_auth.py", "naïve", "Naive", "auth"):
        assert _found(store, words) == [("s", 2)], words
    for words in ("kern", "absent", "test_kernel.py"):
        assert _found(store, words) == [], words
    assert set(_found(store, "kernel nothing")) == {("s", 1), ("s", 3)}
    store.close()


def _a_hit_says_where_it_is_and_how_long(reopen: Open) -> None:
    store = reopen()
    version = add(store, "s", 0, said("one"))
    add(store, "s", version, Appended(at=2.0, messages=said("other words").messages, tokens=(77,)))
    (hit,) = store.search("other")
    assert (hit.session, hit.number, hit.tokens) == ("s", 2, 77)
    assert hit.score > 0
    store.close()


def _everything_before_the_model_is_found(reopen: Open) -> None:
    store = reopen()
    call = ToolCall(id="c1", name="grep_files", arguments='{"pattern": "needle"}')
    asked = Message(role="assistant", parts=(Thinking(text="pondering", signature="s"), call))
    result = ToolResult(call_id="c1", parts=(Text(text="haystack"),))
    answered = Message(role="tool", parts=(result,))
    add(store, "s", 0, Appended(at=1.0, messages=(asked, answered), tokens=(1, 1)))
    for words, number in (("needle", 1), ("grep_files", 1), ("pondering", 1), ("haystack", 2)):
        assert _found(store, words) == [("s", number)], words
    store.close()


def _words_of_chinese_japanese_and_korean_are_found_inside_longer_ones(reopen: Open) -> None:
    store = reopen()
    add(store, "s", 0, said("出張は東京都で한국어だ"), said("京東と数据库连接失败。"), said("plain"))
    for words in ("東京", "東京都", "한국", "出張", "都で"):
        assert _found(store, words) == [("s", 1)], words
    for words in ("数据库", "连接", "失败", "absent 失败", "ジャガ 連接、失败"):
        assert _found(store, words) == [("s", 2)], words
    assert set(_found(store, "京")) == {("s", 1), ("s", 2)}
    assert _found(store, "都東") == []
    store.close()


def _more_of_the_words_and_rarer_ones_are_better(reopen: Open) -> None:
    store = reopen()
    common = [said(f"common text of filler {number}") for number in range(8)]
    rare = said("peculiar text of filler here")
    both = said("peculiar common of filler here")
    add(store, "s", 0, *common[:4], rare, *common[4:], both)
    hits = store.search("common peculiar", limit=3)
    assert [hit.number for hit in hits[:2]] == [10, 5]
    assert hits[0].score > hits[1].score > hits[2].score
    assert len(store.search("common peculiar", limit=100)) == 10
    store.close()


def _a_search_can_be_limited(reopen: Open) -> None:
    store = reopen()
    add(store, "a", 0, *(said(f"word {number}") for number in range(8)))
    add(store, "b", 0, said("word elsewhere"))
    assert len(store.search("word")) == 5
    assert len(store.search("word", limit=2)) == 2
    assert store.search("word", limit=0) == []
    assert len(store.search("word", limit=100)) == 9
    assert _found(store, "word", session="b") == [("b", 1)]
    assert len(store.search("word", session="a", limit=100)) == 8
    assert store.search("elsewhere", session="a") == []
    assert store.search("word", session="nobody") == []
    store.close()


def _the_same_message_is_a_hit_wherever_it_occurs_the_newest_first(reopen: Open) -> None:
    store = reopen()
    version = add(store, "a", 0, said("same words"), said("filler"), said("same words"))
    add(store, "b", 0, said("same words"))
    assert _found(store, "same") == [("b", 1), ("a", 3), ("a", 1)]
    add(store, "a", version, said("filler"))
    assert _found(store, "same", limit=2) == [("a", 3), ("a", 1)]
    store.close()


def _any_text_is_a_legal_search(reopen: Open) -> None:
    store = reopen()
    add(store, "s", 0, said("the quick AND the dead: it's a NEAR miss"), said("unrelated"))
    for nothing in ("", "   ", "\x00", "!?,;", '"', "''", "* ^ -", "( ) { }", "👩‍👩‍👧", "\ud83d", "%_\\"):
        assert store.search(nothing) == [], nothing
        assert store.search(nothing, session="s") == [], nothing
    legal = (
        '"quick',
        "quick*",
        "quick AND",
        "NOT quick",
        "(quick",
        "'; DROP TABLE messages; -- quick",
        "quick\x00",
        "quick & ! | <-> :*",
        "\\quick\\",
        "\ud83d quick",
        "quick " * 5_000,
        "quick " + " ".join(f"absent{number}" for number in range(3_000)),
    )
    for words in legal:
        assert _found(store, words) == [("s", 1)], words[:40]
    # What is joined is one word, of which all has to be there.
    for joined in ("text:quick", "NEAR(quick,2)", "quick+dead", "^quick-unrelated"):
        assert store.search(joined) == [], joined
    store.close()


def _what_is_concealed_is_not_found(reopen: OpenConcealing) -> None:
    store = reopen(lambda text: text.replace("hunter2", "[redacted]"))
    version = add(store, "s", 0, said("the password is hunter2, remember"))
    assert store.search("hunter2") == []
    assert _found(store, "remember") == [("s", 1)]
    # Only the index is without it: a message leaves as it came.
    (kept,) = store.messages("s", 1, 2, version=version)
    assert kept.message.text == "the password is hunter2, remember"
    store.close()


CHECKS: tuple[Check, ...] = (
    _any_of_the_words_finds_a_message,
    _a_hit_says_where_it_is_and_how_long,
    _everything_before_the_model_is_found,
    _words_of_chinese_japanese_and_korean_are_found_inside_longer_ones,
    _more_of_the_words_and_rarer_ones_are_better,
    _a_search_can_be_limited,
    _the_same_message_is_a_hit_wherever_it_occurs_the_newest_first,
    _any_text_is_a_legal_search,
)
CONCEALING_CHECKS: tuple[ConcealingCheck, ...] = (_what_is_concealed_is_not_found,)
