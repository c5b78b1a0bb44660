"""A model that recalls gets originals word for word, lists it can go on from, and hits with what stands around them."""

import re

import pytest

from lowwater.core.ledger import Ledger
from lowwater.core.messages import Text
from lowwater.core.stored import Append
from lowwater.stores.memory import MemoryStore
from lowwater.testing.views import PICTURE, Script, lines
from tests.core.recall.recall_parts import O200K, REFUSED, expand, recorded_ledger, search, tools_for


@pytest.fixture(scope="module")
def recorded() -> Ledger:
    return recorded_ledger()


def test_an_original_comes_back_word_for_word() -> None:
    output = lines(50) + "\n\n  indented \u3000 end\n"
    script = Script().user("Run it.").calls("terminal", {"command": "make all"}, output)
    answer = expand(script.ledger(), handle="lw:3")
    head, body = answer.split("\n", 1)
    assert re.fullmatch(r"\[lw:3 · tool result of terminal · [\d,]+ tokens\]", head)
    assert body == output
    assert expand(script.ledger(), handle="lw:2", lines=[1, 1]).endswith('terminal {"command":"make all"}')


def test_pictures_are_named_and_not_returned() -> None:
    script = Script("anthropic").user("Look.", PICTURE).calls("screenshot", {}, [Text(text="It is"), PICTURE])
    for handle in ("lw:1", "lw:3"):
        answer = expand(script.ledger(), handle=handle)
        assert "[image · image/png · " in answer
        assert PICTURE.data[:40] not in answer


def test_a_part_is_given_by_lines_or_characters(recorded) -> None:
    script = Script().user("first\nsecond\nthird\nfourth")
    answer = expand(script.ledger(), handle="1", lines=[2, 3])
    assert answer.split("\n") == [f"{answer.split(chr(10))[0]}", "second", "third", ""]
    assert " · lines 2–3 of 4]" in answer
    assert expand(script.ledger(), handle="1", lines="4").endswith("]\nfourth")
    assert expand(script.ledger(), handle="1", lines=[3, 99]).endswith("]\nthird\nfourth")
    assert expand(script.ledger(), handle="1", characters=[2, 5]).endswith("characters 2–5 of 25]\nirst")


def test_passages_around_words_come_with_their_place() -> None:
    log = lines(300) + "\nError: disk full on /dev/sda1\n" + lines(300, "after")
    script = Script().user("Go.").calls("terminal", {"command": "x"}, log)
    one, both = (expand(script.ledger(), handle=handle, around="disk  FULL") for handle in ("lw:3", "lw:1-3"))
    assert "Error: disk full on /dev/sda1" in one
    assert one == both
    assert O200K.count(one) < 300
    first, last = map(int, re.findall(r"lines (\d+)–(\d+) of 601", one)[0])
    assert first < 301 < last
    assert expand(script.ledger(), handle="lw:3", around="tape") == (
        f"{REFUSED}“tape” does not stand in lw:3: try fewer or other words."
    )


def test_a_short_range_is_given_in_full_and_a_long_one_as_a_list(recorded) -> None:
    assert expand(recorded, handle="lw:61-64").count(" tokens]\n") == 4
    listed = expand(recorded, 900, handle="lw:61-99")
    assert listed.startswith("[lw:61-99 · 39 messages, one line each")
    shown = re.findall(r"^lw:(\d+) · ", listed, re.MULTILINE)
    (rest,) = re.findall(r"more messages follow: expand lw:(\d+)-99\]", listed)
    assert shown == [str(n) for n in range(61, int(rest))]


def test_a_summary_leads_down_level_by_level(recorded) -> None:
    top = expand(recorded, handle="lw:3-60")
    assert "lw:3-30 · summary of 28 messages · 5 tokens · - Early work." in top
    assert "- More work." not in top, "that is in the view"
    below = expand(recorded, 3_000, handle="lw:3-30")
    assert below.startswith("[lw:3-30 · summary of 28 messages]\n- Early work.\n")
    assert "\nlw:3 · " in below


def test_search_tells_handle_size_excerpt_and_neighbours() -> None:
    script = Script().user("Go.").calls("terminal", {"command": "x"}, "Error: disk full").says("It is full.")
    answer = search(script.ledger(), query="disk error")
    first = script.ledger().messages[2].tokens
    assert f"lw:3 · tool result of terminal · {first} tokens · in view\n  Error: disk full\n" in answer
    assert "  beside it lw:2 · assistant, calls terminal · " in answer
    assert search(script.ledger(), query="tape").startswith(
        f"{REFUSED}no message has any of the words of “tape”"
    )


def test_search_asks_the_index_it_is_given() -> None:
    ledger = Script().user("Plain words.").says("数据库连接失败").ledger()
    store = MemoryStore()
    store.append("s", 0, Append(entries=tuple(ledger.entries)))
    tools = tools_for(ledger, search=lambda words, limit: store.search(words, session="s", limit=limit))
    assert "\nlw:2 · assistant" in tools.handle("lowwater_search", b'{"query": "\xe5\xa4\xb1\xe8\xb4\xa5"}')
