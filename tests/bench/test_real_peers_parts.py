"""The parts of the comparison with real peers: the session, the stand-in, the environments, the tables."""

import pytest

from bench.peers import environment
from bench.peers.catalogue import VARIANTS
from bench.peers.environment import Unavailable, held_after, python_with
from bench.peers.stand_in import SIZE, StandIn, summary_of
from bench.real_peers import FIRST, as_json, main
from bench.real_peers_cases import generated, plain_message
from bench.real_peers_rows import Money, Row, together
from bench.real_peers_run import Group, compare
from bench.real_peers_session import dense_session
from bench.real_peers_table import page
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.lab.peers import PEERS


def test_the_session_is_the_one_that_peers_were_measured_on():
    made = dense_session()
    count = tokenizer_for("o200k").count
    text = "\n".join(str(message) for message in made.messages)
    assert sum(message["role"] == "assistant" for message in made.messages) == 53
    assert count(text) == pytest.approx(204_000, rel=0.06)
    assert len(made.facts) == len(set(made.facts)) == 20
    assert all(fact in text for fact in made.facts)
    assert made == dense_session()


def test_what_is_named_again_was_planted_long_before():
    case = generated()
    named = [use for use in case.uses if use.text in case.facts]
    assert len(named) >= 5
    assert all(use.later > 10 for use in named)


def test_the_stand_in_says_the_same_for_the_same_prompt_and_always_as_much():
    prompt = "read src/app/main.py and src/app/main.py, not other_file.py; " * 3
    first = summary_of(prompt)
    assert first == summary_of(prompt)
    assert len(first) == len(summary_of("")) == len(summary_of(prompt * 900)) == SIZE
    assert first.index("src/app/main.py") < first.index("other_file.py")


def test_the_stand_in_remembers_what_it_was_asked_once():
    summariser = StandIn()
    summariser("one")
    summariser("two")
    assert summariser.taken() == ["one", "two"]
    assert summariser.taken() == []


def test_what_an_environment_holds_is_not_installed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "ENVIRONMENTS", tmp_path)
    (tmp_path / "peer").mkdir()
    (tmp_path / "peer" / environment.READY).write_text("one==1\ntwo[extra]==2\n")
    assert python_with("peer", "two[extra]==2") == tmp_path / "peer" / "bin" / "python"
    assert not (tmp_path / "peer" / "bin").exists()


def test_other_extras_stand_beside_each_other_and_other_versions_replace_one_another():
    """So two that ask for the same environment in turns do not install it again each time."""
    held = held_after(["one[a]==1", "two==2"], ["one[a,b]==1"])
    assert held == ["one[a]==1", "two==2", "one[a,b]==1"]
    assert held_after(held, ["one==3"]) == ["two==2", "one==3"]
    assert held_after(["# pyproject.toml: 1"], ["# pyproject.toml: 2"]) == ["# pyproject.toml: 2"]
    assert held_after(["two==2", "--editable /one"], ["--editable /other"]) == ["two==2", "--editable /other"]


@pytest.mark.full
def test_a_package_that_cannot_be_installed_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "ENVIRONMENTS", tmp_path)
    with pytest.raises(Unavailable, match=r"no-such-package.whl could not be installed into .*peer: ERROR"):
        python_with("peer", str(tmp_path / "no-such-package.whl"))
    assert not (tmp_path / "peer" / environment.READY).exists()


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_every_peer_has_its_worker_and_its_model(variant):
    worker = environment.ROOT / (variant.package.worker.replace(".", "/") + ".py")
    assert worker.is_file()
    assert not variant.model or variant.model in PEERS


def test_content_in_parts_becomes_one_text_and_reminders_the_user_s_words():
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert plain_message({"role": "developer", "content": parts, "ts": 1}) == {
        "role": "user",
        "content": "a\nb",
    }
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    said = plain_message({"role": "assistant", "content": "", "tool_calls": calls, "reasoning_content": "x"})
    assert said == {"role": "assistant", "content": None, "tool_calls": calls}


def test_lowwater_stands_beside_never_and_the_optimum():
    group = compare("short", [generated(requests=14, tokens=30_000)], [], [FIRST])
    rows = {row.name: row for row in group.rows}
    never, ours, optimum = rows["never"], rows["lowwater rent-or-buy"], rows["optimum"]
    assert never.money[0].over_never == 1.0
    assert never.money[0].over_model == pytest.approx(1.0, abs=0.01)
    assert ours.invalid == 0
    assert ours.facts_left <= never.facts_left == never.facts
    assert optimum.money[0].over_optimum == pytest.approx(1.0)
    assert all((row.money[0].over_optimum or 0) >= 0.98 for row in (never, ours))


def _row(name: str, cost: int, *, failed: str = "") -> Row:
    money = Money(sheet=FIRST, cost=cost, never=100, optimum=50, modelled=cost * 2, peak=7)
    return Row(name=name, money=() if failed else (money,), requests=5, failed=failed, model="langchain")


def test_rows_of_several_sessions_are_added_up_and_failures_kept():
    done = together([_row("peer", 60), _row("peer", 80), _row("peer", 0, failed="it ended")])
    assert done.sessions == 2
    assert done.requests == 10
    assert done.failed == "1 of 3 sessions: it ended"
    assert done.money[0].over_never == pytest.approx(0.7)
    assert done.money[0].over_model == pytest.approx(0.5)


def test_the_table_has_the_cheapest_first_and_says_what_failed():
    rows = (_row("dear", 90), _row("broken", 0, failed="no package"), _row("cheap", 30))
    group = Group(name="Two", sessions=("a",), requests=5, rows=rows, each=(rows,))
    told = page([group], [FIRST])
    assert told.index("| cheap | 0.30 | 0.60 | 0.50 (langchain)") < told.index("| dear | 0.90")
    assert told.index("| dear |") < told.index("| broken | failed |")
    assert "- broken: no package" in told
    assert as_json([group])["groups"][0]["peers"]["cheap"]["money"][FIRST]["over_never"] == 0.3


@pytest.mark.parametrize("option", ["--peers", "--without"])
def test_a_peer_that_does_not_exist_is_one_sentence(option):
    with pytest.raises(SystemExit, match="there is no peer 'nobody'; there are hermes, "):
        main([option, "hermes,nobody"])


def test_a_price_sheet_that_does_not_exist_is_one_sentence():
    with pytest.raises(SystemExit, match="no price is known for 'nothing'"):
        main(["--sheets", "openai-30m,nothing"])
