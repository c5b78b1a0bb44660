"""The layout of a made-up repository: which files there are and what stands in them."""

from msgspec import Struct

from tests.generated.code.dialect import Dialect, Outline
from tests.generated.code.go import Go
from tests.generated.code.module import name_cases, outline_module
from tests.generated.code.python import Python
from tests.generated.code.typescript import TypeScript
from tests.generated.draw import Draw
from tests.generated.lexicon import Lexicon
from tests.generated.naming import snake
from tests.generated.words import DOMAINS, LAYERS

_PREFIXES = "argo brisk cedar delta ember fathom glint harbor iris juniper kite lumen maple nimbus onyx plover".split()
_MANIFESTS = {"python": "pyproject.toml", "typescript": "package.json", "go": "go.mod"}


class Module(Struct, frozen=True, kw_only=True):
    """A source file with the tests that belong to it."""

    outline: Outline
    dialect: Dialect
    test_path: str
    cases: tuple[str, ...]

    @property
    def path(self) -> str:
        """Where the source stands."""
        return self.outline.path


class Project(Struct, frozen=True, kw_only=True):
    """A repository: its main language first, modules by path, other files by path."""

    name: str
    root: str
    domain: str
    dialects: tuple[Dialect, ...]
    modules: tuple[Module, ...]
    papers: tuple[str, ...]

    @property
    def main(self) -> Dialect:
        """The language most of it is written in."""
        return self.dialects[0]

    def paths(self) -> list[str]:
        """Return every path, sorted."""
        paths = [*self.papers, *(m.path for m in self.modules), *(m.test_path for m in self.modules)]
        return sorted(paths)


def lay_out(draw: Draw) -> Project:
    """Return a project of some thirty modules in one language and a few in another."""
    domain = draw.one(list(DOMAINS))
    lexicon = Lexicon(draw, domain)
    name = f"{draw.one(_PREFIXES)}-{lexicon.noun()}"
    main, second = draw.some([Python(), TypeScript(), Go()], 2)
    modules: list[Module] = []
    taken: set[str] = set()
    for number in range(draw.between(26, 38)):
        dialect: Dialect = second if number % 5 == 4 else main
        entity = lexicon.thing()
        path = _path(draw, dialect, name, entity, secondary=dialect is second)
        if path in taken:
            continue
        taken.add(path)
        near = [module.outline for module in modules if module.dialect is dialect]
        outline = outline_module(lexicon, path, entity, draw.some(near, draw.between(0, 3)))
        cases = tuple(name_cases(lexicon, dialect, outline))
        modules.append(
            Module(outline=outline, dialect=dialect, test_path=dialect.test_path(path), cases=cases)
        )
    return Project(
        name=name,
        root=draw.one(("/home/dev/", "/workspace/", "/Users/sam/src/")) + name,
        domain=domain,
        dialects=(main, second),
        modules=tuple(modules),
        papers=_papers(lexicon, main, name),
    )


def _path(draw: Draw, dialect: Dialect, name: str, entity: tuple[str, ...], *, secondary: bool) -> str:
    layer = draw.one(LAYERS)
    file = ("-" if dialect.language == "typescript" else "_").join(entity) + dialect.suffix
    match dialect.language:
        case "python":
            return f"src/{name.replace('-', '_')}/{layer}/{file}"
        case "go":
            return f"internal/{layer}/{file}"
        case _:
            return f"web/src/{layer}/{file}" if secondary else f"src/{layer}/{file}"


def _papers(lexicon: Lexicon, main: Dialect, name: str) -> tuple[str, ...]:
    docs = [f"docs/{'-'.join(lexicon.thing())}.md" for _ in range(3)]
    tables = [f"migrations/{n:04}_{snake(lexicon.action())}.sql" for n in range(1, 5)]
    settings = [f"config/{lexicon.noun()}.yaml" for _ in range(2)]
    locale = lexicon.draw.one(("zh", "ja", "ko"))
    return (
        "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", ".github/workflows/ci.yml",
        _MANIFESTS[main.language], f"locales/{locale}.json", f"deploy/{name}.yaml",
        *dict.fromkeys((*docs, *tables, *settings)),
    )  # fmt: skip
