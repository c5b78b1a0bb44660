"""The requests that the results of a batch belong to: they lie in another file of the same folder."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from lowwater.errors import BadInput
from lowwater.replay.importing.lines import RecordedFile
from lowwater.replay.importing.request_logs_exchanges import exchange_in

_SUFFIXES = (".jsonl", ".json", ".ndjson", ".txt")


class _Line(Struct, frozen=True):
    path: Path
    at: int


class BatchRequests:
    """Finds requests by their custom id; only where they lie is kept."""

    def __init__(self, results: Path) -> None:
        self._results = results
        self._lines: dict[str, _Line] | None = None

    def find(self, custom_id: str) -> bytes:
        """Return the body of a request, empty if there is none."""
        if self._lines is None:
            self._lines = dict(self._indexed())
        line = self._lines.get(custom_id)
        if line is None:
            return b""
        try:
            with RecordedFile(line.path) as file:
                exchange = exchange_in(file.line_at(line.at))
        except BadInput:
            return b""
        return exchange.request if exchange else b""

    def _indexed(self) -> Iterator[tuple[str, _Line]]:
        for path in sorted(self._results.parent.iterdir()):
            if path.suffix in _SUFFIXES and path.is_file():
                try:
                    with RecordedFile(path) as file:
                        yield from _requests_in(file)
                except BadInput:
                    continue


def _requests_in(file: RecordedFile) -> Iterator[tuple[str, _Line]]:
    if b'"custom_id"' not in file.head():
        return
    for line in file.lines():
        exchange = exchange_in(line.data)
        if exchange is not None and exchange.custom_id and exchange.request:
            yield exchange.custom_id, _Line(file.path, line.at)
