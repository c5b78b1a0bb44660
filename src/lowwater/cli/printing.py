"""How commands on kept sessions print: a page for people, JSON for programs, a command to paste."""

import shlex
from collections.abc import Iterable, Sequence

import msgspec
import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from lowwater.cli.kept_words import printable
from lowwater.cli.tables import unclipped

_WIDEST, _LEAST = 120, 40


def page_width() -> int:
    """Return how wide a page is: as the terminal, within limits."""
    return max(_LEAST, min(Console().width, _WIDEST))


def print_page(blocks: Iterable[RenderableType]) -> None:
    """Print what a page is made of, one block below the other; tables lose nothing, however narrow the terminal is."""
    console, width = Console(highlight=False), page_width()
    for block in blocks:
        console.print(fitted_block(block, width), width=width)


def fitted_block(block: RenderableType, width: int) -> RenderableType:
    """Return a block of a page so that nothing in it is cut; a table that fills the page fits by itself."""
    return unclipped(block, width) if isinstance(block, Table) and not block.expand else block


def print_lines(lines: Iterable[Text]) -> None:
    """Print lines that are as long as they should be; much faster than a page where there are hundreds."""
    console = Console(highlight=False)
    for line in lines:
        console.print(line, no_wrap=True, overflow="ignore", crop=False)


def print_json(said: object) -> None:
    """Print a value for programs."""
    typer.echo(msgspec.json.format(msgspec.json.encode(said), indent=2).decode())


def command_line(words: Sequence[str], *, store: str) -> str:
    """Return a command as a shell takes it, with the store it is about if one was named."""
    return shlex.join(["lowwater", *words, *(["--store", store] if store else [])])


def print_command(said: str, command: str) -> None:
    """Print what a command is for, and the command on a line of its own that can be pasted."""
    print_lines([Text(f"\n{said}", style="bright_black"), Text(f"  {printable(command)}")])
