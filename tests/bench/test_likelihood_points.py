"""Which answers of recorded sessions are decision points: by a rule that looks at sizes and names, and at nothing a view shows."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from bench.likelihood.__main__ import POINTS
from bench.likelihood.points import (
    BANDS,
    LEAST_ACTION,
    LEAST_TOKENS,
    MOST_ACTION,
    MOST_TOKENS,
    OF_A_BAND,
    OF_FEW,
    Point,
    band_of,
    candidates_of,
    chosen,
    decisions_of,
    rank,
    read_points,
)
from lowwater.core.formats.codec import decode_messages
from lowwater.lab.replay.script import ReplayScript, script_of
from lowwater.logs.recording import RecordedMessage, Recording

WORDS = "The function returns a value that the caller does not expect and nobody has looked at. "


def script(*, calls: int, words: int = 20, arguments: str = '{"path": "src/a.py"}') -> ReplayScript:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Repair it."}]
    for at in range(calls):
        function = {"name": "read_file", "arguments": arguments}
        call = {"id": f"call-{at}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call-{at}", "content": f"{at} {WORDS * words}"})
    messages.append({"role": "assistant", "content": "Done."})
    raws = [msgspec.json.encode(message) for message in messages]
    recorded = tuple(RecordedMessage(message=each) for each in decode_messages(raws, "openai_chat"))
    return script_of(Recording(id="made", agent="agent", path="", messages=recorded))


def points_of(source: str, sessions: int, *, calls: int = 3, tokens: int = 1_500) -> list[Point]:
    return [
        Point(source=source, session=f"s{session}", call=call, band=band_of(tokens), tokens=tokens, action=20)
        for session in range(sessions)
        for call in range(calls)
    ]


def test_a_point_has_three_results_before_it_a_prompt_of_the_right_length_and_a_call():
    found = [decision.point for decision in decisions_of("made", script(calls=8))]
    assert [point.call for point in found] == [3, 4, 5, 6, 7]
    assert all(LEAST_TOKENS <= point.tokens <= MOST_TOKENS for point in found)


def test_prompts_that_are_too_short_or_too_long_are_left_out():
    assert not list(decisions_of("made", script(calls=8, words=1)))
    sizes = [decision.point.tokens for decision in decisions_of("made", script(calls=30, words=200))]
    assert sizes
    assert max(sizes) <= MOST_TOKENS


@pytest.mark.parametrize("arguments", ["not json", '["a list"]', '{"content": "%s"}' % ("word " * 400)])
def test_actions_that_are_no_object_or_too_long_are_left_out(arguments: str):
    assert not list(decisions_of("made", script(calls=8, arguments=arguments)))


def test_what_a_fork_repeats_is_taken_once():
    seen: set[str] = set()
    assert candidates_of("made", script(calls=8), seen)
    assert not candidates_of("made", script(calls=8), seen)


def test_one_point_of_each_session_and_band_and_so_many_of_each_source_and_band():
    found = chosen({"many": points_of("many", 40)}, Counter(many=40))
    assert len(found) == OF_A_BAND
    assert len({point.session for point in found}) == OF_A_BAND


def test_sources_with_few_sessions_give_more_points_of_each():
    found = chosen({"few": points_of("few", 2, calls=9)}, Counter(few=2))
    assert Counter(point.session for point in found) == {"s0": OF_FEW, "s1": OF_FEW}


def test_the_smallest_hash_decides_and_not_the_order_in_which_sessions_are_read():
    candidates = points_of("many", 30)
    forwards = chosen({"many": candidates}, Counter(many=30))
    assert forwards == chosen({"many": candidates[::-1]}, Counter(many=30))
    of_session = [point for point in candidates if point.session == forwards[0].session]
    assert forwards[0] == min(of_session, key=rank)


def test_any_beginning_of_the_list_is_balanced_between_sources_and_bands():
    candidates = {
        name: [*points_of(name, 20), *points_of(name, 20, tokens=6_000)] for name in ("one", "two", "three")
    }
    found = chosen(candidates, Counter(one=20, two=20, three=20))
    assert Counter((point.source, point.band) for point in found[:12]) == {
        (name, band): 2 for name in candidates for band in (2_000, 8_000)
    }


def test_the_points_of_the_project_are_enough_and_of_the_sizes_that_the_rule_says():
    found = read_points(POINTS)
    assert len(found) >= 400
    assert len({point.source for point in found}) >= 4
    assert len({point.name for point in found}) == len(found)
    for point in found:
        assert LEAST_TOKENS <= point.tokens <= MOST_TOKENS
        assert LEAST_ACTION <= point.action <= MOST_ACTION
        assert point.band == band_of(point.tokens)
    assert {point.band for point in found} == set(BANDS)
