"""Splitting a session: it ends, and a child goes on under a name and a title of its own (SPEC H)."""

import re
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec.structs import replace

from lowwater.values.stored import About, Listed

ENDED_BY_SPLIT = "compression"
_NUMBERED = re.compile(r"^(.*?) #(\d+)$", re.DOTALL)


def new_name(at: float) -> str:
    """Return a name for a session that begins now: `YYYYMMDD_HHMMSS_hex6`, in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(3)}"


def child_of(parent: str, about: About, known: Iterable[Listed]) -> About:
    """Return what is told of a child: its parent, and the next numbered title of the lineage."""
    base, _ = _title(about.title or parent)
    titles = [_title(each.about.title or each.name) for each in known]
    highest = max([number for title, number in titles if title == base], default=1)
    return replace(about, title=f"{base} #{highest + 1}", parent=parent, ended_at=None, ended_because="")


def ended(about: About, at: float) -> About:
    """Return what is told of a session that a child continues."""
    return replace(about, ended_at=at, ended_because=ENDED_BY_SPLIT)


def _title(title: str) -> tuple[str, int]:
    numbered = _NUMBERED.match(title)
    return (numbered[1], int(numbered[2])) if numbered else (title, 1)
