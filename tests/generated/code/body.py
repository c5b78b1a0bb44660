"""Function bodies: statements that follow from what is in scope, in any dialect."""

from collections.abc import Sequence

from tests.generated.code.dialect import Dialect, Function, Outline, Words
from tests.generated.draw import Draw
from tests.generated.lexicon import Lexicon
from tests.generated.naming import plural
from tests.generated.words import QUALITIES, VERBS

_LEVELS = (("debug", 3), ("info", 4), ("warning", 2), ("error", 1))
_STATEMENTS = (("let", 32), ("guard", 12), ("branch", 9), ("each", 9), ("do", 14), ("log", 7), ("remark", 8),
               ("attempt", 3), ("pick", 6))  # fmt: skip


class BodyWriter:
    """Writes statements inside one source file, with its fields, constants and neighbours in scope."""

    def __init__(self, lexicon: Lexicon, dialect: Dialect, outline: Outline) -> None:
        self._lexicon = lexicon
        self._draw: Draw = lexicon.draw
        self._dialect = dialect
        self._outline = outline
        self._scope: list[str] = []
        self._owned = False

    def enter(self, scope: Sequence[str], *, owned: bool) -> None:
        """Begin a function with these variables in scope; `owned` means that there is an object around it."""
        self._scope = list(scope)
        self._owned = owned

    def function(self, name: Words, owner: Words = ()) -> Function:
        """Return a whole function or method of this name."""
        draw, lexicon = self._draw, self._lexicon
        parameters = tuple(
            (words, draw.one(self._dialect.types))
            for words in dict.fromkeys(lexicon.local() for _ in range(draw.between(1, 3)))
        )
        self.enter([self._dialect.name(words) for words, _ in parameters], owned=bool(owner))
        size = int(draw.skewed(7, 0.7, most=34))
        body = (*self.block(size), self._dialect.give(self.value()))
        returns = draw.one(self._dialect.types)
        return Function(
            name=name, parameters=parameters, returns=returns, doc=lexicon.doc(), body=body, owner=owner
        )

    def block(self, size: int, depth: int = 0) -> list[str]:
        """Return about `size` statements."""
        lines: list[str] = []
        while len(lines) < size:
            lines += self.statement(size - len(lines), depth)
            if depth == 0 and size > 12 and self._draw.chance(0.12):
                lines.append("")
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def statement(self, room: int = 6, depth: int = 1) -> list[str]:
        """Return one statement, of several lines if there is room."""
        draw, dialect, lexicon = self._draw, self._dialect, self._lexicon
        match draw.weighted(_STATEMENTS):
            case "guard":
                return dialect.when(self.condition(), [self._leave()])
            case "branch" if room > 3 and depth < 3:
                otherwise = self.block(draw.between(1, 2), depth + 1) if draw.chance(0.4) else ()
                return dialect.when(self.condition(), self.block(draw.between(1, 3), depth + 1), otherwise)
            case "each" if room > 3 and depth < 3:
                item = dialect.name(lexicon.local())
                source = self.operand()
                self._scope.append(item)
                return dialect.each(item, source, self.block(draw.between(1, min(5, room)), depth + 1))
            case "attempt" if room > 4 and depth < 2:
                error = dialect.kind(self._outline.error)
                return dialect.attempt(self.block(2, depth + 1), error, [self._log("warning"), self._leave()])
            case "do":
                return [self.call() + dialect.ends_line]
            case "log":
                return [self._log(draw.weighted(_LEVELS))]
            case "remark":
                return [dialect.comment(lexicon.remark()), *self._let()]
            case "pick":
                item = lexicon.noun()
                condition = (
                    f"{dialect.member(item, lexicon.thing())} {draw.one(('>', '<', '!='))} {self.operand()}"
                )
                return [self._bound(plural(item), dialect.picked(self.operand(), item, condition))]
            case _:
                return self._let()

    def condition(self) -> str:
        """Return something that is true or not."""
        draw, dialect = self._draw, self._dialect
        match draw.below(6):
            case 0:
                return dialect.absent(self.operand())
            case 1:
                return f"{dialect.size(self.operand())} > {self._number()}"
            case 2:
                return dialect.member(self.operand(), ("is", draw.one(QUALITIES)))
            case 3:
                first, second = self.operand(), self.operand()
                return f"{first} {draw.one(('==', '!=', '<', '>='))} {second}"
            case 4:
                left = dialect.member(self.operand(), (self._lexicon.noun(),))
                return f"{left} < {self._number()}{dialect.and_then}{self.operand()}"
            case _:
                return f"{dialect.member(self.operand(), self._lexicon.thing())} <= {self._number()}"

    def value(self) -> str:
        """Return an expression."""
        draw, dialect, lexicon = self._draw, self._dialect, self._lexicon
        match draw.below(11):
            case 0:
                return f"{self.operand()} {draw.one('+-*')} {self.operand()}"
            case 5:
                return f"({self.operand()} - {self._number()}) / {draw.one((2, 4, 8, 10, 60, 100, 1000))}"
            case 6:
                return f"{self.operand()}[{draw.one('ijkn')} + {draw.between(1, 3)}]"
            case 7:
                return f"[{self.operand()}, {self._number()}, {self.operand()}]"
            case 1:
                return dialect.filled(lexicon.message().replace('"', ""), self.operand())
            case 2:
                return f"{self.operand()}[{self._key()}]"
            case 3:
                return f"{dialect.size(self.operand())} {draw.one('+-*')} {self._number()}"
            case 4:
                return dialect.member(self.operand(), lexicon.thing())
            case _:
                return self.call()

    def call(self) -> str:
        """Return a call of something the file can see."""
        draw, dialect, lexicon = self._draw, self._dialect, self._lexicon
        arguments = ", ".join(
            self.operand() if draw.chance(0.75) else self._number() for _ in range(draw.between(0, 3))
        )
        match draw.below(6):
            case 0 if self._outline.uses:
                other = draw.one(self._outline.uses)
                return f"{dialect.function_name(draw.one(other.functions))}({arguments})"
            case 1 if self._owned:
                return f"{dialect.own(draw.one(self._outline.methods))}({arguments})"
            case 2:
                return f"{dialect.function_name(draw.one(self._outline.functions))}({arguments})"
            case 3 if self._owned:
                return f"{dialect.member(dialect.own(draw.one(self._outline.fields)), (draw.one(VERBS),))}({arguments})"
            case _:
                words = lexicon.action()[: draw.between(1, 2)]
                return f"{dialect.member(self.operand(), words)}({arguments})"

    def operand(self) -> str:
        """Return something with a name."""
        if not self._owned or self._draw.chance(0.72):
            return self._draw.one(self._scope[-6:])
        return self._dialect.own(self._draw.one(self._outline.fields))

    def _let(self) -> list[str]:
        return [self._bound(self._dialect.name(self._lexicon.local()), self.value())]

    def _bound(self, name: str, value: str) -> str:
        self._scope.append(name)
        return self._dialect.let(name, value)

    def _leave(self) -> str:
        dialect = self._dialect
        if self._draw.chance(0.45):
            return dialect.fail(dialect.kind(self._outline.error), self._lexicon.message(), self.operand())
        return dialect.give(dialect.nothing if self._draw.chance(0.5) else self.operand())

    def _log(self, level: str) -> str:
        return self._dialect.log(level, self._lexicon.message(), self._lexicon.thing(), self.operand())

    def _number(self) -> str:
        if self._draw.chance(0.35):
            return self._dialect.constant(self._draw.one(self._outline.constants).name)
        return str(self._draw.between(0, 1 << self._draw.between(1, 14)))

    def _key(self) -> str:
        quote = "'" if self._dialect.language == "typescript" else '"'
        return quote + "_".join(self._lexicon.thing()) + quote
