"""The views that are compared are of the same size, legal, and differ in what they are said to differ in."""

import sys
from pathlib import Path

import pytest

from bench.likelihood.points import Decision, Point, band_of
from bench.likelihood.prompts import Chat, action_of, prompt_tokens
from bench.likelihood.validity import REMOVED, Pair, checked, is_composable, pairs_of, views_of
from bench.likelihood.views import (
    PARTS,
    drawn,
    groups_of,
    largest_that_fits,
    lowwater_view,
    newest,
    summary_size,
)
from bench.peers.worker import Worker
from lowwater.core.mechanisms import registry, spans
from lowwater.core.turns import pins

LOG = "line {at} of the build says that part {part} was compiled in {at} ms by worker_{at}\n"


def call(at: int, name: str, arguments: str) -> Chat:
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{at}", "type": "function", "function": function}],
    }


def session(results: int = 12, lines: int = 20) -> list[Chat]:
    messages: list[Chat] = [
        {"role": "system", "content": "You repair programs."},
        {"role": "user", "content": "Repair the build. Never touch the folder vendor/."},
    ]
    for at in range(results):
        text = "".join(LOG.format(at=100 + line, part=f"part_{at}") for line in range(lines))
        messages.append(call(at, "bash", f'{{"command": "make part{at}"}}'))
        messages.append({"role": "tool", "tool_call_id": f"c{at}", "content": text + f"see report_{at}.txt"})
    return messages


def decision(messages: list[Chat], arguments: str) -> Decision:
    tokens = len(prompt_tokens(messages))
    point = Point(source="s", session="one", call=9, band=band_of(tokens), tokens=tokens, action=9)
    return Decision(point=point, messages=tuple(messages), action=action_of("read", arguments))


def is_legal(messages: list[Chat]) -> bool:
    asked = [each["id"] for message in messages for each in message.get("tool_calls") or ()]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    return asked == answered


def test_baselines_fit_keep_calls_with_their_results_and_end_as_the_prompt_does():
    messages = session()
    for most in (900, 2_000, 4_000):
        for view in (newest(messages, most), drawn(messages, most, "seed")):
            assert len(prompt_tokens(view)) <= most
            assert is_legal(view)
            assert view[0] == messages[0]
            assert view[-1] == messages[-1]


def test_the_newest_fill_the_room_with_the_end_of_an_older_result_and_the_random_ones_are_the_same_every_time():
    messages = session()
    kept = newest(messages, 2_000)
    of_end = messages[-len(kept) + 1 :]
    assert kept[3:] == of_end[2:]
    assert kept[1] == of_end[0]
    assert of_end[1]["content"].endswith(kept[2]["content"])
    assert 0 < len(kept[2]["content"]) < len(of_end[1]["content"])
    assert len(prompt_tokens(kept)) > 1_980
    assert drawn(messages, 2_000, "seed") == drawn(messages, 2_000, "seed")
    assert drawn(messages, 2_000, "seed") != drawn(messages, 2_000, "other")


def test_where_not_even_the_newest_group_fits_there_is_no_view():
    assert newest(session(), 10) == []
    assert drawn(session(), 10, "seed") == []


def test_groups_hold_all_messages():
    assert [message for group in groups_of(session()) for message in group] == session()


def test_lowwaters_view_is_smaller_under_a_lower_ceiling_and_legal():
    messages = session(lines=60)
    full = len(prompt_tokens(messages))
    sizes = [len(prompt_tokens(lowwater_view(messages, round(full * part)))) for part in (2.0, 0.5, 0.25)]
    assert sizes[0] > sizes[1] >= sizes[2]
    assert sizes[1] <= 0.5 * full
    assert is_legal(lowwater_view(messages, round(full / 2)))


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_switched_off_for_one_view_and_there_again_afterwards(part: str):
    before = (dict(registry.EDITS), spans.__dict__["index_of_results"], pins.__dict__["_said_in"])
    lowwater_view(session(lines=60), 2_000, without=part)
    assert before == (
        dict(registry.EDITS),
        spans.__dict__["index_of_results"],
        pins.__dict__["_said_in"],
    )


def test_without_pins_what_the_user_forbade_is_not_in_the_block_of_pins():
    messages = session(lines=60)
    messages[1] = {"role": "user", "content": "Repair the build."}
    messages.insert(4, {"role": "user", "content": "Never touch the folder vendor/ again."})
    messages.insert(-2, {"role": "user", "content": "Go on."})
    shown = {
        part: "".join(str(each["content"]) for each in lowwater_view(messages, 2_000, without=part))
        for part in ("", "pins")
    }
    assert shown[""].count("Never touch") > shown["pins"].count("Never touch")


@pytest.mark.parametrize(("most", "kept"), [(10_000, 8), (1_000, 3), (5, None)])
def test_the_largest_view_that_fits_is_found_without_trying_all(most: int, kept: int | None):
    tried: list[float] = []
    messages = session(lines=10)

    def made(knob: float) -> list[Chat]:
        tried.append(knob)
        return messages[-2 * int(knob) :]

    knobs = (8, 7, 6, 5, 4, 3, 2, 1)
    found = largest_that_fits(made, most, knobs)
    fitting = [each for each in knobs if len(prompt_tokens(messages[-2 * each :])) <= most]
    assert (None if found is None else len(found) // 2) == (fitting[0] if fitting else None)
    assert len(tried) <= 4
    assert kept is None or fitting


def test_a_pair_is_what_alone_names_it_and_one_of_the_same_size_that_does_not():
    messages = session()
    found = pairs_of(decision(messages, '{"path": "report_4.txt"}'))
    named = next(at for at, each in enumerate(messages) if "report_4.txt" in (each["content"] or ""))
    assert [pair.named for pair in found] == [named]
    assert messages[found[0].other]["role"] == "tool"
    assert found[0].other != named


def test_what_two_messages_name_makes_no_pair():
    messages = session()
    messages.insert(2, {"role": "user", "content": "report_4.txt is wrong."})
    assert not pairs_of(decision(messages, '{"path": "report_4.txt"}'))


def test_the_name_of_the_tool_is_nothing_that_a_result_names():
    messages = session()
    messages[3] = {**messages[3], "content": messages[3]["content"] + " read"}
    assert not pairs_of(decision(messages, '{"path": "nothing of it"}'))


def test_removing_a_result_leaves_everything_else():
    messages = session()
    made = decision(messages, '{"path": "report_4.txt"}')
    views = dict(views_of(made))
    assert set(views) == {"named-0", "other-0"}
    changed = [at for at, each in enumerate(views["named-0"]) if each != messages[at]]
    assert changed == [pair.named for pair in pairs_of(made)]
    assert views["named-0"][changed[0]]["content"] == REMOVED


def test_the_check_takes_some_points_of_each_session_and_band():
    made = decision(session(), '{"path": "report_4.txt"}')
    assert checked([made, decision(session(), '{"path": "unknown"}')]) == [made]
    assert isinstance(pairs_of(made)[0], Pair)


def test_a_path_said_in_parts_elsewhere_can_be_put_together_and_an_unknown_name_cannot():
    messages = session()
    at = next(at for at, each in enumerate(messages) if each["role"] == "tool")
    said = [*messages, {"role": "user", "content": "Everything is in the folder reports, under builds."}]
    said[at] = {**messages[at], "content": f"{messages[at]['content']}\nsee reports/builds and qzlk_9917"}
    together, alone = (decision(said, f'{{"path": "{name}"}}') for name in ("reports/builds", "qzlk_9917"))
    assert is_composable(together, Pair(named=at, other=at))
    assert not is_composable(alone, Pair(named=at, other=at))


def test_a_worker_begins_another_session_told_how_much_to_keep():
    messages = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    worker = Worker(
        Path(sys.executable),
        "tests.bench.trivial_worker",
        variant="whole",
        packages=("msgspec",),
        tools=("bash",),
        limit=60.0,
    )
    with worker:
        assert len(worker.request(messages, None).messages) == 2
        assert len(worker.request(messages, None).messages) == 4
        worker.begin(trigger=1_000, keep=2, summary=summary_size(1_000))
        assert len(worker.request(messages, None).messages) == 2
