"""What holds for all rules together."""

from typing import Any

from lowwater.testing.provider.anthropic import MessagesDialect
from lowwater.testing.provider.openai import ChatDialect
from lowwater.testing.provider.prompt import Ids, Incoming, Violation, first_refusal

PACKAGE = "lowwater.testing.provider"
TESTED = {
    "anthropic": {"shape", "conversation", "marks", "thinking", "limits", "compaction"},
    "openai": {"shape", "conversation", "limits", "marks"},
}


def test_rules_live_only_in_modules_whose_tests_break_each_of_them() -> None:
    rules = (*MessagesDialect(ids=Ids(), key=b"").rules, *ChatDialect(ids=Ids()).rules)
    tested = {f"{PACKAGE}.{provider}.{module}" for provider, modules in TESTED.items() for module in modules}
    assert {rule.__module__ for rule in rules} == tested


def test_a_provider_s_rules_have_names_of_their_own() -> None:
    for dialect in (MessagesDialect(ids=Ids(), key=b""), ChatDialect(ids=Ids())):
        names = [rule.__name__ for rule in dialect.rules]
        assert len(names) == len(set(names))


def test_the_first_rule_broken_is_the_one_reported() -> None:
    def quiet(incoming: Incoming) -> Any:
        yield from ()

    def first(incoming: Incoming) -> Any:
        yield Violation(message="first")
        yield Violation(message="second")

    def later(incoming: Incoming) -> Any:
        raise AssertionError("a rule behind a broken one may rely on it and is not asked")

    incoming = Incoming(headers={}, size=0, body={}, context_length=0, count=len)
    refusal = first_refusal([quiet, first, later], incoming)
    assert refusal is not None
    assert (refusal.rule, refusal.violation.message) == ("first", "first")


def test_nothing_is_refused_without_a_reason() -> None:
    assert first_refusal([], Incoming(headers={}, size=0, body={}, context_length=0, count=len)) is None
