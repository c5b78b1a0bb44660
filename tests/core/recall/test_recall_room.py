"""Recalled text never takes more room than it is given, and what did not fit can be asked for."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.adapters.models import load_registry
from lowwater.core.entries import Appended
from lowwater.core.ledger import Ledger
from lowwater.core.limits import derive_limits
from lowwater.core.policies.registry import policy_named
from lowwater.core.recall.search import RecallRoom, recall_room, room_in
from lowwater.core.tokens.counting import Calibration
from lowwater.core.turns.decision_context import limits_for
from lowwater.core.turns.state import Route, Setup, State
from lowwater.session.recall_tools import RecallTools
from lowwater.settings import CompressionSettings, Settings, ToolResultSettings
from lowwater.testing.views import Script, lines
from tests.core.recall.recall_parts import O200K, REFUSED, expand, recorded_ledger, search


@pytest.fixture(scope="module")
def recorded() -> Ledger:
    return recorded_ledger()


@pytest.mark.parametrize("tokens", [40, 90, 200, 1_000, 5_000])
def test_no_answer_is_larger_than_its_room(recorded, tokens) -> None:
    asked: list[dict[str, Any]] = [
        *({"handle": f"lw:{n}"} for n in range(1, len(recorded.messages) + 1, 7)),
        *(
            {"handle": handle}
            for handle in ("lw:3-60", "lw:3-30", f"lw:1-{len(recorded.messages)}", "lw:70-72")
        ),
        {"handle": f"lw:1-{len(recorded.messages)}", "around": "error"},
        {"handle": "lw:31", "around": "return"},
        {"handle": "lw:31", "characters": [5, 90_000]},
    ]
    for arguments in asked:
        answer = expand(recorded, tokens, **arguments)
        assert O200K.count(answer) <= tokens, arguments
    for query in ("error in test", "return", "path"):
        assert O200K.count(search(recorded, tokens, query=query, limit=20)) <= tokens


BLOCKS = st.sampled_from(
    (
        "word ",
        "\n",
        "a longer line of text\n",
        "数据库连接失败",
        "👩‍👩‍👧‍👦",
        "x" * 300,
        "{}" * 40,
        "\t\t\t",
        "é",
        "\u2028",
        "9",
    )
)


@given(st.lists(BLOCKS, min_size=1, max_size=60).map("".join), st.integers(90, 400))
def test_following_the_notes_gives_the_whole_text_and_nothing_else(text: str, tokens: int) -> None:
    ledger = Ledger().append(Script().user(text + "end").ledger().entries[0])
    wanted: dict[str, Any] = {}
    read = ""
    for _ in range(200):
        answer = expand(ledger, tokens, handle="lw:1", **wanted)
        assert O200K.count(answer) <= tokens
        body, note, left = answer.split("\n", 1)[1].rpartition("\n[cut here: ")
        if not note:
            read += left
            break
        unit, first, last = re.findall(r"go on with (lines|characters) \[(\d+), (\d+)\]", left)[0]
        read += body + ("\n" if unit == "lines" else "")
        wanted = {unit: [int(first), int(last)]}
    assert read == ledger.messages[0].message.text


def test_a_line_too_long_to_fit_is_cut_within_and_lines_are_kept_whole_otherwise() -> None:
    flat = expand(Script().user("word " * 9_000).ledger(), 500, handle="lw:1")
    assert re.search(r"go on with characters \[\d+, 45000\]\]$", flat)
    assert O200K.count(flat) > 400, "the room is used"
    lined = expand(Script().user(lines(900)).ledger(), 500, handle="lw:1")
    assert re.search(
        r"says nothing new\n\[cut here: \d+ lines, about [\d,]+ tokens, are left; go on with lines", lined
    )


def test_room_is_a_share_of_the_context_and_never_beyond_the_wall() -> None:
    large, small = (derive_limits(context, CompressionSettings()) for context in (1_000_000, 100_000))
    assert 24_900 < recall_room(large, prompt=0).each <= 25_000
    assert 9_900 < recall_room(small, prompt=0).each <= 10_000
    # 256 tokens stay free for answers that say there is no room, and a prompt must stay below the wall.
    assert recall_room(small, prompt=small.wall - 557).left == 300
    assert recall_room(small, prompt=small.wall - 557, scale=1.5).left == 200
    assert recall_room(small, prompt=small.wall + 1).left == 0


@pytest.mark.parametrize(
    ("share", "most", "each"),
    [
        (0.1, 25_000, 20_000),
        (0.5, 90_000, 20_000),
        (0.05, 25_000, 10_000),
        (0.1, 3_000, 3_000),
        (0, 0, 20_000),
    ],
)
def test_a_session_gives_as_much_room_as_may_arrive(share, most, each) -> None:
    registry = load_registry()
    route, door = (
        Route(model="claude-haiku-4-5"),
        ToolResultSettings(insertion_limit_ratio=share, insertion_limit_tokens=most),
    )
    setup = Setup(
        chain=registry.chain(route.model, ()),
        routes=(route,),
        settings=Settings(tool_results=door),
        policy=policy_named("runway"),
        tokenizer=O200K,
        size=lambda message: 1,
        size_preamble=lambda system, tools: 0,
    )
    ledger = Script().user(lines(1_000)).ledger()
    state = State(ledger=ledger, route=route, model=registry.find(route.model), calibration=Calibration())
    room = room_in(state, setup)
    assert each - 32 <= room.each * state.calibration.scale + 32 <= each
    assert room.left * state.calibration.scale + state.prompt <= limits_for(state, setup).wall


def test_answers_to_one_message_share_what_is_left_to_the_wall(recorded) -> None:
    given = [recorded]
    tools = RecallTools(lambda: given[0], tokenizer=O200K, room=lambda: RecallRoom(each=1_500, left=4_000))
    calls = [tools.handle("lowwater_expand", {"handle": "lw:1-90", "around": "return"}) for _ in range(6)]
    assert sum(O200K.count(answer) for answer in calls if not answer.startswith(REFUSED)) <= 4_000
    assert calls[-1].startswith(f"{REFUSED}there is no room left")
    answered = Script().user("a").says("b").messages()
    given[0] = recorded.append(Appended(at=2.0, messages=tuple(answered), tokens=(1, 1)))
    assert not tools.handle("lowwater_expand", {"handle": "lw:1"}).startswith(REFUSED)
