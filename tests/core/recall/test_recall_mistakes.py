"""Whatever a model sends to a recall tool is answered with what to change, never with an exception."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.recall.search import RecallRoom
from lowwater.testing.strategies import ledgers
from lowwater.testing.views import Script
from tests.core.recall.recall_parts import O200K, REFUSED, tools_for


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        (
            "lowwater_find",
            {},
            "there is no tool “lowwater_find”: use lowwater_search, lowwater_expand or lowwater_pin",
        ),
        ("lowwater_search", {}, 'lowwater_search needs query as text: send {"query": "words to look for"}'),
        ("lowwater_search", {"query": "  "}, "lowwater_search needs query"),
        ("lowwater_search", {"query": ["a"]}, "lowwater_search needs query"),
        ("lowwater_search", {"query": "a", "limit": 0}, "limit must be a whole number from 1 to 20"),
        ("lowwater_search", {"query": "a", "limit": True}, "limit must be"),
        ("lowwater_search", {"query": "[lw:1-2]"}, "“[lw:1-2]” is a handle: give it to lowwater_expand"),
        ("lowwater_search", {"query": "a" * 5_000}, "query has 5,000 characters"),
        ("lowwater_expand", "{", "the arguments are no valid JSON"),
        ("lowwater_expand", "[1]", "the arguments must be one JSON object"),
        ("lowwater_expand", b"\xff", "the arguments are no valid JSON"),
        ("lowwater_expand", "", 'lowwater_expand needs handle as text: send {"handle": "lw:412"}'),
        ("lowwater_expand", {"handle": "lw:x"}, "“lw:x” is no handle: write a number such as lw:412"),
        ("lowwater_expand", {"handle": "lw:99"}, "there is no message lw:99: the session has 3"),
        ("lowwater_expand", {"handle": "1", "offset": 3}, "lowwater_expand has no argument “offset”"),
        ("lowwater_expand", {"handle": "1", "lines": [3, 1]}, "lines must be two whole numbers"),
        ("lowwater_expand", {"handle": "1", "lines": {}}, "lines must be two whole numbers"),
        ("lowwater_expand", {"handle": "3"}, "lw:3 has no text"),
        ("lowwater_expand", {"handle": "1", "lines": [9, 9]}, "lw:1 has only 1 lines"),
        ("lowwater_expand", {"handle": "1", "characters": [99, 100]}, "lw:1 has only 3 characters"),
        ("lowwater_expand", {"handle": "1", "lines": [1, 1], "around": "x"}, "give only one of"),
        (
            "lowwater_expand",
            {"handle": "1-2", "lines": [1, 1]},
            "lines and characters count within one message",
        ),
    ],
)
def test_a_mistake_is_answered_with_what_to_change(name, arguments, said) -> None:
    answer = tools_for(Script().user("Hi.").says("Yes.").answers("gone", "").ledger()).handle(name, arguments)
    assert answer.startswith(REFUSED + said)
    assert "\n" not in answer
    assert len(answer) < 200


@pytest.mark.parametrize(
    "arguments",
    [
        {"handle": 1},
        '{"handle": "lw:1", "around": null}',
        {"handle": "1", "lines": "1-1"},
        {"handle": "1", "lines": ["1", 1.0]},
    ],
    ids=repr,
)
def test_what_is_meant_is_taken(arguments) -> None:
    answer = tools_for(Script().user("Hi.").ledger()).handle("lowwater_expand", arguments)
    assert answer.endswith("\nHi.")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
HANDLES = st.sampled_from(("lw:1", "lw:1-3", "2", "lw:2-9999", "lw:1,3")) | JSON
GIVEN = st.fixed_dictionaries(
    {},
    optional={
        "handle": HANDLES,
        "query": JSON,
        "limit": JSON,
        "around": JSON,
        "lines": JSON | st.lists(st.integers(-3, 40), max_size=3),
        "characters": JSON | st.lists(st.integers(-3, 400), max_size=3),
    },
)


@given(
    ledgers(),
    st.sampled_from(("lowwater_search", "lowwater_expand", "other")),
    GIVEN | JSON | GIVEN.map(json.dumps) | st.text() | st.binary(max_size=40),
    st.integers(-5, 600),
)
def test_whatever_a_model_sends_is_answered_within_the_room(ledger, name, arguments, tokens) -> None:
    answer = tools_for(ledger, RecallRoom(each=tokens, left=tokens)).handle(name, arguments)
    assert isinstance(answer, str)
    assert answer.strip()
    assert O200K.count(answer) <= max(tokens, 150), "a refusal is one short sentence"
    assert O200K.count(answer) <= tokens or answer.startswith(REFUSED)
