"""`compress`: compacts a list of messages once, without a session, for agents that keep their own history."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from lowwater.core.decisions import Decision
from lowwater.core.events import Compaction
from lowwater.core.policies.explanations import explain
from lowwater.session.factories import FORGETFUL, Writer
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import FallbackProvider, Settings


class Compressed(Struct, frozen=True, kw_only=True):
    """The list to go on with, and what was done to it."""

    messages: list[Any]
    """In the format given; the same messages if nothing was done."""
    event: Compaction | None
    """None if the policy kept the list as it is."""
    decision: Decision | None
    system: Any = None
    """The system prompt to go on with, if one was given; only `hermes-classic` ever changes it."""
    scale: float = 1.0

    def explain(self) -> str:
        """Say why, with the numbers."""
        if self.decision is None:
            return "Nothing was decided."
        rejected = self.event.rejected if self.event else ()
        return explain(self.decision, scale=self.scale, rejected=rejected)


def compress(
    messages: Sequence[object],
    *,
    model: str,
    policy: str | None = None,
    force: bool = False,
    focus: str | None = None,
    system: object = None,
    tools: Sequence[object] | None = None,
    fallbacks: Iterable[str | FallbackProvider] = (),
    summarizer: Writer | Sequence[Writer] = (),
    settings: Settings | None = None,
    max_tokens: int | None = None,
) -> Compressed:
    """Return `messages` compacted if the policy says so, or in any case with `force`.

    Call it before every request with the list it returned last: a summary it wrote earlier is recognised and updated.
    `focus` names a topic that a forced compaction keeps in more detail. A list does not show in which calls it was sent, so
    there is no rent to compare: the policy is `runway` if the settings leave it at `rent-or-buy`.
    """
    lowwater = Lowwater(
        model=model,
        store=FORGETFUL,
        policy=policy or _policy(settings),
        fallbacks=fallbacks,
        summarizer=summarizer,
        settings=settings,
    )
    session = lowwater.session()
    if force:
        session.sync_messages(messages, system=system, tools=tools, max_tokens=max_tokens)
        session.compress(focus)
    else:
        session.prepare(messages, system=system, tools=tools, max_tokens=max_tokens)
    return _compressed(session, messages)


async def acompress(
    messages: Sequence[object],
    *,
    model: str,
    policy: str | None = None,
    force: bool = False,
    focus: str | None = None,
    system: object = None,
    tools: Sequence[object] | None = None,
    fallbacks: Iterable[str | FallbackProvider] = (),
    summarizer: Writer | Sequence[Writer] = (),
    settings: Settings | None = None,
    max_tokens: int | None = None,
) -> Compressed:
    """Do what `compress` does without blocking the event loop."""
    lowwater = Lowwater(
        model=model,
        store=FORGETFUL,
        policy=policy or _policy(settings),
        fallbacks=fallbacks,
        summarizer=summarizer,
        settings=settings,
    )
    session = lowwater.session()
    if force:
        session.sync_messages(messages, system=system, tools=tools, max_tokens=max_tokens)
        await session.acompress(focus)
    else:
        await session.aprepare(messages, system=system, tools=tools, max_tokens=max_tokens)
    return _compressed(session, messages)


def _policy(settings: Settings | None) -> str:
    chosen = (settings or Settings()).compression.policy
    return "runway" if chosen == "rent-or-buy" else chosen


def _compressed(session: Session, messages: Sequence[object]) -> Compressed:
    event = session.last_compaction()
    system = internals(session).ledger.view.system
    return Compressed(
        messages=session.view() if event else list(messages),
        event=event,
        decision=session.decision,
        system=msgspec.json.decode(system) if system else None,
        scale=internals(session).scale,
    )
