"""Only the fields that are to change do; every other byte of a body stays."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.errors import BadInput
from lowwater.summarizers.requests import spans_of, with_fields, with_items

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    | st.sampled_from(['"', "\\", "}],{", "\\u0022"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)
BODIES = st.dictionaries(st.text(max_size=8), JSON, max_size=6)
INDENTS = st.sampled_from([None, 0, 2])


@given(BODIES, INDENTS, st.booleans())
def test_a_span_holds_exactly_the_value(fields: dict[str, Any], indent: int | None, ascii_only: bool) -> None:
    body = json.dumps(fields, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    spans = spans_of(body)
    assert {name: json.loads(body[span.start : span.end]) for name, span in spans.items()} == fields
    assert all(body[span.start : span.end].strip() == body[span.start : span.end] for span in spans.values())


@given(BODIES, st.dictionaries(st.text(max_size=8), JSON, min_size=1, max_size=3), INDENTS)
def test_changed_fields_change_and_no_other_byte_does(
    fields: dict[str, Any], changes: dict[str, Any], indent: int | None
) -> None:
    body = json.dumps(fields, indent=indent).encode()
    changed = with_fields(body, {name: json.dumps(value).encode() for name, value in changes.items()})
    assert json.loads(changed) == {**fields, **changes}
    spans, before = spans_of(changed), spans_of(body)
    for name in set(fields) - set(changes):
        kept, was = spans[name], before[name]
        assert changed[kept.start : kept.end] == body[was.start : was.end]


@given(st.lists(JSON, min_size=1, max_size=4), JSON, INDENTS)
def test_an_item_is_added_behind_all_bytes_of_the_others(
    items: list[Any], new: Any, indent: int | None
) -> None:
    body = json.dumps({"first": [1], "messages": items, "last": "]"}, indent=indent).encode()
    longer = with_items(body, "messages", [json.dumps(new).encode()])
    assert json.loads(longer) == {"first": [1], "messages": [*items, new], "last": "]"}
    end = spans_of(body)["messages"].end - 1
    assert longer.startswith(body[:end])
    assert longer.endswith(body[end:])


@pytest.mark.parametrize("body", [b'{"a": 1}', b'{"messages": "no"}'], ids=["missing", "not an array"])
def test_items_need_an_array(body: bytes) -> None:
    with pytest.raises(BadInput, match="no array `messages`"):
        with_items(body, "messages", [b"1"])
