"""`lowwater sessions show`: everything told of one kept session."""

import time
from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from lowwater.cli.kept_session import SessionName, named
from lowwater.cli.sessions.card import Card, Child, ModelSpan, Shown, draw
from lowwater.cli.sessions.costs import costs_of
from lowwater.cli.sessions.flags import AsJson
from lowwater.cli.sessions.named import ledger_of
from lowwater.cli.store_flag import StoreAddress, opened_store
from lowwater.core.accounts.cadence import cadence
from lowwater.core.entries import ModelChanged, Opened
from lowwater.core.formats.files import system_text, tool_names
from lowwater.core.ledger import Ledger
from lowwater.core.stored import Account, Landmark, Listed
from lowwater.protocols import Store


def show(
    name: SessionName,
    *,
    full: Annotated[bool, typer.Option("--full", help="The whole system prompt.")] = False,
    json: AsJson = False,
    store: StoreAddress = "",
) -> None:
    """Show everything told of a session: lineage, models, sizes, costs, cadence.

    Tokens are as counted when messages came, in the session's vocabulary. What
    is kept of a session is its history; what the model is shown now its view.

    lowwater sessions show refactor-auth
    lowwater sessions show refac --full
    """
    with opened_store(store) as opened:
        known = opened.sessions()
        card = _card(opened, named(known, name), known)
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(card), indent=2).decode())
        return
    console = Console(highlight=False)
    for block in draw(card, now=time.time(), full=full):
        console.print(block, width=min(console.width, 110))


def _card(store: Store, listed: Listed, known: Sequence[Listed]) -> Card:
    outline, ledger = store.outline(listed.name), ledger_of(store, listed.name)
    account = next(iter(store.accounts([listed.name])), Account(session=listed))
    return Card(
        name=listed.name,
        about=listed.about,
        has_parent=any(each.name == listed.about.parent for each in known),
        children=tuple(
            Child(name=each.name, title=each.about.title)
            for each in reversed(known)
            if each.about.parent == listed.name
        ),
        model=ledger.view.model,
        models=_models(ledger, outline.landmarks),
        vocabulary=ledger.vocabulary,
        opened_at=listed.opened_at,
        changed_at=listed.changed_at,
        entries=len(ledger.entries),
        turns=listed.turns,
        compactions=listed.compactions,
        checkpoints=len(ledger.saved),
        history=Shown(messages=len(ledger.messages), tokens=outline.tokens),
        view=Shown(messages=len(ledger.view.items), tokens=ledger.view.tokens),
        system=system_text(ledger.view.system) or _first_instructions(ledger),
        tools=tool_names(ledger.view.tools),
        preamble_tokens=ledger.view.preamble_tokens,
        costs=costs_of(account),
        cost=costs_of(account).total,
        cadence=cadence([account]),
    )


def _models(ledger: Ledger, landmarks: Sequence[Landmark]) -> tuple[ModelSpan, ...]:
    """Return the models in the order they were used."""
    told = [ledger.entries[each.position] for each in landmarks if each.kind in {"opened", "model_changed"}]
    return tuple(
        ModelSpan(model=entry.model, since=entry.at)
        for entry in told
        if isinstance(entry, Opened | ModelChanged)
    )


def _first_instructions(ledger: Ledger) -> str:
    """Return the system prompt of a conversation that has it among its messages, as the chat format does."""
    first = ledger.message(1) if ledger.messages else None
    return first.text if first is not None and first.role in {"system", "developer"} else ""
