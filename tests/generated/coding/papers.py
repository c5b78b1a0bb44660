"""Files of a repository that are not source code: documents, settings, tables, translations."""

import json

from tests.generated import cjk
from tests.generated.lexicon import Lexicon
from tests.generated.naming import plural, snake

_SQL_TYPES = ("text not null", "bigint not null default 0", "timestamptz not null default now()", "jsonb", "uuid",
              "numeric(18, 4)", "boolean not null default false", "varchar(64)")  # fmt: skip


def write_paper(lexicon: Lexicon, path: str) -> list[str]:
    """Return the lines of the file at `path`, by what its name says it is."""
    match path.rpartition(".")[2]:
        case "md":
            return _document(lexicon, path)
        case "sql":
            return _tables(lexicon)
        case "json" if path.startswith("locales/"):
            return _translations(lexicon, path[-7:-5])
        case "json":
            return _manifest(lexicon)
        case "yaml" | "yml":
            return _settings(lexicon, 0, lexicon.draw.between(4, 9))
        case "toml":
            return _toml(lexicon)
        case "mod":
            return ["module example.com", "", "go 1.25", "", "require (", *_requirements(lexicon), ")"]
        case _:
            return _makefile(lexicon)


def _document(lexicon: Lexicon, path: str) -> list[str]:
    draw = lexicon.draw
    lines = [f"# {path.rpartition('/')[2].removesuffix('.md').replace('-', ' ').capitalize()}", ""]
    for _ in range(draw.between(3, 8)):
        lines += [f"## {' '.join(lexicon.thing()).capitalize()}", ""]
        for _ in range(draw.between(1, 3)):
            sentences = [lexicon.remark().capitalize() + "." for _ in range(draw.between(2, 5))]
            lines += [" ".join(sentences), ""]
        if draw.chance(0.5):
            lines += [
                f"- `{snake(lexicon.thing())}`: {lexicon.remark()}" for _ in range(draw.between(2, 6))
            ] + [""]
        if draw.chance(0.3):
            lines += ["| setting | default | meaning |", "|---|---|---|"]
            rows = [(snake(lexicon.thing()), draw.between(1, 9_000), lexicon.remark()) for _ in range(4)]
            lines += [f"| `{name}` | {value} | {said} |" for name, value, said in rows] + [""]
    return lines


def _tables(lexicon: Lexicon) -> list[str]:
    draw = lexicon.draw
    lines = [f"-- {lexicon.commit()}", "begin;", ""]
    for _ in range(draw.between(1, 3)):
        table = plural(snake(lexicon.thing()))
        columns = [f"    {snake(lexicon.thing())} {draw.one(_SQL_TYPES)}" for _ in range(draw.between(3, 9))]
        lines += [
            f"create table {table} (",
            "    id bigserial primary key,",
            *(c + "," for c in columns[:-1]),
        ]
        lines += [
            columns[-1],
            ");",
            f"create index {table}_{lexicon.noun()}_idx on {table} ({columns[0].split()[0]});",
            "",
        ]
    return [*lines, "commit;"]


def _translations(lexicon: Lexicon, language: str) -> list[str]:
    draw = lexicon.draw
    entries = {
        f"{lexicon.noun()}.{snake(lexicon.thing())}": cjk.sentence(draw, language)
        for _ in range(draw.between(20, 60))
    }
    return json.dumps(entries, ensure_ascii=False, indent=2).split("\n")


def _manifest(lexicon: Lexicon) -> list[str]:
    draw = lexicon.draw
    packages = {
        f"@{lexicon.noun()}/{lexicon.noun()}": f"^{draw.between(0, 9)}.{draw.between(0, 30)}.{draw.between(0, 20)}"
        for _ in range(draw.between(10, 24))
    }
    scripts = {"build": "tsc -p .", "test": "jest", "lint": "eslint src --max-warnings 0"}
    return json.dumps({"private": True, "scripts": scripts, "dependencies": packages}, indent=2).split("\n")


def _settings(lexicon: Lexicon, depth: int, keys: int) -> list[str]:
    draw = lexicon.draw
    lines: list[str] = []
    for _ in range(keys):
        key = "  " * depth + snake(lexicon.thing())
        match draw.below(6):
            case 0 | 1 if depth < 3:
                lines += [f"{key}:", *_settings(lexicon, depth + 1, draw.between(2, 5))]
            case 2:
                lines.append(f"{key}: {draw.one(('true', 'false'))}")
            case 3:
                lines.append(
                    f'{key}: "{lexicon.noun()}://{lexicon.noun()}.internal:{draw.between(1024, 49_151)}"'
                )
            case 4:
                lines += [
                    "  " * depth + f"# {lexicon.remark()}",
                    f"{key}: {draw.between(1, 9_000)}{draw.one(('ms', 's', ''))}",
                ]
            case _:
                lines.append(f"{key}: [{', '.join(lexicon.noun() for _ in range(draw.between(2, 5)))}]")
    return lines


def _toml(lexicon: Lexicon) -> list[str]:
    draw = lexicon.draw
    names = dict.fromkeys(lexicon.noun() for _ in range(12))
    wanted = [f'  "{name}>={draw.between(0, 9)}.{draw.between(0, 40)}",' for name in names]
    rules = [f"{snake(lexicon.thing())} = {draw.between(1, 400)}" for _ in range(6)]
    return [
        "[project]",
        f'description = "{lexicon.doc()}"',
        "dependencies = [",
        *wanted,
        "]",
        "",
        "[tool.limits]",
        *rules,
    ]


def _requirements(lexicon: Lexicon) -> list[str]:
    draw = lexicon.draw
    return [
        f"\tgithub.com/{lexicon.noun()}/{lexicon.noun()} v{draw.between(0, 4)}.{draw.between(0, 40)}.0"
        for _ in range(12)
    ]


def _makefile(lexicon: Lexicon) -> list[str]:
    draw = lexicon.draw
    lines: list[str] = [".PHONY: test build"]
    for verb in ("test", "build", *(snake(lexicon.action()) for _ in range(5))):
        lines += [
            "",
            f"{verb}:  ## {lexicon.remark()}",
            f"\t./scripts/{snake(lexicon.action())}.sh --{lexicon.noun()} {draw.between(1, 64)}",
        ]
    return lines
