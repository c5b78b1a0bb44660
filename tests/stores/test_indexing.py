import pytest

from lowwater.core.recall.index_terms import MOST_WORDS, folded_terms, forms_of, read_question, spaced, stem
from lowwater.core.recall.ranking import SearchedText, rank_texts
from lowwater.stores.shared import searchable_text
from lowwater.testing.store_contract import said


def looked_for(words: str) -> list[str]:
    return [" ".join(term.forms[0]) for term in read_question(words).terms]


@pytest.mark.parametrize(
    ("words", "terms"),
    [
        ("kernel panic", ["kernel", "panic"]),
        ("test_auth.py's", ["test", "auth", "py", "s"]),
        ("retry Retry retries", ["retry"]),
        ("東京都 a1한국", ["東 京 都", "a1", "한 국"]),
        ("天気、東京。", ["天 気", "東 京"]),
        ('"a1" AND (b*) -c', ["a1", "b", "c"]),
        ("e\u0301te\u0301", ["ete"]),
        (' \x00 !? "" ', []),
        ("half\ud83d", ["half"]),
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("What was the port that was used?", ["port"]),
        ("what was it", ["what", "was", "it"]),
        ("/work/src/of/the_app", ["work", "src", "of", "the", "app"]),
    ],
    ids=[
        "words",
        "joined",
        "forms of one word",
        "unspaced",
        "stops",
        "operators",
        "accents apart",
        "nothing",
        "surrogate",
        "camel case",
        "words of a question",
        "nothing else",
        "parts of a path",
    ],
)
def test_a_question_is_the_words_in_it(words, terms):
    if words == "/work/src/of/the_app":
        # What stands alone between separators is part of a name, not of a question.
        assert set(looked_for(words)) == set(terms)
    else:
        assert looked_for(words) == terms


def test_a_search_as_long_as_a_log_is_its_beginning():
    assert looked_for(" ".join(map(str, range(10_000)))) == list(map(str, range(MOST_WORDS)))


def test_terms_are_compared_without_case_and_accents():
    assert folded_terms(spaced("Naïve ÉTÉ 東京ガス")) == ["naive", "ete", "東", "京", "ガ", "ス"]


def test_what_is_concealed_is_no_word():
    (message,) = said("key sk-123 is 東京").messages
    assert (
        searchable_text(message, lambda text: text.replace("sk-123", "[key]")).split()
        == "key [key] is 東 京".split()
    )


def test_the_parts_of_a_name_in_camel_case_are_words_too():
    (message,) = said("call parseHTTPHeader in HttpClient, not GITHUB or github").messages
    words = searchable_text(message).lower().split()
    assert words[-5:] == ["parse", "http", "header", "http", "client"]
    (plain,) = said("no such name in HERE").messages
    assert searchable_text(plain) == "no such name in HERE"


@pytest.mark.parametrize(
    "words",
    [
        "test tests testing tested tester testers",
        "retry retries retried",
        "cache caches cached caching",
        "run runs running runner",
        "migrate migration migrations migrating migrated",
        "deploy deploys deployed deployment deploying",
        "class classes",
        "status",
    ],
)
def test_the_forms_of_a_word_find_each_other(words):
    forms = words.split()
    for one in forms:
        assert set(forms) <= set(forms_of(one)), one
        assert one.startswith(stem(one))


@pytest.mark.parametrize("other", ["status", "this", "user", "été", "utf8", "東", "ab"])
def test_what_has_no_other_form_is_left_alone(other):
    assert other in forms_of(other)
    assert stem("use") == "use"
    assert "us" not in forms_of("use")


def ranked(question: str, *texts: str) -> list[int]:
    found = (
        SearchedText(place=(1, number), tokens=len(text) // 4 + 1, terms=folded_terms(text))
        for number, text in enumerate(texts, start=1)
    )
    return [number for (_, number), _ in rank_texts(read_question(question), found, len(texts))]


@pytest.mark.parametrize(
    ("question", "texts", "order"),
    [
        ("common rare", ("common", "-", "common", "-", "rare", "-", "common"), [5, 7, 3, 1]),
        ("port", ("the port", "-", "-", "port port port port"), [4, 1]),
        ("retry policy", ("the policy is no retry", "-", "-", "-", "a retry policy is here"), [5, 1]),
        ("absent", ("the port",), []),
        ("word", ("word", "-", "word"), [3, 1]),
        ("uploads", ("we uploaded it", "-", "-", "download"), [1]),
    ],
    ids=["rare first", "more often", "side by side", "nothing", "newest first", "other forms"],
)
def test_the_best_match_comes_first(question, texts, order):
    assert ranked(question, *texts) == order


def test_a_message_beside_the_words_of_a_question_is_found_after_them():
    asked = "which port does the billing server of staging listen on"
    texts = ("hello", "-", "where does the billing server of staging listen", "8472", "-", "staging")
    assert ranked(asked, *texts)[:2] == [3, 4] or ranked(asked, *texts)[0] == 3
    assert 4 in ranked(asked, *texts)
    assert 4 not in ranked("billing", *texts), "one word finds what has it, and nothing else"
