"""`lowwater inspect`: what fills the window of a conversation in a file."""

from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from lowwater.adapters.models import load_registry
from lowwater.cli.conversations import OpenedFile, draw_contents, open_file
from lowwater.cli.stored_sessions import fitted_block
from lowwater.core.accounts.contents import Contents, contents
from lowwater.core.formats.files import Conversation
from lowwater.core.models.model import Model
from lowwater.core.tokens.counting import count_parts, count_preamble
from lowwater.protocols import Tokenizer
from lowwater.session.factories import counter_for


def inspect(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A conversation, or an agent's log; - reads standard input.")
    ],
    model: Annotated[
        str, typer.Option(metavar="NAME", help="Whose window to measure by; default: the one the file names.")
    ] = "",
    format: Annotated[
        str, typer.Option(metavar="FORMAT", help="auto, openai, responses or anthropic.")
    ] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text.")] = False,
) -> None:
    """Show what fills the window of a conversation: by kind, by tool, by age.

    FILE holds a JSON array of messages, JSON lines with one message each,
    or the body of an API request, in OpenAI's chat or in Anthropic's format,
    plain or gzipped. Tokens are counted offline.

    lowwater inspect session.jsonl
    lowwater inspect request.json --model claude-opus-5-5
    curl … | lowwater inspect - --json
    """
    opened = open_file(file, format)
    conversation = opened.conversation
    found = load_registry().find(model or conversation.model or "unknown")
    tokenizer = counter_for(model or conversation.model)
    filled = fill_of(conversation, tokenizer)
    if json:
        typer.echo(_as_json(opened, filled, found, tokenizer))
    else:
        show(
            filled,
            title=_title(conversation, filled, found),
            context=found.context_length,
            notes=(*found.assumptions, *opened.notes()),
        )


def fill_of(conversation: Conversation, tokenizer: Tokenizer) -> Contents:
    """Return what fills the window of a conversation."""
    return contents(
        conversation.messages,
        [count_parts(message, tokenizer) for message in conversation.messages],
        system_tokens=count_preamble(conversation.system, b"", tokenizer),
        tool_tokens=count_preamble(b"", conversation.tools, tokenizer),
    )


def show(filled: Contents, *, title: str, context: int, notes: tuple[str, ...] = ()) -> None:
    """Print what fills a window as wide as the terminal, up to a hundred columns."""
    console = Console(highlight=False)
    width = min(console.width, 100)
    console.print(Text(title, style="bold"))
    for block in draw_contents(filled, context, width):
        console.print(fitted_block(block, width), width=width)
    for note in notes:
        console.print(Text(f"\n{note}", style="yellow"), width=width)


def _title(conversation: Conversation, filled: Contents, model: Model) -> str:
    share = filled.tokens / model.context_length
    name = conversation.model or model.name
    return (
        f"{filled.tokens:,} tokens in {filled.messages:,} messages, {filled.turns:,} turns"
        f" · {share:.0%} of the {model.context_length:,} of {name}"
    )


def _as_json(opened: OpenedFile, filled: Contents, model: Model, tokenizer: Tokenizer) -> str:
    conversation = opened.conversation
    said = {
        "format": conversation.format,
        "shape": conversation.shape,
        "model": model.name,
        "context_length": model.context_length,
        "assumptions": model.assumptions,
        "vocabulary": tokenizer.vocabulary,
        "contents": filled,
    } | opened.as_json()
    return msgspec.json.format(msgspec.json.encode(said), indent=2).decode()
