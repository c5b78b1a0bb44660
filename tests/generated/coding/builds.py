"""What compilers, type checkers and linters complain about."""

from collections.abc import Sequence

from tests.generated.coding.project import Module
from tests.generated.coding.workspace import Workspace
from tests.generated.lexicon import Lexicon
from tests.generated.naming import camel, pascal, snake

COMMANDS = {"python": "mypy src", "typescript": "npx tsc --noEmit", "go": "go build ./..."}


def complain(lexicon: Lexicon, workspace: Workspace, modules: Sequence[Module], count: int) -> list[str]:
    """Return `count` complaints about lines that exist, in the words of the language's own checker."""
    draw = lexicon.draw
    lines: list[str] = []
    for _ in range(count):
        module = draw.one(modules)
        source = workspace.lines(module.path)
        line = draw.between(8, max(9, len(source) - 1))
        match module.dialect.language:
            case "python":
                lines.append(f"{module.path}:{line}: error: {_mypy(lexicon, module)}")
            case "typescript":
                lines.append(f"{module.path}({line},{draw.between(3, 60)}): error {_tsc(lexicon, module)}")
            case _:
                lines.append(f"{module.path}:{line}:{draw.between(2, 40)}: {_go(lexicon, module)}")
    return lines


def succeed(language: str, files: int) -> str:
    """Return what the checker prints when it has nothing to say; some say nothing."""
    return f"Success: no issues found in {files} source files" if language == "python" else ""


def fail(language: str, complaints: Sequence[str]) -> str:
    """Return the checker's output with its last line."""
    count = len(complaints)
    last = {
        "python": f"Found {count} errors in {count} files (checked 61 source files)",
        "typescript": f"\nFound {count} errors.",
        "go": "",
    }[language]
    return "\n".join([*complaints, last] if last else complaints)


def _mypy(lexicon: Lexicon, module: Module) -> str:
    first, second = lexicon.draw.some(module.dialect.types, 2)
    field, function = snake(lexicon.thing()), snake(lexicon.draw.one(module.outline.functions))
    return lexicon.draw.one(
        (
            f'Incompatible types in assignment (expression has type "{first}", variable has type "{second}")  [assignment]',
            f'"{pascal(module.outline.entity)}" has no attribute "{field}"  [attr-defined]',
            f'Argument 2 to "{function}" has incompatible type "{first}"; expected "{second}"  [arg-type]',
            f'Missing return statement in "{function}"  [return]',
            f'Too many arguments for "{function}"  [call-arg]',
        )
    )


def _tsc(lexicon: Lexicon, module: Module) -> str:
    first, second = lexicon.draw.some(module.dialect.types, 2)
    field = camel(lexicon.thing())
    return lexicon.draw.one(
        (
            f"TS2322: Type '{first}' is not assignable to type '{second}'.",
            f"TS2339: Property '{field}' does not exist on type '{pascal(module.outline.entity)}'.",
            f"TS2345: Argument of type '{first}' is not assignable to parameter of type '{second}'.",
            f"TS2304: Cannot find name '{field}'.",
            f"TS2554: Expected {lexicon.draw.between(1, 3)} arguments, but got {lexicon.draw.between(4, 6)}.",
        )
    )


def _go(lexicon: Lexicon, module: Module) -> str:
    first, second = lexicon.draw.some(module.dialect.types, 2)
    name = camel(lexicon.thing())
    return lexicon.draw.one(
        (
            f"undefined: {name}",
            f"declared and not used: {name}",
            f"cannot use {name} (variable of type {first}) as {second} value in argument",
            f"s.{name} undefined (type *{pascal(module.outline.entity)} has no field or method {name})",
            f"not enough arguments in call to {pascal(lexicon.draw.one(module.outline.functions))}",
        )
    )
