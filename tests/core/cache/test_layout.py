"""A request as blocks: positions, and keys that stand for whole prefixes."""

from lowwater.core.cache.belief import Block, Layout, chained


def test_positions_add_up():
    layout = Layout(
        blocks=(Block(key=b"a", tokens=3), Block(key=b"b", tokens=0), Block(key=b"c", tokens=4, mark="long"))
    )
    assert (layout.ends, layout.total, layout.marked) == ((3, 3, 7), 7, (2,))
    assert layout.index == {b"a": 0, b"b": 1, b"c": 2}
    assert Layout(blocks=()).total == 0


def test_a_key_depends_on_everything_before_it_and_nothing_behind():
    one, other = chained([b"a", b"b", b"c"]), chained([b"a", b"x", b"c"])
    assert one[0] == other[0]
    assert one[1] != other[1]
    assert one[2] != other[2]
    assert chained([b"a", b"b"]) == one[:2]


def test_a_layout_can_be_extended():
    whole = chained([b"a", b"b", b"c"], start=b"model")
    assert chained([b"c"], start=whole[1]) == whole[2:]
    assert whole != chained([b"a", b"b", b"c"])
