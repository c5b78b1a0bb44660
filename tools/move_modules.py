"""Moves and merges modules by a plan, and rewrites every import of them.

    python -m tools.move_modules tools/moves/plan.txt SECTION

A plan is a text with sections. In a section, each line names a module that is to be and the modules it is made of, paths without
`.py` under `src/lowwater`; what stands behind `|` becomes its docstring:

    [core]
    core/messages = values/parts values/message | One conversation message and its parts.
    values/message:Wire = WireForm            a top-level name that is called differently from now on

A section can be played again on any commit before it: what it changes follows from the plan and the code alone.
"""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src"
ELSEWHERE = ("tests", "bench", "tools", "examples")
TEXTS = ("*.md", "*.toml", "Makefile", "*.yml", "*.yaml", "*.txt", "*.sh", "*.cfg")


@dataclass
class Plan:
    """What one section asks for."""

    targets: dict[str, list[str]] = field(default_factory=dict)
    """Old modules by the new module that they become, as dotted names."""
    docstrings: dict[str, str] = field(default_factory=dict)
    renames: dict[tuple[str, str], str] = field(default_factory=dict)
    """New names by old module and old name."""

    @property
    def place(self) -> dict[str, str]:
        """The new module of each old one."""
        return {old: new for new, olds in self.targets.items() for old in olds}


def dotted(path: str) -> str:
    return "lowwater." + path.strip("/").replace("/", ".").removesuffix(".__init__")


def read_plan(text: str, section: str) -> Plan:
    """Return one section of a plan."""
    plan, inside, found = Plan(), False, False
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            inside = line == f"[{section}]"
            found |= inside
            continue
        if not inside:
            continue
        made, _, doc = line.partition("|")
        left, _, right = made.partition("=")
        left = left.strip()
        if ":" in left:
            module, _, name = left.partition(":")
            plan.renames[dotted(module), name] = right.split()[0]
            continue
        plan.targets[dotted(left)] = [dotted(old) for old in right.split()]
        if doc.strip():
            plan.docstrings[dotted(left)] = doc.strip()
    if not found:
        raise SystemExit(f"the plan has no section [{section}]")
    return plan


@dataclass
class Module:
    """A module of ours as it is."""

    name: str
    path: Path
    source: bytes
    tree: ast.Module
    defined: set[str] = field(default_factory=set)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By the name it is bound to: module and name there."""

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


def read_module(path: Path, name: str) -> Module:
    source = path.read_bytes()
    module = Module(name=name, path=path, source=source, tree=ast.parse(source))
    for node in module.tree.body:
        for inner in _flat(node):
            if isinstance(inner, ast.ImportFrom) and inner.module:
                for alias in inner.names:
                    module.imported[alias.asname or alias.name] = (inner.module, alias.name)
            else:
                module.defined |= set(_names(inner))
    return module


def _flat(node: ast.stmt) -> Iterator[ast.stmt]:
    if isinstance(node, ast.If):
        for inner in (*node.body, *node.orelse):
            yield from _flat(inner)
    elif isinstance(node, ast.Try):
        for inner in (
            *node.body,
            *node.orelse,
            *node.finalbody,
            *(each for h in node.handlers for each in h.body),
        ):
            yield from _flat(inner)
    elif isinstance(node, ast.With):
        for inner in node.body:
            yield from _flat(inner)
    else:
        yield node


def _names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for inner in ast.walk(target):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    yield inner.id
    elif isinstance(node, ast.For):
        for inner in ast.walk(node.target):
            if isinstance(inner, ast.Name):
                yield inner.id


def modules_of_ours() -> dict[str, Module]:
    found = {}
    for path in sorted((PACKAGE / "lowwater").rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = read_module(path, name)
    return found


@dataclass(frozen=True)
class Symbol:
    """A top-level name of an old module, or a module itself where `name` is empty."""

    module: str
    name: str = ""


class Mover:
    """Works one section out: new texts by path, and what is gone."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.modules = modules_of_ours()
        self.place = plan.place
        missing = [old for old in self.place if old not in self.modules]
        if missing:
            raise SystemExit(f"the plan names modules that do not exist: {', '.join(missing)}")
        twice = [old for old in self.place if sum(old in olds for olds in plan.targets.values()) > 1]
        if twice:
            raise SystemExit(f"the plan moves modules twice: {', '.join(twice)}")
        for module, name in plan.renames:
            if module not in self.modules or name not in self.modules[module].defined:
                raise SystemExit(f"the plan renames {module}:{name}, which does not exist")
        self.new_names: dict[Symbol, str] = {Symbol(m, n): new for (m, n), new in plan.renames.items()}
        self.said: list[str] = []
        self.again: set[Symbol] = set()
        """Definitions that another source of the same target has word for word."""

    def resolve(self, module: str, name: str) -> Symbol | None:
        """Return what `from module import name` gives; None if it is not ours."""
        known = self.modules.get(module)
        if known is None:
            return None
        if name in known.defined:
            return Symbol(module, name)
        if name in known.imported:
            at, there = known.imported[name]
            if (at, there) != (module, name):
                return self.resolve(at, there)
        below = f"{module}.{name}"
        return Symbol(below) if below in self.modules else None

    def new_module(self, old: str) -> str:
        return self.place.get(old, old)

    def new_name(self, symbol: Symbol) -> str:
        return self.new_names.get(symbol, symbol.name)

    def order(self, target: str) -> list[str]:
        """Return the sources of a target such that what is needed at import comes first."""
        olds = self.plan.targets[target]
        needs: dict[str, set[str]] = {old: set() for old in olds}
        for old in olds:
            for node in self.modules[old].tree.body:
                for inner in _flat(node):
                    if isinstance(inner, ast.ImportFrom) and inner.module:
                        for alias in inner.names:
                            found = self.resolve(inner.module, alias.name)
                            if found and found.module in needs and found.module != old:
                                needs[old].add(found.module)
        done: list[str] = []

        def visit(old: str, path: tuple[str, ...] = ()) -> None:
            if old in done or old in path:
                return
            for other in sorted(needs[old], key=olds.index):
                visit(other, (*path, old))
            done.append(old)

        for old in olds:
            visit(old)
        return done

    def settle_names(self) -> None:
        """Give names that would meet in one file different ones."""
        for target in self.plan.targets:
            taken: dict[str, Symbol] = {}
            for old in self.order(target):
                for name in sorted(self.modules[old].defined):
                    if name in ("__all__", "__getattr__", "__dir__"):
                        continue
                    symbol = Symbol(old, name)
                    new = self.new_name(symbol)
                    if new in taken and self._alike(taken[new], symbol):
                        self.again.add(symbol)
                        continue
                    if new in taken:
                        new = self._other(new, old, taken)
                        self.new_names[symbol] = new
                        self.said.append(f"{target}: {old}:{name} is called {new} now")
                    taken[new] = symbol

    def _alike(self, one: Symbol, other: Symbol) -> bool:
        first, second = (self._definition(each) for each in (one, other))
        return first is not None and second is not None and ast.unparse(first) == ast.unparse(second)

    def _definition(self, symbol: Symbol) -> ast.stmt | None:
        nodes = [node for node in self.modules[symbol.module].tree.body if symbol.name in _names(node)]
        return nodes[0] if len(nodes) == 1 and list(_names(nodes[0])) == [symbol.name] else None

    def _other(self, name: str, old: str, taken: dict[str, Symbol]) -> str:
        stem = old.rpartition(".")[2]
        bare = name.lstrip("_")
        lead = name[: len(name) - len(bare)]
        if bare.isupper():
            new = f"{lead}{stem.upper()}_{bare}"
        elif bare[:1].isupper():
            new = lead + "".join(part.capitalize() for part in stem.split("_")) + bare
        else:
            new = f"{lead}{bare}_{stem}"
        while new in taken:
            new += "_"
        return new

    def run(self) -> None:
        self.settle_names()
        texts: dict[Path, bytes] = {}
        for name, module in self.modules.items():
            if name not in self.place:
                texts[module.path] = self.rewritten(module.source, module.tree, here=name).whole()
        for folder in ELSEWHERE:
            for path in sorted((ROOT / folder).rglob("*.py")):
                source = path.read_bytes()
                texts[path] = self.rewritten(source, ast.parse(source), here="").whole()
        made: dict[str, bytes] = {target: self.merged(target) for target in self.plan.targets}
        bases: dict[Path, Path] = {}
        for target, olds in self.plan.targets.items():
            is_package = target in self._packages_to_be()
            path = PACKAGE / Path(*target.split("."))
            path = path / "__init__.py" if is_package else path.with_suffix(".py")
            if olds:
                bases[path] = self.modules[max(olds, key=lambda old: len(self.modules[old].source))].path
            texts[path] = made[target]
        gone = {self.modules[old].path for old in self.place}
        staged: dict[Path, Path] = {}
        for path, base in bases.items():
            aside = path.with_name(path.name + ".moving")
            aside.parent.mkdir(parents=True, exist_ok=True)
            _git("mv", str(base), str(aside))
            staged[path] = aside
            gone.discard(base)
        for path in gone:
            if path.exists():
                _git("rm", "-q", "-f", str(path))
        for path, aside in staged.items():
            _git("mv", str(aside), str(path))
        for path, text in texts.items():
            if path in gone and path not in bases:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_bytes() != text:
                path.write_bytes(text)
        self._texts()
        for line in self.said:
            print(line)

    def _packages_to_be(self) -> set[str]:
        staying = {name for name in self.modules if name not in self.place}
        names = staying | set(self.plan.targets)
        below = {name.rpartition(".")[0] for name in names}
        return {target for target in self.plan.targets if target in below}

    def rewritten(self, source: bytes, tree: ast.Module, *, here: str) -> "Text":
        """Return a file with its imports and names as they will be; `here` is the old module, if it is one of ours."""
        text = Text(source, tree)
        own = self.new_module(here) if here else ""
        uses = Uses(tree)
        renames: dict[str, str] = {}
        taken = uses.everything
        for name in self.modules[here].defined if here else ():
            new = self.new_name(Symbol(here, name))
            if new != name:
                renames[name] = new
        inner = {
            id(node)
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for node in ast.walk(function)
            if isinstance(node, ast.ImportFrom)
        }
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.ImportFrom)
                and node.level == 0
                and (node.module or "").split(".")[0] == "lowwater"
            ):
                self._import(node, text, uses, renames, own, taken, is_local=id(node) in inner)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name in self.place and alias.name != "lowwater":
                        raise SystemExit(f"import {alias.name}: write it as from … import …")
        for name, new in renames.items():
            for at in uses.module_level(name):
                text.edit(at, new)
        for node in tree.body:
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and getattr(node.value.func, "id", "") == "TypeVar"
                and isinstance(node.targets[0], ast.Name)
                and node.targets[0].id in renames
            ):
                said = node.value.args[0]
                text.edit_span(text.start(said), text.end(said), f'"{renames[node.targets[0].id]}"')
        return text

    def _import(
        self,
        node: ast.ImportFrom,
        text: "Text",
        uses: "Uses",
        renames: dict[str, str],
        own: str,
        taken: set[str],
        *,
        is_local: bool,
    ) -> None:
        lines: dict[str, list[str]] = defaultdict(list)
        for alias in node.names:
            symbol = self.resolve(node.module or "", alias.name)
            bound = alias.asname or alias.name
            if symbol is None:
                lines[self.new_module(node.module or "")].append(_as(alias.name, bound))
                continue
            if not symbol.name and is_local:
                package, _, stem = self.new_module(symbol.module).rpartition(".")
                lines[package].append(_as(stem, bound))
                continue
            if not symbol.name:
                self._module(symbol, bound, lines, text, uses, renames, own, taken)
                continue
            new, at = self.new_name(symbol), self.new_module(symbol.module)
            through = self.modules.get(node.module or "")
            if (
                through
                and through.is_package
                and through.name not in self.place
                and through.name != symbol.module
            ):
                # A package that stays exports it: its users go on importing it from there.
                lines[through.name].append(_as(alias.name, bound))
                continue
            if at == own:
                if bound != new and is_local:
                    raise SystemExit(f"{own}: the import of {bound} inside a function has to become {new}")
                if bound != new:
                    renames[bound] = new
                continue
            if is_local:
                lines[at].append(_as(new, bound))
                continue
            if alias.asname and alias.asname != alias.name:
                lines[at].append(_as(new, alias.asname))
            elif new != bound and new not in taken:
                renames[bound] = new
                lines[at].append(new)
            else:
                lines[at].append(_as(new, bound))
        self._replace(node, lines, text)

    def _module(
        self,
        symbol: Symbol,
        bound: str,
        lines: dict[str, list[str]],
        text: "Text",
        uses: "Uses",
        renames: dict[str, str],
        own: str,
        taken: set[str],
    ) -> None:
        at = self.new_module(symbol.module)
        inside = at == own
        for attribute in uses.attributes(bound):
            found = self.resolve(symbol.module, attribute.attr)
            new = self.new_name(found) if found and found.name else attribute.attr
            if inside:
                text.edit_span(text.start(attribute), text.end(attribute), new)
            elif new != attribute.attr:
                end = text.end(attribute)
                text.edit_span(end - len(attribute.attr.encode()), end, new)
            if found and found.name and self.new_module(found.module) != at and not inside:
                self.said.append(
                    f"{symbol.module}.{attribute.attr} is a re-export, now in {self.new_module(found.module)}"
                )
        if inside:
            return
        package, _, stem = at.rpartition(".")
        old_stem = symbol.module.rpartition(".")[2]
        if bound == old_stem and stem != bound and stem not in taken:
            renames[bound] = stem
            lines[package].append(stem)
        else:
            lines[package].append(_as(stem, bound))

    def _replace(self, node: ast.ImportFrom, lines: dict[str, list[str]], text: "Text") -> None:
        indent = " " * node.col_offset
        written = [
            f"from {module} import {', '.join(dict.fromkeys(names))}" for module, names in lines.items()
        ]
        if not written and node.col_offset:
            written = ["pass"]
        joined = f"\n{indent}".join(written)
        start, end = text.start(node), text.end(node)
        if not written:
            end = text.line_end(end)
        text.edit_span(start, end, joined)

    def merged(self, target: str) -> bytes:
        """Return the text of a new module."""
        olds = self.order(target)
        if not olds:
            return f'"""{self.plan.docstrings.get(target, "")}"""\n'.encode()
        header: list[str] = []
        bodies: list[str] = []
        exported: list[str] = []
        bound: dict[str, tuple[str, str]] = {}
        doc = self.plan.docstrings.get(target, "")
        local = {self.new_name(Symbol(old, name)) for old in olds for name in self.modules[old].defined}
        for old in olds:
            module = self.modules[old]
            text = self.rewritten(module.source, module.tree, here=old)
            source = text.whole()
            tree = ast.parse(source)
            again = Text(source, tree)
            uses = Uses(tree)
            first = 0
            repeated = {self.new_name(each) for each in self.again if each.module == old}
            for at, node in enumerate(tree.body):
                if repeated and repeated.issuperset(names := list(_names(node))) and names:
                    again.cut(node)
                    behind = tree.body[at + 1] if at + 1 < len(tree.body) else None
                    if isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant):
                        again.cut(behind)
                    continue
                if (
                    first == 0
                    and isinstance(node, ast.Expr)
                    and isinstance(node.value, ast.Constant)
                    and isinstance(node.value.value, str)
                ):
                    if not doc:
                        doc = node.value.value
                    elif len(olds) == 1 and target in self.plan.docstrings and "\n" in node.value.value:
                        doc = doc + "\n" + node.value.value.partition("\n")[2]
                    again.cut(node)
                first = 1
                if isinstance(node, ast.ImportFrom | ast.Import):
                    whole = (
                        again.source[again.start(node) : again.line_end(again.end(node))].decode().rstrip()
                    )
                    if "#" in whole:
                        header.append(whole)  # a comment belongs to this import as it is written
                    elif isinstance(node, ast.ImportFrom):
                        for alias in node.names:
                            name = alias.asname or alias.name
                            if module.is_package and not uses.module_level(name):
                                continue  # it was only exported, and is imported from where it is defined now
                            identity = (node.module or "", alias.name)
                            clash = name in local or bound.get(name, identity) != identity
                            if clash:
                                new = self._other(name, f"x.{(node.module or '').rpartition('.')[2]}", {})
                                self.said.append(
                                    f"{target}: {node.module}.{alias.name} is imported as {new} in the part of {old}"
                                )
                                for use in uses.module_level(name):
                                    again.edit(use, new)
                                header.append(f"from {node.module} import {_as(alias.name, new)}")
                                bound[new] = identity
                            else:
                                bound[name] = identity
                                header.append(f"from {node.module} import {_as(alias.name, name)}")
                    else:
                        header.append(again.text(node))
                    again.cut(node)
                elif isinstance(node, ast.Assign) and any(
                    isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets
                ):
                    if isinstance(node.value, ast.List | ast.Tuple):
                        exported += [str(e.value) for e in node.value.elts if isinstance(e, ast.Constant)]
                    again.cut(node)
            bodies.append(again.whole().decode().strip("\n"))
        doc = doc.strip()
        quoted = f'"""{doc}"""' if "\n" not in doc else f'"""{doc}\n"""'
        head = "\n".join(dict.fromkeys(header))
        exported = [name for name in dict.fromkeys(exported) if name in local]
        all_line = ""
        if any(not self.modules[old].is_package for old in olds):
            exported = []
        if exported:
            all_line = "__all__ = [" + ", ".join(f'"{name}"' for name in exported) + "]\n\n"
        body = "\n\n\n".join(each for each in bodies if each)
        return f"{quoted}\n\n{head}\n\n{all_line}{body}\n".encode()

    def _texts(self) -> None:
        """Put the new places into documents and strings."""
        paths: dict[str, str] = {}
        for old, new in self.place.items():
            was, now = (each.removeprefix("lowwater.").replace(".", "/") + ".py" for each in (old, new))
            if old != new and not self.modules[old].is_package:
                paths[was] = now

        in_code = False

        def dotted_name(found: re.Match[str]) -> str:
            parts = found.group().split(".")
            for length in range(len(parts), 1, -1):
                old = ".".join(parts[:length])
                rest = parts[length:]
                if in_code and old in self.modules and self.modules[old].is_package:
                    continue  # `lowwater.store.read` may be an attribute of somebody's Lowwater
                if old in self.place and not (rest and f"{old}.{rest[0]}" in self.modules):
                    symbol = self.resolve(old, rest[0]) if rest else None
                    if symbol is not None and symbol.name and symbol.module in self.place:
                        return ".".join([self.new_module(symbol.module), self.new_name(symbol), *rest[1:]])
                    return ".".join([self.place[old], *rest])
            return found.group()

        def path_name(found: re.Match[str]) -> str:
            lead = "src/lowwater/" if found.group().startswith("src/") else ""
            lead = "lowwater/" if found.group().startswith("lowwater/") else lead
            bare = found.group().removeprefix(lead)
            return lead + paths.get(bare, bare)

        modules = re.compile(r"(?<![\w./])lowwater(?:\.\w+)+")
        files = re.compile(r"(?<![\w./])(?:\w+/)+\w+\.py\b")
        wanted = [path for pattern in TEXTS for path in ROOT.rglob(pattern)]
        wanted += [path for folder in ("src", *ELSEWHERE) for path in (ROOT / folder).rglob("*.py")]
        skipped = (
            ".venv",
            "tools/moves",
            "tools/move_modules",
            "build",
            ".git/",
            "CHANGELOG",
            "bench/.envs",
            ".mypy_cache",
        )
        for path in wanted:
            if path.relative_to(ROOT).as_posix().startswith(skipped):
                continue
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            in_code = path.suffix == ".py"
            changed = files.sub(path_name, modules.sub(dotted_name, text))
            if changed != text:
                path.write_text(changed, encoding="utf-8")


class Text:
    """A source with edits to be made, by byte offsets."""

    def __init__(self, source: bytes, tree: ast.Module) -> None:
        self.source = source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.edits: dict[tuple[int, int], str] = {}

    def start(self, node: ast.AST) -> int:
        assert isinstance(node, ast.expr | ast.stmt)
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.AST) -> int:
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def line_end(self, at: int) -> int:
        found = self.source.find(b"\n", at)
        return len(self.source) if found < 0 else found + 1

    def text(self, node: ast.AST) -> str:
        return self.source[self.start(node) : self.end(node)].decode()

    def cut(self, node: ast.AST) -> None:
        """Remove a whole statement with its line end."""
        start, end = self.start(node), self.line_end(self.end(node))
        for span in [span for span in self.edits if start <= span[0] < end]:
            del self.edits[span]
        self.edits[start, end] = ""

    def edit(self, at: tuple[int, int, int], new: str) -> None:
        line, column, length = at
        start = self.starts[line - 1] + column
        self.edit_span(start, start + length, new)

    def edit_span(self, start: int, end: int, new: str) -> None:
        if any(s <= start < e or start <= s < end for s, e in self.edits if (s, e) != (start, end)):
            return
        self.edits.setdefault((start, end), new)

    def whole(self) -> bytes:
        out, at = [], 0
        for (start, end), new in sorted(self.edits.items()):
            out += [self.source[at:start], new.encode()]
            at = end
        return b"".join([*out, self.source[at:]])


class Uses:
    """Where the names of a module's top level are used in it."""

    def __init__(self, tree: ast.Module) -> None:
        self.at: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        self.attribute_uses: dict[str, list[ast.Attribute]] = defaultdict(list)
        self.everything: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                self.everything.add(node.id)
            elif isinstance(node, ast.arg):
                self.everything.add(node.arg)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.everything.add(node.name)
            elif isinstance(node, ast.alias):
                self.everything.add(node.asname or node.name)
        self._scope(tree, frozenset())

    def module_level(self, name: str) -> list[tuple[int, int, int]]:
        return self.at.get(name, [])

    def attributes(self, name: str) -> list[ast.Attribute]:
        return self.attribute_uses.get(name, [])

    def _scope(self, node: ast.AST, bound: frozenset[str]) -> None:
        for child in ast.iter_child_nodes(node):
            self._visit(child, bound)

    def _visit(self, node: ast.AST, bound: frozenset[str]) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._named(node, bound)
            arguments = node.args
            for expression in (
                *node.decorator_list,
                *arguments.defaults,
                *filter(None, arguments.kw_defaults),
            ):
                self._visit(expression, bound)
            for argument in _arguments(arguments):
                if argument.annotation:
                    self._annotation(argument.annotation, bound)
            if node.returns:
                self._annotation(node.returns, bound)
            parameters = {p.name for p in getattr(node, "type_params", [])}
            inner = bound | parameters | {each.arg for each in _arguments(arguments)} | _bound_in(node.body)
            for statement in node.body:
                self._visit(statement, inner)
        elif isinstance(node, ast.Lambda):
            for each in (*node.args.defaults, *[d for d in node.args.kw_defaults if d]):
                self._visit(each, bound)
            self._visit(node.body, bound | {each.arg for each in _arguments(node.args)})
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            targets = {
                inner.id
                for generator in node.generators
                for inner in ast.walk(generator.target)
                if isinstance(inner, ast.Name)
            }
            self._scope(node, bound | targets)
        elif isinstance(node, ast.ClassDef):
            self._named(node, bound)
            for expression in (*node.decorator_list, *node.bases, *[k.value for k in node.keywords]):
                self._visit(expression, bound)
            # A field may have the name of a type or function of the module: only its own target is the field.
            each: ast.stmt
            for each in node.body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    self._annotation(each.annotation, bound)
                    if each.value:
                        self._visit(each.value, bound)
                elif isinstance(each, ast.Assign):
                    self._visit(each.value, bound)
                elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                    self._visit_method(each, bound)
                else:
                    self._visit(each, bound)
        elif isinstance(node, ast.Name):
            if node.id not in bound:
                self.at[node.id].append((node.lineno, node.col_offset, len(node.id.encode())))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            pass
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id not in bound:
                self.attribute_uses[node.value.id].append(node)
            self._visit(node.value, bound)
        else:
            self._scope(node, bound)

    def _annotation(self, node: ast.AST, bound: frozenset[str]) -> None:
        self._visit(node, bound)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                for found in re.finditer(r"[A-Za-z_]\w*", inner.value):
                    if found.group() not in bound:
                        place = (inner.lineno, inner.col_offset + 1 + found.start(), len(found.group()))
                        self.at[found.group()].append(place)

    def _visit_method(self, node: ast.FunctionDef | ast.AsyncFunctionDef, bound: frozenset[str]) -> None:
        self._visit(node, bound)
        # `_named` noted the method's own name, which is no name of the module.
        own = [at for at in self.at[node.name] if at[0] == node.lineno and at[1] == _name_column(node)]
        for at in own:
            self.at[node.name].remove(at)

    def _named(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, bound: frozenset[str]
    ) -> None:
        if node.name not in bound:
            self.at[node.name].append((node.lineno, _name_column(node), len(node.name.encode())))


def _name_column(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    words = {ast.FunctionDef: "def ", ast.AsyncFunctionDef: "async def ", ast.ClassDef: "class "}
    return node.col_offset + len(words[type(node)])


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return every + [each for each in (arguments.vararg, arguments.kwarg) if each]


def _bound_in(body: Iterable[ast.stmt]) -> set[str]:
    """Return the names that a function binds, without those of functions inside it."""
    found: set[str] = set()
    free: set[str] = set()

    def look(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            return
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, ast.Global | ast.Nonlocal):
            free.update(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            for inner in ast.walk(node):
                if isinstance(inner, ast.NamedExpr):
                    found.add(inner.target.id)
            return
        for child in ast.iter_child_nodes(node):
            look(child)

    for each in body:
        look(each)
    return found - free


def _as(name: str, bound: str) -> str:
    return name if name == bound else f"{name} as {bound}"


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=ROOT, check=True)


def main() -> None:
    """Play one section of a plan."""
    plan, section = sys.argv[1:]
    Mover(read_plan(Path(plan).read_text(encoding="utf-8"), section)).run()


if __name__ == "__main__":
    main()
