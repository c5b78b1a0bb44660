"""Source files in Go."""

from collections.abc import Sequence

from tests.generated.code.dialect import Dialect, Function, Outline, Words
from tests.generated.naming import camel, pascal


class Go(Dialect):
    """Go with structs, wrapped errors and the testing package."""

    language = "go"
    suffix = ".go"
    tab = "\t"
    types = (
        "string",
        "int",
        "int64",
        "bool",
        "[]string",
        "map[string]int",
        "time.Time",
        "[]byte",
        "time.Duration",
    )
    nothing = "nil"

    def name(self, words: Words) -> str:
        """In camelCase."""
        return camel(words)

    def function_name(self, words: Words) -> str:
        """In PascalCase, which exports it."""
        return pascal(words)

    def kind(self, words: Words) -> str:
        """PascalCase."""
        return pascal(words)

    def constant(self, words: Words) -> str:
        """PascalCase too."""
        return pascal(words)

    def own(self, words: Words) -> str:
        """On the receiver."""
        return f"s.{camel(words)}"

    def member(self, owner: str, words: Words) -> str:
        """Exported, with a dot."""
        return f"{owner}.{pascal(words)}"

    def filled(self, text: str, value: str) -> str:
        """By Sprintf."""
        return f'fmt.Sprintf("{text} %v", {value})'

    def size(self, value: str) -> str:
        """By len."""
        return f"len({value})"

    def absent(self, value: str) -> str:
        """Equal to nil."""
        return f"{value} == nil"

    def picked(self, source: str, item: str, condition: str) -> str:
        """By slices."""
        return f"slices.DeleteFunc({source}, func({item} Item) bool {{ return !({condition}) }})"

    def let(self, name: str, value: str) -> str:
        """A short declaration."""
        return f"{name} := {value}"

    def comment(self, text: str) -> str:
        """Two slashes."""
        return f"// {text}"

    def log(self, level: str, text: str, words: Words, value: str) -> str:
        """By slog."""
        return f'slog.{"Warn" if level == "warning" else level.capitalize()}("{text}", "{camel(words)}", {value})'

    def fail(self, error: str, text: str, value: str) -> str:
        """A wrapped error."""
        return f'return nil, fmt.Errorf("{text} %v: %w", {value}, Err{error})'

    def give(self, value: str) -> str:
        """The value and no error."""
        return f"return {value}, nil"

    def when(self, condition: str, body: Sequence[str], otherwise: Sequence[str] = ()) -> list[str]:
        """Braces without parentheses."""
        lines = [f"if {condition} {{", *self.indented(body)]
        return [*lines, "} else {", *self.indented(otherwise), "}"] if otherwise else [*lines, "}"]

    def each(self, item: str, source: str, body: Sequence[str]) -> list[str]:
        """For range."""
        return [f"for _, {item} := range {source} {{", *self.indented(body), "}"]

    def attempt(self, body: Sequence[str], error: str, handler: Sequence[str]) -> list[str]:
        """The error checked where it arises."""
        check = [f"if err := run(ctx); errors.Is(err, Err{error}) {{", *self.indented(handler), "}"]
        return [*body, *check]

    def function(self, function: Function) -> list[str]:
        """A function or a method on a pointer."""
        given = ", ".join(["ctx context.Context", *(f"{camel(w)} {kind}" for w, kind in function.parameters)])
        name = pascal(function.name)
        receiver = f"(s *{pascal(function.owner)}) " if function.owner else ""
        doc = f"// {name}: {function.doc}"
        lines = [doc, f"func {receiver}{name}({given}) ({function.returns}, error) {{"]
        return [*lines, *self.indented(function.body), "}"]

    def head(self, outline: Outline, doc: str) -> list[str]:
        """Package, imports, constants, the sentinel error."""
        package = outline.path.split("/")[-2]
        lines = [f"// Package {package}: {doc}", f"package {package}", "", "import ("]
        lines += [f'\t"{name}"' for name in ("context", "errors", "fmt", "log/slog", "slices", "time")]
        lines += [""] + [f'\t"example.com/{other.path.rpartition("/")[0]}"' for other in outline.uses]
        lines += [")", "", "const ("]
        lines += [f"\t{pascal(constant.name)} = {constant.value}" for constant in outline.constants]
        return [*lines, ")", "", f'var Err{pascal(outline.error)} = errors.New("{" ".join(outline.error)}")']

    def record(
        self, outline: Outline, doc: str, types: Sequence[str], methods: Sequence[Function]
    ) -> list[str]:
        """A struct with methods behind it."""
        lines = [f"// {pascal(outline.entity)}: {doc}", f"type {pascal(outline.entity)} struct {{"]
        lines += [f"\t{camel(words)} {kind}" for words, kind in zip(outline.fields, types, strict=True)]
        lines.append("}")
        for method in methods:
            lines += ["", *self.function(method)]
        return lines

    def test_path(self, path: str) -> str:
        """Beside the source."""
        return path.removesuffix(".go") + "_test.go"

    def tests(self, outline: Outline, cases: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
        """Test functions."""
        lines = [
            f"package {outline.path.split('/')[-2]}",
            "",
            "import (",
            '\t"context"',
            '\t"testing"',
            ")",
            "",
        ]
        for name, body in cases:
            lines += [
                f"func {name}(t *testing.T) {{",
                "\tctx := context.Background()",
                *self.indented(body),
                "}",
                "",
            ]
        return lines

    def case_name(self, words: Words) -> str:
        """Test and the words."""
        return "Test" + pascal(words)

    def equals(self, value: str, expected: str) -> str:
        """A got and a want."""
        return f'if got := {value}; got != {expected} {{ t.Errorf("got %v, want %v", got, {expected}) }}'
