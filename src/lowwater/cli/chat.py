"""`lowwater chat`: a conversation with a model that has tools, in a terminal or piped."""

import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct
from platformdirs import user_data_path
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lowwater.adapters.models import load_registry
from lowwater.chat.chat import Chat
from lowwater.chat.model_access import model_access_for, model_for
from lowwater.chat.pauses import PauseKeeper, for_pauses
from lowwater.chat.tools import Memory, ToolOutcome, default_file
from lowwater.cli.command import FAILED, IdleLimitOption, IdleOption, with_settings
from lowwater.cli.conversations import FORMATS
from lowwater.cli.inspect import draw_contents
from lowwater.cli.recall import FoundMessage, expansion_page, found_page
from lowwater.cli.sessions.checkpoints import checkpoint_named, checkpoints_page
from lowwater.cli.sessions.diff import difference_lines
from lowwater.cli.sessions.listing import narrow_table, session_rows
from lowwater.cli.sessions.pins import pins_page
from lowwater.cli.status import SessionFigures, efficiency_page, session_page
from lowwater.cli.stored_sessions import StoreAddress, accounts_of, opened_store
from lowwater.cli.tables import fitted_block, page_width
from lowwater.cli.wording import amount, dollars, on_one_line, printable, short
from lowwater.core.accounts.cadence import cadence
from lowwater.core.accounts.contents import contents
from lowwater.core.accounts.difference import difference
from lowwater.core.accounts.efficiency import efficiency
from lowwater.core.events import Compaction, Event
from lowwater.core.limits import UsageWarning
from lowwater.core.messages import Format, ToolCall
from lowwater.core.policies.explanations import reason_sentence
from lowwater.core.recall.recalled import handle_of, names_messages, read_handle
from lowwater.core.recall.search import count_messages as message_count
from lowwater.core.summary.frame import unframe
from lowwater.core.tokens.counting import count_parts, count_preamble
from lowwater.core.tools import class_of, subject_of
from lowwater.core.turns.own_summary import last_summary
from lowwater.core.view import Summary
from lowwater.core.wording import counted
from lowwater.errors import BadInput, LowwaterError, UnknownFormat
from lowwater.observe.sinks import CallbackSink
from lowwater.protocols import Store
from lowwater.session.factories import FORGETFUL, VARIABLE, counter_for, default_address, default_path
from lowwater.session.internals import internals
from lowwater.session.session import Session
from lowwater.session.status import Status
from lowwater.settings import Settings, WarningLevels
from lowwater.settings.resolve import Resolved

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

try:
    import termios
except ImportError:  # not a POSIX system
    termios = None  # type: ignore[assignment]

_WORDS_AND_SPACES = re.compile(r"\n|[^\S\n]+|\S+")
_BAR_WIDTH = 16
_COLOURS = {None: "green", "info": "cyan", "notice": "cyan", "warning": "yellow", "critical": "red"}
_LEVEL_COLOURS = (("info", "cyan"), ("notice", "cyan"), ("warning", "yellow"), ("critical", "red"))
_SEPARATOR = Text(" · ", style="bright_black")
_MAX_SESSIONS_SHOWN = 15
Page = Iterator[RenderableType]
Blocks = Iterable[RenderableType]
_COMMAND = re.compile(r"/([A-Za-z]*)(?:\s+(.*))?", re.DOTALL)
_PROMPT = "› "
_MAX_SUGGESTIONS = 40
_WARNINGS = {"info": "cyan", "notice": "cyan", "warning": "yellow", "critical": "bold red"}
_NOBODY_TO_ASK = "not allowed: nobody can be asked here; --yes allows everything"
_SCRIPT_PACE = 0.008
"""Seconds between two words of the built-in script, on a terminal."""


class Leave(Exception):  # not an error
    """Raised by /quit."""


class SlashCommand(Struct, frozen=True, kw_only=True):
    """A command that the user types after a slash."""

    takes: str = ""
    """Its arguments, as shown by /help."""
    help: str
    run: Callable[[Chat, str], Blocks]


class Suggestion(Struct, frozen=True, kw_only=True):
    """One completion: the text to insert, where it starts relative to the cursor, and a short help."""

    text: str
    start: int
    help: str = ""


class WordWrapper:
    """Wraps streamed text between words; a word is held back until it is complete."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._column = 0
        self._space = ""
        self._word = ""

    def feed(self, text: str) -> str:
        """Return the part of the text so far that can be shown now."""
        shown = []
        for piece in _WORDS_AND_SPACES.findall(text):
            if piece.isspace():
                shown.append(self._end_word())
                if piece == "\n":
                    shown.append("\n")
                    self._column, self._space = 0, ""
                else:
                    self._space += piece
            else:
                self._word += piece
        return "".join(shown)

    def end(self) -> str:
        """Return what was held back, without starting a new line."""
        return self._end_word()

    def _end_word(self) -> str:
        word, space = self._word, self._space
        if not word:
            return ""
        self._word = self._space = ""
        size = cell_len(word)
        if self._column and self._column + len(space) + size > self._width:
            self._column = size
            return f"\n{word}"
        self._column += len(space) + size
        return f"{space}{word}"


class Screen:
    """Writes the conversation to standard output, with control characters from models, tools and files made visible.

    `ask` asks the user a question and returns the answer; None if input does not come from a terminal.
    """

    def __init__(self, *, allows_all: bool = False, ask: Callable[[str], str] | None = None) -> None:
        self._console = Console(highlight=False)
        self._allows_all = allows_all
        self._ask = ask
        self._is_midline = False
        self._wrapping: WordWrapper | None = None

    def on_text(self, piece: str, /) -> None:
        """Show a piece of the model's text, word-wrapped on a terminal."""
        text = printable(piece)
        if self._console.is_terminal:
            self._wrapping = self._wrapping or WordWrapper(self._console.width)
            text = self._wrapping.feed(text)
        self._write(text)

    def on_tool_call(self, call: ToolCall, /) -> None:
        """Show a tool call; its outcome is added to the same line."""
        self.end_line()
        room = max(20, page_width() - len(call.name) - 30)
        subject = "" if class_of(call) == "todo" else on_one_line(subject_of(call), room)
        line = Text.assemble(("  ▸ ", "cyan"), (on_one_line(call.name, 30), "cyan"), f" {subject}")
        self._console.print(line, end="", no_wrap=True, overflow="ellipsis")
        self._is_midline = True

    def on_tool_result(self, call: ToolCall, outcome: ToolOutcome, /) -> None:
        """Show the size of a result, or its error; a todo list is shown in full."""
        if not self._is_midline:
            self._console.print("   ", end="")
        if outcome.is_error:
            said = Text(f" ✗ {on_one_line(outcome.text, 100)}", style="red")
        else:
            said = Text(f"  {counted(len(outcome.text), 'character')}", style="bright_black")
        self._console.print(said)
        self._is_midline = False
        if class_of(call) == "todo" and not outcome.is_error:
            self.show(Padding(Text(printable(outcome.text)), (0, 0, 0, 4)))

    def on_notice(self, sentence: str, /) -> None:
        """Show a remark of the program itself."""
        self.show(Text(printable(sentence), style="bright_black"))

    def failed(self, sentence: str, /) -> None:
        """Show what went wrong."""
        self.show(Text(printable(" ".join(sentence.split())), style="red"))

    def warned(self, warning: UsageWarning, /) -> None:
        """Show a warning that the prompt approaches the threshold."""
        self.show(Text(f"▲ {warning.level}: {warning.sentence}", style=_WARNINGS[warning.level]))

    def happened(self, _session: str, event: Event, /) -> None:
        """Show a compaction: what it did, and why."""
        if not isinstance(event, Compaction):
            return
        by = ", ".join(event.mechanisms)
        done = f"{event.before:,} → {event.after:,} tokens by {by}"
        if event.summarizer:
            done += f", a summary of {event.summary_tokens:,} tokens by {event.summarizer}"
        self.show(Text.assemble(("◆ compacted ", "bold magenta"), done))
        self.show(Padding(Text(reason_sentence(event.because), style="bright_black"), (0, 0, 0, 2)))

    def allow(self, question: str, /) -> bool:
        """Ask the user whether something may be done; `a` allows everything from now on."""
        if self._allows_all:
            return True
        self.end_line()
        if self._ask is None:
            self.on_notice(_NOBODY_TO_ASK)
            return False
        self.show(Text.assemble(("  ? ", "bold yellow"), printable(question)))
        answer = self._ask("    yes, no or always [y/N/a] ").strip().lower()
        self._allows_all = answer in ("a", "always")
        return self._allows_all or answer in ("y", "yes")

    def show(self, *blocks: RenderableType) -> None:
        """Show blocks one below the other."""
        self.end_line()
        width = page_width()
        for block in blocks:
            self._console.print(fitted_block(block, width), width=width)

    def end_line(self) -> None:
        """Start a new line unless the cursor is at the start of one."""
        if self._wrapping is not None:
            self._write(self._wrapping.end())
            self._wrapping = None
        if self._is_midline:
            self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._is_midline = not text.endswith("\n")


@with_settings
def chat(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A session to continue, or to start.")
    ] = None,
    *,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="The model; by default one that fits the API key.")
    ] = "",
    base_url: Annotated[
        str, typer.Option(metavar="URL", help="The API's base URL; by default that of the model's provider.")
    ] = "",
    format: Annotated[
        str, typer.Option(metavar="FORMAT", help="The API format at that URL: auto, openai or anthropic.")
    ] = "auto",
    api_key_env: Annotated[
        str, typer.Option(metavar="VAR", help="The environment variable that holds the API key.")
    ] = "",
    context_length: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=4_000, help="The model's context window, if it differs from the known one."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Run commands and write files without asking.")] = False,
    scripted: Annotated[
        bool,
        typer.Option(
            "--scripted", help="Use the built-in script instead of a model, even if there is a key."
        ),
    ] = False,
    idle: IdleOption = "off",
    idle_limit: IdleLimitOption = 1.0,
    store: StoreAddress = "",
    settings: Resolved,
) -> None:
    """Chat with a model that has tools; its window never overflows.

    The tools are shell, read_file, write_file, search, todo and memory. They
    work in the current directory, and you are asked before a command runs or a
    file is written. The API key is read from ANTHROPIC_API_KEY or
    OPENAI_API_KEY; --base-url names any other OpenAI- or Anthropic-compatible
    server. Without a key or a URL a built-in script answers, so that you can
    try everything: nothing is sent and nothing is billed.

    Lines that begin with a slash are commands: /help lists them. The line
    below the prompt shows how full the window is, with marks at the warning
    levels, the cost so far and the state of the cache. Ctrl-C stops an answer,
    Ctrl-D leaves; the session is stored, and `lowwater chat NAME` continues it.

    lowwater chat                                 try it: "work for 40 steps"
    lowwater chat refactor-auth --model claude-opus-5-5
    lowwater chat --base-url http://127.0.0.1:8000/v1 --model qwen3
    echo "read README.md" | lowwater chat         from a script, with --yes
    """
    chosen = for_pauses(settings.settings, idle)
    watched = is_terminal()
    reach = model_access_for(
        base_url=base_url.strip(),
        format=_format(format),
        key_variable=api_key_env.strip(),
        is_scripted=scripted,
        pace=_SCRIPT_PACE if watched else 0.0,
        environment=os.environ,
    )
    screen = Screen(allows_all=yes, ask=ask if watched else None)
    address = _address(store, is_scripted=reach.is_scripted)
    with opened_store(address, redact=chosen.privacy.redact, creates=True) as opened:
        conversation = Chat(
            reach=reach,
            model=model_for(model.strip(), reach, os.environ),
            store=opened,
            settings=chosen,
            directory=Path.cwd(),
            memory=Memory(default_file()),
            watcher=screen,
            allow=screen.allow,
            sinks=[CallbackSink(screen.happened)],
            on_warning=screen.warned,
            context_length=context_length,
            withheld=(api_key_env,) if api_key_env else (),
            name=name,
            pauses=PauseKeeper(idle, dollars=idle_limit, note=screen.on_notice),
        )
        try:
            _greet(conversation, screen)
            went_well = _talk(conversation, screen, chosen, watched=watched)
            _say_goodbye(conversation, screen, address)
        finally:
            conversation.close()
    if not went_well:
        sys.exit(FAILED)


def _format(named: str) -> Format | None:
    if named not in FORMATS:
        raise UnknownFormat(f"there is no format {named[:40]!r}: use auto, openai or anthropic")
    return FORMATS[named]


def _address(given: str, *, is_scripted: bool) -> str:
    """Return the store's address; sessions with the built-in script have their own, because their costs are fictitious."""
    if given.strip() or not is_scripted or os.environ.get(VARIABLE, "").strip():
        return given
    return f"sqlite:///{default_path().with_name('scripted.db')}"


def _history() -> Path:
    return user_data_path("lowwater", appauthor=False) / "chat-history"


def _greet(chat: Chat, screen: Screen) -> None:
    status, named = chat.session.status(), on_one_line(chat.session.name, 60)
    begun = f"going on with {named}, {counted(status.history, 'message')}" if status.history else named
    screen.show(Text.assemble(("lowwater chat", "bold"), f" · {chat.agent.upstream.model} · {begun} · /help"))
    if chat.is_scripted:
        screen.on_notice(
            "A built-in script answers as that model would be billed: nothing is sent, nothing is paid. "
            "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or give --base-url, for a real one."
        )


def _talk(chat: Chat, screen: Screen, settings: Settings, *, watched: bool) -> bool:
    """Handle the user's lines until the end of input; return False if a line failed and input is not a terminal."""
    status = partial(_status_line_of, chat, settings)
    went_well = True
    for line in input_lines(chat, history=_history(), status=status):
        text = line.strip()
        if not text:
            continue
        try:
            with keyboard_echo(on=False):
                _handle_line(chat, screen, text)
        except Leave:
            break
        except KeyboardInterrupt:
            screen.on_notice("stopped; what was said and done until then is kept")
        except LowwaterError as error:
            screen.failed(str(error))
            went_well = watched
        screen.show(Text() if watched else status(page_width()))
    return went_well


def _handle_line(chat: Chat, screen: Screen, text: str) -> None:
    command = read_command(text)
    if command is None:
        chat.say(text)
    else:
        screen.show(*run_command(chat, *command))


def _say_goodbye(chat: Chat, screen: Screen, address: str) -> None:
    """Tell the user how to continue the session, if it was stored."""
    if chat.session.status().history and (address or default_address()) != FORGETFUL:
        again = shlex.join(["lowwater", "chat", chat.session.name])
        screen.on_notice(f"Kept as {chat.session.name}: `{again}` with the same options goes on with it.")


def _status_line_of(chat: Chat, settings: Settings, width: int) -> Text:
    levels = settings.output.warning_levels
    return status_line(chat.session.status(), levels, is_scripted=chat.is_scripted, width=width)


def status_line(status: Status, levels: WarningLevels, *, is_scripted: bool, width: int) -> Text:
    """Return the status line; parts that do not fit are left out, the least important first."""
    share = status.prompt / status.threshold if status.threshold else 0.0
    colour = _COLOURS[status.level]
    named = Text(f"{status.level} ", style=colour) if status.level else Text()
    load = Text.assemble(
        usage_bar(share, levels, colour),
        (f" {share:.0%}", f"bold {colour}"),
        f" of {short(status.threshold)} ",
        named,
    )
    load.rstrip()
    cost = amount(status.totals.cost)
    bill = Text(f"{cost} as if" if is_scripted else cost)
    others = [
        Text(on_one_line(status.model, 30), style="bold"),
        Text(f"cache {status.caching}"),
        Text(counted(status.compaction_count, "compaction")),
        Text(on_one_line(status.session, 30), style="bright_black"),
    ]
    return _join_fitting([load, bill, *others], width)


def usage_bar(share: float, levels: WarningLevels, colour: str) -> Text:
    """Return a bar that is full at the threshold, with a mark at each warning level not yet reached."""
    used = max(0, min(_BAR_WIDTH, round(_BAR_WIDTH * share)))
    cells = [("█", colour)] * used + [("░", "bright_black")] * (_BAR_WIDTH - used)
    for name, mark in _LEVEL_COLOURS:
        level: float | None = getattr(levels, name)
        if level is not None and share < level < 1:
            cells[max(used, int(_BAR_WIDTH * level))] = ("┊", mark)
    return Text.assemble(*cells)


def _join_fitting(pieces: Sequence[Text], width: int) -> Text:
    line = pieces[0].copy()
    for piece in pieces[1:]:
        if line.cell_len + _SEPARATOR.cell_len + piece.cell_len <= width:
            line = line + _SEPARATOR + piece
    return line


def is_terminal() -> bool:
    """Return whether standard input and output are both a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextmanager
def keyboard_echo(*, on: bool) -> Iterator[None]:
    """Turn the terminal's echo of typed characters on or off for the duration of the block."""
    if termios is None or not sys.stdin.isatty():
        yield
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    meanwhile = list(before)
    meanwhile[3] = before[3] | termios.ECHO if on else before[3] & ~termios.ECHO
    termios.tcsetattr(keyboard, termios.TCSADRAIN, meanwhile)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def ask(question: str) -> str:
    """Ask a question at the terminal and return the line typed; anything typed before the question is discarded."""
    with keyboard_echo(on=True):
        if termios is not None:
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        try:
            return input(question)
        except EOFError:
            return ""


def input_lines(chat: Chat, *, history: Path, status: Callable[[int], Text]) -> Iterator[str]:
    """Yield the user's lines until the end of input."""
    if not is_terminal() or os.environ.get("TERM", "dumb") == "dumb":
        yield from _plain_lines(echoes=not sys.stdin.isatty())
        return
    edited = _prompt_session(chat, history, status)
    while True:
        try:
            with chat.waiting():
                said = edited.prompt(_PROMPT)
            yield said
        except KeyboardInterrupt:
            sys.stdout.write("Ctrl-D leaves.\n")
        except EOFError:
            return


def _plain_lines(*, echoes: bool) -> Iterator[str]:
    for line in sys.stdin:
        if echoes and line.strip():
            sys.stdout.write(f"{_PROMPT}{line.strip()}\n")
            sys.stdout.flush()
        yield line


def _prompt_session(chat: Chat, history: Path, status: Callable[[int], Text]) -> "PromptSession[str]":
    from prompt_toolkit import PromptSession  # noqa: PLC0415 - takes a while to load
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion  # noqa: PLC0415
    from prompt_toolkit.document import Document  # noqa: PLC0415
    from prompt_toolkit.formatted_text import ANSI  # noqa: PLC0415
    from prompt_toolkit.history import FileHistory  # noqa: PLC0415
    from prompt_toolkit.styles import Style  # noqa: PLC0415

    class Commands(Completer):
        """Completes slash commands and their arguments."""

        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002
            for offered in suggestions(chat, document.text_before_cursor):
                yield Completion(offered.text, start_position=offered.start, display_meta=offered.help)

    bare = {"bottom-toolbar": "noreverse", "prompt": "bold ansicyan"}
    return PromptSession(
        history=FileHistory(str(history)) if _can_be_written(history) else None,
        completer=Commands(),
        complete_while_typing=True,
        bottom_toolbar=lambda: ANSI(with_ansi_colours(status)),
        style=Style.from_dict(bare),
        reserve_space_for_menu=6,
    )


def _can_be_written(file: Path) -> bool:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.open("ab").close()
    except OSError:
        return False
    return True


def with_ansi_colours(status: Callable[[int], Text]) -> str:
    """Return the status line with ANSI colour codes."""
    console = Console(highlight=False, force_terminal=True, color_system="standard")
    with console.capture() as captured:
        console.print(status(console.width - 1), end="", no_wrap=True, overflow="crop")
    return captured.get()


def suggestions(chat: Chat, typed: str) -> list[Suggestion]:
    """Return the completions of a line typed so far."""
    if not typed.startswith("/"):
        return []
    name, space, rest = typed[1:].partition(" ")
    if not space:
        return [
            Suggestion(text=f"/{each}", start=-len(typed), help=command.help)
            for each, command in COMMANDS.items()
            if each.startswith(name)
        ]
    found = [each for each in argument_choices(chat, name) if rest.lower() in each.lower()]
    return [Suggestion(text=each, start=-len(rest)) for each in found[:_MAX_SUGGESTIONS]]


def argument_choices(chat: Chat, name: str) -> list[str]:
    """Return the possible arguments of a command."""
    match name:
        case "model":
            return [model.name for model in load_registry().models]
        case "resume":
            return [each.name for each in chat.store.sessions()]
        case "rewind":
            return [each.name for each in reversed(chat.session.checkpoints())]
        case "unpin":
            return [pin.handle or pin.text for pin in chat.session.pins()]
        case _:
            return []


def read_command(text: str) -> tuple[str, str] | None:
    """Return the name and the arguments of a slash command; None if the text is not one (a path, for example)."""
    found = _COMMAND.fullmatch(text.strip())
    return (found[1].lower(), (found[2] or "").strip()) if found else None


def run_command(chat: Chat, name: str, rest: str) -> Blocks:
    """Run a command and return what to show; raise BadInput if there is no such command, Leave to end the chat."""
    command = COMMANDS.get(name)
    if command is None:
        close = get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean /{close[0]}?" if close else "/help lists them"
        raise BadInput(f"there is no command /{name[:40]}: {hint}")
    return command.run(chat, rest)


def _status_page(session: Session, store: Store) -> Page:
    """Yield this session's figures, as `lowwater status` shows them."""
    accounts = store.accounts([session.name])
    if not accounts:
        yield Text("Nothing was said yet.")
        return
    registry = load_registry()
    shown = SessionFigures(
        account=accounts[0],
        status=session.status(),
        model=registry.find(internals(session).route.model),
        efficiency=efficiency(accounts, registry),
        cadence=cadence(accounts),
    )
    yield from session_page(shown, width=page_width(), now=time.time())


def _context_page(session: Session) -> Page:
    """Yield a bar of what fills the window, with a legend; sizes are in the model's own tokens."""
    view, scale = internals(session).ledger.view, internals(session).scale
    tokenizer = counter_for(internals(session).route.model)
    messages = view.messages
    filled = contents(
        messages,
        [[round(scale * tokens) for tokens in count_parts(message, tokenizer)] for message in messages],
        system_tokens=round(scale * count_preamble(view.system, b"", tokenizer)),
        tool_tokens=round(scale * count_preamble(b"", view.tools, tokenizer)),
    )
    window = session.status().context
    title = f"{filled.tokens:,} tokens in {counted(filled.messages, 'message')}"
    yield Text(
        f"{title} · {filled.tokens / window:.0%} of the {window:,} of {internals(session).route.model}",
        style="bold",
    )
    yield from draw_contents(filled, window, page_width(100))


def _compress(chat: Chat, focus: str) -> Iterator[RenderableType]:
    done = chat.session.compress(focus or None)
    if done is None:
        yield Text("Nothing can be compacted: what could go is too little, or protected.")
        return
    status = chat.session.status()
    yield Text(
        f"{counted(done.items_before, 'message')} → {done.items_after:,} in view; /rewind takes it back, "
        f"all {counted(status.history, 'message')} stay in the ledger.",
        style="bright_black",
    )


def _summary(session: Session, text: str) -> Iterator[RenderableType]:
    """Show the summary that stands in view, or put the user's own text in its place."""
    if text:
        done = session.compress(summary=text)
        if done is not None:
            yield from _verdict_lines(done)
        yield Text("The summary is yours now; /rewind takes it back.", style="bright_black")
        return
    inside = internals(session)
    items = inside.ledger.view.items
    place = last_summary(list(items))
    if place is None:
        yield Text("There is no summary in view: /compress makes one when it pays or has to.")
        return
    shown = items[place]
    assert isinstance(shown, Summary)
    yield Text(printable(unframe(shown.message.text)))
    handle = handle_of(shown.sources)
    last = session.status().last_compaction
    if last is not None and last.summarizer:
        yield from _verdict_lines(last)
    instructions = inside.shared.setup.settings.compression.summary_instructions
    if instructions:
        yield Text(f"Models that write one are told: {on_one_line(instructions, 200)}", style="bright_black")
    yield Text(
        f"It stands for {handle} in {counted(shown.tokens, 'token')}; /summary TEXT replaces it by your own.",
        style="bright_black",
    )


def _verdict_lines(done: Compaction) -> Iterator[RenderableType]:
    """Say who wrote a summary, how it was judged, and what it misses."""
    score = "" if done.score is None else f", score {done.score:.2f}"
    yield Text(f"Written by {on_one_line(done.summarizer, 60)}{score}.", style="bright_black")
    for each in done.rejected:
        missing = "; ".join(on_one_line(text, 80) for text in each.first_missing)
        what = f", it does not say: {missing}" if missing else ""
        yield Text(f"{on_one_line(each.by, 60)}: {each.code}{what}", style="yellow")


def _explain(chat: Chat, _rest: str) -> Iterator[RenderableType]:
    yield Text(printable(chat.session.explain()))


def _efficiency_page(store: Store) -> Page:
    """Yield the costs of all stored sessions with advice, as `lowwater status --all` shows them."""
    accounts = accounts_of(store)
    if not accounts:
        yield Text("Nothing was said yet.")
        return
    found = efficiency(accounts, load_registry())
    yield from efficiency_page(found, cadence(accounts), since=None, width=page_width())


def _model(chat: Chat, name: str) -> Iterator[RenderableType]:
    if name:
        chat.use(name)
    model, status = load_registry().find(chat.agent.upstream.model), chat.session.status()
    prices = model.prices
    price = (
        f"${dollars(prices.input)} in, ${dollars(prices.output)} out per million"
        if prices
        else "price unknown"
    )
    yield Text.assemble(
        (on_one_line(chat.agent.upstream.model, 60), "bold"),
        f" answers · window {short(status.context)}, {status.acts_at} {short(status.threshold)}"
        f" · {price} · caching {status.caching}",
    )
    for each in model.assumptions if name else ():
        yield Text(f"  {each}", style="yellow")


def _checkpoints(chat: Chat, name: str) -> Blocks:
    if name:
        chat.session.checkpoint(name)
    return _checkpoint_list(chat.session)


def _checkpoint_list(session: Session) -> Page:
    """Yield the checkpoints that the session can be rewound to."""
    found = session.checkpoints()
    if not found:
        yield Text("There is none yet: a compaction makes one by itself, /checkpoints NAME names this place.")
        return
    yield from checkpoints_page(session, found, page_width())


def _rewind(session: Session, to: str) -> Page:
    """Rewind to a checkpoint, by default to before the last compaction; yield what that changed."""
    if not to:
        own = [each.name for each in session.checkpoints() if each.name.startswith("before-compaction-")]
        if not own:
            raise BadInput(
                "there is no compaction to undo: /checkpoints lists where the session can go back to"
            )
        to = own[-1]
    place = checkpoint_named(session, to)
    before = internals(session).ledger.view
    session.rewind(place.position)
    yield Text.assemble("Rewound to ", (on_one_line(place.name, 200), "bold"))
    yield from difference_lines(difference(before, internals(session).ledger.view))
    yield Text(f"/rewind {session.checkpoints()[-1].name} takes it back.", style="bright_black")


def _recall(session: Session, wanted: str) -> Page:
    """Yield messages found by words or by handle, including those no longer in view."""
    if not wanted:
        raise BadInput("there is nothing to look for: /recall WORDS, or a handle such as /recall lw:12")
    is_handle = names_messages(wanted)
    if is_handle and message_count(read_handle(wanted, of=len(internals(session).ledger.messages))) > 1:
        yield from expansion_page(internals(session).expand(wanted), (), width=page_width(), left=0)
        return
    found = [FoundMessage(session=session.name, recalled=each) for each in session.recall(wanted)]
    yield from found_page(wanted, found, width=page_width(), whole=is_handle)


def _pin(session: Session, wanted: str) -> Page:
    """Keep a text or a message in every later view; yield all pins."""
    if wanted:
        session.pin(wanted)
    yield from pins_page(session, session.pins())


def _unpin(session: Session, wanted: str) -> Page:
    """Let a pin go; yield those that are left."""
    if not wanted:
        raise BadInput("say which: /unpin lw:N, or the beginning of its text; /pin lists them")
    session.unpin(wanted)
    yield from pins_page(session, session.pins())


def _session_list(store: Store, current: str) -> Page:
    """Yield the most recent stored sessions."""
    known = store.sessions()
    if not known:
        yield Text("No session is kept yet.")
        return
    chosen = list(islice(known, _MAX_SESSIONS_SHOWN))
    yield narrow_table(session_rows(store, chosen), time.time())
    more = f"{len(known) - len(chosen):,} older ones are not shown; " if len(known) > len(chosen) else ""
    yield Text(
        f"{more}this one is {on_one_line(current, 200)}; /resume NAME goes on with another",
        style="bright_black",
    )


def _resume(chat: Chat, name: str) -> Iterator[RenderableType]:
    if not name:
        others = [each.name for each in chat.store.sessions() if each.name != chat.session.name]
        if not others:
            raise BadInput("there is no other session to go on with: /sessions lists those that are kept")
        name = others[0]
    chat.resume(name)
    status = chat.session.status()
    yield Text.assemble(
        "Going on with ",
        (on_one_line(chat.session.name, 60), "bold"),
        f": {status.messages:,} of {counted(status.history, 'message')} in view, {status.prompt:,} tokens.",
    )


def _new(chat: Chat, _rest: str) -> Iterator[RenderableType]:
    chat.begin()
    yield Text.assemble("A new session: ", (chat.session.name, "bold"))


def _help(_chat: Chat, _rest: str) -> Iterator[RenderableType]:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for name, command in COMMANDS.items():
        takes = f" {command.takes}" if command.takes else ""
        table.add_row(Text.assemble((f"/{name}", "cyan"), takes), command.help)
    yield table
    yield Text(
        "Anything else goes to the model. Ctrl-C stops an answer, Ctrl-D leaves.", style="bright_black"
    )


def _quit(_chat: Chat, _rest: str) -> Blocks:
    raise Leave


COMMANDS: MappingProxyType[str, SlashCommand] = MappingProxyType(
    {
        "status": SlashCommand(
            help="this session in numbers", run=lambda chat, _: _status_page(chat.session, chat.store)
        ),
        "context": SlashCommand(
            help="what fills the window", run=lambda chat, _: _context_page(chat.session)
        ),
        "compress": SlashCommand(takes="[FOCUS]", help="compact now, FOCUS in more detail", run=_compress),
        "summary": SlashCommand(
            takes="[TEXT]",
            help="the summary in view; replace it by your own",
            run=lambda chat, text: _summary(chat.session, text),
        ),
        "explain": SlashCommand(help="why the last decision was taken", run=_explain),
        "efficiency": SlashCommand(
            help="what all sessions cost and saved", run=lambda chat, _: _efficiency_page(chat.store)
        ),
        "model": SlashCommand(takes="[NAME]", help="have another model answer", run=_model),
        "checkpoints": SlashCommand(
            takes="[NAME]", help="where to go back to; name this place", run=_checkpoints
        ),
        "rewind": SlashCommand(
            takes="[CHECKPOINT]",
            help="undo the last compaction, or go back further",
            run=lambda chat, to: _rewind(chat.session, to),
        ),
        "recall": SlashCommand(
            takes="WORDS|lw:N",
            help="find what was said, compacted or not",
            run=lambda chat, wanted: _recall(chat.session, wanted),
        ),
        "pin": SlashCommand(
            takes="[TEXT|lw:N]",
            help="keep an instruction in view whatever is compacted; list them",
            run=lambda chat, wanted: _pin(chat.session, wanted),
        ),
        "unpin": SlashCommand(
            takes="TEXT|lw:N",
            help="let one go, by its handle or how it begins",
            run=lambda chat, wanted: _unpin(chat.session, wanted),
        ),
        "sessions": SlashCommand(
            help="the sessions that are kept",
            run=lambda chat, _: _session_list(chat.store, chat.session.name),
        ),
        "resume": SlashCommand(takes="[NAME]", help="go on with another session", run=_resume),
        "new": SlashCommand(help="begin a new session", run=_new),
        "help": SlashCommand(help="this list", run=_help),
        "quit": SlashCommand(help="leave; so does Ctrl-D", run=_quit),
    }
)
