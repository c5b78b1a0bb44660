"""`lowwater sessions history`: every compaction of a stored session, with its reason, effect, cost and payback."""

import time
from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from lowwater.adapters.models import load_registry
from lowwater.cli.command import AsJson
from lowwater.cli.stored_sessions import OptionalSession, StoreAddress, opened_store, session_or_newest
from lowwater.cli.tables import grid, page_width, print_json, print_page
from lowwater.cli.wording import ago, amount, moment, on_one_line, share
from lowwater.core.accounts.cadence import joined
from lowwater.core.policies.explanations import reason_sentence
from lowwater.core.stored import Account, Listed
from lowwater.core.wording import counted
from lowwater.protocols import Store
from lowwater.session.compactions import CompactionLine, compaction_fields, compaction_lines
from lowwater.session.repository import ENDED_BY_SPLIT

_OVER = {
    "replaced": "a later compaction took its place before it had",
    "undone": "it was undone before it had",
    "ended": "the session ended before it had",
}


def history(
    name: OptionalSession = None,
    *,
    store: StoreAddress = "",
    json: AsJson = False,
) -> None:
    """Show each compaction: why, what it cost, whether it paid.

    "Cost" is the cost of its summaries plus the extra cost of the next call,
    which had to rewrite the cache. "Payback" is the number of later calls after
    which it had saved that, next to the prediction made when it was decided.
    The score of a summary is the share of critical references (requests,
    prohibitions, paths, names, errors) that it kept as it was written, by weight,
    less for what it names that nobody said. Undone compactions stay in the list. In
    JSON, money is in nano-dollars, or null if unknown.

    lowwater sessions history            of the newest session
    lowwater sessions history refactor-auth
    lowwater sessions history refactor-auth --json | jq '.compactions[].because.code'
    """
    with opened_store(store) as opened:
        listed = session_or_newest(opened, name)
        account = _account(opened, listed)
    told = list(compaction_lines(account, load_registry()))
    if json:
        print_json(
            {
                "session": listed.name,
                "turns": len(account.records),
                "compactions": [compaction_fields(each) for each in told],
            }
        )
    else:
        print_page(_page(listed, account, told, width=page_width(), now=time.time()))


def _account(store: Store, listed: Listed) -> Account:
    """Return the account of a session joined with those of the sessions it continues and those that continue it."""
    known = {each.name: each for each in store.sessions()}
    first = listed
    while (parent := known.get(first.about.parent)) and parent.about.ended_because == ENDED_BY_SPLIT:
        first = parent
    family, grown = {first.name}, True
    while grown:
        children = {each.name for each in known.values() if each.about.parent in family} - family
        family, grown = family | children, bool(children)
    for account in joined(store.accounts(sorted(family))):
        if account.session.name == listed.name or _is_part(account, listed, known):
            return account
    return Account(session=listed)


def _is_part(account: Account, listed: Listed, known: dict[str, Listed]) -> bool:
    """Return whether a session is part of a joined account."""
    each: Listed | None = known.get(account.session.about.parent)
    while each is not None and each.about.ended_because == ENDED_BY_SPLIT:
        if each.name == listed.name:
            return True
        each = known.get(each.about.parent)
    return False


def _page(
    listed: Listed, account: Account, told: Sequence[CompactionLine], *, width: int, now: float
) -> Iterator[Text | Table]:
    turns = counted(len(account.records), "turn")
    yield Text.assemble(
        (on_one_line(listed.name, 40), "bold"), f" · {counted(len(told), 'compaction')} in {turns}"
    )
    if not told:
        yield Text(
            "Nothing was compacted: `lowwater status` shows how far the prompt is from it, `lowwater inspect --explain` "
            "on an export says why."
        )
        return
    for each in told:
        yield Text()
        when = (
            ago(each.event.at, now) if width < 60 else f"{moment(each.event.at)}, {ago(each.event.at, now)}"
        )
        yield Text.assemble(
            (f"{each.event.number:,}", "bold cyan"),
            f" · {when} · before turn {each.turn:,} · ",
            (each.event.mode, "bold"),
            f" on {on_one_line(each.event.model, 30)}",
        )
        yield _lines(each)


def _lines(told: CompactionLine) -> Table:
    event, table = told.event, grid()
    table.add_row("why", Text(f"{reason_sentence(event.because)} ({event.because.code})"))
    table.add_row(
        "prompt",
        Text(
            f"{event.before:,} → {max(0, event.after):,} tokens, {event.ratio:.0%} left; "
            f"{event.items_before:,} → {event.items_after:,} messages"
        ),
    )
    if event.phases:
        table.add_row("by", Text(", ".join(f"{each.mechanism} −{each.removed:,}" for each in event.phases)))
    if event.summarizer:
        asked = f", asked with {event.summary_prompts:,}" if event.summary_prompts else ""
        by = on_one_line(event.summarizer, 40)
        after = event.repaired_score
        repaired = "" if after is None else f" as written, {share(after)} repaired"
        table.add_row(
            "summary",
            Text(f"{event.summary_tokens:,} tokens by {by}{asked}; score {share(event.score)}{repaired}"),
        )
    for each in event.rejected:
        missing = f", {each.missing:,} references missing" if each.missing else ""
        score = "" if each.score is None else f", score {share(each.score)}"
        table.add_row("refused", Text(f"{on_one_line(each.by, 40)}: {each.code}{score}{missing}"))
    table.add_row("cost", Text(_cost(told)))
    table.add_row("payback", _payback(told))
    return table


def _cost(told: CompactionLine) -> str:
    """Return the total cost; compactions before the same call share one bill."""
    payback = told.payback
    if payback is None:
        return amount(told.event.cost)
    if payback.price is None:
        return f"summaries {amount(payback.summaries)}; the rest shows at the next call"
    others = [number for number in payback.numbers if number != told.event.number]
    shared = f" with compaction {', '.join(f'{number:,}' for number in others)}" if others else ""
    parts = f"summaries {amount(payback.summaries)}, rewriting {amount(payback.rewriting)}"
    saved = (payback.summaries or 0) + (payback.rewriting or 0) - payback.price
    less = f", less {amount(saved)} that the next call saved" if saved > 0 else ""
    return f"{amount(payback.price) if payback.price > 0 else 'nothing'} in all{shared}: {parts}{less}"


def _payback(told: CompactionLine) -> Text:
    payback = told.payback
    if payback is None:
        return Text("nothing to pay back: it was shortened before it was ever sent", style="bright_black")
    predicted = f"; predicted {payback.predicted:,.1f} later calls" if payback.predicted is not None else ""
    if payback.turns is not None:
        calls = "at once" if not payback.turns else f"after {counted(payback.turns, 'later call')}"
        return Text(f"{calls}{predicted}", style="green")
    if payback.missing is None:
        return Text(f"cannot be told yet{predicted}", style="bright_black")
    missing = f"{amount(payback.missing)} missing after {counted(payback.counted, 'later call')}"
    if payback.over == "no":
        return Text(f"not yet: {missing}{predicted}", style="yellow")
    return Text(f"never: {_OVER[payback.over]}; {missing}{predicted}", style="red")
