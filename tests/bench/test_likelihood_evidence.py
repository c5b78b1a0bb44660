"""What the scores say: only what intervals separate is claimed, and nothing before the validity check passes."""

from random import Random
from typing import Any

import pytest

from bench.likelihood import __main__ as command
from bench.likelihood.evidence import (
    ablation_table,
    beside,
    by_length,
    by_point,
    interval,
    loss_per_token,
    main_table,
    picture,
    share,
    still_called,
    still_named,
    validity_of,
    views_in,
)
from bench.likelihood.validity import auc


def row(
    point: str, view: str, *, log: float, tokens: int = 1_000, hits: str = "1111", spots: str = "11"
) -> dict[str, Any]:
    return {
        "point": point,
        "view": view,
        "digest": f"{point}{view}",
        "tokens": tokens,
        "counts": {"path": 2, "code": 2},
        "logs": {"path": log, "code": -1.0},
        "hits": hits,
        "spots": spots,
    }


def rows(points: int = 40, **losses: float) -> list[dict[str, Any]]:
    """Every point loses about so many nats under each view, on its paths."""
    draw = Random(3)
    found: list[dict[str, Any]] = []
    for at in range(points):
        point = f"source/session-{at}#1"
        found.append(row(point, "full", log=-1.0))
        for view, nats in losses.items():
            found.append(
                row(
                    point, view.replace("_", "-") + "%", log=-1.0 - nats + draw.uniform(-0.1, 0.1), tokens=250
                )
            )
    return found


def pairs(count: int, *, named: float, other: float) -> list[dict[str, Any]]:
    draw = Random(4)
    found: list[dict[str, Any]] = []
    for at in range(count):
        point = f"source/session-{at}#1"
        found.append(row(point, "full", log=-1.0))
        found.append(row(point, "named-0", log=-1.0 - named + draw.uniform(-0.5, 0.5)))
        found.append(row(point, "other-0", log=-1.0 - other + draw.uniform(-0.5, 0.5)))
    return found


def test_losses_are_per_token_of_references_and_by_kind():
    scores = by_point(rows(lowwater_25=2.0))
    whole, paths = (
        loss_per_token(scores, "lowwater-25%"),
        loss_per_token(scores, "lowwater-25%", kinds=["path"]),
    )
    code = loss_per_token(scores, "lowwater-25%", kinds=["code"])
    assert whole is not None
    assert paths is not None
    assert code is not None
    assert whole == paths
    assert paths.mean == pytest.approx(1.0, abs=0.03)
    assert code.mean == 0
    assert loss_per_token(scores, "lowwater-25%", kinds=["number"]) is None


def test_intervals_hold_the_mean_are_the_same_every_time_and_clear_of_zero_if_the_losses_are():
    scores = by_point(rows(lowwater_25=2.0, newest_25=0.0))
    clear, unclear = loss_per_token(scores, "lowwater-25%"), loss_per_token(scores, "newest-25%")
    assert clear is not None
    assert unclear is not None
    assert clear.low < clear.mean < clear.high
    assert clear.is_clear
    assert not unclear.is_clear
    assert clear == loss_per_token(scores, "lowwater-25%")


def test_points_of_one_session_are_drawn_together():
    values = [1.0, 1.0, 1.0, -1.0, -1.0, -1.0]
    apart = interval(values, [1.0] * 6, [str(at) for at in range(6)])
    together = interval(values, [1.0] * 6, ["a", "a", "a", "b", "b", "b"])
    assert together.low <= -1.0 < apart.low
    assert together.mean == apart.mean == 0


def test_views_are_compared_on_the_same_points():
    found = rows(lowwater_25=1.0, newest_25=3.0)
    alone = [row("source/alone#1", "full", log=-1.0), row("source/alone#1", "newest-25%", log=-90.0)]
    line = next(each for each in beside(by_point([*found, *alone])) if each.startswith("| newest"))
    assert "| 40 | +1.0" in line
    assert line.endswith("| yes |")


def test_what_is_still_written_counts_only_what_the_model_writes_under_the_full_prompt():
    scores = by_point(
        [
            row("a#1", "full", log=-1.0, spots="1110"),
            row("a#1", "lowwater-25%", log=-1.0, spots="0101"),
            row("b#1", "full", log=-1.0, spots="10"),
            row("b#1", "lowwater-25%", log=-1.0, spots="11"),
            row("c#1", "full", log=-1.0, spots="0"),
            row("c#1", "lowwater-25%", log=-1.0, spots="1"),
        ]
    )
    assert share(scores, "lowwater-25%", still_called) == pytest.approx(1 / 2)
    assert share(scores, "lowwater-25%", still_named) == pytest.approx(1 / 2)


def test_the_area_under_the_curve():
    assert auc([2.0, 3.0], [0.0, 1.0]) == 1.0
    assert auc([1.0], [1.0]) == 0.5
    assert auc([0.0, 2.0], [1.0, 1.0]) == 0.5


@pytest.mark.parametrize(
    ("count", "other", "passes"),
    [(200, 0.0, True), (199, 0.0, False), (200, 2.9, False)],
    ids=["passes", "too few pairs", "does not separate"],
)
def test_the_check_passes_with_enough_pairs_that_are_told_apart(count: int, other: float, *, passes: bool):
    found = validity_of(by_point(pairs(count, named=3.0, other=other)))
    assert found is not None
    assert found.pairs == count
    assert found.passes is passes


def test_no_table_of_views_before_the_check_passes(tmp_path, monkeypatch: pytest.MonkeyPatch):
    import json

    def said(count: int) -> str:
        found = [*pairs(count, named=3.0, other=0.0), *rows(lowwater_25=1.0, newest_25=2.0)]
        path = tmp_path / f"{count}.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in found))
        monkeypatch.setattr(command, "SCORES", path)
        for name in ("SAMPLE_SCORES", "SUMMARY_SCORES", "PROBE_SCORES"):
            monkeypatch.setattr(command, name, tmp_path / "none")
        composable = tmp_path / "composable.json"
        composable.write_text(json.dumps({each["point"]: each["point"].endswith("7#1") for each in found}))
        monkeypatch.setattr(command, "COMPOSABLE", composable)
        return "\n".join(command.page())

    assert "no table of views is published" in said(20)
    assert "| newest-25% |" not in said(20)
    assert "it **passes**" in said(220)
    assert "| newest-25% |" in said(220)


def test_scores_are_packed_and_what_was_scored_again_replaces_them(tmp_path, monkeypatch: pytest.MonkeyPatch):
    import json

    kept, working = tmp_path / "kept" / "scores.jsonl.xz", tmp_path / "scores.jsonl"
    kept.parent.mkdir()
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "SCORES", kept)
    for name in ("SAMPLE_SCORES", "SUMMARY_SCORES", "PROBE_SCORES"):
        monkeypatch.setattr(command, name, tmp_path / "kept" / "none.xz")
    for log in (-1.0, -2.0):
        working.write_text(json.dumps(row("a/b#1", "full", log=log)) + "\n")
        assert command.scores_of(kept)["a/b#1"]["full"]["logs"]["path"] == log
        command.keep_scores()
        assert not working.exists()
        assert command.scores_of(kept)["a/b#1"]["full"]["logs"]["path"] == log


def test_the_tables_name_every_view_once_and_the_picture_is_drawing():
    scores = by_point(rows(lowwater_50=0.5, lowwater_25=1.0, newest_25=2.0, without_names=1.5))
    assert views_in(scores) == ["lowwater-50%", "lowwater-25%", "newest-25%", "without-names%"]
    assert len(list(main_table(scores))) == 2 + 4
    assert sum(line.startswith("| names") for line in ablation_table(scores, "lowwater-25%")) == 1
    assert sum(line.startswith("| lowwater-25%") for line in by_length(scores, ["lowwater-25%"])) == 1
    assert picture(scores).count("<circle") == 3 + 2
