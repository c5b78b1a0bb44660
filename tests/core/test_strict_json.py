"""Equal JSON values have one spelling, those included that msgspec refuses to read."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lowwater.core.strict_json import canonical_json

NUMBERS = st.one_of(
    st.integers(min_value=-(10**40), max_value=10**40).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(
        ["1e400", "-1E+400", "1e-400", "-0", "-0.0", "NaN", "-Infinity", "9" * 5_000, "1e999999999999999999"]
    ),
)
STRINGS = st.text(st.characters(), max_size=6).map(json.dumps)
"""Spelled with escapes, lone surrogates among them."""


def spelled(blank: str) -> st.SearchStrategy[str]:
    """JSON text in which `blank` stands wherever a blank may stand."""
    return st.recursive(
        NUMBERS | STRINGS | st.sampled_from(["true", "null"]),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda items: f"[{blank}{f'{blank},'.join(items)}{blank}]"),
            st.lists(st.tuples(STRINGS, inner), max_size=3, unique_by=lambda pair: pair[0]).map(
                lambda pairs: f"{{{blank}{f',{blank}'.join(f'{k}{blank}:{blank}{v}' for k, v in pairs)}}}"
            ),
        ),
        max_leaves=8,
    )


@given(spelled(" \n"))
@example('{ "a" : 1e400 }')
@example("[ " * 3_000 + '" x "' + " ]" * 3_000)
def test_blanks_between_values_never_count(text: str) -> None:
    strings = r'"(?:[^"\\]|\\.)*"'
    bare = re.sub(rf"({strings})|\s+", lambda found: found[1] or "", text)
    assert canonical_json(text) == canonical_json(bare)


@given(spelled(""), STRINGS.filter(lambda key: key != '"cache_control"'))
@example("1e400", '"a"')
@example('"\\ud83d"', '"a"')
def test_a_cache_mark_never_counts_as_content(value: str, key: str) -> None:
    bare = f"{{{key}:{value}}}"
    marked = f'{{"cache_control": {{"type": "ephemeral", "odd": 1e400}}, {key}: {value}}}'
    assert canonical_json(marked, without=("cache_control",)) == canonical_json(bare)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param('{"a": 1e400}', '{"a":10.0E+399}', id="the same number beyond every float"),
        pytest.param('{"a":1,"b":1e400}', '{"b":1e400,"a":1}', id="order of keys beside it"),
        pytest.param('{"a":1e400,"a":2}', '{"a":2}', id="of two equal keys the last counts"),
        pytest.param('{"a":"\\uD83D"}', '{ "a":"\\ud83d" }', id="half a character in other letters"),
        pytest.param('{"a":"é\\ud83d"}', '{"a":"\\u00e9\\ud83d"}', id="escapes beside half a character"),
        pytest.param('{"a": NaN}', '{"a":NaN}', id="not a number"),
        pytest.param(
            '{"a":' + "9" * 5_000 + "}", '{"a": ' + "9" * 5_000 + "}", id="an integer of 5,000 digits"
        ),
        pytest.param('{"a":-0}', '{"a":0}', id="an integer has no negative zero"),
    ],
)
def test_equal_values_have_one_spelling(one: str, other: str) -> None:
    assert canonical_json(one) == canonical_json(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("1e400", "-1e400", id="sign"),
        pytest.param("1e400", "1e401", id="exponent"),
        pytest.param("1e400", '"1E+400"', id="a number is no string"),
        pytest.param("NaN", '"NaN"', id="not a number is no string"),
        pytest.param("0.0", "-0.0", id="negative zero"),
        pytest.param('"\\ud83d"', '"\\ud83e"', id="half a character"),
        pytest.param("9" * 5_000, "9" * 4_999 + "8", id="digits"),
    ],
)
def test_other_values_are_spelled_otherwise(one: str, other: str) -> None:
    assert canonical_json(f'{{"a":{one}}}') != canonical_json(f'{{"a":{other}}}')
