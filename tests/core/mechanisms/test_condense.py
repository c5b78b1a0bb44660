"""The oldest chunk becomes a leaf; leaves of one depth become a deeper summary (specification E)."""

from msgspec.structs import replace

from lowwater.core.entries import Compacted, Numbers
from lowwater.core.ledger import Ledger
from lowwater.core.mechanisms import condense
from lowwater.core.mechanisms.spans import replace_span
from lowwater.core.messages import Span
from lowwater.core.view import Item, Original, Summary, view_items
from lowwater.settings import LeafSettings
from lowwater.testing.views import Script, asked, lines, making, offer_of, size


def loop(turns: int, first: str = "") -> Script:
    script = Script().user("Fix the tests.")
    if first:
        script.calls("bash", {"command": "first"}, first)
    for turn in range(turns):
        script.calls("bash", {"command": f"step {turn}"}, lines(20, f"word{turn}"))
    return script.user("And now?").says("Done.")


def leaf(items: list[Item], chunk: int, target: int = 20) -> Span | None:
    settings = LeafSettings(leaf_chunk_tokens=chunk, leaf_target_tokens=target)
    proposal = offer_of(condense.LEAF, asked(items, leaf=settings))
    return None if proposal is None else proposal.span


def condensed(items: list[Item], target: int = 20) -> Span | None:
    settings = LeafSettings(leaf_target_tokens=target)
    proposal = offer_of(condense.CONDENSE, asked(items, leaf=settings))
    return None if proposal is None else proposal.span


def summary(number: int, depth: int = 1) -> Summary:
    message = Script().user(lines(30)).messages()[0]
    sources = (Numbers(first=number, last=number),)
    return Summary(message=message, tokens=size(message), sources=sources, depth=depth)


def test_e_a_leaf_is_the_oldest_raw_chunk_in_whole_groups() -> None:
    items = loop(10).items()
    group = items[1].tokens + items[2].tokens
    assert leaf(items, 3 * group) == Span(start=1, stop=7)
    assert leaf(items, 3 * group - 1) == Span(start=1, stop=5)
    assert leaf(items, 10**9) == Span(start=1, stop=len(items) - 2)


def test_e_a_first_group_larger_than_the_chunk_is_taken_whole() -> None:
    items = loop(5, first=lines(400)).items()
    assert leaf(items, 100) == Span(start=1, stop=3)


def test_e_a_leaf_begins_behind_the_summaries_there_are() -> None:
    items = loop(10).items()
    once = replace_span(items, Span(start=1, stop=7), "short", making())
    assert leaf(once, 10**9) == Span(start=2, stop=len(once) - 2)


def test_e_a_leaf_ends_before_a_summary() -> None:
    items = loop(10).items()
    odd = [*items[:5], summary(5), *items[7:]]
    assert leaf(odd, 10**9) == Span(start=1, stop=5)


def test_e_nothing_raw_is_no_leaf() -> None:
    items = loop(10).items()
    assert leaf([items[0], summary(2), *items[-2:]], 10**9) is None


def test_e_a_chunk_is_in_the_models_tokens() -> None:
    items = loop(10).items()
    group = items[1].tokens + items[2].tokens
    settings = LeafSettings(leaf_chunk_tokens=4 * group, leaf_target_tokens=20)
    proposal = offer_of(condense.LEAF, replace(asked(items, leaf=settings), scale=2.0))
    assert proposal is not None
    assert proposal.span == Span(start=1, stop=5)


def test_e_four_neighbours_of_one_depth_are_condensed() -> None:
    first, *_, newest = loop(3).items()
    assert condensed([first, *(summary(n) for n in range(2, 5)), newest, newest]) is not None
    with_raw = [first, *(summary(n) for n in range(2, 5)), *loop(3).items()[1:]]
    assert condensed(with_raw) is None
    with_four = [first, *(summary(n) for n in range(2, 6)), *loop(3).items()[1:]]
    assert condensed(with_four) == Span(start=1, stop=5)


def test_e_a_deeper_summary_waits_for_others_of_its_depth() -> None:
    items = loop(3).items()
    deep = [items[0], summary(2, depth=2), *(summary(n) for n in range(3, 7)), *items[1:]]
    assert condensed(deep) == Span(start=2, stop=6)
    lonely = [items[0], summary(2, depth=2), *(summary(n) for n in range(3, 6)), *items[1:]]
    assert condensed(lonely) is None


def test_e_where_nothing_is_raw_any_two_neighbours_are_condensed() -> None:
    items = loop(3).items()
    assert condensed([items[0], summary(2, depth=2), summary(3), *items[-2:]]) == Span(start=1, stop=3)
    assert condensed([items[0], summary(2), *items[-2:]]) is None


def test_e_a_condensed_summary_is_one_deeper_than_the_deepest_in_it() -> None:
    items: list[Item] = [summary(1, depth=3), summary(2), summary(3)]
    assert condense.depth_of(items, Span(start=0, stop=3)) == 4
    assert condense.depth_of(items, Span(start=1, stop=3)) == 2


def test_e_the_chain_of_summaries_can_be_walked_back_to_the_messages() -> None:
    ledger = loop(20).ledger()
    everything = set(range(1, len(ledger.messages) + 1))
    settings = LeafSettings(leaf_chunk_tokens=250, leaf_target_tokens=20)
    for step in range(30):
        question = asked(list(ledger.view.items), leaf=settings)
        mechanism = condense.CONDENSE if offer_of(condense.CONDENSE, question) else condense.LEAF
        proposal = offer_of(mechanism, question)
        if proposal is None or proposal.span is None:
            break
        items = list(ledger.view.items)
        depth = condense.depth_of(items, proposal.span) if mechanism == condense.CONDENSE else 1
        after = replace_span(items, proposal.span, f"summary {step}", making(), depth=depth)
        ledger = ledger.append(Compacted(at=0.0, mechanisms=(mechanism,), items=view_items(after)))
        assert list(ledger.view.items) == after
        assert ledger.view.shown_numbers() == everything
    depths = [item.depth for item in ledger.view.items if isinstance(item, Summary)]
    assert max(depths) >= 2
    top = next(item for item in ledger.view.items if isinstance(item, Summary))
    assert _messages_below(ledger, top) == {
        number for span in top.sources for number in range(span.first, span.last + 1)
    }


def _messages_below(ledger: Ledger, top: Summary) -> set[int]:
    """Walk down from a summary through the views in which its parts stood, to the messages themselves."""
    wanted = {number for span in top.sources for number in range(span.first, span.last + 1)}
    found: set[int] = set()
    for saved in reversed(list(ledger.saved)):
        for item in ledger.view_before(saved).items:
            if isinstance(item, Original) and item.number in wanted:
                found.add(item.number)
    return found
