"""Logs with compactions, written step by step as Claude Code and Codex write them."""

import json
from collections.abc import Sequence
from pathlib import Path

from tests.logs import codex_lines as codex
from tests.logs.claude_lines import ClaudeLines

Step = tuple[str, ...]
FILE = "".join(f"line {number} of the file\n" for number in range(1, 40))
CHANGED = FILE.replace("line 20 of", "line twenty of")
READ: Step = ("read", "src/a.py", FILE)
OTHER: Step = ("read", "src/b.py", FILE.replace("file", "other file"))
EDIT: Step = ("edit", "src/a.py", "line 20 of the file", "line twenty of the file")
ELSEWHERE: Step = ("edit", "src/b.py", "one\ntwo\nthree", "one\n2\nthree")
TESTS: Step = ("run", "pytest -q tests", "3 passed in 0.21s")
SEARCH: Step = (
    "run",
    "grep -rn def src",
    "src/a.py:1:def a\nsrc/a.py:9:def b\nsrc/b.py:3:def c\nsrc/c.py:2:def d",
)
COMPACT: Step = ("compact",)
USER: Step = ("user", "please go on")


def claude_log(steps: Sequence[Step], path: Path) -> Path:
    lines = ClaudeLines(version="2.1.7")
    lines.user("Please fix it.")
    for at, step in enumerate(steps):
        match step:
            case ("compact",):
                metadata = {"trigger": "auto", "preTokens": 150_000}
                lines.add("system", subtype="compact_boundary", compactMetadata=metadata)
                lines.user("The work so far.", isCompactSummary=True)
            case ("user", text):
                lines.user(text)
            case (kind, *rest):
                name, arguments, result = _claude_tool(kind, rest)
                lines.block(f"m{at}", {"type": "tool_use", "id": f"t{at}", "name": name, "input": arguments})
                lines.result(f"t{at}", result)
    return lines.write(path)


def _claude_tool(kind: str, rest: Sequence[str]) -> tuple[str, dict[str, str], str]:
    match kind, rest:
        case "read", (path, text):
            numbered = "".join(
                f"{number:>6}→{line}\n" for number, line in enumerate(text.splitlines(), start=1)
            )
            return "Read", {"file_path": path}, numbered
        case "edit", (path, old, new):
            return "Edit", {"file_path": path, "old_string": old, "new_string": new}, "The file was updated."
        case _, (command, output):
            return "Bash", {"command": command}, output
        case _:
            raise AssertionError(kind)


def codex_log(steps: Sequence[Step], path: Path) -> Path:
    lines = [codex.meta(cli_version="0.142.4"), codex.MODEL, codex.said("user", "Please fix it.")]
    for at, step in enumerate(steps):
        match step:
            case ("compact",):
                lines.append(codex.line("compacted", {"message": "The work so far."}))
            case ("user", text):
                lines.append(codex.said("user", text))
            case (kind, *rest):
                lines += _codex_tool(kind, rest, f"c{at}")
                lines.append(
                    codex.count((9_000, 8_000, 40), (9_000 * (at + 1), 8_000 * (at + 1), 40 * (at + 1)))
                )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def _codex_tool(kind: str, rest: Sequence[str], id: str) -> list[dict[str, object]]:
    match kind, rest:
        case "edit", (path, old, new):
            body = "".join(f"-{line}\n" for line in old.splitlines()) + "".join(
                f"+{line}\n" for line in new.splitlines()
            )
            patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n{body}*** End Patch"
            call = codex.item("custom_tool_call", name="apply_patch", input=patch, call_id=id)
            return [call, codex.item("custom_tool_call_output", call_id=id, output="Success.")]
        case "read", (path, text):
            command, output = f"sed -n '1,80p' {path}", text
        case _:
            command, output = rest
    arguments = json.dumps({"cmd": command, "workdir": "/work"})
    call = codex.item("function_call", name="exec_command", arguments=arguments, call_id=id)
    shown = f"Chunk ID: {id}\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n{output}"
    return [call, codex.item("function_call_output", call_id=id, output=shown)]
