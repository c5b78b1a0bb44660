"""Opens the session of a Hermes conversation: its model, its window, and a store beside Hermes' own."""

import os
import threading
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lowwater.adapters.settings import load_settings
from lowwater.protocols import Store
from lowwater.session.factories import VARIABLE, default_address, opened_store
from lowwater.session.library import Lowwater
from lowwater.session.plugins import policy_names
from lowwater.session.session import Session
from lowwater.settings import Settings
from lowwater.stores.sqlite.connections import SQLITE
from lowwater.summarizers.model import ModelSummarizer

FILE = "lowwater.db"
_STORES: dict[str, Store] = {}
_LOCK = threading.Lock()


class Kept(Struct, frozen=True, kw_only=True):
    """What a conversation is opened with."""

    model: str = ""
    base_url: str = ""
    api_key: str = ""
    context_length: int = 0
    home: str = ""
    """Hermes' own folder."""

    def __repr__(self) -> str:
        return f"Kept(model={self.model!r}, context_length={self.context_length})"

    def open(self, name: str) -> Session:
        """Return the session of this name, in the store that the environment names or else in Hermes' folder."""
        settings = _settings()
        session = Lowwater(
            model=self.model,
            base_url=self.base_url,
            settings=settings,
            store=_store(self.home, settings),
            summarizer=self._writers(settings),
        ).session(name or None, source="hermes")
        if self.context_length:
            session.learn_context_length(self.context_length)
        return session

    def _writers(self, settings: Settings) -> tuple[ModelSummarizer, ...]:
        """Return the conversation's own model as the one that writes summaries, if the settings name it: asked where Hermes asks it."""
        if settings.compression.summary_model != self.model or not self.base_url:
            return ()
        length = self.context_length or 128_000
        return (
            ModelSummarizer(
                model=self.model, base_url=self.base_url, api_key=self.api_key, context_length=length
            ),
        )


def _settings() -> Settings:
    """Return the settings that hold: Lowwater's own, but Hermes says whether to compact, and a conversation is never split."""
    settings = load_settings(config=None, env=os.environ, flags={}, policies=policy_names).settings
    enabled = settings.compression.enabled and _hermes_compacts()
    return replace(settings, compression=replace(settings.compression, enabled=enabled, split=False))


def _hermes_compacts() -> bool:
    from hermes_cli.config import load_config  # type: ignore[import-not-found]  # noqa: PLC0415 - only in Hermes

    said = (load_config().get("compression") or {}).get("enabled", True)
    return str(said).strip().lower() not in ("false", "0", "no", "off")


def _store(home: str, settings: Settings) -> Store:
    """Return the one open store at its address, for all conversations of this process."""
    beside = bool(home) and not os.environ.get(VARIABLE, "").strip()
    address = f"{SQLITE}{Path(home) / FILE}" if beside else default_address()
    with _LOCK:
        if address not in _STORES:
            _STORES[address] = opened_store(address, redact=settings.privacy.redact)
        return _STORES[address]
