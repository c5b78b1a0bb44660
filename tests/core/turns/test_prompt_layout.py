"""A request as the cache sees it: laid out whole, or from where the last one ended."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.core.cache.belief import Layout, MarkLifetime
from lowwater.core.messages import Message, Role, Text, ToolCall, ToolResult
from lowwater.core.sequences import AppendOnlyList
from lowwater.core.turns.state import PREAMBLE, key_behind, lay_out_prompt
from lowwater.core.view import Item, Original, View


def talk(count: int) -> list[Item]:
    items: list[Item] = []
    for number in range(1, count + 1):
        role: Role = "assistant" if number % 2 else "user"
        parts = tuple(Text(text=f"{number} says {piece}") for piece in range(1 + number % 3))
        items.append(Original(number=number, message=Message(role=role, parts=parts), tokens=number * 7))
    return items


def view_of(items: list[Item], system: bytes = b'"s"') -> View:
    return View(
        items=AppendOnlyList(items),
        tokens=sum(item.tokens for item in items),
        system=system,
        preamble_tokens=50,
    )


def layout_of(view: View, marks: dict[int, MarkLifetime], **others: object) -> Layout:
    options: dict[str, object] = {"start": b"m", "prompt": view.total_tokens, "scale": 1.0}
    return lay_out_prompt(view, marks=marks, **options | others).layout  # type: ignore[arg-type]


@given(st.integers(1, 12), st.integers(0, 12), st.sampled_from([1.0, 1.002, 1.3]))
def test_what_grew_is_laid_out_as_if_it_were_new(first: int, more: int, scale: float) -> None:
    old = view_of(talk(first))
    new = replace(
        old,
        items=old.items.extend(talk(first + more)[first:]),
        tokens=sum(i.tokens for i in talk(first + more)),
    )
    before = lay_out_prompt(
        old, start=b"m", prompt=old.total_tokens, scale=scale, marks={PREAMBLE: "short", 0: "short"}
    )
    marks: dict[int, MarkLifetime] = {PREAMBLE: "short", first + more - 1: "short"}
    grown = lay_out_prompt(new, start=b"m", prompt=900, scale=scale, marks=marks, before=before)
    fresh = lay_out_prompt(view_of(list(new.items)), start=b"m", prompt=900, scale=scale, marks=marks)
    assert grown.layout == fresh.layout
    assert grown.last_blocks == fresh.last_blocks


def test_each_part_is_a_block_and_what_the_count_cannot_see_stands_in_the_preamble() -> None:
    view = view_of(talk(3))
    layout = layout_of(view, {}, prompt=500)
    assert [block.tokens for block in layout.blocks] == [500 - 42, 3, 4, 4, 5, 5, 21]
    assert layout.total == 500
    assert [block.ends for block in layout.blocks] == ["", "", "output", "", "", "input", "output"]


def test_a_mark_stands_on_the_last_block_of_its_message() -> None:
    layout = layout_of(view_of(talk(3)), {PREAMBLE: "long", 1: "short"})
    assert [(at, block.mark) for at, block in enumerate(layout.blocks) if block.mark] == [
        (0, "long"),
        (5, "short"),
    ]


def test_keys_stand_for_the_whole_prefix() -> None:
    one, other = talk(5), talk(5)
    other[1] = replace(other[1], message=Message(role="user", parts=(Text(text="another"),) * 3))
    keys, others = ([block.key for block in layout_of(view_of(items), {}).blocks] for items in (one, other))
    assert keys[:3] == others[:3]
    assert not set(keys[3:]) & set(others[3:])
    assert layout_of(view_of(one, b'"t"'), {}).blocks[0].key != keys[0]
    assert layout_of(view_of(one), {}, start=b"n").blocks[-1].key != keys[-1]


def test_the_key_behind_an_answer_is_that_of_the_next_request() -> None:
    call = ToolCall(id="t", name="bash", arguments="{}")
    answer = Message(role="assistant", parts=(Text(text="a"), call))
    result = Message(role="user", parts=(ToolResult(call_id="t", parts=(Text(text="r"),)),))
    before = talk(4)
    after = [
        *before,
        Original(number=5, message=answer, tokens=9),
        Original(number=6, message=result, tokens=9),
    ]
    layout, later = layout_of(view_of(before), {}), layout_of(view_of(after), {})
    assert key_behind(layout, answer) == later.blocks[-2].key
