"""Source files in Python."""

from collections.abc import Sequence

from tests.generated.code.dialect import Dialect, Function, Outline, Words
from tests.generated.naming import pascal, screaming, snake


class Python(Dialect):
    """Python with type hints, dataclasses and pytest."""

    language = "python"
    suffix = ".py"
    types = (
        "str",
        "int",
        "float",
        "bool",
        "list[str]",
        "dict[str, int]",
        "datetime | None",
        "Decimal",
        "bytes",
    )
    nothing = "None"
    and_then = " and "

    def name(self, words: Words) -> str:
        """In snake_case."""
        return snake(words)

    def kind(self, words: Words) -> str:
        """PascalCase."""
        return pascal(words)

    def constant(self, words: Words) -> str:
        """SCREAMING_CASE."""
        return screaming(words)

    def own(self, words: Words) -> str:
        """On self."""
        return f"self.{snake(words)}"

    def member(self, owner: str, words: Words) -> str:
        """With a dot."""
        return f"{owner}.{snake(words)}"

    def filled(self, text: str, value: str) -> str:
        """An f-string."""
        return f'f"{text} {{{value}}}"' if '"' not in value else f'"{text} " + str({value})'

    def size(self, value: str) -> str:
        """By len."""
        return f"len({value})"

    def absent(self, value: str) -> str:
        """Is None."""
        return f"{value} is None"

    def picked(self, source: str, item: str, condition: str) -> str:
        """A comprehension."""
        return f"[{item} for {item} in {source} if {condition}]"

    def let(self, name: str, value: str) -> str:
        """An assignment."""
        return f"{name} = {value}"

    def comment(self, text: str) -> str:
        """A hash."""
        return f"# {text}"

    def log(self, level: str, text: str, words: Words, value: str) -> str:
        """The logging module."""
        return f'logger.{level}("{text} %s", {value}, extra={{"{snake(words)}": {value}}})'

    def fail(self, error: str, text: str, value: str) -> str:
        """An exception."""
        return f"raise {error}({self.filled(text, value)})"

    def give(self, value: str) -> str:
        """A return."""
        return f"return {value}"

    def when(self, condition: str, body: Sequence[str], otherwise: Sequence[str] = ()) -> list[str]:
        """If and else."""
        lines = [f"if {condition}:", *self.indented(body)]
        return [*lines, "else:", *self.indented(otherwise)] if otherwise else lines

    def each(self, item: str, source: str, body: Sequence[str]) -> list[str]:
        """For in."""
        return [f"for {item} in {source}:", *self.indented(body)]

    def attempt(self, body: Sequence[str], error: str, handler: Sequence[str]) -> list[str]:
        """Try and except."""
        return ["try:", *self.indented(body), f"except {error} as error:", *self.indented(handler)]

    def function(self, function: Function) -> list[str]:
        """A def with a docstring."""
        given = [f"{snake(words)}: {kind}" for words, kind in function.parameters]
        inside = ", ".join(["self", *given] if function.owner else given)
        name = snake(function.name)
        lines = [f"def {name}({inside}) -> {function.returns}:"]
        return [*lines, *self.indented([f'"""{function.doc}"""', *function.body])]

    def head(self, outline: Outline, doc: str) -> list[str]:
        """Docstring, imports, logger, constants, exception."""
        lines = [f'"""{doc}"""', "", "import logging", "from dataclasses import dataclass, field"]
        lines += ["from datetime import datetime, timedelta", "from decimal import Decimal", ""]
        for other in outline.uses:
            module = other.path.removesuffix(".py").removeprefix("src/").replace("/", ".")
            lines.append(f"from {module} import {pascal(other.entity)}, {snake(other.functions[0])}")
        lines += ["", "logger = logging.getLogger(__name__)", ""]
        lines += [f"{screaming(constant.name)} = {constant.value:_}" for constant in outline.constants]
        return [*lines, "", "", f"class {pascal(outline.error)}(Exception):", f'    """{doc}"""']

    def record(
        self, outline: Outline, doc: str, types: Sequence[str], methods: Sequence[Function]
    ) -> list[str]:
        """A dataclass."""
        lines = ["@dataclass(slots=True)", f"class {pascal(outline.entity)}:", f'    """{doc}"""', ""]
        lines += [f"    {snake(words)}: {kind}" for words, kind in zip(outline.fields, types, strict=True)]
        for method in methods:
            lines += ["", *self.indented(self.function(method))]
        return lines

    def test_path(self, path: str) -> str:
        """Under tests/."""
        folder, _, name = path.removeprefix("src/").rpartition("/")
        return f"tests/{folder.partition('/')[2] or folder}/test_{name}"

    def tests(self, outline: Outline, cases: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
        """Plain functions for pytest."""
        module = outline.path.removesuffix(".py").removeprefix("src/").replace("/", ".")
        names = ", ".join(snake(words) for words in outline.functions[:3])
        lines = ["import pytest", "", f"from {module} import {pascal(outline.entity)}, {names}", ""]
        for name, body in cases:
            lines += ["", f"def {name}():", *self.indented(body), ""]
        return lines

    def case_name(self, words: Words) -> str:
        """test_ and the words."""
        return "test_" + snake(words)

    def equals(self, value: str, expected: str) -> str:
        """A plain assert."""
        return f"assert {value} == {expected}"
