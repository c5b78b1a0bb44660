"""The count that needs no vocabulary."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.adapters.tokenizer import SplintrTokenizer
from lowwater.core.tokens.estimate import CharacterTokenizer

ESTIMATE = CharacterTokenizer()
EXACT = SplintrTokenizer()

PROSE = (
    "The river rises slowly in spring. Nobody who lives near it is surprised, and most keep a boat tied to the"
    " porch; the older houses have two doors, one above the other. "
)
CODE = (
    "class Queue:\n    def __init__(self, size: int) -> None:\n        self._items: list[str] = []\n"
    "        self.size = size\n\n    def push(self, item: str) -> bool:\n"
    "        if len(self._items) >= self.size:\n            return False\n"
    "        self._items.append(item)\n        return True\n\n"
)
JSON = '{"id": 4711, "path": "src/app/queue.py", "ok": true, "lines": [12, 88, 240], "author": "m.ito"},\n'
LOG = "2026-03-04T09:12:55.120Z INFO worker-3 handled request 8d1f in 42 ms status=200 bytes=18233\n"
CHINESE = "今天的会议推迟到下午三点,请大家提前准备好材料。数据库已经迁移完成。"
JAPANESE = "本日の会議は午後三時に延期されました。資料を事前に準備してください。"
KOREAN = "오늘 회의는 오후 세 시로 연기되었습니다. 자료를 미리 준비해 주세요. "
RUSSIAN = "Сегодняшняя встреча перенесена на три часа дня, подготовьте материалы заранее. "
NOISE = base64.b64encode(bytes(range(256)) * 4).decode()


@pytest.mark.parametrize(
    ("text", "tolerance"),
    [
        pytest.param(PROSE * 5, 0.15, id="prose"),
        pytest.param(CODE * 5, 0.15, id="code"),
        pytest.param(JSON * 20, 0.15, id="json"),
        pytest.param(LOG * 20, 0.15, id="log"),
        pytest.param(CHINESE * 5, 0.30, id="chinese"),
        pytest.param(JAPANESE * 5, 0.30, id="japanese"),
        pytest.param(KOREAN * 5, 0.30, id="korean"),
        pytest.param(RUSSIAN * 5, 0.30, id="russian"),
        pytest.param(NOISE, 0.30, id="base64"),
    ],
)
def test_a_text_is_estimated_close_to_its_count(text, tolerance):
    assert ESTIMATE.count(text) == pytest.approx(EXACT.count(text), rel=tolerance)


def test_the_empty_text_has_no_tokens_and_any_other_at_least_one():
    assert ESTIMATE.count("") == 0
    assert [ESTIMATE.count(text) for text in ("a", " ", "\n", "\ud83d", "\x00")] == [1, 1, 1, 1, 1]


def test_it_says_that_it_is_an_estimate():
    assert ESTIMATE.vocabulary == "estimate"


@given(st.text(alphabet=st.characters()))
def test_no_text_crashes_it_and_none_is_more_than_its_bytes(text: str):
    assert (1 if text else 0) <= ESTIMATE.count(text) <= 4 * len(text.encode("utf-8", "surrogatepass"))


@given(st.text(max_size=200), st.text(max_size=200))
def test_two_texts_together_cost_about_what_they_cost_apart(left: str, right: str):
    apart = ESTIMATE.count(left) + ESTIMATE.count(right)
    assert abs(ESTIMATE.count(left + right) - apart) <= 6


@given(st.text(alphabet=st.characters(codec="ascii"), max_size=100), st.integers(2, 20))
def test_repeating_a_text_repeats_its_cost(text: str, times: int):
    line = text + "\n"
    assert abs(ESTIMATE.count(line * times) - times * ESTIMATE.count(line)) <= 5 * times
