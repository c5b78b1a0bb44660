"""What a programming language must be able to say for source files to be written in it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct

Words = tuple[str, ...]


class Constant(Struct, frozen=True, kw_only=True):
    """A named number at the top of a file."""

    name: Words
    value: int


class Outline(Struct, frozen=True, kw_only=True):
    """What stands in a source file, before its lines are written: names that other files and talk can refer to."""

    path: str
    entity: Words
    error: Words
    fields: tuple[Words, ...]
    methods: tuple[Words, ...]
    functions: tuple[Words, ...]
    constants: tuple[Constant, ...]
    uses: tuple["Outline", ...] = ()


class Function(Struct, frozen=True, kw_only=True):
    """One function or method, its body written already."""

    name: Words
    parameters: tuple[tuple[Words, str], ...]
    returns: str
    doc: str
    body: tuple[str, ...]
    owner: Words = ()


class Dialect(ABC):
    """One language: how names are cased and statements are laid out; lines come without their outer indent."""

    language: ClassVar[str]
    suffix: ClassVar[str]
    tab: ClassVar[str] = "    "
    types: ClassVar[tuple[str, ...]]
    nothing: ClassVar[str]
    ends_line: ClassVar[str] = ""
    and_then: ClassVar[str] = " && "

    def indented(self, lines: Sequence[str]) -> list[str]:
        """Return `lines` one level deeper."""
        return [self.tab + line if line else line for line in lines]

    @abstractmethod
    def name(self, words: Words) -> str:
        """Return the name of a variable."""

    def function_name(self, words: Words) -> str:
        """Return the name of a function that other files can call."""
        return self.name(words)

    @abstractmethod
    def kind(self, words: Words) -> str:
        """Return the name of a type."""

    @abstractmethod
    def constant(self, words: Words) -> str:
        """Return the name of a constant."""

    @abstractmethod
    def own(self, words: Words) -> str:
        """Return a field or method of the object at hand."""

    @abstractmethod
    def member(self, owner: str, words: Words) -> str:
        """Return a field or method of another object."""

    @abstractmethod
    def filled(self, text: str, value: str) -> str:
        """Return a string literal that ends in a value."""

    @abstractmethod
    def size(self, value: str) -> str:
        """Return the number of items in a collection."""

    @abstractmethod
    def absent(self, value: str) -> str:
        """Return the condition that there is no such value."""

    @abstractmethod
    def picked(self, source: str, item: str, condition: str) -> str:
        """Return the items of a collection for which a condition holds."""

    @abstractmethod
    def let(self, name: str, value: str) -> str:
        """Return a line that introduces a variable."""

    @abstractmethod
    def comment(self, text: str) -> str:
        """Return a comment line."""

    @abstractmethod
    def log(self, level: str, text: str, words: Words, value: str) -> str:
        """Return a line that logs a text with one labelled value."""

    @abstractmethod
    def fail(self, error: str, text: str, value: str) -> str:
        """Return a line that reports an error."""

    @abstractmethod
    def give(self, value: str) -> str:
        """Return a line that returns a value."""

    @abstractmethod
    def when(self, condition: str, body: Sequence[str], otherwise: Sequence[str] = ()) -> list[str]:
        """Return a conditional."""

    @abstractmethod
    def each(self, item: str, source: str, body: Sequence[str]) -> list[str]:
        """Return a loop over a collection."""

    @abstractmethod
    def attempt(self, body: Sequence[str], error: str, handler: Sequence[str]) -> list[str]:
        """Return statements with what happens when they fail."""

    @abstractmethod
    def function(self, function: Function) -> list[str]:
        """Return a function or method with its documentation."""

    @abstractmethod
    def head(self, outline: Outline, doc: str) -> list[str]:
        """Return what stands at the top of a source file: documentation, imports, constants, the error type."""

    @abstractmethod
    def record(
        self, outline: Outline, doc: str, types: Sequence[str], methods: Sequence[Function]
    ) -> list[str]:
        """Return the file's main type with its fields and methods."""

    @abstractmethod
    def test_path(self, path: str) -> str:
        """Return where the tests of a source file stand."""

    @abstractmethod
    def tests(self, outline: Outline, cases: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
        """Return a test file of named cases."""

    @abstractmethod
    def case_name(self, words: Words) -> str:
        """Return the name of a test case as the test runner prints it."""

    @abstractmethod
    def equals(self, value: str, expected: str) -> str:
        """Return a line that checks a value."""
