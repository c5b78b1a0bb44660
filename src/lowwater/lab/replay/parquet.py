"""Writes the results of a replay run as Parquet files, one per table."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from msgspec import Struct

from lowwater.errors import BadSetting, UnreadableFile
from lowwater.lab.replay.course_replay import PolicyOutcome, SessionResult
from lowwater.lab.replay.run import RunFolder

if TYPE_CHECKING:
    import pyarrow

Type = Literal["bool", "int32", "int64", "double", "string"]
TableRow = tuple[Any, ...]
"""A value for each column, in order."""
_ROW_GROUP = 100_000
"""Rows held in memory at once, and per row group of a file."""


class Column(Struct, frozen=True):
    """One column; its meaning is written to the file as metadata."""

    name: str
    type: Type
    meaning: str
    nullable: bool = False


class Table(Struct, frozen=True, kw_only=True):
    """One file; `rows(number, result)` yields the rows of the session with that number in the run."""

    name: str
    columns: tuple[Column, ...]
    rows: Callable[[int, SessionResult], Iterator[TableRow]]


_SESSION = Column("session", "int32", "the session's number in this run, from 0, as in the JSON's list")


_PLAYED = (
    _SESSION,
    Column("policy", "string", "the policy's name"),
    Column(
        "kind", "string", "course: on the session as numbers; full: by the real engine on the real messages"
    ),
    Column("arm", "string", "how kind the provider's cache was: neutral or pessimistic"),
)


def _sessions(number: int, result: SessionResult) -> Iterator[TableRow]:
    yield (
        number,
        result.key,
        result.id,
        result.agent,
        result.path,
        result.model or None,
        result.calls,
        result.beyond,
        result.fixed,
        result.skipped or None,
    )


SESSIONS = Table(
    name="sessions",
    columns=(
        _SESSION,
        Column(
            "key", "string", "tells it from every other session, and from the same one under other options"
        ),
        Column("id", "string", "as its recording names it"),
        Column("agent", "string", "who recorded it"),
        Column("path", "string", "the file it was read from"),
        Column("model", "string", "whose prices and rules it was replayed with", nullable=True),
        Column("calls", "int32", "calls that were replayed"),
        Column("beyond", "int32", "calls after those, which were left out"),
        Column("fixed", "int64", "tokens of tools and system prompt"),
        Column("skipped", "string", "why it was not replayed; null if it was", nullable=True),
    ),
    rows=_sessions,
)


def _outcomes(number: int, result: SessionResult) -> Iterator[TableRow]:
    for each in result.outcomes:
        bounds, recall, cadence = result.bound(each.arm), each.recall, each.cadence
        yield (
            *_played(number, each),
            each.fits,
            each.is_bounded,
            bounds.matters,
            each.cost,
            each.summaries,
            each.rework,
            bounds.optimum,
            bounds.relaxed,
            bounds.of(each.kind),
            bounds.never,
            recall.uses,
            recall.in_view,
            recall.one_recall,
            cadence.turns,
            cadence.events,
            cadence.intervals,
            cadence.summary_calls,
            cadence.reclaimed,
            cadence.rewritten,
            cadence.prompt_and_summary_tokens,
            cadence.earliest_changed,
            cadence.prunes,
            cadence.summaries,
            each.mean_view,
            each.peak_view,
        )


OUTCOMES = Table(
    name="outcomes",
    columns=(
        *_PLAYED,
        Column("fits", "bool", "whether every prompt fit the window; if not, nothing else in the row counts"),
        Column("is_bounded", "bool", "whether it has the optimum's actions only, and cannot cost less"),
        Column(
            "matters",
            "bool",
            "whether compaction saves enough in this session and arm to tell policies apart",
        ),
        Column("cost_nano", "int64", "nano-dollars for calls and summaries"),
        Column("summaries_nano", "int64", "the part of cost_nano that went into summaries"),
        Column(
            "rework_nano", "int64", "nano-dollars for recalls of what had left the view; beside cost_nano"
        ),
        Column(
            "optimum_nano",
            "int64",
            "the least with hindsight by a few coarse actions, rework included; null if nothing fits",
            nullable=True,
        ),
        Column("relaxed_nano", "int64", "what no policy can avoid, whatever its actions"),
        Column(
            "bound_nano",
            "int64",
            "the lower bound on schedules of the engine's actions; null if nothing fits",
            nullable=True,
        ),
        Column(
            "never_nano",
            "int64",
            "without any action before the wall; null if that does not fit",
            nullable=True,
        ),
        Column("uses", "int32", "later uses of what was said before"),
        Column("in_view", "int32", "those that found it in the view"),
        Column(
            "one_recall",
            "int32",
            "those that one recall gets back; null if it was not measured",
            nullable=True,
        ),
        Column("turns", "int32", "calls"),
        Column("events", "int32", "compactions"),
        Column("intervals", "int32", "calls between compactions, all together"),
        Column("summary_calls", "int32", "calls made for summaries"),
        Column("reclaimed", "int64", "tokens that compactions took out of prompts"),
        Column("rewritten", "int64", "tokens that compactions made the provider cache again"),
        Column("prompt_and_summary_tokens", "int64", "tokens of all prompts and summaries"),
        Column("earliest_changed", "int32", "the first message that a compaction changed", nullable=True),
        Column("prunes", "int32", "compactions that elided only"),
        Column("summaries", "int32", "compactions that summarised"),
        Column("mean_view", "double", "tokens of a prompt, on average"),
        Column("peak_view", "int64", "tokens of the largest prompt"),
    ),
    rows=_outcomes,
)


def _gone(number: int, result: SessionResult) -> Iterator[TableRow]:
    for outcome in result.outcomes:
        for cause, uses in sorted(outcome.recall.causes.items()):
            yield *_played(number, outcome), cause, uses


GONE = Table(
    name="gone",
    columns=(
        *_PLAYED,
        Column("cause", "string", "why one recall did not get back what had left the view"),
        Column("uses", "int32", "later uses for which that is so"),
    ),
    rows=_gone,
)


def _events(number: int, result: SessionResult) -> Iterator[TableRow]:
    for outcome in result.outcomes:
        for each in outcome.events:
            yield (
                *_played(number, outcome),
                each.turn,
                each.mode,
                each.before,
                each.after,
                each.because or None,
            )


EVENTS = Table(
    name="events",
    columns=(
        *_PLAYED,
        Column("call", "int32", "the call it came before, from 0"),
        Column("mode", "string", "prune, summary, condense or shorten"),
        Column("before", "int64", "tokens of the prompt without it"),
        Column("after", "int64", "tokens of the prompt with it"),
        Column("because", "string", "the reason's code, where there is one", nullable=True),
    ),
    rows=_events,
)


def _calls(number: int, result: SessionResult) -> Iterator[TableRow]:
    for outcome in result.outcomes:
        if (series := outcome.series) is None:
            continue
        played = _played(number, outcome)
        figures = zip(
            series.prompt,
            series.read,
            series.written,
            series.elided,
            series.summarised,
            series.cost,
            series.rework,
            strict=True,
        )
        yield from ((*played, call, *each) for call, each in enumerate(figures))


CALLS = Table(
    name="calls",
    columns=(
        *_PLAYED,
        Column("call", "int32", "its number in the session, from 0"),
        Column("prompt", "int64", "tokens of the prompt"),
        Column("read", "int64", "those read from the cache"),
        Column("written", "int64", "all others"),
        Column("elided", "int64", "tokens that placeholders keep out of the prompt"),
        Column("summarised", "int64", "tokens that summaries keep out of it"),
        Column("cost_nano", "int64", "nano-dollars, with the summaries before it and without rework"),
        Column("rework_nano", "int64", "nano-dollars for recalls"),
    ),
    rows=_calls,
)


TABLES = (SESSIONS, OUTCOMES, GONE, EVENTS, CALLS)


def _played(number: int, outcome: PolicyOutcome) -> TableRow:
    return number, outcome.policy, outcome.kind, outcome.arm


class ParquetFolder:
    """Collects results in a temporary folder on disk, and writes them as tables; the folder is removed on exit."""

    def __init__(self, path: Path) -> None:
        if find_spec("pyarrow") is None:
            raise BadSetting("Parquet files need the package pyarrow: install lowwater[parquet]")
        self._path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._temporary = TemporaryDirectory(prefix=".unfinished-", dir=path)
        except OSError as error:
            raise UnreadableFile(f"no tables can be written to {path}: {error.strerror}") from None
        self._results = RunFolder(Path(self._temporary.name))
        self._places: list[tuple[str, ...]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._temporary.cleanup()

    def add(self, result: SessionResult) -> None:
        """Add one result with its series."""
        self._results.keep(result)
        self._places.append(result.place)

    def write(self) -> None:
        """Write a file for each table with all results so far; existing files are replaced once all new ones are complete."""
        unfinished = [Path(self._temporary.name) / f"{table.name}.parquet" for table in TABLES]
        try:
            for table, file in zip(TABLES, unfinished, strict=True):
                _write(table, self._rows(table), file)
            for file in unfinished:
                file.replace(self._path / file.name)
        except OSError as error:
            raise UnreadableFile(f"no tables can be written to {self._path}: {error}") from None

    def _rows(self, table: Table) -> Iterator[TableRow]:
        for number, place in enumerate(sorted(self._places)):
            yield from table.rows(number, self._results.find(place[-1]))


def _write(table: Table, rows: Iterator[TableRow], file: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415 (the extra `parquet`)
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415

    schema = _schema(table)
    with ParquetWriter(file, schema, compression="zstd") as writer:
        while group := list(islice(rows, _ROW_GROUP)):
            columns = zip(zip(*group, strict=True), schema.types, strict=True)
            arrays = [pa.array(values, type) for values, type in columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _schema(table: Table) -> "pyarrow.Schema":
    import pyarrow as pa  # noqa: PLC0415

    types = {"bool": pa.bool_(), "int32": pa.int32(), "int64": pa.int64(), "double": pa.float64()}
    return pa.schema(
        pa.field(
            column.name,
            types.get(column.type, pa.string()),
            nullable=column.nullable,
            metadata={"meaning": column.meaning},
        )
        for column in table.columns
    )
