"""Whole source files, test files and outlines."""

from collections.abc import Sequence

from tests.generated.code.body import BodyWriter
from tests.generated.code.dialect import Constant, Dialect, Outline, Words
from tests.generated.lexicon import Lexicon
from tests.generated.words import FAILURES, QUALITIES


def outline_module(lexicon: Lexicon, path: str, entity: Words, uses: Sequence[Outline]) -> Outline:
    """Return what will stand in the file at `path`."""
    draw = lexicon.draw
    size = draw.skewed(1.0, 0.55, most=5)
    return Outline(
        path=path,
        entity=entity,
        error=(*entity, draw.one(FAILURES)),
        fields=tuple(lexicon.thing() for _ in range(draw.between(3, 8))),
        methods=tuple(lexicon.action() for _ in range(1 + int(4 * size))),
        functions=tuple(lexicon.action() for _ in range(1 + int(4 * size))),
        constants=tuple(
            Constant(
                name=("max" if draw.chance(0.4) else "default", *lexicon.thing()),
                value=draw.between(3, 40_000),
            )
            for _ in range(draw.between(2, 4))
        ),
        uses=tuple(uses),
    )


def write_module(lexicon: Lexicon, dialect: Dialect, outline: Outline) -> list[str]:
    """Return the lines of a source file."""
    writer = BodyWriter(lexicon, dialect, outline)
    types = [lexicon.draw.one(dialect.types) for _ in outline.fields]
    methods = [writer.function(name, owner=outline.entity) for name in outline.methods]
    lines = [*dialect.head(outline, lexicon.doc()), "", ""]
    lines += dialect.record(outline, lexicon.doc(), types, methods)
    for name in outline.functions:
        lines += ["", "", *dialect.function(writer.function(name))]
    return lines


def name_cases(lexicon: Lexicon, dialect: Dialect, outline: Outline) -> list[str]:
    """Return the names of the test cases of a source file."""
    draw = lexicon.draw
    subjects = [*outline.functions, *outline.methods]
    names = [dialect.case_name((*words, draw.one(QUALITIES), lexicon.noun())) for words in subjects]
    return list(dict.fromkeys(names))


def write_tests(lexicon: Lexicon, dialect: Dialect, outline: Outline, cases: Sequence[str]) -> list[str]:
    """Return the lines of the test file with `cases`."""
    draw = lexicon.draw
    writer = BodyWriter(lexicon, dialect, outline)
    bodies = []
    for case in cases:
        subject = dialect.function_name(draw.one(outline.functions))
        writer.enter(["value", lexicon.noun()], owned=False)
        lines = writer.block(draw.between(1, 4))
        for _ in range(draw.between(1, 3)):
            lines.append(
                dialect.equals(
                    f"{subject}({writer.operand()}, {draw.between(0, 900)})", str(draw.between(0, 9_000))
                )
            )
        bodies.append((case, lines))
    return dialect.tests(outline, bodies)
