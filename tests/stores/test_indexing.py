import pytest

from lowwater.stores.memory import rank
from lowwater.stores.shared import MOST_WORDS, folded_terms, phrases_in, searchable_text, spaced
from lowwater.testing.store_contract import said


@pytest.mark.parametrize(
    ("words", "phrases"),
    [
        ("kernel panic", ["kernel", "panic"]),
        ("test_auth.py's", ["test auth py s"]),
        ("the the The", ["the", "The"]),
        ("東京都 in한국", ["東 京 都", "in 한 국"]),
        ("天気、東京。", ["天 気", "東 京"]),
        ('"a" AND (b*) -c', ["a", "AND", "b", "c"]),
        ("e\u0301te\u0301", ["été"]),
        (' \x00 !? "" ', []),
        ("half\ud83d", ["half"]),
    ],
    ids=[
        "words",
        "joined",
        "twice",
        "unspaced",
        "stops",
        "operators",
        "accents apart",
        "nothing",
        "surrogate",
    ],
)
def test_a_search_is_the_words_in_it(words, phrases):
    assert phrases_in(words) == phrases


def test_a_search_as_long_as_a_log_is_its_beginning():
    assert phrases_in(" ".join(map(str, range(10_000)))) == list(map(str, range(MOST_WORDS)))


def test_terms_are_compared_without_case_and_accents():
    assert folded_terms(spaced("Naïve ÉTÉ 東京ガス")) == ["naive", "ete", "東", "京", "ガ", "ス"]


def test_what_is_concealed_is_no_word():
    (message,) = said("key sk-123 is 東京").messages
    assert (
        searchable_text(message, lambda text: text.replace("sk-123", "[key]")).split()
        == "key [key] is 東 京".split()
    )


def ranked(phrases: list[str], *texts: str) -> list[int]:
    scores = rank([phrase.split() for phrase in phrases], [text.split() for text in texts])
    return sorted(scores, key=lambda index: -scores[index])


@pytest.mark.parametrize(
    ("phrases", "texts", "order"),
    [
        (["x"], ["a b c", "x b c"], [1]),
        (["x", "y"], ["x b c", "x y c"], [1, 0]),
        (["x", "y"], ["x a b", "x b c", "y b c", "x c d"], [2, 0, 1, 3]),
        (["x"], ["x " + "a " * 50, "x b"], [1, 0]),
        (["x"], ["x b c", "x x c"], [1, 0]),
        (["x y"], ["y x b", "x y b", "x b y"], [1]),
        (["x"], [], []),
        ([], ["x"], []),
    ],
    ids=["at least one", "more", "rarer", "shorter", "oftener", "next to each other", "no texts", "no words"],
)
def test_texts_are_ranked(phrases, texts, order):
    assert ranked(phrases, *texts) == order
