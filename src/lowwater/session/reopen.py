"""Opening a stored session the way it was left, for programs that look at it or change it from outside its agent."""

from lowwater.core.stored import Listed
from lowwater.protocols import Store
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.plugins import is_policy
from lowwater.session.session import Session
from lowwater.settings import Settings

DEFAULT_MODEL = "claude-opus-5-5"
"""The model assumed where nothing names one."""


def open_kept(store: Store, listed: Listed, settings: Settings | None = None) -> Session:
    """Open a stored session as it was left: with its last model, and with its policy unless the settings choose another."""
    chosen, model = settings or Settings(), listed.model or DEFAULT_MODEL
    session = Lowwater(model=model, store=store, summarizer=(), settings=chosen).session(
        listed.name, as_left=True
    )
    left, is_set = internals(session).last_policy, chosen.compression.policy != Settings().compression.policy
    if not left or is_set or left == chosen.compression.policy or not is_policy(left):
        return session
    return Lowwater(model=model, store=store, summarizer=(), settings=chosen, policy=left).session(
        listed.name, as_left=True
    )
