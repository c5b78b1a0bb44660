"""The slash commands of `lowwater chat`."""

import re
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from types import MappingProxyType

from msgspec import Struct
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from lowwater.adapters.models import load_registry
from lowwater.chat.chat import Chat
from lowwater.cli import chat_pages as pages
from lowwater.cli.kept_words import on_one_line, printable
from lowwater.cli.model_words import dollars, short
from lowwater.core.wording import counted
from lowwater.errors import BadInput

Page = Iterable[RenderableType]
_COMMAND = re.compile(r"/([A-Za-z]*)(?:\s+(.*))?", re.DOTALL)


class Leave(Exception):  # not an error
    """The user wants to leave."""


class Command(Struct, frozen=True, kw_only=True):
    """What the user can type behind a slash."""

    takes: str = ""
    """What may stand behind its name."""
    said: str
    run: Callable[[Chat, str], Page]


def read_command(text: str) -> tuple[str, str] | None:
    """Return the name and the rest of a slash command; None if a text is none, as a path is not."""
    found = _COMMAND.fullmatch(text.strip())
    return (found[1].lower(), (found[2] or "").strip()) if found else None


def run_command(chat: Chat, name: str, rest: str) -> Page:
    """Do what a command says and return what to show; raise BadInput if there is none of this name, or Leave."""
    command = COMMANDS.get(name)
    if command is None:
        close = get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean /{close[0]}?" if close else "/help lists them"
        raise BadInput(f"there is no command /{name[:40]}: {hint}")
    return command.run(chat, rest)


def choices(chat: Chat, name: str) -> list[str]:
    """Return what can be completed behind a command."""
    match name:
        case "model":
            return [model.name for model in load_registry().models]
        case "resume":
            return [each.name for each in chat.store.sessions()]
        case "rewind":
            return [each.name for each in reversed(chat.session.checkpoints())]
        case _:
            return []


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


def _checkpoints(chat: Chat, name: str) -> Page:
    if name:
        chat.session.checkpoint(name)
    return pages.checkpoints(chat.session)


def _explain(chat: Chat, _rest: str) -> Iterator[RenderableType]:
    yield Text(printable(chat.session.explain()))


def _help(_chat: Chat, _rest: str) -> Iterator[RenderableType]:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for name, command in COMMANDS.items():
        takes = f" {command.takes}" if command.takes else ""
        table.add_row(Text.assemble((f"/{name}", "cyan"), takes), command.said)
    yield table
    yield Text(
        "Anything else goes to the model. Ctrl-C stops an answer, Ctrl-D leaves.", style="bright_black"
    )


def _quit(_chat: Chat, _rest: str) -> Page:
    raise Leave


COMMANDS: MappingProxyType[str, Command] = MappingProxyType(
    {
        "status": Command(
            said="this session in numbers", run=lambda chat, _: pages.status(chat.session, chat.store)
        ),
        "context": Command(said="what fills the window", run=lambda chat, _: pages.context(chat.session)),
        "compress": Command(takes="[FOCUS]", said="compact now, FOCUS in more detail", run=_compress),
        "explain": Command(said="why the last decision was taken", run=_explain),
        "efficiency": Command(
            said="what all sessions cost and saved", run=lambda chat, _: pages.all_efficiency(chat.store)
        ),
        "model": Command(takes="[NAME]", said="have another model answer", run=_model),
        "checkpoints": Command(takes="[NAME]", said="where to go back to; name this place", run=_checkpoints),
        "rewind": Command(
            takes="[CHECKPOINT]",
            said="undo the last compaction, or go back further",
            run=lambda chat, to: pages.rewound(chat.session, to),
        ),
        "recall": Command(
            takes="WORDS|lw:N",
            said="find what was said, compacted or not",
            run=lambda chat, wanted: pages.recalled(chat.session, wanted),
        ),
        "sessions": Command(
            said="the sessions that are kept",
            run=lambda chat, _: pages.sessions(chat.store, chat.session.name),
        ),
        "resume": Command(takes="[NAME]", said="go on with another session", run=_resume),
        "new": Command(said="begin a new session", run=_new),
        "help": Command(said="this list", run=_help),
        "quit": Command(said="leave; so does Ctrl-D", run=_quit),
    }
)
