"""What the user lays down for the rest of a session is told from what he asks for now."""

import time

import pytest

from bench.constraints import is_recognised, planted
from lowwater.core.summary.instructions import replaces_earlier, standing_instructions

REQUESTS = (
    "Fix the failing test in parser.py and push.",
    "Commit this, but don't push it.",
    "Don't change anything yet, just tell me what you see.",
    "Why do you never use the cache here?",
    "The importer does not always close its files.",
    "I don't think that is right.",
    "The button should be blue when the form is invalid.",
    "Can you use the new endpoint instead of the old one in client.go?",
    "If the file does not exist, do not print anything.",
    "When you are done, commit.",
    "never mind",
    "Add a flag so that users never see the banner.",
    "Kannst du mir erklären, warum der Test nicht läuft?",
    "Peux-tu regarder pourquoi le client échoue ?",
    "这个测试为什么失败了？",
)


@pytest.mark.parametrize("asked", REQUESTS)
def test_an_ordinary_request_is_no_standing_instruction(asked: str) -> None:
    assert standing_instructions(asked) == ()


def test_constraints_of_every_kind_are_recognised_in_most_wordings() -> None:
    wordings = planted()
    missed = [each for each in wordings if not is_recognised(each)]
    assert len(missed) <= len(wordings) // 20
    kinds = {each.kind for each in wordings}
    assert len(kinds) == 15
    assert all(sum(each.kind == kind for each in missed) <= 1 for kind in kinds)


def test_only_the_instruction_is_taken_and_it_is_taken_word_for_word() -> None:
    said = "The importer is slow.  Ask me before you change a public interface. Where is the time spent?"
    assert standing_instructions(said) == ("Ask me before you change a public interface.",)


@pytest.mark.parametrize(
    "said",
    [
        "```\nNever touch vendor/.\n```\nWhat does this rule mean?",
        "> Never touch vendor/.\n\nWho wrote that?",
        "# Rules\n\n- Never touch vendor/.\n- Always run the tests.",
        "Implement the following plan:\n\nNever touch vendor/.",
        'The page says "Never touch the folder vendor/ by hand." Where is that?',
        "❯ make lint\n❯ never touch vendor/",
        "You are an expert reviewer. Never touch vendor/.",
    ],
    ids=["fenced", "quoted lines", "document", "plan", "quotation", "terminal", "prompt of an agent"],
)
def test_pasted_and_quoted_text_is_not_what_the_user_lays_down(said: str) -> None:
    assert standing_instructions(said) == ()


def test_the_arguments_of_a_command_are_the_users_words() -> None:
    expanded = (
        "Invoke the execute-plan skill and never stop.\n\nARGUMENTS: keep each commit with working code"
    )
    assert standing_instructions(expanded) == ("keep each commit with working code",)


@pytest.mark.parametrize("constraint", [each for each in planted() if each.kind == "correction"], ids=str)
def test_a_correction_says_that_it_replaces_something(constraint: object) -> None:
    assert replaces_earlier(getattr(constraint, "instruction", ""))


def test_a_long_paste_takes_no_time() -> None:
    began = time.perf_counter()
    standing_instructions("do not use the x, and if you do, ask me, " * 50_000)
    standing_instructions("Never use the x. " * 50_000)
    assert time.perf_counter() - began < 2
