"""`lowwater chat`: a conversation with a model that has tools, in a terminal or piped."""

import os
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from platformdirs import user_data_path
from rich.text import Text

from lowwater.chat.chat import Chat
from lowwater.chat.model_access import model_for, reach_for
from lowwater.chat.tools import Memory, default_file
from lowwater.cli.chat_commands import Leave, read_command, run_command
from lowwater.cli.chat_keys import asked, unseen_keys
from lowwater.cli.chat_line import is_terminal, lines_of
from lowwater.cli.chat_load import load_line
from lowwater.cli.chat_screen import Screen
from lowwater.cli.conversations import FORMATS
from lowwater.cli.failing import FAILED
from lowwater.cli.kept_words import on_one_line
from lowwater.cli.printing import page_width
from lowwater.cli.settings_flags import with_settings
from lowwater.cli.store_flag import StoreAddress, opened_store
from lowwater.core.messages import Format
from lowwater.core.wording import counted
from lowwater.errors import LowwaterError, UnknownFormat
from lowwater.observe.sinks import CallbackSink
from lowwater.session.factories import FORGETFUL, VARIABLE, default_address, default_path
from lowwater.settings import Settings
from lowwater.settings.resolve import Resolved

_PACE = 0.008
"""Seconds between two words of the script, where somebody watches."""


@with_settings
def chat(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A session to go on with, or to begin.", show_default=False),
    ] = None,
    *,
    model: Annotated[
        str,
        typer.Option(metavar="NAME", help="The model that answers; default: by the key.", show_default=False),
    ] = "",
    base_url: Annotated[
        str,
        typer.Option(metavar="URL", help="Where it is asked; default: its provider.", show_default=False),
    ] = "",
    format: Annotated[
        str, typer.Option(metavar="FORMAT", help="What is spoken at that URL: auto, openai or anthropic.")
    ] = "auto",
    api_key_env: Annotated[
        str,
        typer.Option(metavar="VAR", help="The variable with the key for that URL.", show_default=False),
    ] = "",
    context_length: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=4_000, help="The model's window, if another than known.", show_default=False
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Run commands and write files without asking.")] = False,
    scripted: Annotated[
        bool, typer.Option("--scripted", help="Let the built-in script answer, key or not.")
    ] = False,
    store: StoreAddress = "",
    settings: Resolved,
) -> None:
    """Talk to a model that has tools, in a window that never overflows.

    The tools are shell, read_file, write_file, search, todo and memory; they
    work in this directory, and you are asked before a command runs or a file
    is written. The key is taken from ANTHROPIC_API_KEY or OPENAI_API_KEY; any
    OpenAI- or Anthropic-compatible address will do. Without a key and an
    address a built-in script answers, so that everything can be tried: nothing
    is sent and nothing paid.

    Lines that begin with a slash are commands: /help lists them. The line
    below the prompt shows how full the window is, with marks at the warning
    levels, the bill and the cache. Ctrl-C stops an answer, Ctrl-D leaves; the
    session is kept, and `lowwater chat NAME` goes on with it.

    lowwater chat                                 try it: "work for 40 steps"
    lowwater chat refactor-auth --model claude-opus-5-5
    lowwater chat --base-url http://127.0.0.1:8000/v1 --model qwen3
    echo "read README.md" | lowwater chat         from a script, with --yes
    """
    held = settings.settings
    watched = is_terminal()
    reach = reach_for(
        base_url=base_url.strip(),
        format=_format(format),
        key_variable=api_key_env.strip(),
        is_scripted=scripted,
        pace=_PACE if watched else 0.0,
        environment=os.environ,
    )
    screen = Screen(allows_all=yes, ask=asked if watched else None)
    address = _address(store, is_scripted=reach.is_scripted)
    with opened_store(address, redact=held.privacy.redact, creates=True) as opened:
        talked = Chat(
            reach=reach,
            model=model_for(model.strip(), reach, os.environ),
            store=opened,
            settings=held,
            directory=Path.cwd(),
            memory=Memory(default_file()),
            watcher=screen,
            allow=screen.allow,
            sinks=[CallbackSink(screen.happened)],
            on_warning=screen.warned,
            context_length=context_length,
            withheld=(api_key_env,) if api_key_env else (),
            name=name,
        )
        try:
            _greet(talked, screen)
            went_well = _talk(talked, screen, held, watched=watched)
            _part(talked, screen, address)
        finally:
            talked.close()
    if not went_well:
        sys.exit(FAILED)


def _talk(chat: Chat, screen: Screen, settings: Settings, *, watched: bool) -> bool:
    """Take the user's lines until there is no more; return whether all was done, if nobody watched."""
    status = partial(_load, chat, settings)
    went_well = True
    for line in lines_of(chat, history=_history(), status=status):
        text = line.strip()
        if not text:
            continue
        try:
            with unseen_keys():
                _do(chat, screen, text)
        except Leave:
            break
        except KeyboardInterrupt:
            screen.note("stopped; what was said and done until then is kept")
        except LowwaterError as error:
            screen.failed(str(error))
            went_well = watched
        screen.show(Text() if watched else status(page_width()))
    return went_well


def _do(chat: Chat, screen: Screen, text: str) -> None:
    command = read_command(text)
    if command is None:
        chat.say(text)
    else:
        screen.show(*run_command(chat, *command))


def _load(chat: Chat, settings: Settings, width: int) -> Text:
    levels = settings.output.warning_levels
    return load_line(chat.session.status(), levels, is_scripted=chat.is_scripted, width=width)


def _greet(chat: Chat, screen: Screen) -> None:
    status, named = chat.session.status(), on_one_line(chat.session.name, 60)
    begun = f"going on with {named}, {counted(status.history, 'message')}" if status.history else named
    screen.show(Text.assemble(("lowwater chat", "bold"), f" · {chat.agent.upstream.model} · {begun} · /help"))
    if chat.is_scripted:
        screen.note(
            "A built-in script answers as that model would be billed: nothing is sent, nothing is paid. "
            "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or give --base-url, for a real one."
        )


def _part(chat: Chat, screen: Screen, address: str) -> None:
    """Say how to go on with a session that is kept."""
    if chat.session.status().history and (address or default_address()) != FORGETFUL:
        again = shlex.join(["lowwater", "chat", chat.session.name])
        screen.note(f"Kept as {chat.session.name}: `{again}` with the same options goes on with it.")


def _address(given: str, *, is_scripted: bool) -> str:
    """Return where sessions are kept; those of the script apart, for nobody was really billed what they cost."""
    if given.strip() or not is_scripted or os.environ.get(VARIABLE, "").strip():
        return given
    return f"sqlite:///{default_path().with_name('scripted.db')}"


def _format(named: str) -> Format | None:
    if named not in FORMATS:
        raise UnknownFormat(f"there is no format {named[:40]!r}: use auto, openai or anthropic")
    return FORMATS[named]


def _history() -> Path:
    return user_data_path("lowwater", appauthor=False) / "chat-history"
