"""Splitting a session: it ends, and a child goes on under a name and a title of its own (docs/specification.md: H)."""

import re
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec.structs import replace

from lowwater.core.stored import About, Listed
from lowwater.wiring.home import Home

ENDED_BY_SPLIT = "compression"
_NUMBERED = re.compile(r"^(.*?) #(\d+)$", re.DOTALL)


def new_name(at: float) -> str:
    """Return a name for a session that begins now: `YYYYMMDD_HHMMSS_hex6`, in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(3)}"


def child_of(parent: str, about: About, known: Iterable[Listed]) -> About:
    """Return what is told of a child: its parent, and the next numbered title of the lineage."""
    parents = {each.name: each.about.parent for each in known}
    titles = {each.name: each.about.title for each in known}
    root = _root(parent, parents)
    base = titles.get(root) or root
    family = [name for name in parents if _root(name, parents) == root]
    highest = max([_number(titles[name], base) for name in family], default=1)
    return replace(about, title=f"{base} #{highest + 1}", parent=parent, ended_at=None, ended_because="")


def continued_by(home: Home) -> str | None:
    """Return the session that goes on with one that was split; None if it was not."""
    if home.about.ended_because != ENDED_BY_SPLIT:
        return None
    children = [each for each in home.store.sessions() if each.about.parent == home.name]
    return max(children, key=lambda each: each.version).name if children else None


def ended(about: About, at: float) -> About:
    """Return what is told of a session that a child continues."""
    return replace(about, ended_at=at, ended_because=ENDED_BY_SPLIT)


def _root(name: str, parents: dict[str, str]) -> str:
    seen = {name}
    while (parent := parents.get(name, "")) and parent not in seen:
        name = parent
        seen.add(name)
    return name


def _number(title: str, base: str) -> int:
    numbered = _NUMBERED.match(title)
    return int(numbered[2]) if numbered and numbered[1] == base else 1
