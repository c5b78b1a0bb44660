"""Where the user's lines come from: an edited line with history and a status line below, or plain standard input."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from lowwater.chat.chat import Chat
from lowwater.cli.chat_commands import COMMANDS, choices

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

_PROMPT = "› "
_MOST_OFFERED = 40


def is_terminal() -> bool:
    """Return whether somebody can type and see."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def lines_of(chat: Chat, *, history: Path, status: Callable[[int], Text]) -> Iterator[str]:
    """Yield what the user says until there is no more."""
    if not is_terminal() or os.environ.get("TERM", "dumb") == "dumb":
        yield from _plain_lines(echoes=not sys.stdin.isatty())
        return
    try:
        edited = _edited(chat, history, status)
    except ImportError:
        yield from _simple_lines(status)
        return
    while True:
        try:
            yield edited.prompt(_PROMPT)
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


def _simple_lines(status: Callable[[int], Text]) -> Iterator[str]:
    """Yield lines of a terminal without the extra `chat`: the status line stands above the prompt."""
    console = Console(highlight=False)
    while True:
        console.print(status(console.width))
        try:
            yield input(_PROMPT)
        except KeyboardInterrupt:
            sys.stdout.write("\nCtrl-D leaves.\n")
        except EOFError:
            return


def _edited(chat: Chat, history: Path, status: Callable[[int], Text]) -> "PromptSession[str]":
    from prompt_toolkit import PromptSession  # noqa: PLC0415  # the extra `chat`
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion  # noqa: PLC0415
    from prompt_toolkit.document import Document  # noqa: PLC0415
    from prompt_toolkit.formatted_text import ANSI  # noqa: PLC0415
    from prompt_toolkit.history import FileHistory  # noqa: PLC0415
    from prompt_toolkit.styles import Style  # noqa: PLC0415

    class Commands(Completer):
        """Completes slash commands and what stands behind them."""

        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002
            for offered in completed(chat, document.text_before_cursor):
                yield Completion(offered.text, start_position=offered.start, display_meta=offered.said)

    bare = {"bottom-toolbar": "noreverse", "prompt": "bold ansicyan"}
    return PromptSession(
        history=FileHistory(str(history)) if _can_be_written(history) else None,
        completer=Commands(),
        complete_while_typing=True,
        bottom_toolbar=lambda: ANSI(coloured(status)),
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


def coloured(status: Callable[[int], Text]) -> str:
    """Return the status line with its colours as a terminal reads them."""
    console = Console(highlight=False, force_terminal=True, color_system="standard")
    with console.capture() as captured:
        console.print(status(console.width - 1), end="", no_wrap=True, overflow="crop")
    return captured.get()


class Offered(Struct, frozen=True, kw_only=True):
    """One completion: what is put in, where it begins before the cursor, what it does."""

    text: str
    start: int
    said: str = ""


def completed(chat: Chat, typed: str) -> list[Offered]:
    """Return what a line that was begun may become."""
    if not typed.startswith("/"):
        return []
    name, space, rest = typed[1:].partition(" ")
    if not space:
        return [
            Offered(text=f"/{each}", start=-len(typed), said=command.said)
            for each, command in COMMANDS.items()
            if each.startswith(name)
        ]
    found = [each for each in choices(chat, name) if rest.lower() in each.lower()]
    return [Offered(text=each, start=-len(rest)) for each in found[:_MOST_OFFERED]]
