import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.adapters.files import LARGEST, read_value, read_yaml
from lowwater.errors import UnreadableFile


def test_every_key_knows_its_line() -> None:
    document = read_yaml(
        "# first\ncompression:\n  threshold: 0.5\n\n  policy: never\nmodel: {a: 1}\n", name="f"
    )
    assert document.value == {"compression": {"threshold": 0.5, "policy": "never"}, "model": {"a": 1}}
    assert document.lines == {
        "compression": 2,
        "compression.threshold": 3,
        "compression.policy": 5,
        "model": 6,
        "model.a": 6,
    }


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n"], ids=repr)
def test_an_empty_text_is_null(text: str) -> None:
    assert read_yaml(text, name="f").value is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("a:\n\tb: 1\n", "f:2: a tab: indent with spaces", id="tab"),
        pytest.param("a: 1\nb: 2\na: 3\n", "f:3: 'a' is already given on line 1", id="given twice"),
        pytest.param("x:\n  a: 1\n  a: 3\n", "f:3: 'a' is already given on line 2", id="given twice inside"),
        pytest.param("l: [{a: 1, a: 2}]", "f:1: 'a' is already given on line 1", id="given twice in a line"),
        pytest.param("a: [1\nb: 2\n", "f:2: ", id="open bracket"),
        pytest.param("a: b: c", "f:1: mapping values are not allowed here", id="two colons"),
        pytest.param("a: 1\nb: \x07\n", "f:2: a character that YAML does not allow", id="control character"),
        pytest.param("a: 1\nb: 2026-13-41\n", "f:2: a value YAML cannot read", id="impossible date"),
        pytest.param("b: !!bool maybe", "f:1: a value YAML cannot read", id="wrong tag"),
        pytest.param("b: " + "1" * 5_000, "f:1: a value YAML cannot read", id="5,000 digits"),
        pytest.param("b: !!python/object:os.system x", "f:1: ", id="Python object"),
        pytest.param("a: 1\n---\nb: 2\n", "f:2: but found another document", id="two documents"),
        pytest.param("[" * 2_000, "f is nested too deeply", id="depth 2,000"),
        pytest.param("#" * (LARGEST + 1), "f has 1,000,001 characters", id="huge"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_with_file_and_line(text: str, said: str) -> None:
    with pytest.raises(UnreadableFile) as refused:
        read_yaml(text, name="f")
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


def test_aliases_that_grow_without_end_are_read_in_no_time() -> None:
    laughs = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    assert len(read_yaml(laughs, name="f").lines) == 60


@given(st.text(st.sampled_from("ab1.:-[]{},&*!#|>'\"\\ \n\t%@?~=<eE_+0xnul"), max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_yaml(text, name="f")
    except UnreadableFile as refused:
        assert "\n" not in str(refused)
    read_value(text)
