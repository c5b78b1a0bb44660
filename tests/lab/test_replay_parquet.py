"""A run as Parquet files: DuckDB finds in them what the JSON tells, and their bytes depend on nothing else."""

import json
import sys

import duckdb
import msgspec
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from lowwater.cli.replay import replay as command
from lowwater.core.formats.codec import encode_messages
from lowwater.errors import BadSetting, UnreadableFile
from lowwater.lab.replay.course_replay import SessionResult
from lowwater.lab.replay.parquet import TABLES, ParquetFolder
from lowwater.lab.replay.report import ReportBuilder, report_json
from lowwater.lab.replay.run import LocalEngine, replay_recordings
from lowwater.lab.replay.session import ReplayOptions
from tests.generated import generate_session
from tests.lab.replay_recordings import recording

OPTIONS = ReplayOptions(policies=("rent-or-buy", "never", "claude-code", "optimum"), full=("rent-or-buy",))
SKIPPED = SessionResult(id="x", agent="a", path="p", key="0", skipped="its answers have no times")


@pytest.fixture(scope="module")
def results():
    corpus = (recording(seed, turns=turns) for seed, turns in ((1, 20), (2, 120), (3, 160)))
    return [*replay_recordings(corpus, OPTIONS, engine=LocalEngine(1)), SKIPPED]


@pytest.fixture(scope="module")
def tables(results, tmp_path_factory):
    """Return a DuckDB connection with a view for each file."""
    place = write(results, tmp_path_factory.mktemp("tables"))
    connection = duckdb.connect()
    for table in TABLES:
        connection.execute(f"create view {table.name} as from '{place / table.name}.parquet'")
    yield connection
    connection.close()


def write(results, place):
    with ParquetFolder(place) as folder:
        for result in results:
            folder.add(result)
        folder.write()
    return place


def told_of(results):
    """Return the JSON of a run, read again."""
    gathering = ReportBuilder()
    for result in results:
        gathering.add(result)
    return msgspec.json.decode(msgspec.json.encode(report_json(gathering.report(OPTIONS.reported))))


TOTALS = """
    select
        policy,
        count(*) as sessions,
        count(*) filter (matters) as matters,
        sum(cost_nano) / 1e9 as cost_usd,
        sum(summaries_nano) / 1e9 as summaries_usd,
        sum(rework_nano) / 1e9 as rework_usd,
        sum(cost_nano + rework_nano) / 1e9 as cost_with_rework_usd,
        sum(cost_nano + rework_nano) / sum(optimum_nano) as sum_over_optimum,
        sum(cost_nano + rework_nano) / sum(relaxed_nano) as sum_over_relaxed,
        max(peak_view) as peak_view,
        sum(round(mean_view * turns)) / sum(turns) as mean_view,
        sum(summary_calls) as summary_calls,
        sum(prompt_and_summary_tokens) as prompt_and_summary_tokens,
        min(earliest_changed) as earliest_changed,
        100 * sum(events) / sum(turns) as events_per_100_turns,
        sum(in_view) / sum(uses) as in_view,
        avg((cost_nano + rework_nano) / optimum_nano) filter (matters) as mean,
        max((cost_nano + rework_nano) / optimum_nano) filter (matters) as max,
        quantile_cont((cost_nano + rework_nano) / optimum_nano, 0.95) filter (matters) as p95,
    from outcomes
    where kind = $kind and arm = $arm and fits
    group by policy
"""


def figures_in(said, kind, arm):
    """Return the figures of each policy that has some of this kind in this arm."""
    if kind == "full":
        return {name: each["full"][arm] for name, each in said["policies"].items() if each["full"]}
    on_courses = {name: each for name, each in said["policies"].items() if each["played"] == "course"}
    return {name: each["arms"].get(arm, each) for name, each in on_courses.items()}


@pytest.mark.parametrize(
    ("kind", "arm"), [("course", "neutral"), ("course", "pessimistic"), ("full", "neutral")]
)
def test_totals_by_sql_are_those_of_the_json(results, tables, kind, arm):
    found = tables.execute(TOTALS, {"kind": kind, "arm": arm})
    columns = [each[0] for each in found.description]
    by_policy = {row[0]: dict(zip(columns, row, strict=True)) for row in found.fetchall()}
    expected = figures_in(told_of(results), kind, arm)
    assert by_policy.keys() == expected.keys()
    assert len(by_policy) == (2 if kind == "full" else 4)
    for policy, row in by_policy.items():
        said = expected[policy]
        assert row["matters"] > 0
        for name in (
            "sessions",
            "matters",
            "cost_usd",
            "summaries_usd",
            "rework_usd",
            "cost_with_rework_usd",
        ):
            assert row[name] == said[name], name
        for name in ("sum_over_optimum", "sum_over_relaxed", "peak_view", "mean_view"):
            assert row[name] == pytest.approx(said[name], rel=1e-6), name
        for name in (
            "summary_calls",
            "prompt_and_summary_tokens",
            "earliest_changed",
            "events_per_100_turns",
        ):
            assert row[name] == pytest.approx(said["metrics"][name]), name
        for name in ("mean", "p95", "max"):
            assert row[name] == pytest.approx(said["cost_over_optimum"][name]), name
        if said["recall"]["measured_on"] == kind:
            assert row["in_view"] == pytest.approx(said["recall"]["in_view"])


def test_calls_events_and_causes_add_up_to_the_outcomes(tables):
    kept = (
        "select session, policy, kind, arm, turns, cost_nano, rework_nano, peak_view from outcomes "
        "where fits and policy != 'as-recorded'"
    )
    added = """
        select session, policy, kind, arm, count(*), sum(cost_nano), sum(rework_nano), max(prompt)
        from calls where prompt = read + written group by all
    """
    assert tables.execute(f"({kept}) except ({added})").fetchall() == []
    assert tables.execute(f"({added}) except ({kept})").fetchall() == []
    events = "select session, policy, kind, arm, count(*) from events group by all"
    assert (
        tables.execute(
            f"({events}) except select session, policy, kind, arm, events from outcomes"
        ).fetchall()
        == []
    )
    assert tables.execute("select count(*) from events").fetchone()[0] > 0
    gone = "select sum(uses) from gone"
    left = "select sum(uses - in_view - one_recall) from outcomes where kind = 'full'"
    assert (tables.execute(gone).fetchone()[0] or 0) == tables.execute(left).fetchone()[0]


def test_the_sessions_are_those_of_the_json_in_its_order(results, tables):
    rows = tables.execute("select session, id, agent, path, model, calls, skipped from sessions").fetchall()
    said = told_of(results)["sessions"]
    assert [row[0] for row in rows] == [0, 1, 2, 3]
    assert [row[1:4] for row in rows] == [(each["id"], each["agent"], each["path"]) for each in said]
    assert [row[4:] for row in rows] == [
        (each["model"] or None, each["calls"], each.get("skipped")) for each in said
    ]


def test_columns_are_as_documented_and_say_what_they_mean(tables, tmp_path, results):
    types = {
        "bool": "BOOLEAN",
        "int32": "INTEGER",
        "int64": "BIGINT",
        "double": "DOUBLE",
        "string": "VARCHAR",
    }
    for table in TABLES:
        found = tables.execute(f"describe {table.name}").fetchall()
        assert [row[:2] for row in found] == [(each.name, types[each.type]) for each in table.columns]
        schema = pq.read_schema(write(results, tmp_path) / f"{table.name}.parquet")
        assert [field.metadata[b"meaning"].decode() for field in schema] == [
            each.meaning for each in table.columns
        ]


def test_the_bytes_do_not_depend_on_who_finished_first(results, tmp_path):
    first, second = write(results, tmp_path / "first"), write(results[::-1], tmp_path / "second")
    assert sorted(each.name for each in first.iterdir()) == sorted(
        f"{table.name}.parquet" for table in TABLES
    )
    for file in first.iterdir():
        assert file.read_bytes() == (second / file.name).read_bytes(), file.name


def test_files_of_an_earlier_run_are_replaced_only_by_whole_ones(results, tmp_path):
    write(results, tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with ParquetFolder(tmp_path) as given_up:
        given_up.add(results[0])
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    write(results[:1], tmp_path)
    assert duckdb.execute(f"select count(*) from '{tmp_path}/sessions.parquet'").fetchone() == (1,)


def test_a_run_without_sessions_has_tables_without_rows(tmp_path):
    write([], tmp_path)
    for table in TABLES:
        assert duckdb.execute(f"select count(*) from '{tmp_path}/{table.name}.parquet'").fetchone() == (0,)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnreadableFile, match="no tables can be written"):
        ParquetFolder(tmp_path / "file" / "tables")


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BadSetting, match=r"install lowwater\[parquet\]"):
        ParquetFolder(tmp_path)


def test_the_command_writes_tables(tmp_path):
    made = generate_session("coding", seed=1, turns=10)
    pairs = zip(encode_messages(made.messages, "openai_chat"), made.times, strict=True)
    lines = [json.dumps({**json.loads(raw), "ts": at}) for raw, at in pairs]
    (tmp_path / "recorded.jsonl").write_text("\n".join(lines))
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(command)
    done = CliRunner().invoke(
        app,
        [
            *(
                str(tmp_path / "recorded.jsonl"),
                "--model",
                "anthropic-r10",
                "--policies",
                "never",
                "--full",
                "none",
            ),
            *("--workers", "1", "--json", "--parquet", str(tmp_path / "tables")),
        ],
    )
    assert done.exit_code == 0, done.output
    cost = json.loads(done.stdout)["policies"]["never"]["cost_usd"]
    found = duckdb.execute(
        f"select sum(cost_nano) / 1e9 from '{tmp_path}/tables/outcomes.parquet' where policy = 'never' and arm = 'neutral'"
    )
    assert found.fetchone() == (cost,)
