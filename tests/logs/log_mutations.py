"""Logs of every format, recorded and made up, each with one mistake in it that a crash, a version or an editor may make."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from lowwater.core.entries import Appended, Entry, Opened
from lowwater.core.formats.codec import encode_messages
from lowwater.core.formats.files import WholeSession, session_lines
from lowwater.logs.files import RecordedFile
from tests.generated import generate_session
from tests.logs.claude_lines import ClaudeLines
from tests.logs.codex_lines import MODEL, call, count, line, meta, output, said
from tests.logs.opencode_storage import as_database, as_exports, as_files, conversation
from tests.logs.request_lines import SECOND, THIRD, pair, written
from tests.logs.test_import_copilot import Events
from tests.logs.test_import_gemini import ABOUT, gemini, tool_call, user
from tests.logs.test_import_hermes import State
from tests.logs.test_import_pi import Lines as PiLines
from tests.logs.test_import_swe_agent import TRAJECTORY

TRANSCRIPTS = Path(__file__).parents[3] / "shared" / "transcripts"
_MOST_LINES = 40
_HUGE, _DEEP = 10**20, 200


def _claude(folder: Path) -> Path:
    lines = ClaudeLines()
    lines.add("attachment", attachment={"type": "hook_success", "content": ""})
    lines.user("Look at both.")
    lines.block("m1", {"type": "thinking", "thinking": "Which first?", "signature": "s"})
    lines.tool("m1", "t1")
    lines.user([{"type": "tool_result", "tool_use_id": "t1", "content": "one"}])
    lines.tool("m2", "t2")
    lines.user([{"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "two"}]}])
    lines.text("m3", "Both seen.")
    metadata = {"trigger": "auto", "preTokens": 9_000}
    lines.add("system", subtype="compact_boundary", compactMetadata=metadata)
    lines.user("This session is being continued from a previous one.", isCompactSummary=True)
    lines.user("And now?")
    lines.text("m4", "Nothing more.")
    return lines.write(folder / "claude.jsonl")


def _codex(folder: Path) -> Path:
    lines = [
        *(meta("s2", forked_from_id="s1"), meta("s1"), MODEL, said("developer", "Be brief.")),
        *(said("user", "<environment_context>here</environment_context>"), said("user", "Look.")),
        *(line("response_item", {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}),),
        *(call("c1"), call("c2"), output("c1"), output("c2", "more"), count((900, 500, 9), (900, 500, 9))),
        *(line("compacted", {"message": "So far: looked."}), said("user", "Go on.")),
        *(said("assistant", "Done."), count((1_000, 900, 9), (1_900, 1_400, 18))),
        *(line("event_msg", {"type": "thread_rolled_back", "num_turns": 1}), said("assistant", "Again.")),
    ]
    return _lines(folder / "codex.jsonl", lines)


def _copilot(folder: Path) -> Path:
    events = Events()
    events.add("session.start", sessionId="s1", startTime="2026-07-01T09:59:59Z", selectedModel="gpt-5.5")
    events.add("system.message", content="Be brief.")
    events.add(
        "user.message", content="look", transformedContent="<current_datetime>now</current_datetime>look"
    )
    events.answer("a1", "I look.", "c1", "c2")
    events.result("c1")
    events.result("c2", success=False)
    spent = {"input": 900, "output": 90}
    events.add("session.compaction_complete", success=True, summaryContent="s", compactionTokensUsed=spent)
    events.answer("a2", "Seen.", reasoningText="Clear.")
    metrics = {"gpt-5.5": {"requests": {"count": 2}, "usage": {"inputTokens": 10, "outputTokens": 2}}}
    events.add("session.shutdown", modelMetrics=metrics)
    return _lines(folder / "copilot.jsonl", events.lines)


def _gemini(folder: Path) -> Path:
    answer = gemini(
        "g1", "I look.", toolCalls=[tool_call("c1")], thoughts=[{"subject": "a", "description": "b"}]
    )
    told = ABOUT | {"messages": [user("u1", "look"), answer, user("u2", "and?"), gemini("g2", "Seen.")]}
    return _lines(folder / "gemini.json", [told])


def _canonical(folder: Path) -> Path:
    header: dict[str, Any] = {
        "id": "s",
        "agent": "Claude Code 2",
        "model": "claude-opus-5-5",
        "started": "2026-01-01T00:00:00Z",
    }
    header |= {"native_compactions": [{"index": 3, "ts": "2026-01-01T00:00:00Z", "pre_tokens": 9}]}
    made = generate_session("coding", seed=7, turns=4)
    lines = [
        json.loads(raw) | {"ts": 1_767_225_600 + 9 * at, "kind": "meta" if at == 4 else ""}
        for at, raw in enumerate(encode_messages(made.messages, "openai_chat")[:16])
    ]
    return _lines(folder / "canonical.jsonl", [header, *lines])


def _own(folder: Path) -> Path:
    made = generate_session("coding", seed=8, turns=2).messages[:8]
    lines: list[Entry] = [
        Opened(at=1_767_225_600.0, model="claude-opus-5-5", vocabulary="o200k"),
        *(Appended(at=1_767_225_600.0 + at, messages=(each,), tokens=(9,)) for at, each in enumerate(made)),
    ]
    path = folder / "own.jsonl"
    path.write_bytes(b"\n".join(session_lines(WholeSession(name="own", entries=tuple(lines)))) + b"\n")
    return path


def _hermes(folder: Path) -> Path:
    state = State(folder / "state.db")
    tools = [{"id": "c", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}]
    state.session("a", ["one", "two"], model="claude-opus-5-5", system_prompt="Be kind.", input_tokens=9)
    state.message("a", role="user", content="go", timestamp=1_767_225_700.0)
    state.message("a", role="assistant", content="", tool_calls=json.dumps(tools), timestamp=1_767_225_701.0)
    state.message("a", role="tool", content="out", tool_call_id="c", tool_name="terminal")
    state.session("b", ["one", "three"], parent_session_id="a", model_config='{"_branched_from": "a"}')
    state.connection.commit()
    state.connection.close()
    return state.path


def _pi(folder: Path) -> Path:
    lines = PiLines()
    lines.add("model_change", provider="anthropic", modelId="claude-opus-4-5")
    first = lines.user(
        [{"type": "text", "text": "look"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]
    )
    lines.answer("I look", "t1", "t2")
    lines.result("t1", [{"type": "text", "text": "no such file"}], is_error=True)
    lines.result("t2", "two")
    lines.add("compaction", summary="So far: looked.", tokensBefore=9_000)
    lines.answer("Seen.")
    lines.add("message", message={"role": "bashExecution", "command": "ls", "output": "a"})
    lines.user("another way", after=first)
    lines.add("branch_summary", summary="One way was tried.")
    lines.answer("The other way.")
    return _lines(folder / "pi.jsonl", lines.lines)


def _swe(folder: Path) -> Path:
    return _lines(folder / "swe.traj", [TRAJECTORY])


def _requests(folder: Path) -> Path:
    return written(folder, pair(SECOND, "d"), pair(THIRD, "f"), name="requests.jsonl")


def _list(folder: Path) -> Path:
    made = encode_messages(generate_session("coding", seed=9, turns=3).messages, "openai_chat")[:12]
    told = {"id": "s", "model": "gpt-5.5", "tools": [], "messages": [json.loads(raw) for raw in made]}
    return _lines(folder / "list.json", [told])


MADE: Mapping[str, Callable[[Path], Path]] = {
    "claude-code": _claude,
    "codex": _codex,
    "copilot-cli": _copilot,
    "gemini-cli": _gemini,
    "canonical": _canonical,
    "lowwater": _own,
    "hermes": _hermes,
    "pi": _pi,
    "opencode-database": lambda folder: as_database(conversation(), folder),
    "opencode-exports": lambda folder: as_exports(conversation(), folder),
    "opencode-files": lambda folder: as_files(conversation(), folder),
    "swe-agent": _swe,
    "request-log": _requests,
    "message-list": _list,
}
"""A log of every format."""


def recorded() -> dict[str, Path]:
    """Return a short recorded log of each source that there is on this machine."""
    found: dict[str, Path] = {}
    for source in (
        *("claude-code/entireio", "claude-code/git-sync", "codex/agentv", "codex/git-sync"),
        *("copilot-cli/", "gemini-cli/", "swe-agent/", "canonical/entireio-git-sync/"),
    ):
        files = [each for each in TRANSCRIPTS.glob(f"{source}*") if each.is_file()]
        if files:
            found[source] = min(files, key=lambda each: (each.stat().st_size, each.name))
    return found


def beginning(of: Path, folder: Path) -> Path:
    """Write the first lines of a recorded log into a folder, or all of one that is a single value."""
    with RecordedFile(of) as file:
        if of.suffix in (".json", ".traj"):
            data = file.whole()
        else:
            data = b"\n".join(each.data for each in islice(file.lines(), _MOST_LINES)) + b"\n"
    path = folder / of.name.removesuffix(".gz")
    path.write_bytes(data)
    return path


def _lines(path: Path, values: list[Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, values)) + "\n")
    return path


def mutations(log: Path, draw: Random, count: int) -> Iterator[str]:
    """Change files of a log in place, one mistake after the other, and yield what each is; the last one is taken back."""
    files = sorted(each for each in (log.rglob("*") if log.is_dir() else [log]) if each.is_file())
    for _ in range(count):
        file = draw.choice(files)
        before = file.read_bytes()
        what = _in_database(file, draw) if before.startswith(b"SQLite format") else _in_text(file, draw)
        yield f"{file.name}: {what}"
        file.write_bytes(before)


def _in_text(file: Path, draw: Random) -> str:
    lines = file.read_bytes().splitlines(keepends=True)
    way = draw.choice(
        ["value"] * 12 + ["cut short", "line left out", "line twice", "lines swapped", "not UTF-8"]
    )
    at = draw.randrange(len(lines))
    match way:
        case "cut short":
            lines[-1] = lines[-1][: draw.randrange(len(lines[-1]) + 1)]
        case "line left out":
            del lines[at]
        case "line twice":
            lines.insert(at, lines[at])
        case "lines swapped":
            other = draw.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case "not UTF-8":
            place = draw.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:place] + b"\xff" + lines[at][place:]
        case _:
            return _in_value(file, lines, at, draw)
    file.write_bytes(b"".join(lines))
    return f"{way} at line {at + 1}"


def _in_value(file: Path, lines: list[bytes], at: int, draw: Random) -> str:
    whole = b"".join(lines)
    try:
        value, in_lines = json.loads(lines[at]), True
    except ValueError:
        try:
            value, in_lines = json.loads(whole), False
        except ValueError:
            file.write_bytes(whole[: draw.randrange(len(whole))])
            return "cut short"
    value, what = changed(value, draw)
    told = json.dumps(value).encode() + b"\n"
    file.write_bytes(b"".join([*lines[:at], told, *lines[at + 1 :]]) if in_lines else told)
    return f"{what} in line {at + 1}"


def changed(value: Any, draw: Random) -> tuple[Any, str]:
    """Return a JSON value with one change somewhere inside, and what it is."""
    places = list(_places(value, ()))
    if not places:
        return draw.choice([None, "", [], {}, 0]), "another value"
    path = draw.choice(places)
    inside = value
    for step in path[:-1]:
        inside = inside[step]
    way = draw.choice(["dropped", "null", "empty", "unknown", "another type", "number", "text", "deep"])
    old = inside[path[-1]]
    match way:
        case "dropped":
            del inside[path[-1]]
        case "null":
            inside[path[-1]] = None
        case "empty":
            inside[path[-1]] = type(old)() if isinstance(old, str | list | dict) else ""
        case "unknown":
            inside[path[-1]] = "never-heard-of"
        case "another type":
            inside[path[-1]] = draw.choice([[old], {"value": old}, str(old), 7, True, 0.5, [], {}])
        case "number":
            inside[path[-1]] = draw.choice([-1, 0, _HUGE, -_HUGE, 1e300, 2**63, 0.1])
        case "text":
            texts = [
                "",
                " \n",
                "\x00\x1b[31m",
                "\ud83d",
                "<system-reminder>",
                "-1",
                "2026-13-41T99:99:99Z",
                "é" * 999,
            ]
            inside[path[-1]] = draw.choice(texts)
        case _:
            deep: Any = old
            for _ in range(_DEEP):
                deep = [deep]
            inside[path[-1]] = deep
    return value, f"{'.'.join(map(str, path))} {way}"


def _places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield (*path, step)
        yield from _places(inner, (*path, step))


def _in_database(file: Path, draw: Random) -> str:
    connection = sqlite3.connect(file)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    table = draw.choice([name for name in tables if not name.startswith("sqlite_")])
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    column, rows = draw.choice(columns), connection.execute(f"SELECT rowid FROM {table}").fetchall()
    (row,) = draw.choice(rows)
    (old,) = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()
    new: object = draw.choice([None, "", 0, -1, "never-heard-of", b"\xff\x00", 1e300, "{", "[]"])
    if isinstance(old, str) and old[:1] in ("{", "[") and draw.random() < 0.7:
        new = json.dumps(changed(json.loads(old), draw)[0])
    try:
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, row))
        connection.commit()
    except sqlite3.Error:
        connection.rollback()
    connection.close()
    return f"{table}.{column} of row {row}: {str(new)[:60]}"
