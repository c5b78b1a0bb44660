"""What a coding agent works with: the repository, what it remembers, and its tools."""

from collections.abc import Callable, Sequence

from tests.generated.coding import shell, talk
from tests.generated.coding.changes import propose_change
from tests.generated.coding.project import Module, lay_out
from tests.generated.coding.testruns import Failure, run_tests
from tests.generated.coding.workspace import Replacement, Workspace
from tests.generated.draw import Draw
from tests.generated.lexicon import Lexicon
from tests.generated.memory import Memory
from tests.generated.steps import Act, Call

_REMEMBERED = (("{number}", "number"), ("{error}", "error"), ("{old_path}", "path"), ("{id}", "id"))


class Desk:
    """Makes tool calls whose answers come from the workspace, and sentences whose facts come from memory."""

    def __init__(self, draw: Draw, memory: Memory) -> None:
        self.draw = draw
        self.memory = memory
        self.project = lay_out(draw.child("project"))
        self.workspace = Workspace(draw.child("files"), self.project)
        self.lexicon = Lexicon(draw, self.project.domain)
        self.branch = f"{draw.one(('fix', 'feature', 'chore'))}/{'-'.join(self.lexicon.thing())}"
        self.rules: list[str] = []
        self._visited: list[Module] = []
        self._module = draw.one(self.project.modules)

    # Focus: what the work is about at the moment.

    @property
    def module(self) -> Module:
        """The module the work is about now."""
        return self._module

    def turn_to(self, module: Module | None = None) -> Module:
        """Take up a module, more often one that was visited before, and return it."""
        if module is None:
            again = self._visited and self.draw.chance(0.62)
            module = self.draw.one(self._visited if again else self.project.modules)
        if module not in self._visited:
            self._visited.append(module)
        self._module = module
        return module

    def symbol(self) -> str:
        """Return the name of a function in the module at hand."""
        return self._module.dialect.function_name(self.draw.one(self._module.outline.functions))

    # Words.

    def say(self, templates: Sequence[str], **facts: str) -> str:
        """Return one of `templates` with facts at hand or remembered in its slots."""
        recall, outline, dialect = self.memory.recall, self._module.outline, self._module.dialect
        known: dict[str, Callable[[], object]] = {
            "path": lambda: self.memory.note("path", self._module.path),
            "test_path": lambda: self._module.test_path,
            "folder": lambda: self._module.path.rpartition("/")[0],
            "paper": lambda: self.memory.note("path", self.draw.one(self.project.papers)),
            "entity": lambda: self.memory.note("symbol", dialect.kind(outline.entity)),
            "function": self.symbol,
            "constant": lambda: self.memory.note("symbol", dialect.constant(outline.constants[0].name)),
            "value": lambda: str(outline.constants[0].value),
            "symbol": lambda: recall("symbol", self.symbol()),
            "old_path": lambda: recall("path", self._module.test_path),
            "error": lambda: recall("error", self.lexicon.message()),
            "number": lambda: recall("number", str(self.draw.between(100, 9_000))),
            "id": lambda: recall("id", self.draw.hex(8)),
            "kept": self._kept,
            "remark": self.lexicon.remark,
            "rule": lambda: "",
            "day": lambda: f"2026-05-{self.draw.between(4, 28):02}",
        }
        for slot, fact in facts.items():
            known[slot] = lambda fact=fact: fact  # type: ignore[misc]  # binds this round's fact
        template = self.draw.one(templates)
        for _ in range(4):
            if not self._lacks(template):
                break
            template = self.draw.one(templates)
        text = self.lexicon.fill(template, known)
        return text[:1].upper() + text[1:]

    def _kept(self) -> str:
        """Return a rule of the user's that still holds."""
        return self.memory.note("rule", self.draw.one(self.rules)) if self.rules else self.lexicon.remark()

    def _lacks(self, template: str) -> bool:
        """Return whether the template speaks of something as known that was not seen yet."""
        return any(slot in template and not self.memory.knows(kind) for slot, kind in _REMEMBERED)

    def act(self, calls: Sequence[Call], subject: str = "") -> Act:
        """Return the calls as one step, with a word or a thought before some of them."""
        draw = self.draw
        subject = subject or f"`{self._module.path}`"
        text = self.say(talk.LOOKING, subject=subject) if draw.chance(0.46) else ""
        thought = ""
        if draw.chance(0.42):
            thoughts = draw.some(talk.THOUGHTS, max(1, int(draw.skewed(1.7, 1.05, most=14))))
            thought = " ".join(self.say((template,), subject=subject) for template in thoughts)
        return Act(calls=tuple(calls), text=text, thought=thought)

    # Tools.

    def full(self, path: str) -> str:
        """Return the absolute path."""
        return f"{self.project.root}/{path}"

    def read(self, path: str, near: int = 0) -> Call:
        """Read a file: all of it, or the part around line `near`."""
        lines = self.workspace.lines(path)
        arguments: dict[str, object] = {"path": self.full(path)}
        first, last = 1, len(lines)
        if near or (len(lines) > 150 and self.draw.chance(0.55)):
            limit = self.draw.one((20, 30, 40, 60, 80, 120, 150))
            first = max(1, (near or self.draw.between(1, len(lines))) - limit // 2)
            last = first + limit - 1
            arguments |= {"offset": first, "limit": limit}
        output = self.workspace.numbered(path, first, last)
        self.memory.note("path", path)
        module = self.workspace.module(path)
        if module is not None:
            dialect, outline = module.dialect, module.outline
            for words in self.draw.some(outline.functions, 3):
                self.memory.note("symbol", dialect.function_name(words))
            for constant in outline.constants[:2]:
                shown = str(constant.value) if dialect.language == "go" else f"{constant.value:_}"
                self.memory.note("number", shown)
        return Call(tool="read_file", arguments=arguments, output=output, seconds=self.draw.within(0.02, 0.4))

    def patch(self, path: str, near: int = 0) -> Call:
        """Make a small change in a file, close to line `near` if given."""
        change = propose_change(self.draw, self.workspace, path, near)
        return self.replace(path, change.old, change.new)

    def replace(self, path: str, old: str, new: str) -> Call:
        """Replace a text that stands once in a file."""
        edit = self.workspace.edit(path, old, new)
        arguments = {"path": self.full(path), "old_string": old, "new_string": new}
        return Call(
            tool="patch", arguments=arguments, output=self._edited(edit), seconds=self.draw.within(0.02, 0.3)
        )

    def misplaced_patch(self, path: str) -> Call:
        """Try a change whose old text is no longer what stands in the file."""
        change = propose_change(self.draw, self.workspace, path)
        stale = change.old.rstrip() + f"  # {self.lexicon.remark()}"
        arguments = {"path": self.full(path), "old_string": stale, "new_string": change.new}
        first = stale.strip().split("\n")[0][:80]
        output = f"Error: old_string not found in {path}. The file may have changed since it was read; looked for: {first}"
        return Call(tool="patch", arguments=arguments, output=output, failed=True)

    def write(self, path: str, lines: list[str]) -> Call:
        """Create a file."""
        self.workspace.write(path, lines)
        content = "\n".join(lines) + "\n"
        output = f"Wrote {len(content)} bytes ({len(lines)} lines) to {self.full(path)}"
        self.memory.note("path", path)
        return Call(tool="write_file", arguments={"path": self.full(path), "content": content}, output=output)

    def search(self, needle: str) -> Call:
        """Search the repository for a fixed string."""
        hits = self.workspace.search(needle)
        for hit in hits[:2]:
            self.memory.note("path", hit.path)
        arguments = {"pattern": needle, "path": self.project.root}
        return Call(
            tool="search_files",
            arguments=arguments,
            output=shell.show_hits(hits),
            seconds=self.draw.within(0.1, 1.5),
        )

    def run(self, command: str, output: str, *, failed: bool = False, seconds: float = 0.5) -> Call:
        """Run a command that prints `output`."""
        shown = f"Exit code 1\n{output}" if failed else output
        return Call(
            tool="terminal", arguments={"command": command}, output=shown, failed=failed, seconds=seconds
        )

    def test(self, module: Module, failures: Sequence[Failure] = (), *, reach: str = "file") -> Call:
        """Run the tests of a module's file, of its folder, or of everything in its language (`reach`)."""
        folder = module.path.rpartition("/")[0] + "/"
        modules = [m for m in self.project.modules if m.dialect is module.dialect]
        if reach != "all":
            modules = [m for m in modules if m == module or (reach == "folder" and m.path.startswith(folder))]
        verbose = reach == "all" and self.draw.chance(0.25)
        command = _runner(module, reach) + (" -v" if verbose else "")
        for failure in failures:
            self.memory.note("error", failure.summary)
            self.memory.note("symbol", failure.case)
        output = run_tests(self.draw, self.workspace, modules, failures, verbose=verbose)
        seconds = self.draw.skewed(4 if reach == "file" else 15, 0.9, most=240)
        return self.run(command, output, failed=bool(failures) and self.draw.chance(0.5), seconds=seconds)

    def plan(self, items: Sequence[str], done: int) -> Call:
        """Write the list of tasks with the first `done` finished."""
        states = [
            "done" if at < done else "in_progress" if at == done else "pending" for at in range(len(items))
        ]
        listed = [{"text": item, "state": state} for item, state in zip(items, states, strict=True)]
        output = "\n".join(
            f"[{'x' if s == 'done' else '>' if s == 'in_progress' else ' '}] {i}"
            for i, s in zip(items, states, strict=True)
        )
        return Call(
            tool="todo",
            arguments={"items": listed},
            output=output if self.draw.chance(0.6) else "Todos updated.",
            seconds=0.01,
        )

    def _edited(self, edit: Replacement) -> str:
        head = f"Replaced {edit.old.count(chr(10)) + 1} lines at line {edit.line} of {self.full(edit.path)}."
        if self.draw.chance(0.45):
            return head
        first = max(1, edit.line - 4)
        return head + "\n" + self.workspace.numbered(edit.path, first, edit.line + edit.new.count("\n") + 4)


def _runner(module: Module, reach: str) -> str:
    folder = module.test_path.rpartition("/")[0]
    match module.dialect.language:
        case "python":
            target = {"file": f" {module.test_path}", "folder": f" {folder}", "all": ""}[reach]
            return f"python -m pytest -q{target}"
        case "typescript":
            return "npx jest" + {"file": f" {module.test_path}", "folder": f" {folder}", "all": ""}[reach]
        case _:
            return "go test " + ("./..." if reach == "all" else f"./{folder}/...")
