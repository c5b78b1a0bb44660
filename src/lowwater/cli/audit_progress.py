"""How far an audit has read, on standard error and only on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from lowwater.logs.importing import Progress


class Told(Protocol):
    """Is told how far the reading is."""

    def __call__(self, progress: Progress, /) -> None:
        """Take note."""
        ...


@contextmanager
def progress_bar() -> Iterator[Told | None]:
    """Give what shows the bytes read so far; None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn(compact=True))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def tell(progress: Progress) -> None:
            bar.update(task, completed=progress.read, total=progress.of)

        yield tell
