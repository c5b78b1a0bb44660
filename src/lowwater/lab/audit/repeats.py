"""What in a session repeats something earlier: a file read again unchanged, a command run again with the same answer, a plan made again.

Whatever is in doubt counts as new. A file is read again only if every line shown was shown before, next to the same lines; a
command is run again only if it gives the same answer and nothing that could change that was written in between.
"""

import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from posixpath import join, normpath
from typing import Literal

import msgspec
from msgspec import Struct, field

from lowwater.core.messages import ToolCall, ToolResult
from lowwater.core.tools import ToolClass, arguments_of, class_of, path_in, subject_in
from lowwater.logs.recording import Recording

RepeatKind = Literal["read", "command", "edit", "plan", "question"]
_MOST = 0.9
"""The share of what a view shows by which its last showing is dated: parts of it may have been shown again since."""

_TELLING = 3
"""Fewer lines may be the same by chance."""


class Repeat(Struct, frozen=True, kw_only=True):
    """A tool call that repeats an earlier one."""

    kind: RepeatKind
    first: int
    """The number of the model call that did the same last, among the calls of the session."""
    subject: str
    """The path, command or question."""


class CallActions(Struct, frozen=True, kw_only=True):
    """What the tool calls of one model call do."""

    tools: int = 0
    repeats: tuple[Repeat, ...] = ()
    changes: bool = False
    """Whether one of them does what was not done before: writes to a file, or runs a command that may change something."""


def actions_of(recording: Recording, calls: Sequence[int]) -> list[CallActions]:
    """Return what each call does; `calls` are the indexes of the answers among the recording's messages."""
    results = {result.call_id: result for each in recording.messages for result in each.message.results}
    history = _History()
    numbers = {index: number for number, index in enumerate(calls)}
    found: list[list[_Action]] = [[] for _ in calls]
    number = -1
    for index, each in enumerate(recording.messages):
        number = numbers.get(index, number)
        for call in each.message.calls:
            action = history.add(call, results.get(call.id), max(number, 0))
            if number >= 0:
                found[number].append(action)
    return [
        CallActions(
            tools=len(actions),
            repeats=tuple(action.repeat for action in actions if action.repeat is not None),
            changes=any(action.changes for action in actions),
        )
        for actions in found
    ]


class _Action(Struct, frozen=True, kw_only=True):
    """What one tool call does."""

    repeat: Repeat | None = None
    changes: bool = False


# Results

_CODEX_HEADER = re.compile(
    r"\A(?:(?:Command|Chunk ID|Wall time|Process exited|Process running|Original token count|Exit code|Total output lines)\b[^\n]*\n)+Output:\n?"
)
_TIMING = re.compile(r"\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds|m\d+s)\b|\(cached\)")
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_NUMBERED = re.compile(r"^[ \t]*\d+(?:→|\t|: )", re.MULTILINE)
_TELLS = re.compile(r"\w\W*\w")
_UNCHANGED = "File unchanged since last read"
"""How Claude Code answers when the same read is asked for again."""


class _CodexOutput(Struct):
    output: str


def _text(result: ToolResult) -> str:
    """Return a result without what the client says around it."""
    text = result.text
    if text.startswith('{"output"'):
        with suppress(msgspec.MsgspecError, UnicodeError, RecursionError):
            text = msgspec.json.decode(text, type=_CodexOutput).output
    return _REMINDER.sub("", _CODEX_HEADER.sub("", text)).strip()


def _lines(text: str) -> list[str]:
    """Return the lines that say something, without their numbers."""
    lines = map(str.strip, _NUMBERED.sub("", text).splitlines())
    return [line for line in lines if _TELLS.search(line)]


# Shell commands

_VIEWERS = frozenset({"cat", "head", "tail", "sed", "nl", "bat"})
_LOOKS = (
    frozenset(
        "ls rg grep egrep find fd tree wc file stat du pwd which whereis type awk sort uniq cut tr jq yq echo printf basename dirname diff cmp "
        "readlink realpath true column less more test [ env".split()
    )
    | _VIEWERS
)
"""Commands that only look."""
_GIT_LOOKS = frozenset(
    "status diff log show branch blame grep ls-files ls-tree rev-parse describe remote shortlog cat-file reflog merge-base rev-list".split()
)
_GH_LOOKS = frozenset("view diff list".split())
_SUBCOMMANDS = frozenset(
    "go cargo npm pnpm yarn bun mise make uv poetry npx python python3 just task dotnet mvn gradle".split()
)
_CHECKS = frozenset(
    "test check lint vet build typecheck clippy tsc pytest mypy ruff eslint vitest jest fmt:check golangci-lint".split()
)
"""Commands, or parts of them, whose answer depends on the files alone."""
_OUTSIDE = frozenset(
    "sleep curl wget ps pgrep lsof docker kubectl date top ssh nc ping watch tmux workmux".split()
)
"""Commands whose answer changes by itself."""
_MOST_CHARACTERS = 2_000
"""Longer commands are scripts, which may change anything."""
_SEPARATOR = re.compile(r"&&|\|\||[;|\n]")
_REDIRECTION = re.compile(r"(?<![0-9&=<-])>{1,2}\s*(?!&|/dev/null)[^\s]|(?<=1)>{1,2}\s*(?!&|/dev/null)[^\s]")
_RESTORES = re.compile(r"\bgit\b[^&;|]*\b(?:checkout|stash|restore|reset|revert|switch|rebase|merge|pull)\b")
_ASSIGNMENT = re.compile(r"\A\w+=")
_SHELLS = ("bash", "sh", "zsh")
ShellUse = Literal["look", "check", "outside", "change"]


class _Command(Struct, frozen=True, kw_only=True):
    """A shell command: what it does, and the files that it shows if that is all it does."""

    text: str
    use: ShellUse
    shows: tuple[str, ...] = ()


def _command(arguments: dict[str, object]) -> _Command:
    raw = arguments.get("command", arguments.get("cmd", ""))
    if isinstance(raw, list):
        words = [str(each) for each in raw]
        text = words[-1] if len(words) > 1 and words[0].rsplit("/", 1)[-1] in _SHELLS else shlex.join(words)
    else:
        text = raw if isinstance(raw, str) else ""
    text = text.strip()
    folder = arguments.get("workdir")
    folder = folder if isinstance(folder, str) else ""
    pieces = _SEPARATOR.split(text) if len(text) <= _MOST_CHARACTERS else []
    parts = [words for part in pieces if (words := _words(part))]
    while parts and parts[0][0] == "cd" and len(parts[0]) > 1:
        folder = join(folder, parts.pop(0)[1])
    uses = {_use(words) for words in parts}
    if _REDIRECTION.search(text) or not parts:
        uses.add("change")
    order: tuple[ShellUse, ...] = ("change", "outside", "check", "look")
    use = next(each for each in order if each in uses)
    shows = _shown(parts, folder) if use == "look" else ()
    return _Command(
        text=f"{normpath(folder) if folder else ''}$ {' '.join(text.split())}", use=use, shows=shows
    )


def _words(part: str) -> list[str]:
    try:
        words = shlex.split(part, comments=True)
    except ValueError:
        words = part.split()
    while words and _ASSIGNMENT.match(words[0]):
        words = words[1:]
    return [word for word in words if not re.match(r"\A[0-9]?>", word)]


def _use(words: Sequence[str]) -> ShellUse:
    name, rest = words[0].rsplit("/", 1)[-1], [word for word in words[1:] if not word.startswith("-")]
    flags = [word for word in words[1:] if word.startswith("-")]
    if name in _OUTSIDE:
        return "outside"
    if name == "sed" and any(flag.startswith("-i") for flag in flags):
        return "change"
    if name == "find" and {"-delete", "-exec"} & set(flags):
        return "change"
    if name in _LOOKS or (name in ("git", "gh") and "--help" in flags):
        return "look"
    if name == "git":
        return _git_use(rest)
    if name == "gh":
        return (
            "look"
            if len(rest) > 1 and rest[0] in ("pr", "issue", "repo") and rest[1] in _GH_LOOKS
            else "outside"
        )
    if name in _CHECKS or (
        name in _SUBCOMMANDS and any(set(re.split(r"[:_-]", word)) & _CHECKS for word in rest[:3])
    ):
        return "check"
    if name == "go" and rest[:1] == ["doc"]:
        return "look"
    return "change"


def _git_use(rest: Sequence[str]) -> ShellUse:
    if rest and rest[0].startswith(("/", "..", "~")):  # after -C
        rest = rest[1:]
    if rest[:1] == ["stash"]:
        return "look" if rest[1:2] in (["list"], ["show"]) else "change"
    return "look" if rest and rest[0] in _GIT_LOOKS else "change"


def _shown(parts: Sequence[Sequence[str]], folder: str) -> tuple[str, ...]:
    """Return the files that a command shows parts of; empty if it does anything else."""
    shown: list[str] = []
    for words in parts:
        if words[0] not in _VIEWERS:
            return ()
        files = [word for word in words[1:] if not word.startswith("-") and not word.isdigit()]
        if words[0] == "sed":
            files = files[1:]
        shown += (normpath(join(folder, name)) for name in files)
    return tuple(shown)


# History

_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_NEVER = 1 << 60
_POLLS = frozenset({"write_stdin", "bashoutput", "wait_agent", "taskoutput"})


class _Answered(Struct, kw_only=True):
    """When something was done last, and its answer."""

    call: int
    answer: str


class _History(Struct, kw_only=True):
    """What was done so far."""

    shown: dict[str, dict[int, int]] = field(default_factory=dict)
    """For each file, the pairs of neighbouring lines shown so far (hashed), with the number of the call that showed them last."""
    written: dict[str, int] = field(default_factory=dict)
    """For each file, the call that wrote to it last."""
    done: dict[str, _Answered] = field(default_factory=dict)
    writes: list[tuple[int, str]] = field(default_factory=list)
    """The paths written, with the order of the tool call; empty if it is not known what was."""
    restored: int = -1
    """The call that last took back changes of files with git."""
    at: int = 0
    """The tool calls so far."""
    since: dict[str, int] = field(default_factory=dict)
    """The order of the tool call that did each thing last."""

    def add(self, call: ToolCall, result: ToolResult | None, number: int) -> _Action:
        """Add a tool call with its result, made by model call `number`, and return what it does."""
        self.at += 1
        kind, arguments = class_of(call), arguments_of(call)
        failed = result is None or bool(result.is_error)
        text = "" if result is None else _text(result)
        match kind:
            case _ if call.name.lower() in _POLLS:
                return _Action()
            case "write" if not failed:
                repeat = self._write(call, arguments, number)
                return _Action(repeat=repeat, changes=repeat is None)
            case "shell":
                return self._shell(_command(arguments), text, number)
            case _:
                return _Action(repeat=None if failed else self._looked(call, kind, arguments, text, number))

    def _looked(
        self, call: ToolCall, kind: ToolClass, arguments: dict[str, object], text: str, number: int
    ) -> Repeat | None:
        match kind:
            case "read" if path := path_in(arguments):
                return self._read([normpath(path)], path, text, number)
            case "search" | "list" | "web":
                key = f"{call.name} {_canonical(arguments)}"
                scope = path_in(arguments) or _string(arguments, "path")
                return self._again("command", key, subject_in(arguments), text, number, scope=scope)
            case "agent":
                prompt = _string(arguments, "prompt") or _string(arguments, "message")
                return self._again("command", f"agent {prompt}", prompt, "", number) if prompt else None
            case "todo":
                return self._plan(call, arguments, number)
            case "clarify":
                return self._again("question", _canonical(arguments), subject_in(arguments), "", number)
            case _:
                return None

    def _read(self, paths: Sequence[str], subject: str, text: str, number: int) -> Repeat | None:
        """Note what was shown of files; it is a repeat if it was shown before and has not changed."""
        shown = [self.shown.setdefault(path, {}) for path in paths]
        if text.startswith(_UNCHANGED):
            first = max((max(of.values(), default=-1) for of in shown), default=-1)
            return None if first < 0 else Repeat(kind="read", first=first, subject=subject)
        lines = _lines(text)
        pairs = [hash(pair) for pair in pairwise(lines)]
        before = sorted(min((of.get(pair, _NEVER) for of in shown), default=_NEVER) for pair in pairs)
        for of in shown:
            of.update(dict.fromkeys(pairs, number))
        # Where one file ends and the next begins, the neighbours are new.
        known = before[: len(before) - len(paths) + 1]
        if len(lines) < _TELLING or not known or known[-1] == _NEVER:
            return None
        written = max((self._written(path) for path in paths), default=-1)
        if self.restored >= written >= known[0]:
            return None
        return Repeat(kind="read", first=known[int(len(known) * _MOST)], subject=subject)

    def _written(self, path: str) -> int:
        """Return the call that wrote to a file last; -1 if none did."""
        return max((at for other, at in self.written.items() if _is_same(path, other)), default=-1)

    def _write(self, call: ToolCall, arguments: dict[str, object], number: int) -> Repeat | None:
        patch = next(
            (text for name in ("input", "patch") if (text := _string(arguments, name))), call.arguments
        )
        paths = [found.strip() for found in _PATCHED.findall(patch)] or [path_in(arguments)]
        content = _canonical(arguments) or call.arguments
        found = self._again("edit", f"write {content}", " ".join(paths), "", number, ages=False)
        for path in paths:
            self.writes.append((self.at, normpath(path) if path else ""))
            if path:
                self.written[normpath(path)] = number
        return found if len(_lines(content.replace("\\n", "\n"))) >= _TELLING else None

    def _shell(self, command: _Command, text: str, number: int) -> _Action:
        if command.use == "change":
            self.writes.append((self.at, ""))
            if _RESTORES.search(command.text):
                self.restored = number
            return _Action(changes=True)
        if command.use == "outside":
            return _Action()
        if command.shows:
            return _Action(repeat=self._read(command.shows, command.text, text, number))
        # What git says depends on more than files.
        is_check = command.use == "check" or "git " in command.text
        return _Action(
            repeat=self._again("command", command.text, command.text, text, number, is_check=is_check)
        )

    def _plan(self, call: ToolCall, arguments: dict[str, object], number: int) -> Repeat | None:
        if call.name == "TaskCreate":
            return self._again(
                "plan", _canonical(arguments), _string(arguments, "subject"), "", number, ages=False
            )
        steps = arguments.get("todos") or arguments.get("plan")
        if not isinstance(steps, list):
            return None
        return self._again("plan", f"plan {_canonical({'steps': steps})}", "plan", "", number, ages=False)

    def _again(
        self,
        kind: RepeatKind,
        key: str,
        subject: str,
        answer: str,
        number: int,
        *,
        scope: str = "",
        is_check: bool = False,
        ages: bool = True,
    ) -> Repeat | None:
        """Note that something was done; return a repeat if it was done before, with the same answer, and nothing has changed since."""
        answer = _TIMING.sub("", answer)
        before, since = self.done.get(key), self.since.get(key, 0)
        self.done[key], self.since[key] = _Answered(call=number, answer=answer), self.at
        if before is None or before.answer != answer:
            return None
        # That the answer is the same shows that unknown commands have changed nothing, unless it says very little.
        unknown_counts = is_check or len(_lines(answer)) < _TELLING
        if ages and any(
            at > since and (_is_in(path, scope) if path else unknown_counts) for at, path in self.writes
        ):
            return None
        return Repeat(kind=kind, first=before.call, subject=subject)


def _is_same(one: str, other: str) -> bool:
    """Whether two paths name one file; either may be relative."""
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def _is_in(path: str, scope: str) -> bool:
    """Whether a path may be in a folder, or be the file `scope`."""
    scope = normpath(scope) if scope else ""
    if not scope or not scope.startswith("/") or not path.startswith("/"):
        return True
    return path == scope or path.startswith(f"{scope}/")


def _string(arguments: dict[str, object], name: str) -> str:
    value = arguments.get(name)
    return value if isinstance(value, str) else ""


def _canonical(arguments: dict[str, object]) -> str:
    kept = {
        name: value
        for name, value in arguments.items()
        if name not in ("description", "activeForm", "yield_time_ms", "max_output_tokens")
    }
    return msgspec.json.encode(kept, order="deterministic").decode() if kept else ""
