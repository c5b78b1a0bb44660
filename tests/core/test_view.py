"""What a compaction says of items is enough to show them again."""

from hypothesis import given

from lowwater.core.entries import Compacted, Edit, KeptRange, Numbers, apply_edits, merge_edits
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message, Text, ToolResult
from lowwater.core.view import (
    Edited,
    Item,
    Original,
    Summary,
    items_shown,
    neighbours_to_join,
    shown_parts,
    view_items,
)
from lowwater.testing.strategies import ledgers
from lowwater.testing.views import Script


@given(ledgers())
def test_stands_of_a_view_show_that_view(ledger: Ledger) -> None:
    items = list(ledger.view.items)
    entry = Compacted(at=0.0, mechanisms=(), items=view_items(items))
    assert list(ledger.append(entry).view.items) == items


@given(ledgers())
def test_the_parts_of_an_item_are_those_it_shows(ledger: Ledger) -> None:
    for item in ledger.view.items:
        shown = [part for path, part in shown_parts(item) if len(path) == 1]
        assert shown == list(item.message.parts)
        inside = [part for path, part in shown_parts(item) if len(path) == 2]
        assert inside == [inner for part in item.message.results for inner in part.parts]


def test_originals_in_a_row_become_one_range_and_a_gap_makes_two() -> None:
    items = Script().user("a").says("b").user("c").says("d").items()
    assert view_items(items) == (KeptRange(numbers=Numbers(first=1, last=4)),)
    assert view_items([*items[:1], *items[2:]]) == (
        KeptRange(numbers=Numbers(first=1, last=1)),
        KeptRange(numbers=Numbers(first=3, last=4)),
    )
    assert view_items([items[2], items[0], items[1]]) == (
        KeptRange(numbers=Numbers(first=3, last=3)),
        KeptRange(numbers=Numbers(first=1, last=2)),
    )
    assert view_items([]) == ()


def test_an_edit_inside_a_result_that_was_replaced_counts_in_the_replacement() -> None:
    original = Script().user("go").calls("bash", {}, "long output").items()[2].message
    first = Edit(path=(0,), by=ToolResult(call_id="call_1", parts=(Text(text="a"), Text(text="b"))))
    second = Edit(path=(0, 1), by=Text(text="c"))
    edited = apply_edits(original, merge_edits([first], [second]))
    assert edited.results[0].text == "a\nc"
    item = Edited(number=3, original=original, edits=(first, second), message=edited, tokens=1)
    assert [part for path, part in shown_parts(item) if len(path) == 1] == list(edited.parts)


def test_a_new_edit_replaces_older_ones_at_its_place_and_inside_it() -> None:
    inside, elsewhere = Edit(path=(1, 0), by=None), Edit(path=(0,), by=None)
    whole = Edit(path=(1,), by=None)
    assert merge_edits([inside, elsewhere], [whole]) == (elsewhere, whole)


def test_what_was_dropped_does_not_shift_the_paths_of_what_follows() -> None:
    message = Script("anthropic").says("said", thinking="thought").messages()[0]
    dropped = Edit(path=(0,), by=None)
    item = Edited(
        number=1,
        original=message,
        edits=(dropped,),
        message=apply_edits(message, [dropped]),
        tokens=1,
    )
    assert [(path, part.kind) for path, part in shown_parts(item)] == [((1,), "text")]


def _said(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def test_messages_that_say_the_same_are_joined_alike_whether_they_are_one_object_or_two() -> None:
    """A store reads equal messages as one object, a client's list brings two: both are the same request."""
    once, again = _said("go on"), _said("go on")
    assert once is not again

    def shown(last: Message) -> tuple[int, ...]:
        items: list[Item] = [
            Original(number=1, message=once, tokens=3),
            Original(number=2, message=last, tokens=3),
            Summary(message=_said("What was done."), tokens=5, sources=(Numbers(first=3, last=6),), depth=1),
            Original(number=7, message=last, tokens=3),
        ]
        return neighbours_to_join([item.message for item in items], items)

    # The client itself sent the first two as neighbours; the summary and what stands behind it are ours to join.
    assert shown(again) == shown(once) == (2, 3)


def test_an_item_is_found_where_it_stands_though_messages_before_it_were_left_out_or_added() -> None:
    same = _said("go on")
    items = [Original(number=number, message=same, tokens=3) for number in (1, 2)]
    last = Original(number=3, message=_said("and now?"), tokens=3)
    added = _said("[a tool result without its call stood here]")
    assert items_shown([same, added, last.message], [*items, last]) == [items[0], None, last]
    assert items_shown([same, same, last.message], [*items, last]) == [*items, last]
    assert items_shown([last.message], [*items, last]) == [last]
    assert items_shown([added], [*items, last]) == [None]
