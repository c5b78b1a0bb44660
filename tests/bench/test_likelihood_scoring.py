"""Scoring stops and goes on, scores each view once, and what it writes is numbers only."""

import json
import lzma
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.likelihood.inputs import FULL, Case, Pieces, Spot, digest_of, read_cases, write_case
from bench.likelihood.score import Scored, common_beginning, read_rows, score_all

FOREVER = math.inf


class Counting:
    """A model that finds each token of an action as likely as the prompt is long, and the even ones likeliest."""

    def __init__(self) -> None:
        self.prompts: list[list[int]] = []

    def score(self, prompt: Sequence[int], action: Sequence[int]) -> Scored:
        self.prompts.append(list(prompt))
        return Scored(logs=[-0.5 * len(prompt)] * len(action), hits=[token % 2 == 0 for token in action])


def case(point: str = "source/session#1", **views: list[tuple[int, ...]]) -> Case:
    pieces = Pieces()
    numbered = {name: pieces.add(given) for name, given in {FULL: [(1, 2), (3, 4, 5), (6,)], **views}.items()}
    return Case(
        point=point,
        action=(10, 12, 13, 14),
        kinds=("frame", "path", "path", "number"),
        spots=(Spot(kind="path", tokens=(1, 2)), Spot(kind="number", tokens=(3,))),
        pieces=pieces.all(),
        views=numbered,
    )


def scored(cases: list[Case], results: Path, *, until: float = FOREVER, **limits: object) -> Counting:
    model = Counting()
    for _ in score_all(cases, results, model, until=until, **limits):  # type: ignore[arg-type]
        pass
    return model


@pytest.mark.parametrize("name", ["inputs.jsonl", "inputs.jsonl.xz"])
def test_cases_are_read_as_they_were_written(tmp_path: Path, name: str):
    written = [case(), case("source/other#2", short=[(1, 2), (6,)])]
    lines = b"".join(write_case(each) for each in written)
    (tmp_path / name).write_bytes(lzma.compress(lines) if name.endswith("xz") else lines)
    assert list(read_cases(tmp_path / name)) == written


def test_views_share_their_pieces():
    made = case(short=[(1, 2), (6,)], other=[(1, 2), (9, 9)])
    assert made.pieces == ((1, 2), (3, 4, 5), (6,), (9, 9))
    assert made.tokens("full") == [1, 2, 3, 4, 5, 6]
    assert made.tokens("other") == [1, 2, 9, 9]


def test_a_row_has_sums_by_kind_and_what_the_model_writes_itself(tmp_path: Path):
    results = tmp_path / "rows"
    scored([case()], results)
    assert read_rows(results) == [
        {
            "point": "source/session#1",
            "view": "full",
            "digest": digest_of([1, 2, 3, 4, 5, 6]),
            "tokens": 6,
            "counts": {"frame": 1, "path": 2, "number": 1},
            "logs": {"frame": -3.0, "path": -6.0, "number": -3.0},
            "hits": "1101",
            "spots": "01",
        }
    ]


def test_what_has_been_scored_is_not_scored_again(tmp_path: Path):
    cases = [case("a#1", short=[(1, 2)]), case("b#1", short=[(1, 2)])]
    scored(cases[:1], tmp_path / "rows")
    assert len(scored(cases, tmp_path / "rows").prompts) == 2
    assert not scored(cases, tmp_path / "rows").prompts
    assert len(read_rows(tmp_path / "rows")) == 4


def test_nothing_is_begun_after_the_time_is_over(tmp_path: Path):
    assert not scored([case()], tmp_path / "rows", until=-1.0).prompts


def test_a_line_that_was_cut_short_is_scored_again(tmp_path: Path):
    results = tmp_path / "rows"
    scored([case(short=[(1, 2)])], results)
    whole = results.read_text()
    results.write_text(whole[: len(whole) - 20] + "\n")
    assert scored([case(short=[(1, 2)])], results).prompts == [[1, 2]]


def test_a_view_that_is_another_now_is_scored_again_and_the_last_counts(tmp_path: Path):
    scored([case(short=[(1, 2)])], tmp_path / "rows")
    assert scored([case(short=[(1, 2), (6,)])], tmp_path / "rows").prompts == [[1, 2, 6]]
    last = next(row for row in read_rows(tmp_path / "rows") if row["view"] == "short")
    assert last["tokens"] == 3


def test_views_that_are_the_same_are_scored_once(tmp_path: Path):
    model = scored([case(one=[(1, 2)], other=[(1, 2)])], tmp_path / "rows")
    assert model.prompts == [[1, 2, 3, 4, 5, 6], [1, 2]]
    assert {row["view"] for row in read_rows(tmp_path / "rows")} == {"full", "one", "other"}


def test_long_prompts_and_other_views_can_be_left_out(tmp_path: Path):
    cases = [case("a#1", short=[(1, 2)], long=[(1, 2), (6,)])]
    assert not scored(cases, tmp_path / "rows", most=5).prompts
    assert scored(cases, tmp_path / "rows", views=["full", "sho"]).prompts == [[1, 2, 3, 4, 5, 6], [1, 2]]


def test_results_hold_no_tokens(tmp_path: Path):
    scored([case()], tmp_path / "rows")
    row = json.loads((tmp_path / "rows").read_text())
    assert set(row) == {"point", "view", "digest", "tokens", "counts", "logs", "hits", "spots"}


@pytest.mark.parametrize(
    ("one", "other", "common"), [([], [1], 0), ([1, 2], [1, 2, 3], 2), ([1, 2, 3], [1, 9, 3], 1)]
)
def test_the_common_beginning_of_prompts(one: list[int], other: list[int], common: int):
    assert common_beginning(one, other) == common
