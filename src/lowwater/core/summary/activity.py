"""Reading a transcript as a story: what the user asked, what the assistant said and ran, and what came of it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Literal

from msgspec import Struct

from lowwater.core.messages import AnyPart, Message, Text, ToolCall, ToolResult
from lowwater.core.references import ERRORS_AND_FRAMES, signed_lines
from lowwater.core.summary.request import SummaryRequest
from lowwater.core.summary.text import clip, flat, named_in, sentences
from lowwater.core.tools import ToolClass, arguments_of, classify, path_of, subject_in

# Text: what harnesses and terminals add

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]"
)
_HARNESS_TAGS = (
    "system-reminder system_reminder local-command-caveat local-command-stdout local-command-stderr command-name "
    "command-message environment_context environment_details user_instructions turn_aborted user_shell_command "
    "task-notification system_notification current_datetime bash-stdout bash-stderr bash-input skill "
    "ide_opened_file ide_selection user-prompt-submit-hook "
    "permissions collaboration_mode apps_instructions skills_instructions subagent_notification persisted-output "
    "retrieval_status tool_use_error function_results"
)
_BLOCK = re.compile(
    r"<(?P<tag>{})(?:\s[^<>]*)?>.*?(?:</(?P=tag)\s*>|\Z)".format("|".join(_HARNESS_TAGS.split())),
    re.DOTALL | re.IGNORECASE,
)
_TAG = re.compile(r"^[ \t]*</?[A-Za-z][\w-]*(?:\s[^<>\n]*)?/?>|</[A-Za-z][\w-]*>[ \t]*$", re.MULTILINE)
"""Tags at the beginning or end of a line: markup of a prompt, rather than part of a sentence."""
_NOTICE = re.compile(
    r"""\s*(?:
      This\ session\ is\ being\ continued\ from\ a\ previous
    | Base\ directory\ for\ this\ skill:
    | Caveat:\ The\ messages\ below
    | \[Request\ interrupted
    | \[native\ compaction
    | \[(?:image|Image)[^\]]*\]\s*\Z
    | \#\ AGENTS\.md\ instructions
    | Operation\ stopped\ by\ hook
    | (?:Stop|SubagentStop|PreToolUse|PostToolUse|UserPromptSubmit|SessionStart)(?::\S+)?
      \ hook\ (?:feedback|(?:success|additional\ context|blocking\ error|stopped\ continuation):)
    | Called\ the\ \w+\ tool\ with\ the\ following\ input:
    | This\ is\ the\ Gemini\ CLI\.\ We\ are\ setting\ up\ the\ context
    | The\ user\ (?:doesn't|did\ not)\ want\ to\ proceed\ with\ this\ tool
    | Your\ task\ is\ to\ create\ a\ detailed\ summary
    | Continue\ the\ conversation\ from\ where\ (?:it|we)\ left\ off
    )""",
    re.VERBOSE,
)
_COMMAND = re.compile(
    r"""\s*<command-message>[^<]*</command-message>\s*<command-name>(?P<name>[^<]*)</command-name>
    (?:\s*<command-args>(?P<args>.*?)</command-args>)?""",
    re.VERBOSE | re.DOTALL,
)
"""How Claude Code records a slash command; the command's prompt is the next text."""
_IMAGE = re.compile(r"\[image[^\]\n]*\]", re.IGNORECASE)
_RUNS_OF_BLANK_LINES = re.compile(r"\n\s*\n+")


def plain_text(text: str) -> str:
    """Return `text` without terminal codes and other control characters."""
    if text.isprintable() or text.replace("\n", " ").replace("\t", " ").isprintable():
        return text
    return _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def without_tags(text: str) -> str:
    """Return `text` without terminal codes and tags; text between tags stays."""
    return _TAG.sub(" ", plain_text(text))


def is_notice(text: str) -> bool:
    """Return whether a text begins like one that a harness puts into user messages."""
    return _NOTICE.match(text) is not None


def spoken_text(text: str) -> str:
    """Return what a person or the model said in a text, without what a harness injected; possibly empty."""
    stripped = plain_text(text)
    if is_notice(stripped):
        return ""
    if "<" in stripped:
        stripped = _TAG.sub(" ", _BLOCK.sub(" ", stripped))
        if is_notice(stripped):
            return ""
    stripped = _IMAGE.sub(" ", stripped) if "[" in stripped else stripped
    return _RUNS_OF_BLANK_LINES.sub("\n\n", stripped).strip()


def own_words(message: Message) -> str:
    """Return what the user wrote in a message of role `user`; empty if all of it comes from tools or the harness.

    Harnesses put reminders, notifications, hook output and the prompts of slash commands into user messages, as separate
    texts or within the user's text. Of a slash command only the name and arguments are the user's.
    """
    own: list[str] = []
    follows_command = False
    for part in message.parts:
        if not isinstance(part, Text):
            continue
        command = _COMMAND.match(part.text)
        if command:
            own.append(f"{command['name'].strip()} {command['args'] or ''}".strip())
        elif not follows_command and (words := spoken_text(part.text)):
            own.append(words)
        follows_command = command is not None
    return "\n".join(own)


# The story: episodes, statements and steps

_EXIT = re.compile(
    r"""(?:^|\n)\s*(?:Error:\ )?
    (?:Process\ exited\ with\ (?:exit\ )?code|[Ee]xit(?:ed)?[ _](?:with\ )?(?:code|status):?|"exit_code":)
    \s*(-?\d+)""",
    re.VERBOSE,
)
_ENVELOPE = re.compile(
    r"\A(?:Chunk ID: .*\n|Wall time: .*\n|Process exited with code \d+\n|Original token count: .*\n)+Output:\n"
)
_REFUSED = re.compile(
    r"\A\s*(?:The user doesn't want to (?:proceed|take this action)|\[Request interrupted by user|User rejected)"
    r"(?:.*?the user said:\s*(?P<words>.*))?",
    re.DOTALL,
)
_RUNNING = re.compile(r"session ID (\d+)")
_FAILING = re.compile(r"\A\s*(?:<tool_use_error>|Error\b|error:|Exit code [1-9]|Traceback )")


class ActivityStep(Struct, frozen=True, kw_only=True, gc=False):
    """One tool call and its result; `number` is that of the message with the call."""

    number: int
    call: ToolCall
    kind: ToolClass
    arguments: dict[str, object]
    subject: str
    output: str
    answered: bool
    failed: bool
    refused: bool = False
    """Whether the user rejected the call."""


class Statement(Struct, frozen=True, kw_only=True, gc=False):
    """A text by the assistant; `closes` if its message has no tool calls."""

    number: int
    text: str
    closes: bool


class Episode(Struct, frozen=True, kw_only=True):
    """What the user asked and everything up to the next ask; `ask` is empty for what came before the first."""

    number: int
    ask: str
    statements: tuple[Statement, ...]
    steps: tuple[ActivityStep, ...]

    @property
    def reply(self) -> Statement | None:
        """The assistant's last statement, if it closed the episode."""
        last = self.statements[-1] if self.statements else None
        return last if last and last.closes else None


class Story(Struct, frozen=True, kw_only=True):
    """A transcript as episodes, oldest first."""

    episodes: tuple[Episode, ...]

    @property
    def steps(self) -> tuple[ActivityStep, ...]:
        """Every step, in order."""
        return tuple(step for episode in self.episodes for step in episode.steps)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Everything the assistant said, in order."""
        return tuple(statement for episode in self.episodes for statement in episode.statements)


class _OpenEpisode:
    """The episode being read."""

    def __init__(self, number: int, ask: str) -> None:
        self.number = number
        self.ask = ask
        self.statements: list[Statement] = []
        self.steps: list[ActivityStep] = []

    def close(self) -> Episode:
        return Episode(
            number=self.number, ask=self.ask, statements=tuple(self.statements), steps=tuple(self.steps)
        )


def story_of(request: SummaryRequest) -> Story:
    """Read the messages of a request as a story."""
    numbers = request.numbers or tuple(range(1, len(request.messages) + 1))
    reader = _StepReader(request.messages)
    now = _OpenEpisode(0, "")
    episodes = [now]
    for number, message in zip(numbers, request.messages, strict=True):
        if message.role not in {"user", "assistant"}:
            continue
        if message.role == "user":
            if text := own_words(message):
                now = _OpenEpisode(number, text)
                episodes.append(now)
            continue
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if text := spoken_text(_text(message.parts)):
            now.statements.append(Statement(number=number, text=text, closes=not calls))
        steps = [reader.step(call, number) for call in calls]
        now.steps += steps
        if words := _refusal_texts(steps):
            now = _OpenEpisode(number, words)
            episodes.append(now)
    return Story(episodes=tuple(episode.close() for episode in episodes))


def _text(parts: tuple[AnyPart, ...]) -> str:
    """Return the text of the parts; nearly always there is one part."""
    if len(parts) == 1:
        return parts[0].text if isinstance(parts[0], Text) else ""
    return "\n".join([part.text for part in parts if isinstance(part, Text)])


def _refusal_texts(steps: Iterable[ActivityStep]) -> str:
    """Return what the user said when rejecting calls, which harnesses put into the result."""
    found = (_REFUSED.match(step.output) for step in steps if step.refused)
    return "\n".join(filter(None, (spoken_text(match["words"] or "") for match in found if match)))


class _StepReader:
    """Pairs calls with their results, and polls of a running command with that command."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._results = {
            part.call_id: part
            for message in messages
            for part in message.parts
            if isinstance(part, ToolResult)
        }
        self._running: dict[str, str] = {}

    def step(self, call: ToolCall, number: int) -> ActivityStep:
        """Return the step of a call."""
        result = self._results.get(call.id)
        output = _text(result.parts) if result else ""
        arguments = arguments_of(call)
        kind = _kind(call, arguments)
        subject = self._running.get(str(arguments.get("session_id", "")), "") or _subject(call, arguments)
        running = _RUNNING.search(output, 0, 400) if kind == "shell" else None
        if running:
            self._running[running[1]] = subject
        refused = _REFUSED.match(output)
        return ActivityStep(
            number=number,
            call=call,
            kind=kind,
            arguments=arguments,
            subject=subject,
            output=_ENVELOPE.sub("", output) if output.startswith(("Chunk ID", "Wall time")) else output,
            answered=result is not None and not running,
            failed=result is not None and (result.is_error or _says_failed(output)),
            refused=refused is not None,
        )


def _kind(call: ToolCall, arguments: dict[str, object]) -> ToolClass:
    """Return the kind of tool; an editor's `view` command is a read."""
    kind = classify(call.name)
    return "read" if kind == "write" and arguments.get("command") == "view" else kind


def _subject(call: ToolCall, arguments: dict[str, object]) -> str:
    code = arguments.get("code")
    if isinstance(code, str) and code.strip():
        return code
    return subject_in(arguments) or call.arguments.strip()


def _says_failed(output: str) -> bool:
    """Return whether an output begins or ends like that of a failed call."""
    for end in (output[:400], output[-200:]):
        if "xit" in end and (exit_line := _EXIT.search(end)):
            return exit_line[1] != "0"
    return bool(_FAILING.match(output, 0, 200))


# Commands: their purpose

Purpose = Literal["test", "build", "check", "view", "commit", "publish", "other"]

_COMMAND_READ = 2_000
"""Characters of a command that are looked at; the rest is usually a script or a document."""
_SHELLS = re.compile(r"^(?:/\S*/)?(?:ba|z)?sh\s+-l?c\s+(['\"]?)(?P<inner>.*)\1$", re.DOTALL)
_PREFIX = re.compile(
    r"""^(?:\(\s*)?(?:
      cd\s+(?:"[^"]*"|'[^']*'|\S+)\s*(?:&&|;)\s*
    | (?:export\s+)?[A-Z_][A-Z0-9_]*=(?:"[^"]*"|'[^']*'|\S*)\s*(?:&&|;)?\s+
    | (?:timeout|time|sudo|nohup|env|stdbuf)\s+(?:-\S+\s+)*(?:\d+[smh]?\s+)?
    | (?:source|sleep)\s+\S+\s*(?:&&|;)\s*
    | set\s+-\S+\s*(?:&&|;)?\s*
    )""",
    re.VERBOSE,
)
_PLUMBING = re.compile(
    r"""\s*(?:
      \d?>&\d | &?>>?\s*\S+ | 2>\s*\S+
    | \|\s*(?:tail|head|grep|sed|awk|tee|cat|less|sort|wc|tr|cut|uniq)\b[^|]*
    | \|\|\s*(?:true|echo\b.*) | ;\s*echo\b.*
    )$""",
    re.DOTALL | re.VERBOSE,
)
_RUNNERS = "go cargo npm pnpm yarn bun deno mvn gradle gradlew dotnet swift mix zig make mise just task nx turbo docker"
_RUNS = rf"\b(?:{_RUNNERS.replace(' ', '|')})\b[^|&;\n]*?\b"
_PURPOSES: tuple[tuple[Purpose, re.Pattern[str]], ...] = (
    ("commit", re.compile(r"\bgit\b(?:\s+-\S+(?:\s+[^-\s]\S*)?)*\s+commit\b")),
    (
        "publish",
        re.compile(
            r"\b(?:git\s+(?:\S+\s+)*?push|gh\s+(?:pr|issue)\s+(?:create|merge|close|comment|edit)|npm publish|twine upload)\b"
        ),
    ),
    (
        "test",
        re.compile(
            r"\b(?:pytest|py\.test|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|gotestsum)\b"
            rf"|{_RUNS}(?:run\s+)?tests?\b"
        ),
    ),
    (
        "check",
        re.compile(
            r"\b(?:ruff|mypy|pyright|flake8|pylint|eslint|biome|prettier|golangci-lint|gofmt|clippy|tsc|shellcheck)\b"
            rf"|{_RUNS}(?:lint|typecheck|type-check|fmt|vet|check|format)\b"
        ),
    ),
    ("build", re.compile(rf"{_RUNS}(?:build|install|compile)\b|^make\b|\bpip install\b|\bcmake\b")),
    (
        "view",
        re.compile(
            r"^(?:cat|sed|head|tail|nl|less|bat|grep|egrep|rg|ag|find|fd|ls|tree|wc|awk|jq|echo|printf|pwd|which|stat|diff|history"
            r"|git\s+(?:\S+\s+)??(?:diff|show|log|blame|status|branch|grep|ls-files|rev-parse|remote|stash list)"
            r"|gh\s+(?:pr|issue|run|api|search|repo)\s+\S+)\b"
        ),
    ),
)


def command_of(step: ActivityStep) -> str:
    """Return the command of a shell step as written; empty for any other step."""
    return step.subject if step.kind == "shell" else ""


def bare_command(command: str) -> str:
    """Return a command on one line, without `cd`, variables, redirections and filters around it."""
    start = command.strip()[:_COMMAND_READ]
    shell = _SHELLS.match(start)
    line = (shell["inner"] if shell else start).strip()
    while True:
        shorter = _PREFIX.sub("", line, count=1)
        if shorter == line:
            break
        line = shorter
    while True:
        shorter = _PLUMBING.sub("", line)
        if shorter == line:
            break
        line = shorter
    return flat(line)


def purpose_of(step: ActivityStep) -> Purpose:
    """Return the purpose of a step's command; `other` for a step without a command."""
    return _cached_purpose(command_of(step).strip()[:_COMMAND_READ]) if step.kind == "shell" else "other"


@lru_cache(maxsize=512)
def _cached_purpose(command: str) -> Purpose:
    return purpose_of_command(bare_command(command))


def purpose_of_command(command: str) -> Purpose:
    """Return the purpose of a bare command; heredocs and scripts are judged by how they begin."""
    line = command[:400]
    return next((name for name, pattern in _PURPOSES if pattern.search(line)), "other")


# Commands: their outcome

_OUTCOME_READ = 20_000
"""Characters at the end of an output in which test runners print their figures."""
_FIGURES = (
    re.compile(r"^=+ (?P<said>(?=.*\b(?:passed|failed|error))[^=\n]+?) in [\d.]+s.*=+$", re.MULTILINE),
    re.compile(r"^(?P<said>\d+ (?:passed|failed)(?:, \d+ \w+)*) in [\d.]+s", re.MULTILINE),
    re.compile(r"^[ \t]*Tests:?\s+(?P<said>\d+ (?:failed|passed|skipped|todo)\b[^\n]*)$", re.MULTILINE),
    re.compile(r"^test result: \w+\. (?P<said>\d+ passed; \d+ failed)", re.MULTILINE),
    re.compile(r"^[ \t]*(?P<said>\d+ pass\s*\n(?:\s*\d+ \w+\s*\n)*?\s*\d+ fail)\b", re.MULTILINE),
    re.compile(
        r"^[ \t]*(?P<said>\d+ passing(?: \([^)]*\))?(?:\s+\d+ pending)?(?:\s+\d+ failing)?)", re.MULTILINE
    ),
    re.compile(r"^(?P<said>Ran \d+ tests? in [\d.]+s\s+(?:OK|FAILED)(?: \([^)]*\))?)", re.MULTILINE),
    re.compile(r"^DONE (?P<said>\d+ tests[^\n]*)", re.MULTILINE),
    re.compile(
        r"^(?P<said>Found \d+ errors?[^\n]*|All checks passed!|Success: no issues found[^\n]*|\d+ issues:?)",
        re.MULTILINE,
    ),
)
_PYTEST_NAME = re.compile(r"^(?:FAILED|ERROR) (\S+::\S+|\S+\.py)", re.MULTILINE)
_NAMES = (
    re.compile(r"^[ \t]*--- FAIL: (\S+)", re.MULTILINE),
    _PYTEST_NAME,
    re.compile(r"^test (\S+) \.\.\. FAILED", re.MULTILINE),
    re.compile(r"^\(fail\) (.+?)(?: \[[\d.]+m?s\])?$", re.MULTILINE),
    re.compile(r"^[ \t]*[✕✗×●] (.{4,120}?)(?: \([\d.]+ m?s\))?$", re.MULTILINE),
)
_GO = re.compile(r"^(ok|FAIL|---)\s+(\S+)\s+(?:\(cached\)|[\d.]+s|\[\w)", re.MULTILINE)
_FAILS = re.compile(r"\b[1-9]\d* (?:failed|fail|failing|errors?|issues)\b|\bFAILED\b|failures=[1-9]")
_MOST_NAMES = 8


class CommandOutcome(Struct, frozen=True, kw_only=True):
    """How a command ended; `figures` is the count that its runner printed."""

    ok: bool
    figures: str = ""
    failing: tuple[str, ...] = ()

    def __str__(self) -> str:
        word = "passed" if self.ok else "failed"
        names = f": {', '.join(self.failing)}" if self.failing else ""
        return f"{word} ({self.figures}){names}" if self.figures else word + names


def outcome_of(step: ActivityStep) -> CommandOutcome:
    """Return the outcome that a step's output reports."""
    text = plain_text(step.output[-_OUTCOME_READ:])
    figures = next((flat(match["said"]) for match in (_last(p, text) for p in _FIGURES) if match), "")
    failing = tuple(dict.fromkeys(islice(_failing(text), 40)))[:_MOST_NAMES]
    packages = _GO.findall(text)
    if not figures and packages:
        good = sum(word == "ok" for word, _ in packages)
        bad = sum(word == "FAIL" for word, _ in packages)
        plural = "" if good == 1 else "s"
        figures = f"{good} package{plural} ok" + (f", {bad} failed" if bad else "")
    ok = not (step.failed or failing or (figures and _FAILS.search(figures)))
    return CommandOutcome(ok=ok, figures=figures, failing=failing)


def _failing(text: str) -> Iterator[str]:
    for pattern in _NAMES:
        yield from (flat(name) for name in pattern.findall(text))


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = None
    for found in pattern.finditer(text):  # noqa: B007  # the last one is wanted
        pass
    return found


# Files

Touch = Literal["created", "written", "edited", "deleted", "read"]

_PATCH = "*** Begin Patch"
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$|^\*\*\* Move to: (.+?)\s*$", re.MULTILINE)
_VERBS: dict[str, Touch] = {"Add": "created", "Delete": "deleted"}
_SHOWN = re.compile(
    r"(?:^|[|;&(])\s*(?:cat|head|tail|nl|bat|less)\s+(?:-\S+\s+(?:\d+\s+)?)*(?P<path>[\w@./~+-]*[./][\w@./+-]*\w)"
)
_SED = re.compile(r"\bsed\s+-n\s+['\"]?(?P<first>\d{1,9}),(?P<last>\d{1,9})p['\"]?\s+(?P<path>[\w@./~+-]*\w)")
_CREATED = re.compile(r"\bcreated?\b|create_", re.IGNORECASE)
_PARTIAL = ("old_string", "old_str", "oldText", "edits", "insert_line")
_DEFINED = re.compile(
    r"^[ \t+]*(?:(?:export|default|public|private|protected|static|async|abstract|pub(?:\([^)]*\))?)\s+)*"
    r"(?:def|class|func|function|fn|interface|struct|enum|trait|type|impl)\s+(?:\([^)\n]*\)\s*)?(?P<name>[A-Za-z_]\w{2,60})",
    re.MULTILINE,
)
_CHANGES = (
    "old_string",
    "new_string",
    "old_str",
    "new_str",
    "oldText",
    "newText",
    "content",
    "file_text",
    "input",
    "patch",
)
_MOST_SHOWN = 5
"""The most files that one shell command counts as having shown."""


class FileActivity(Struct, kw_only=True):
    """What has happened to one file so far."""

    created: bool = False
    deleted: bool = False
    writes: int = 0
    edits: int = 0
    reads: int = 0
    ranges: list[tuple[int, int]] = []
    symbols: dict[str, None] = {}
    """The names that the written text defines, in order."""
    last: int = 0
    """The number of the message that touched it last."""
    order: int = 0
    """Larger for files touched later."""

    @property
    def changed(self) -> bool:
        """Whether the file was changed rather than only read."""
        return self.created or self.deleted or self.writes > 0 or self.edits > 0


Files = dict[str, FileActivity]


def record_file_activity(files: Files, story: Story) -> None:
    """Add the story's steps to `files`; failed steps touch nothing."""
    for order, step in enumerate(story.steps, start=1):
        if step.failed or not step.answered:
            continue
        directory = step.arguments.get("workdir")
        base = directory if isinstance(directory, str) else ""
        for path, touch in _file_touches(step):
            file = files.setdefault(_resolved_path(base, path), FileActivity())
            file.order, file.last = order, step.number
            if touch in {"created", "written", "edited"}:
                file.symbols |= dict.fromkeys(_defined_symbols(step, path))
            _record_touch(file, touch, step)


def _file_touches(step: ActivityStep) -> Iterator[tuple[str, Touch]]:
    match step.kind:
        case "read" if path := path_of(step.call):
            yield path, "read"
        case "write":
            yield from _file_writes(step)
        case "shell" if _PATCH in step.subject:
            yield from _patched_files(step.subject)
        case "shell":
            shown = (*_SED.finditer(command_of(step)), *_SHOWN.finditer(bare_command(command_of(step))))
            yield from ((match["path"], "read") for match in shown[:_MOST_SHOWN])
        case _:
            pass


def _file_writes(step: ActivityStep) -> Iterator[tuple[str, Touch]]:
    texts = (value for value in step.arguments.values() if isinstance(value, str))
    patch = next((text for text in texts if _PATCH in text), "")
    if not step.arguments and _PATCH in step.call.arguments:
        patch = step.call.arguments
    if patch:
        yield from _patched_files(patch)
    elif path := path_of(step.call):
        whole = not any(name in step.arguments for name in _PARTIAL)
        verb = step.arguments.get("command", "")
        made = whole and _CREATED.search(f"{step.call.name} {verb} {step.output[:200]}")
        yield path, "created" if made else "written" if whole else "edited"


def _patched_files(patch: str) -> Iterator[tuple[str, Touch]]:
    for verb, path, moved in _PATCHED.findall(patch):
        yield (moved or path), _VERBS.get(verb, "edited")


def _defined_symbols(step: ActivityStep, path: str) -> Iterator[str]:
    """Yield the names that a step defines in a file."""
    texts = [value for name in _CHANGES if isinstance(value := step.arguments.get(name), str)]
    if not texts and step.kind == "shell":
        texts = [step.subject]
    for text in texts:
        start = text.find(f" File: {path}") if _PATCH in text else 0
        stop = text.find("\n*** ", start + 1) if _PATCH in text else len(text)
        yield from _DEFINED.findall(text, max(start, 0), stop if stop > 0 else len(text))


def _record_touch(file: FileActivity, touch: Touch, step: ActivityStep) -> None:
    match touch:
        case "read":
            file.reads += 1
            if lines := _lines_read(step):
                file.ranges = merge_ranges([*file.ranges, lines])
        case "deleted":
            file.deleted = True
        case "created":
            file.created, file.deleted = True, False
        case "written":
            file.writes += 1
        case "edited":
            file.edits += 1


def _lines_read(step: ActivityStep) -> tuple[int, int] | None:
    match step.arguments:
        case {"view_range": [int(first), int(last)]} if 0 < first <= last:
            return (first, last)
        case {"offset": int(first), "limit": int(length)} if first > 0 < length:
            return (first, first + length - 1)
        case {"limit": int(length)} if length > 0:
            return (1, length)
    sed = _SED.search(command_of(step))
    return (int(sed["first"]), int(sed["last"])) if sed else None


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges in order; adjacent and overlapping ones are merged."""
    result: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return result


def _resolved_path(base: str, path: str) -> str:
    """Return the path relative to its working directory, without `.` and `..`."""
    whole = path if path.startswith(("/", "~")) or not base else f"{base.rstrip('/')}/{path}"
    steps: list[str] = []
    for step in whole.split("/"):
        if step == ".." and steps and steps[-1] not in {"", ".."}:
            steps.pop()
        elif step not in {"", "."} or not steps:
            steps.append(step)
    return "/".join(steps[1:] if steps[0] == "." and len(steps) > 1 else steps)


# What the assistant said

_PROCESS = re.compile(
    r"""^(?:(?:wait|hmm|ah|oh|ok(?:ay)?|good|great|perfect|excellent|now|alright|first|next|then|so|right|yes|sure|done)
        [,.!:—–-]*\s+)*
    (?:let\ me|let's|i'?ll|i\ will|i'?m\ going\ to|i\ am\ going\ to|i'?m|i\ need\ to|we\ need\ to|going\ to|time\ to|i\ can\ see|i\ have)
    \s+(?:(?:now|also|then|first|just|quickly|actually|to)\ )*
    (?:(?:re)?(?:read|check|look|run|see|search|find|view|examine|start|explore|verify|continue|get|take|do|open|inspect
        |investigate|understand|analy[sz]e|review|try|proceed|gather|grep|list|load|use|test|confirm|fetch|begin|dig|build
        |pull|wait|refresh|go|compare|watch)(?:n?n?ing|t?ting)?
      |using|tracing|comparing|continuing|examining|taking|also|still|now)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_NOW = re.compile(
    r"""^(?:now|next|then|first|finally|also|and)[,:]?\s+(?:i\s+|we\s+)?
    (?:add|update|modify|fix|create|write|check|run|look|need|remove|replace|verify|rebuild|commit|the)\b
    .{0,120}[:.…]?$""",
    re.IGNORECASE | re.VERBOSE,
)
_PLEASANTRY = re.compile(
    r"""^(?:you'?re\ (?:absolutely\ )?right|good\ (?:catch|point|question)|great|perfect|excellent|sure|done|got\ it|thanks
        |sounds\ good|of\ course|yes)[.!,\s]*$
    | ^(?:would\ you\ like|want\ me\ to|shall\ i|should\ i|do\ you\ want|let\ me\ know|ready\ to|does\ this|is\ there\ anything)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_WEIGHTY = re.compile(
    r"""\b(?:root\ cause|caused?\ by|the\ cause|because|decided|decision|instead\ of|rather\ than|turns\ out
    |the\ (?:real\ |actual\ |main\ )?(?:problem|issue|bug|fix|reason)
    |fixed|added|removed|renamed|created|implemented|changed|updated|moved|replaced|committed|pushed|merged
    |pass(?:es|ed|ing)?|fail(?:s|ed|ing)?|blocked|remaining|next\ step)\b""",
    re.IGNORECASE | re.VERBOSE,
)


class AssistantSentence(Struct, frozen=True, kw_only=True):
    """One sentence by the assistant, with the names in it."""

    number: int
    text: str
    names: frozenset[str]
    process: bool
    """Whether it only announces the next step, or is a pleasantry."""

    @property
    def weight(self) -> float:
        """How important the sentence is."""
        weight = min(len(self.names), 5) + (2 if _WEIGHTY.search(self.text) else 0)
        return weight - 4 if self.process else weight


def sentences_of(statement: Statement) -> tuple[AssistantSentence, ...]:
    """Return the sentences of a statement."""
    return tuple(
        AssistantSentence(
            number=statement.number,
            text=sentence,
            names=frozenset(text for _, text in named_in(sentence)),
            process=is_process(sentence),
        )
        for sentence in sentences(statement.text)
    )


def is_process(sentence: str) -> bool:
    """Return whether a sentence only announces the next step or is a pleasantry."""
    straight = sentence.replace("’", "'")
    return any(pattern.match(straight) for pattern in (_PROCESS, _NOW, _PLEASANTRY))


def condense_sentences(spoken: Sequence[AssistantSentence], limit: int) -> str:
    """Return the most important sentences, in order, within `limit` characters; if none fits, the best one clipped."""
    candidates = [sentence for sentence in spoken if _is_informative(sentence)] or list(spoken)
    if not candidates:
        return ""
    ranked = sorted(
        range(len(candidates)), key=lambda at: (-candidates[at].weight - (3 if at == 0 else 0), at)
    )
    chosen: list[int] = []
    left = limit
    for at in ranked:
        if len(candidates[at].text) + 2 <= left:
            chosen.append(at)
            left -= len(candidates[at].text) + 2
    if not chosen:
        return clip(candidates[ranked[0]].text, limit)
    return join_sentences(candidates[at].text for at in sorted(chosen))


def _is_informative(sentence: AssistantSentence) -> bool:
    if (sentence.process and not sentence.names) or sentence.text.endswith(","):
        return False
    return len(sentence.text) >= 20 or bool(sentence.names)


def join_sentences(texts: Iterable[str]) -> str:
    """Return sentences and bullet points as one line."""
    ended = [text if text.endswith((".", "!", "?", ":", ";", "。", "…")) else f"{text};" for text in texts]
    line = " ".join(ended)
    return line[:-1] + "." if line.endswith((";", ":")) else line


# Errors

_COMPARED = 100
"""The number of leading characters by which error lines are compared."""
_ERROR_TOOLS = frozenset({"shell", "other"})
"""Kinds of tools whose output may contain errors although the call succeeded."""
_MOST_ERRORS = 10
"""The most error lines taken from one output."""
_FRAME = re.compile(r'\s*File "[^"\n]+", line \d+')
_CODE_BEGINS = re.compile(
    r"""\s*(?:[+>|]|-(?!--)|//|\#|\*|/\*|\d+[:\-→\t│|]|["'`{\[]|undefined,|std(?:err|out):|at\s
        |def\s|class\s|func\s|import\s|from\s|if\s|else|elif\s|return\b|raise\b|except\b|throw\b
        |const\s|let\s|var\s|case\s|type\s)""",
    re.VERBOSE | re.IGNORECASE,
)
_CODE_ENDS = ("{", ";", "=>", "(", "&&", "||")
_CODE = re.compile(
    r"""\b(?:
      (?:Errorf|errors\.(?:New|Is|As)|t\.(?:Error|Fatal)\w*|console\.error|new\ \w*Error|logger?\.\w+
        |assert\w*\.\w+|require\.\w+)\s*\(
    | err\s*[!:=]=?\s | 0\ (?:errors?|fail) | PASS(?:ED)?\b | ok\s*$
    ) | [✓✔] | \(pass\)""",
    re.VERBOSE | re.IGNORECASE,
)
_GREPPED = re.compile(r"^[\w@./+-]+[:-]\d+[:-]\s*(?P<rest>.*)")
_ERROR_START = re.compile(
    r"""\W*(?:[\w./@-]+:\ )?(?:
      error(?:\[\w+\])?: | fatal: | panic: | Error: | ERROR\b | FAIL(?:ED|URE)?\b | CONFLICT\b
    | [A-Z][\w.]*(?:Error|Exception)\b
    ) | \s*---\ FAIL | \s*File\ " """,
    re.VERBOSE,
)
"""How an error line begins in the output of a command that did not fail."""
_TIMING = re.compile(r"\s*[(\[]?\b\d+(?:\.\d+)?\s?(?:ms|s|µs)\b[)\]]?")
_TIMED = re.compile(r"\d\s?(?:ms|s|µs)\b")
_DIGITS = re.compile(r"\d+")


def error_lines(step: ActivityStep) -> tuple[str, ...]:
    """Return the distinct error lines of a step's output, in order, at most ten, each on one line."""
    return tuple(errors_in(step).values())


def errors_in(step: ActivityStep) -> dict[str, str]:
    """Return the distinct error lines of a step's output by their `same_error` key."""
    if not step.answered or step.refused or (step.kind not in _ERROR_TOOLS and not step.failed):
        return {}
    aim = purpose_of(step)
    if aim == "view" and not step.failed:
        return {}
    certain = step.failed or aim in {"test", "check", "build"}
    lines = _distinct_errors(_error_candidates(step.output, None if certain else _ERROR_START))
    if lines or step.kind == "shell" or not step.failed:
        return lines
    first = next(filter(None, (flat(without_tags(line)) for line in step.output[:2_000].splitlines())), "")
    return {same_error(first): first} if first else {}


def error_prefix(line: str) -> str:
    """Return the part of an error line to search for: its first hundred characters, cut between words."""
    text = flat(line)
    if len(text) <= _COMPARED:
        return text
    cut = text[:_COMPARED]
    return cut if text[_COMPARED].isspace() else cut.rpartition(" ")[0] or cut


def same_error(line: str) -> str:
    """Return a key that is equal for error lines that differ only in timings and counts."""
    text = flat(line)
    return _DIGITS.sub("0", _TIMING.sub("", text) if _TIMED.search(text) else text)[:_COMPARED]


def _error_candidates(output: str, start: re.Pattern[str] | None) -> Iterator[str]:
    """Yield error lines, only those that match `start` if it is given; before a traceback's error, its deepest frame."""
    frame = ""
    for signed in signed_lines(output, ERRORS_AND_FRAMES):
        line = plain_text(output[signed.start : min(signed.end, signed.start + 400)])
        if _FRAME.match(line):
            frame = line
            continue
        if start and not start.match(line):
            continue
        if _is_code(line) or ((grepped := _GREPPED.match(line)) and _is_code(grepped["rest"])):
            continue
        if frame:
            yield flat(frame)
            frame = ""
        yield flat(without_tags(line) if "<" in line else line)


def _is_code(line: str) -> bool:
    """Return whether a line only mentions an error: code, diffs, passing tests."""
    return bool(_CODE_BEGINS.match(line) or line.rstrip().endswith(_CODE_ENDS) or _CODE.search(line))


def _distinct_errors(lines: Iterable[str]) -> dict[str, str]:
    """Return the first line for each `same_error` key."""
    found: dict[str, str] = {}
    for line in lines:
        if len(line) > 8:
            found.setdefault(same_error(line), line)
            if len(found) == _MOST_ERRORS:
                break
    return found
