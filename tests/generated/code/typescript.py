"""Source files in TypeScript."""

from collections.abc import Sequence

from tests.generated.code.dialect import Dialect, Function, Outline, Words
from tests.generated.naming import camel, pascal, screaming


class TypeScript(Dialect):
    """TypeScript with classes and Jest."""

    language = "typescript"
    suffix = ".ts"
    tab = "  "
    types = (
        "string",
        "number",
        "boolean",
        "string[]",
        "Record<string, number>",
        "Date | null",
        "bigint",
        "unknown",
    )
    nothing = "undefined"
    ends_line = ";"

    def name(self, words: Words) -> str:
        """In camelCase."""
        return camel(words)

    def kind(self, words: Words) -> str:
        """PascalCase."""
        return pascal(words)

    def constant(self, words: Words) -> str:
        """SCREAMING_CASE."""
        return screaming(words)

    def own(self, words: Words) -> str:
        """On this."""
        return f"this.{camel(words)}"

    def member(self, owner: str, words: Words) -> str:
        """With a dot."""
        return f"{owner}.{camel(words)}"

    def filled(self, text: str, value: str) -> str:
        """A template literal."""
        return f"`{text} ${{{value}}}`"

    def size(self, value: str) -> str:
        """By length."""
        return f"{value}.length"

    def absent(self, value: str) -> str:
        """Strictly undefined."""
        return f"{value} === undefined"

    def picked(self, source: str, item: str, condition: str) -> str:
        """By filter."""
        return f"{source}.filter(({item}) => {condition})"

    def let(self, name: str, value: str) -> str:
        """A const."""
        return f"const {name} = {value};"

    def comment(self, text: str) -> str:
        """Two slashes."""
        return f"// {text}"

    def log(self, level: str, text: str, words: Words, value: str) -> str:
        """A structured logger."""
        return f"log.{'warn' if level == 'warning' else level}({{ {camel(words)}: {value} }}, '{text}');"

    def fail(self, error: str, text: str, value: str) -> str:
        """A thrown error."""
        return f"throw new {error}({self.filled(text, value)});"

    def give(self, value: str) -> str:
        """A return."""
        return f"return {value};"

    def when(self, condition: str, body: Sequence[str], otherwise: Sequence[str] = ()) -> list[str]:
        """Braces on the same line."""
        lines = [f"if ({condition}) {{", *self.indented(body)]
        return [*lines, "} else {", *self.indented(otherwise), "}"] if otherwise else [*lines, "}"]

    def each(self, item: str, source: str, body: Sequence[str]) -> list[str]:
        """For of."""
        return [f"for (const {item} of {source}) {{", *self.indented(body), "}"]

    def attempt(self, body: Sequence[str], error: str, handler: Sequence[str]) -> list[str]:
        """Try and catch, other errors thrown on."""
        passed_on = f"if (!(error instanceof {error})) throw error;"
        return [
            "try {",
            *self.indented(body),
            "} catch (error) {",
            *self.indented([passed_on, *handler]),
            "}",
        ]

    def function(self, function: Function) -> list[str]:
        """A method, or an exported function."""
        given = ", ".join(f"{camel(words)}: {kind}" for words, kind in function.parameters)
        opening = camel(function.name) if function.owner else f"export function {camel(function.name)}"
        lines = [f"/** {function.doc} */", f"{opening}({given}): {function.returns} {{"]
        return [*lines, *self.indented(function.body), "}"]

    def head(self, outline: Outline, doc: str) -> list[str]:
        """Comment, imports, constants, error class."""
        lines = [f"// {doc}", "import { log } from '../logging';"]
        for other in outline.uses:
            module = other.path.removesuffix(".ts").removeprefix("src/")
            lines.append(
                f"import {{ {pascal(other.entity)}, {camel(other.functions[0])} }} from '../{module}';"
            )
        lines.append("")
        lines += [
            f"export const {screaming(constant.name)} = {constant.value:_};" for constant in outline.constants
        ]
        return [*lines, "", f"export class {pascal(outline.error)} extends Error {{}}"]

    def record(
        self, outline: Outline, doc: str, types: Sequence[str], methods: Sequence[Function]
    ) -> list[str]:
        """A class with a constructor."""
        fields = [
            f"private readonly {camel(w)}: {kind}," for w, kind in zip(outline.fields, types, strict=True)
        ]
        lines = [f"/** {doc} */", f"export class {pascal(outline.entity)} {{", "  constructor("]
        lines += [*self.indented(self.indented(fields)), "  ) {}"]
        for method in methods:
            lines += ["", *self.indented(self.function(method))]
        return [*lines, "}"]

    def test_path(self, path: str) -> str:
        """Beside the source."""
        return path.removesuffix(".ts") + ".test.ts"

    def tests(self, outline: Outline, cases: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
        """One describe with its cases."""
        module = outline.path.rpartition("/")[2].removesuffix(".ts")
        names = ", ".join(camel(words) for words in outline.functions[:3])
        lines = [f"import {{ {pascal(outline.entity)}, {names} }} from './{module}';", ""]
        lines.append(f"describe('{pascal(outline.entity)}', () => {{")
        for name, body in cases:
            lines += [f"  it('{name}', () => {{", *self.indented(self.indented(body)), "  });", ""]
        return [*lines[:-1], "});"]

    def case_name(self, words: Words) -> str:
        """A sentence."""
        return " ".join(words)

    def equals(self, value: str, expected: str) -> str:
        """Jest's expect."""
        return f"expect({value}).toEqual({expected});"
