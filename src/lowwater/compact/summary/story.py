"""Reading a transcript as a story: what was asked, what was said, what was done and what came of it."""

import re
from collections.abc import Iterable

from msgspec import Struct

from lowwater.compact.summary.hygiene import own_words, said
from lowwater.values.message import Message
from lowwater.values.parts import AnyPart, Text, ToolCall, ToolResult
from lowwater.values.summaries import SummaryRequest
from lowwater.values.tools import ToolClass, arguments_of, classify, subject_in

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


class Step(Struct, frozen=True, kw_only=True, gc=False):
    """One tool call and what came of it; `number` is that of the message with the call."""

    number: int
    call: ToolCall
    kind: ToolClass
    arguments: dict[str, object]
    subject: str
    output: str
    answered: bool
    failed: bool
    refused: bool = False
    """Whether the user did not let it happen."""


class Statement(Struct, frozen=True, kw_only=True, gc=False):
    """What the assistant said; `closes` if no tool call came with it."""

    number: int
    text: str
    closes: bool


class Episode(Struct, frozen=True, kw_only=True):
    """What the user asked and everything up to the next time; `ask` is empty for what came before the first."""

    number: int
    ask: str
    statements: tuple[Statement, ...]
    steps: tuple[Step, ...]

    @property
    def reply(self) -> Statement | None:
        """The last thing the assistant said, if it closed the episode."""
        last = self.statements[-1] if self.statements else None
        return last if last and last.closes else None


class Story(Struct, frozen=True, kw_only=True):
    """A transcript as episodes, oldest first."""

    episodes: tuple[Episode, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step, in order."""
        return tuple(step for episode in self.episodes for step in episode.steps)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Everything the assistant said, in order."""
        return tuple(statement for episode in self.episodes for statement in episode.statements)


class _Open:
    """The episode being read."""

    def __init__(self, number: int, ask: str) -> None:
        self.number = number
        self.ask = ask
        self.statements: list[Statement] = []
        self.steps: list[Step] = []

    def close(self) -> Episode:
        return Episode(
            number=self.number, ask=self.ask, statements=tuple(self.statements), steps=tuple(self.steps)
        )


def story_of(request: SummaryRequest) -> Story:
    """Read the messages of a request as a story."""
    numbers = request.numbers or tuple(range(1, len(request.messages) + 1))
    reader = _Reader(request.messages)
    now = _Open(0, "")
    episodes = [now]
    for number, message in zip(numbers, request.messages, strict=True):
        if message.role not in {"user", "assistant"}:
            continue
        if message.role == "user":
            if text := own_words(message):
                now = _Open(number, text)
                episodes.append(now)
            continue
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if text := said(_text(message.parts)):
            now.statements.append(Statement(number=number, text=text, closes=not calls))
        steps = [reader.step(call, number) for call in calls]
        now.steps += steps
        if words := _words_of_refusal(steps):
            now = _Open(number, words)
            episodes.append(now)
    return Story(episodes=tuple(episode.close() for episode in episodes))


def _text(parts: tuple[AnyPart, ...]) -> str:
    """Return what is text among parts; nearly always that is one."""
    if len(parts) == 1:
        return parts[0].text if isinstance(parts[0], Text) else ""
    return "\n".join([part.text for part in parts if isinstance(part, Text)])


def _words_of_refusal(steps: Iterable[Step]) -> str:
    """Return what the user said instead of letting calls happen: harnesses put it into the result."""
    found = (_REFUSED.match(step.output) for step in steps if step.refused)
    return "\n".join(filter(None, (said(match["words"] or "") for match in found if match)))


class _Reader:
    """Pairs calls with results, and polls of a running command with that command."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._results = {
            part.call_id: part
            for message in messages
            for part in message.parts
            if isinstance(part, ToolResult)
        }
        self._running: dict[str, str] = {}

    def step(self, call: ToolCall, number: int) -> Step:
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
        return Step(
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
    """Return the kind of tool; an editor that is asked to view a file reads it."""
    kind = classify(call.name)
    return "read" if kind == "write" and arguments.get("command") == "view" else kind


def _subject(call: ToolCall, arguments: dict[str, object]) -> str:
    code = arguments.get("code")
    if isinstance(code, str) and code.strip():
        return code
    return subject_in(arguments) or call.arguments.strip()


def _says_failed(output: str) -> bool:
    """Tell whether an output begins or ends with the words of a failure."""
    for end in (output[:400], output[-200:]):
        if "xit" in end and (exit_line := _EXIT.search(end)):
            return exit_line[1] != "0"
    return bool(_FAILING.match(output, 0, 200))
