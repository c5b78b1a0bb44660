"""Putting sessions together again that were split where they were compacted (docs/specification.md: H)."""

from collections.abc import Sequence

from msgspec.structs import replace

from lowwater.account.timeline import turns_before
from lowwater.values.stored import Account

_BY_SPLIT = "compression"
"""Why a session ended that a child continues."""


def goes_on(account: Account) -> bool:
    """Return whether a session can still have turns, under its own name or its child's."""
    return account.session.about.ended_at is None or account.session.about.ended_because == _BY_SPLIT


def joined(accounts: Sequence[Account]) -> list[Account]:
    """Return the accounts with each split session and the child that continues it as one, under the child's name.

    The calls that show what a compaction was worth are its child's. A child without its parent among them stands alone.
    """
    by_name = {account.session.name: account for account in accounts}
    heirs: dict[str, Account] = {}
    for account in sorted(accounts, key=_began):
        parent = by_name.get(account.session.about.parent)
        if parent is not None and parent is not account and parent.session.about.ended_because == _BY_SPLIT:
            heirs.setdefault(parent.session.name, account)
    inherited = {heir.session.name for heir in heirs.values()}
    return [_with_heirs(account, heirs) for account in accounts if account.session.name not in inherited]


def _with_heirs(account: Account, heirs: dict[str, Account]) -> Account:
    """Return an account with what follows it in its child, its child's child, and so on."""
    while (heir := heirs.get(account.session.name)) is not None:
        before = len(account.records)
        account = replace(
            heir,
            records=(*account.records, *heir.records),
            events=(*account.events, *heir.events),
            turns_before=(*turns_before(account), *(before + turns for turns in turns_before(heir))),
        )
    return account


def _began(account: Account) -> float:
    """Return when something first happened in a session itself; what it copied is older."""
    return min([each.at for each in (*account.records[:1], *account.events[:1])], default=float("inf"))
