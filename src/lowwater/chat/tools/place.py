"""Where tools work: paths as the model writes them, and which of them need the user's consent."""

from pathlib import Path

from msgspec import Struct


class Place(Struct, frozen=True, kw_only=True):
    """A directory to work in, and others that may be read."""

    directory: Path
    readable: tuple[Path, ...] = ()

    def path(self, written: str) -> Path:
        """Return the file that a path means, links followed."""
        return (self.directory / Path(written).expanduser()).resolve()

    def is_inside(self, path: Path) -> bool:
        """Return whether a file is below one of the directories."""
        return any(path.is_relative_to(root.resolve()) for root in (self.directory, *self.readable))

    def shown(self, path: Path) -> str:
        """Return a path as short as it can be told."""
        home = self.directory.resolve()
        return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)
