"""A span becomes one summary that knows its sources; the newest user message stays verbatim (specification C3, C4)."""

import pytest

from lowwater.core.entries import Appended, Compacted, Numbers
from lowwater.core.ledger import Ledger
from lowwater.core.mechanisms import summarize
from lowwater.core.mechanisms.spans import offer_span, replace_span, request_for
from lowwater.core.messages import Format, Span, unpaired
from lowwater.core.summary.frame import unframe
from lowwater.core.view import Edited, Item, Original, Summary, view_items
from lowwater.testing.views import PICTURE, Script, asked, lines, making, offer_of

FORMATS: list[Format] = ["openai_chat", "anthropic", "openai_responses"]
TEXT = "## Goal\n- Fix the tests."


def loop(turns: int, format: Format = "openai_chat", *, talk: bool = False) -> Script:
    script = Script(format).user("Fix the tests.")
    for turn in range(turns):
        script.calls("bash", {"command": f"step {turn}"}, lines(20, f"word{turn}"))
        if talk:
            script.says(f"Step {turn} is done.").user(f"Go on with step {turn + 1}.")
    return script


def sources(items: list[Item]) -> list[list[tuple[int, int]]]:
    return [[(s.first, s.last) for s in item.sources] for item in items if isinstance(item, Summary)]


def numbers(items: list[Item]) -> list[int]:
    """Return every message in effect, in person or inside a summary."""
    return [
        number
        for item in items
        for number in (
            [n for span in item.sources for n in range(span.first, span.last + 1)]
            if isinstance(item, Summary)
            else [item.number]
        )
    ]


def test_c3_the_summary_stands_for_exactly_the_messages_of_its_span() -> None:
    items = loop(5, talk=True).items()
    after = replace_span(items, Span(start=1, stop=9), TEXT, making())
    assert sources(after) == [[(2, 9)]]
    assert sorted(numbers(after)) == list(range(1, len(items) + 1))
    assert after[0] is items[0]
    assert all(new is old for new, old in zip(after[2:], items[9:], strict=True))
    assert unframe(after[1].message.text) == TEXT


def test_c3_a_previous_summary_carries_its_sources_over() -> None:
    items = loop(6, talk=True).items()
    once = replace_span(items, Span(start=1, stop=9), TEXT, making())
    twice = replace_span(once, Span(start=1, stop=6), TEXT, making())
    assert sources(twice) == [[(2, 13)]]


@pytest.mark.parametrize("format", FORMATS)
def test_c3_without_a_user_message_behind_it_the_newest_is_repeated_right_behind_the_summary(
    format: Format,
) -> None:
    script = Script(format).user("hi").says("hello").user("Fix the tests, please.")
    for step in range(6):
        script.calls("bash", {"command": str(step)}, lines(20))
    items = script.items()
    after = replace_span(items, Span(start=1, stop=11), TEXT, making())
    assert isinstance(after[1], Summary)
    assert after[2] is items[2]
    assert "task is still running" in after[1].message.text
    assert sources(after) == [[(2, 2), (4, 11)]]
    assert sorted(numbers(after)) == list(range(1, len(items) + 1))


def test_c3_a_user_message_behind_the_span_is_what_to_answer_and_nothing_is_repeated() -> None:
    items = loop(4, talk=True).items()
    after = replace_span(items, Span(start=1, stop=9), TEXT, making())
    assert "message that follows is what to answer" in after[1].message.text
    assert len(after) == len(items) - 8 + 1


def test_c3_a_prompt_in_the_head_is_repeated_too_and_is_no_source() -> None:
    items = loop(6).items()
    once = replace_span(items, Span(start=3, stop=9), TEXT, making())
    assert once[4] is items[0]
    assert sources(once) == [[(4, 9)]]
    twice = replace_span(once, Span(start=3, stop=7), TEXT, making())
    assert sources(twice) == [[(4, 11)]]
    assert twice[4] is items[0]


def test_c3_a_repeated_prompt_that_is_summarised_later_is_no_source_while_it_stands_in_the_head() -> None:
    script = loop(6)
    ledger = script.ledger()
    once = replace_span(list(ledger.view.items), Span(start=3, stop=9), TEXT, making())
    grown = [*once, Original(number=14, message=Script().user("And now?").messages()[0], tokens=5)]
    twice = replace_span(grown, Span(start=3, stop=7), TEXT, making())
    assert sources(twice) == [[(4, 11)]]
    assert sorted(numbers(twice)) == list(range(1, 15))


def test_c3_tool_results_beside_the_users_words_stay_with_their_calls() -> None:
    script = Script("anthropic").user("hi").says("hello").asks(("bash", {})).answers("call_1", lines(30))
    script.user("Now fix the tests.")
    for step in range(4):
        script.calls("bash", {"command": str(step)}, "ok")
    items = script.items()
    mixed = next(item for item in items if item.message.results and item.message.text)
    after = replace_span(items, Span(start=1, stop=len(items) - 2), TEXT, making())
    repeated = after[2]
    assert isinstance(repeated, Edited)
    assert repeated.original is mixed.message
    assert repeated.message.text == "Now fix the tests."
    assert not repeated.message.results
    broken = unpaired([item.message for item in after])
    assert not broken.results
    assert not broken.calls


def test_c3_a_picture_the_user_showed_stands_behind_the_summary_with_the_words() -> None:
    script = Script("anthropic").user("hi").says("hello").user("Like this.", PICTURE)
    for step in range(4):
        script.calls("bash", {"command": str(step)}, "ok")
    items = script.items()
    after = replace_span(items, Span(start=1, stop=7), TEXT, making())
    assert [part.kind for part in after[2].message.parts] == ["text", "image"]


def test_c3_the_previous_summary_is_what_is_updated_and_no_message() -> None:
    items = loop(6, talk=True).items()
    once = replace_span(items, Span(start=1, stop=9), TEXT, making())
    request = request_for(once, Span(start=1, stop=6), max_tokens=500, focus="", recall=False)
    assert request.previous == TEXT
    assert request.numbers == (10, 11, 12, 13)
    assert request.newest_user == items[-1].message


def test_c3_a_summary_that_a_compaction_elsewhere_wrote_is_updated_too() -> None:
    items = loop(6, talk=True).items()
    once = replace_span(items, Span(start=1, stop=9), TEXT, making())
    elsewhere: list[Item] = [
        Original(number=at, message=item.message, tokens=item.tokens) for at, item in enumerate(once, start=1)
    ]
    request = request_for(elsewhere, Span(start=1, stop=6), max_tokens=500, focus="", recall=False)
    assert request.previous == TEXT
    assert request.numbers == (3, 4, 5, 6)


@pytest.mark.parametrize(
    ("head", "behind", "role"),
    [
        ("nothing", "user", "user"),
        ("nothing", "assistant", "user"),
        ("system", "assistant", "user"),
        ("user", "user", "assistant"),
        ("user", "assistant", "user"),
        ("assistant", "assistant", "user"),
        ("assistant", "user", "user"),
        ("tool", "user", "assistant"),
        ("tool", "assistant", "user"),
    ],
)
def test_c4_the_summary_takes_the_role_that_keeps_alternation_where_there_is_one(
    head: str, behind: str, role: str
) -> None:
    script = Script()
    match head:
        case "system":
            script.system("You are a tester.")
        case "user":
            script.user("Fix it.")
        case "assistant":
            script.user("hi").says("hello")
        case "tool":
            script.user("hi").calls("bash", {})
        case _:
            pass
    start = len(script.messages())
    script.user("in the span").says("answered")
    stop = start + 2
    if behind == "user":
        script.user("And now?")
    else:
        script.says("I go on.").user("Well.")
    after = replace_span(script.items(), Span(start=start, stop=stop), TEXT, making())
    assert after[start].message.role == role


def test_c4_behind_results_in_a_users_message_the_summary_joins_them() -> None:
    items = loop(6, "anthropic").items()
    after = replace_span(items, Span(start=3, stop=9), TEXT, making())
    assert after[2].message.results
    assert after[3].message.role == "user"
    assert after[4].message.text == "Fix the tests."


def test_an_offer_counts_what_is_repeated_as_staying() -> None:
    long = lines(100, "requirement")
    script = Script().user("hi").says("hello").user(long)
    for step in range(6):
        script.calls("bash", {"command": str(step)}, lines(20))
    items = script.items()
    span = Span(start=1, stop=11)
    proposal = offer_span("summarize", items, span, 50)
    assert proposal is not None
    gone = sum(item.tokens for item in items[1:11])
    assert proposal.removes == pytest.approx(gone - 50 - items[2].tokens, abs=5)
    assert proposal.survives == sum(item.tokens for item in items[1:]) - proposal.removes
    assert (proposal.first_changed, proposal.calls, proposal.span) == (1, 1, span)


def test_there_is_no_offer_where_there_is_no_gain() -> None:
    items = loop(2, talk=True).items()
    assert offer_span("summarize", items, Span(start=1, stop=2), 10_000) is None
    assert offer_span("summarize", items, Span(start=1, stop=1), 10) is None


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("talk", [True, False], ids=["many prompts", "one prompt"])
def test_c3_after_ten_compactions_every_message_is_in_effect(format: Format, talk: bool) -> None:
    messages = loop(40, format, talk=talk).messages()
    ledger = Ledger()
    compactions = 0
    for start in range(0, len(messages), 6):
        new = tuple(messages[start : start + 6])
        ledger = ledger.append(Appended(at=0.0, messages=new, tokens=tuple(map(making().size, new))))
        items = list(ledger.view.items)
        if unpaired([item.message for item in items]).results:
            continue
        proposal = offer_of(summarize.NAME, asked(items))
        if proposal is None or proposal.span is None:
            continue
        after = replace_span(items, proposal.span, f"{TEXT} {compactions}", making())
        ledger = ledger.append(Compacted(at=0.0, mechanisms=("summarize",), items=view_items(after)))
        assert list(ledger.view.items) == after
        compactions += 1
        assert set(numbers(after)) == set(range(1, len(ledger.messages) + 1))
        assert sum(isinstance(item, Summary) for item in after) == 1
        broken = unpaired([item.message for item in after])
        assert not broken.results
    assert compactions >= 10


def test_sources_that_touch_are_one_range() -> None:
    items = loop(3, talk=True).items()
    after = replace_span(items, Span(start=1, stop=5), TEXT, making())
    (summary,) = (item for item in after if isinstance(item, Summary))
    assert summary.sources == (Numbers(first=2, last=5),)
    assert summary.depth == 1
