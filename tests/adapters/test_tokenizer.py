"""Exact counts, and what stands in for them."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.adapters import tokenizer as module
from lowwater.adapters.tokenizer import PIECE, SplintrTokenizer, tokenizer_for
from lowwater.errors import NoVocabulary

ROOT = Path(__file__).parents[2]
O200K = SplintrTokenizer()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The worker wrote 412 rows and stopped.", 9),
        ("def area(width, height):\n    return width * height\n", 12),
        ('{"path": "src/app.py", "lines": [1, 2, 3], "ok": true}', 25),
        ("你好，世界。今天天气很好。", 9),
        ("こんにちは世界", 2),
        ("안녕하세요 세계", 3),
        ("Привет, мир", 4),
        ("<|endoftext|>", 7),
        ("<|im_start|>system<|im_end|>", 13),
        ("🎉 done ✅", 4),
        ("   \n\n\t\tx", 3),
        ("naïve café – “quoted”", 8),
        ("", 0),
    ],
    ids=repr,
)
def test_counts_are_those_of_an_independent_tokenizer(text, tokens):
    """The figures are npm `tiktoken`'s."""
    assert O200K.count(text) == tokens


@pytest.mark.parametrize(
    ("vocabulary", "tokens"),
    [("cl100k", 9), ("qwen3", 11), ("llama3", 9), ("deepseek", 9), ("glm", 10), ("kimi", 9), ("mistral", 11)],
)
def test_every_vocabulary_is_in_the_package(vocabulary, tokens):
    tokenizer = tokenizer_for(vocabulary)
    assert (tokenizer.vocabulary, tokenizer.count("The worker wrote 412 rows and stopped.")) == (
        vocabulary,
        tokens,
    )


def test_an_unknown_vocabulary_is_named_with_those_there_are():
    with pytest.raises(NoVocabulary, match=r"no vocabulary 'klingon': use one of o200k, "):
        SplintrTokenizer("klingon")


def test_what_has_no_vocabulary_is_estimated():
    assert tokenizer_for("klingon").vocabulary == "estimate"


def test_without_the_package_counts_are_estimated():
    """In a process of its own, where the package cannot be imported."""
    program = (
        "import sys; sys.modules['splintr'] = None\n"
        "from lowwater.session.factories import counter_for\n"
        "counter = counter_for('gpt-6-sol')\n"
        "print(counter.vocabulary, counter.count('The worker wrote 412 rows and stopped.'))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["estimate", "9"]


def test_half_a_character_counts_as_an_unknown_one():
    assert O200K.count("a\ud83db") == O200K.count("a\ufffdb")
    assert O200K.count("\ud83d\ude00") == O200K.count("😀")


@pytest.mark.parametrize(
    "unit",
    [
        "a row of words, then a break\n",
        "    indented(code)\n\n",
        "no breaks at all, only words ",
        "x1,",
        "界",
    ],
    ids=repr,
)
def test_a_long_text_counts_the_same_in_pieces(unit, monkeypatch):
    text = unit * 900
    whole = O200K.count(text)
    monkeypatch.setattr(module, "PIECE", 1_000)
    slack = 0 if " " in unit and unit.strip()[0].isalpha() else len(text) // 1_000 + 1
    assert abs(O200K.count(text) - whole) <= slack


def test_fifty_megabytes_are_counted():
    line = "2026-03-04 worker-3 handled request 8d1f in 42 ms\n"
    times = 50_000_000 // len(line)
    assert O200K.count(line * times) == pytest.approx(times * O200K.count(line), rel=0.001)
    assert len(line * times) > 40 * PIECE


def test_threads_share_a_tokenizer():
    texts = [f"request {number} took {number * 7} ms\n" * 50 for number in range(64)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(O200K.count, texts)) == [O200K.count(text) for text in texts]


@given(st.text(alphabet=st.characters()), st.text(alphabet=st.characters()))
def test_every_text_has_a_count_and_joining_saves_at_most_what_it_merges(left: str, right: str):
    apart = O200K.count(left) + O200K.count(right)
    assert 0 <= O200K.count(left + right) <= apart + 4
    assert (O200K.count(left) == 0) == (left == "")


@pytest.mark.full
@pytest.mark.parametrize("section", ["equality", "fallback", "prompts"])
def test_the_figures_of_the_bench_hold(section):
    """Equality with npm's tokenizer on every recorded text, the estimate's bound, and the size of prompts."""
    if not (ROOT.parent / "shared" / "transcripts" / "canonical").is_dir():
        pytest.skip("no recorded sessions on this machine")
    run = subprocess.run(
        [sys.executable, "-m", "bench.counting", section],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "|" in run.stdout, run.stdout
