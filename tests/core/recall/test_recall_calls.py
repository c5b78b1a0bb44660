"""The handle of a call leads to its results: in full where they fit, else by their handles."""

import pytest

from lowwater.core.ledger import Ledger
from lowwater.core.messages import Format
from lowwater.testing.views import Script, lines
from tests.core.recall.recall_parts import O200K, expand


def parallel(format: Format, long: int) -> Ledger:
    script = Script(format).user("Compare them.")
    script.asks(("read_file", {"path": "a.py"}), ("read_file", {"path": "b.py"}))
    script.answers("call_1", lines(long, "alpha")).answers("call_2", "beta is short")
    return script.says("They differ.").ledger()


@pytest.mark.parametrize("format", ["openai_chat", "anthropic"])
def test_a_call_comes_with_all_its_results_and_nothing_else(format: Format) -> None:
    answer = expand(parallel(format, 30), handle="lw:2")
    head, call, *rest = answer.split("\n")
    assert head.startswith("[lw:2 · assistant, calls read_file · ")
    assert "result" not in head
    assert call == 'read_file {"path":"a.py"}'
    assert lines(30, "alpha") in answer
    assert "beta is short" in rest
    assert "They differ." not in answer


def test_a_result_that_does_not_fit_is_named_and_the_others_are_shown() -> None:
    ledger = parallel("openai_chat", 2_000)
    answer = expand(ledger, 200, handle="lw:2")
    assert answer.startswith("[lw:2 · assistant, calls read_file · ")
    assert f" · result in lw:3 ({ledger.messages[2].tokens:,} tokens)]\n" in answer
    assert answer.endswith("beta is short")
    assert "alpha" not in answer


@pytest.mark.parametrize("tokens", [20, 40, 80, 160, 400, 3_000])
def test_a_call_with_results_stays_within_its_room(tokens: int) -> None:
    answer = expand(parallel("openai_chat", 200), tokens, handle="lw:2")
    assert O200K.count(answer) <= tokens or answer.startswith("Nothing recalled: ")


def test_a_part_of_a_call_is_only_that_part() -> None:
    answer = expand(parallel("openai_chat", 30), handle="lw:2", lines=[2, 2])
    assert answer.endswith(']\nread_file {"path":"b.py"}')


def test_words_asked_around_in_a_call_are_found_in_its_results() -> None:
    answer = expand(parallel("openai_chat", 30), handle="lw:2", around="beta")
    assert "[lw:4 · tool result of read_file · " in answer
    assert "beta is short" in answer


def test_what_is_left_of_a_long_call_is_not_asked_for_by_the_same_question() -> None:
    written = "\n\n".join(f"needle {n} " + "x" * 600 for n in range(40))
    script = Script().user("Write.").calls("write_file", {"path": "a", "content": written}, "needle is in")
    answer = expand(script.ledger(), 300, handle="lw:2", around="needle")
    assert "go on with lw:2 and characters [" in answer
    assert answer.endswith("then ask around the same words in lw:3]")


def test_a_call_without_results_stands_alone() -> None:
    ledger = Script().user("Go.").asks(("terminal", {"command": "make"})).ledger()
    assert expand(ledger, handle="lw:2").endswith('tokens]\nterminal {"command":"make"}')
