"""The files of a made-up repository: written on first sight, changed by edits, compared with the last commit."""

from difflib import unified_diff

from msgspec import Struct

from tests.generated.code.body import BodyWriter
from tests.generated.code.module import write_module, write_tests
from tests.generated.coding.papers import write_paper
from tests.generated.coding.project import Module, Project
from tests.generated.draw import Draw
from tests.generated.lexicon import Lexicon


class Replacement(Struct, frozen=True, kw_only=True):
    """A replacement made in a file: `old` stood there exactly once, from line `line` counted from 1."""

    path: str
    line: int
    old: str
    new: str


class Hit(Struct, frozen=True, kw_only=True):
    """A line in which something was found, counted from 1."""

    path: str
    line: int
    text: str


class Workspace:
    """A working copy; what a file holds depends on the project and the edits alone, not on the order of reading."""

    def __init__(self, draw: Draw, project: Project) -> None:
        self._draw = draw
        self.project = project
        self._files: dict[str, list[str]] = {}
        self._committed: dict[str, list[str]] = {}
        self._modules = {m.path: m for m in project.modules} | {m.test_path: m for m in project.modules}
        self.paths = project.paths()

    def module(self, path: str) -> Module | None:
        """Return the module that a source or test file belongs to."""
        return self._modules.get(path)

    def lines(self, path: str) -> list[str]:
        """Return the file's lines as they are now."""
        if path not in self._files:
            self._files[path] = self._written(path)
        return self._files[path]

    def numbered(self, path: str, first: int = 1, last: int = 1_000_000) -> str:
        """Return lines `first` to `last` with their numbers, as a file viewer prints them."""
        lines = self.lines(path)[first - 1 : last]
        return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, start=first))

    def write(self, path: str, lines: list[str]) -> None:
        """Create or overwrite a file."""
        self._committed.setdefault(path, [] if path not in self.paths else self.lines(path))
        if path not in self.paths:
            self.paths = sorted([*self.paths, path])
        self._files[path] = lines

    def edit(self, path: str, old: str, new: str) -> Replacement:
        """Replace `old`, which must stand in the file exactly once."""
        text = "\n".join(self.lines(path))
        before, found, after = text.partition(old)
        assert found, f"nothing to replace in {path}"
        assert old not in after, f"more than one place to replace in {path}"
        self.write(path, (before + new + after).split("\n"))
        return Replacement(path=path, line=before.count("\n") + 1, old=old, new=new)

    def search(self, needle: str, most: int = 1_000) -> list[Hit]:
        """Return the lines that hold `needle`, by path and line."""
        hits: list[Hit] = []
        for path in self.paths:
            for number, line in enumerate(self.lines(path), start=1):
                if needle in line:
                    hits.append(Hit(path=path, line=number, text=line))
                    if len(hits) == most:
                        return hits
        return hits

    def changed(self) -> list[str]:
        """Return the paths that differ from the last commit."""
        return [
            path
            for path in self.paths
            if path in self._committed and self._committed[path] != self._files[path]
        ]

    def is_new(self, path: str) -> bool:
        """Return whether the last commit does not have the file."""
        return path in self._committed and not self._committed[path]

    def diff(self, path: str) -> list[str]:
        """Return the unified diff of one file against the last commit."""
        before = self._committed.get(path, [])
        old, new = ("/dev/null" if not before else f"a/{path}"), f"b/{path}"
        return list(unified_diff(before, self._files[path], old, new, lineterm="", n=3))

    def commit(self) -> None:
        """Forget what the files were before."""
        self._committed.clear()

    def writer(self, module: Module, draw: Draw) -> BodyWriter:
        """Return what writes further statements for a module."""
        return BodyWriter(Lexicon(draw, self.project.domain), module.dialect, module.outline)

    def _written(self, path: str) -> list[str]:
        lexicon = Lexicon(self._draw.child(path), self.project.domain)
        module = self._modules.get(path)
        if module is None:
            return write_paper(lexicon, path)
        if path == module.path:
            return write_module(lexicon, module.dialect, module.outline)
        return write_tests(lexicon, module.dialect, module.outline, module.cases)
