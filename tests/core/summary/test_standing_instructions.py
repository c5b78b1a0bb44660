"""What the user lays down for the rest of a session is told from what he asks for now."""

import time

import pytest

from bench.constraints import SECOND, fresh, is_recognised, ordinary, planted
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

REQUIREMENTS = (
    "Users must not exceed five logins per day.",
    "users must not exceed five logins",
    "The API must return at most 20 items per page.",
    "The API must return 404 if the record does not exist.",
    "Every endpoint must be authenticated.",
    "Each user may have at most three open orders.",
    "Passwords must never be logged.",
    "Passwords must not be logged.",
    "The button should never be grey.",
    "Never show the banner to logged-in users.",
    "Always return 404 when the record is missing.",
    "Do not display the price if the item is sold out.",
    "Whenever a user logs out, delete the session cookie.",
    "When a request fails, retry it three times.",
    "Every time a customer places an order, send a confirmation mail.",
    "Sessions must stay below 30 minutes.",
    "All invoices must be rounded to two digits.",
    "The cart must not exceed 50 items.",
    "Each response has to be JSON.",
    "Tokens must not appear in the URL.",
    "The importer must never lose a row.",
    "After every login, write an audit record.",
    "The server must not log personal data.",
    "No user should see the data of another tenant.",
    "Any upload must be scanned before it is stored.",
    "The parser should always close its files.",
    "As soon as the payment arrives, notify the customer.",
    "If anything fails during checkout, show an error page.",
    "Customers can only cancel an order before it ships.",
    "It must be possible to cancel at any time.",
    "The retry logic must not run more than five times per request.",
    "Admins should always be able to delete a comment.",
    "Contributors must always sign off their commits.",
    "Developers must never push to main.",
    "Add a rule that no file may be larger than 5 MB.",
    "Implement rate limiting: no more than 100 requests per minute per client.",
    "Make sure every user gets an email after each purchase.",
    "The form must not be submitted twice.",
    "Emails have to be sent in German.",
    "Write the error messages of the login page in French.",
    "The report must always include the totals.",
    "The page must remain usable on phones.",
    "Orders must never be deleted, only cancelled.",
    "Numbers are to be shown with two decimals at all times.",
    "The field may have at most 80 characters.",
    "Logins must be limited to three per minute.",
    "Don't allow more than five uploads per user.",
    "Never expire admin sessions.",
    "The cache must be invalidated after each write.",
    "Each row gets a checkbox.",
    "Only admins may delete users.",
    "Only show the button to admins.",
    "The app should use German for all labels.",
    "Every page must load in under two seconds.",
    "In future versions the API should return XML.",
    "The CLI must not ask before overwriting.",
)
ABOUT_THE_WORK = (
    "Every new endpoint gets a test in this project.",
    "Never show me the full file.",
    "You must not touch the API.",
    "Don't show more than ten lines of output in your answers.",
    "When a test fails, tell me before you fix it.",
    "The files in legacy/ must not be edited.",
    "Whenever you change the API, update the docs.",
    "The database must not be touched by you.",
    "Any change to the API needs my approval.",
    "Always show me the diff first.",
    "Don't ever touch the server config.",
    "Before every commit run the tests.",
    "Each commit message must name the ticket.",
    "Tests must stay under one second each.",
)


@pytest.mark.parametrize("required", REQUIREMENTS)
def test_what_a_product_has_to_do_is_no_standing_instruction(required: str) -> None:
    assert standing_instructions(required) == ()


@pytest.mark.parametrize("said", ABOUT_THE_WORK)
def test_what_the_agent_has_to_do_with_the_same_things_is_one(said: str) -> None:
    assert standing_instructions(said) == (said,)


@pytest.mark.parametrize("asked", REQUESTS)
def test_an_ordinary_request_is_no_standing_instruction(asked: str) -> None:
    assert standing_instructions(asked) == ()


@pytest.mark.parametrize(
    "asked",
    [
        "Don't end this paragraph with a question.",
        "Don't drop the whole table, just the last column.",
        "Don't use a loop in this function.",
        "Before you go on, tell me which of the two you would take.",
        "I prefer the second version.",
        "From now on the job runs at night, so update the docs.",
        "Warum wird die Datei nie geschlossen",
        "¿Por qué nunca se cierra el archivo?",
        "Не трогай пока конфигурацию.",
    ],
)
def test_what_concerns_one_step_is_no_standing_instruction(asked: str) -> None:
    assert standing_instructions(asked) == ()


@pytest.mark.parametrize(
    "said",
    [
        "If a test needs the network, tell me before you skip it.",
        "Anything that touches billing goes through me.",
        "Name the source for every figure you quote.",
        "Plain text, no exceptions.",
        "You keep adding comments that nobody needs.",
        "Disregard what I said about spaces.",
        "From section 4 on, leave the citations out.",
        "Всегда пиши сообщения коммитов по-английски.",
        "Nigdy nie zmieniaj plików w folderze vendor.",
        "Bundan sonra cevapları kısa tut.",
    ],
)
def test_what_holds_for_all_of_a_kind_is_one(said: str) -> None:
    assert standing_instructions(said) == (said,)


def test_an_instruction_that_points_back_comes_with_the_sentence_before() -> None:
    said = "The draft is good. You wrote many footnotes there. Avoid them in future."
    assert standing_instructions(said) == ("You wrote many footnotes there. Avoid them in future.",)


def test_what_the_forms_cover_stays_covered() -> None:
    outcomes = [(is_standing, found) for _, is_standing, found in fresh()]
    assert outcomes.count((True, True)) >= 58
    assert outcomes.count((False, True)) <= 2


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


def test_wordings_of_somebody_who_had_not_seen_the_patterns_are_recognised_too() -> None:
    missed = [each.instruction for each in planted(SECOND) if not is_recognised(each)]
    assert missed == []


def test_ordinary_requests_are_no_instructions() -> None:
    taken = [each for each in ordinary() if standing_instructions(each)]
    assert taken == ["Nimm hier keine Liste, sondern ein Set."]
