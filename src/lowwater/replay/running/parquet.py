"""A run as Parquet files: the same bytes whoever finished first, and never more than a part of it in memory."""

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Self

from lowwater.errors import BadSetting, UnreadableFile
from lowwater.replay.running.folder import RunFolder
from lowwater.replay.running.parquet_tables import TABLES, Row, Table
from lowwater.replay.running.results import SessionResult

if TYPE_CHECKING:
    import pyarrow

_GROUP = 100_000
"""Rows that are in memory, and in a row group of a file."""


class ParquetFolder:
    """Takes results as they come and sets them aside on disk; leaving it, what was set aside is gone."""

    def __init__(self, path: Path) -> None:
        if find_spec("pyarrow") is None:
            raise BadSetting("Parquet files need the package pyarrow: install lowwater[parquet]")
        self._path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._aside = TemporaryDirectory(prefix=".unfinished-", dir=path)
        except OSError as error:
            raise UnreadableFile(f"no tables can be written to {path}: {error.strerror}") from None
        self._results = RunFolder(Path(self._aside.name))
        self._places: list[tuple[str, ...]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._aside.cleanup()

    def add(self, result: SessionResult) -> None:
        """Take one result with its series."""
        self._results.keep(result)
        self._places.append(result.place)

    def write(self) -> None:
        """Write a file for each table, all results so far in it; older ones are replaced when the new ones are whole."""
        unfinished = [Path(self._aside.name) / f"{table.name}.parquet" for table in TABLES]
        try:
            for table, file in zip(TABLES, unfinished, strict=True):
                _write(table, self._rows(table), file)
            for file in unfinished:
                file.replace(self._path / file.name)
        except OSError as error:
            raise UnreadableFile(f"no tables can be written to {self._path}: {error}") from None

    def _rows(self, table: Table) -> Iterator[Row]:
        for number, place in enumerate(sorted(self._places)):
            yield from table.rows(number, self._results.find(place[-1]))


def _write(table: Table, rows: Iterator[Row], file: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415 (the extra `parquet`)
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415

    schema = _schema(table)
    with ParquetWriter(file, schema, compression="zstd") as writer:
        while group := list(islice(rows, _GROUP)):
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
