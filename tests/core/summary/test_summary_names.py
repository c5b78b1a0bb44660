"""What texts name is found word by word, as it would be in the whole text."""

import pytest

from lowwater.core.references import NAME
from lowwater.core.summary.text import NameFinder, constraints_in, named_in


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("See src/app/main.py, (parse_header) and `retry()` in v1.2.3.", id="prose"),
        pytest.param("./run.sh;~/.config/x\tHTTPServer.start\nABC-123, 2026-03-01", id="blanks of all kinds"),
        pytest.param("Plain words. And Capitals, too: (all of them) no names!", id="no names"),
    ],
)
def test_word_by_word_the_same_names_are_found_as_in_the_whole(text: str) -> None:
    assert [name for _, name in named_in(text) if name in NAME.findall(text)] == NAME.findall(text)


def test_a_reader_that_met_a_word_before_names_it_again() -> None:
    naming = NameFinder()
    first = naming.named_in("look at src/app.py")
    assert first == naming.named_in("look at src/app.py") == [("path", "src/app.py")]


def test_encoded_data_has_no_names_and_hides_no_quotes() -> None:
    assert list(named_in(f"{'aB3/' * 100} said 'not yet done'")) == [("value", "not yet done")]


def test_marks_inside_a_word_hide_no_constraint() -> None:
    assert list(constraints_in("Please ne**ver** touch the lock file.")) == [
        "Please never touch the lock file."
    ]
