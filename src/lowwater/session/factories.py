"""Makes the clock, the tokenizer, the store and the summarizers for a model and the settings; checks and repairs stores."""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.models.model import Model
from lowwater.core.models.registry import Registry
from lowwater.core.tokens.counting import Calibration, Framing, count_message, count_preamble, rules_for
from lowwater.core.turns.state import Setup
from lowwater.errors import BadSetting
from lowwater.protocols import AsyncSummarizer, Store, Summarizer, Tokenizer
from lowwater.session.plugins import EXPLICIT, names_of, store_at, summarizer_called
from lowwater.settings import Settings
from lowwater.stores import addresses
from lowwater.stores.addresses import SQLITE, sqlite_address
from lowwater.stores.shared import Conceal, conceal_nothing, conceal_secrets

VARIABLE = "LOWWATER_STORE"
"""The environment variable with the address of the default store."""

FORGETFUL = "memory:"
"""The address of a store that lasts as long as the process."""

_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
"""The environment variable with each provider's key."""

_URLS = {"anthropic": ("ANTHROPIC_BASE_URL", ".anthropic.com"), "openai": ("OPENAI_BASE_URL", ".openai.com")}
"""The environment variable with which a provider's SDK is sent elsewhere, and how the provider's own hosts end."""

_LOGINS = ("sk-ant-oat", "gho_", "ghu_", "ghp_", "github_pat_", "tid=")
"""What tokens of logins begin with: Anthropic's OAuth, GitHub's."""
_DOTS_IN_JWT = 2

Writer = Summarizer | AsyncSummarizer | str
"""A summarizer, the name of a model to ask at its provider's own URL, or the name of an installed summarizer."""


def vocabulary_for(model: str) -> str:
    """Return the name of the vocabulary `model` is counted in; Claude's is not public, so o200k is used."""
    return rules_for(model).vocabulary


def counter_for(model: str) -> Tokenizer:
    """Return the tokenizer for `model`: exact for its vocabulary, or the estimate without the tokenizer package."""
    return tokenizer_for(vocabulary_for(model))


def framing_for(model: str) -> Framing:
    """Return how many tokens the provider of `model` adds around messages and parts."""
    return rules_for(model).framing


def calibration_for(model: str) -> Calibration:
    """Return the calibration a session with `model` starts from."""
    return Calibration(prior=rules_for(model).scale)


def counted_in(setup: Setup, tokenizer: Tokenizer, model: str) -> Setup:
    """Return the setup with messages counted in another vocabulary, framed as `model` frames them."""
    framing = framing_for(model)
    return replace(
        setup,
        tokenizer=tokenizer,
        size=lambda message: count_message(message, tokenizer, framing=framing),
        size_preamble=lambda system, tools: count_preamble(system, tools, tokenizer),
    )


def resolve_store(given: Store | str | None = None, *, redact: bool = True) -> Store:
    """Return the given store, or open the one at the given address or else at the default address.

    With `redact`, secrets are kept out of its search index.
    """
    if given is not None and not isinstance(given, str):
        return given
    address = given or default_address()
    return open_store(address) if redact else open_store(address, conceal=conceal_nothing)


def open_store(address: str, *, conceal: Conceal = conceal_secrets) -> Store:
    """Return the store at `memory:`, `sqlite:///PATH` or `postgresql://…`, or at an address of an installed package.

    A PATH that begins with a slash (`sqlite:////var/lib/lowwater.db`) is absolute; any other is relative to the current folder
    or, with `~/`, to the home directory. Every `memory:` is a new store. `conceal` removes secrets from a text before its words
    are indexed.
    """
    if addresses.is_own(address):
        return addresses.open_store(address, conceal=conceal)
    store = store_at(address, conceal=conceal)
    others = tuple(f"{name}:…" for name in names_of("store"))
    return store or addresses.open_store(address, conceal=conceal, others=others)


def default_address() -> str:
    """Return the address in LOWWATER_STORE, or else that of the default file."""
    return os.environ.get(VARIABLE, "").strip() or f"{SQLITE}{default_path()}"


def file_at(address: str) -> Path | None:
    """Return the file of the SQLite store at this address; None if it is another kind of store."""
    file = sqlite_address(address)
    return None if file is None else file.path


def default_path() -> Path:
    """Return the default file, in the user's data directory."""
    from platformdirs import user_data_path  # noqa: PLC0415 - for those who name no store

    return user_data_path("lowwater", appauthor=False) / "sessions.db"


def own_summarizers(model: str, base_url: str) -> tuple[Summarizer | AsyncSummarizer, ...]:
    """Return summarizers on the key that the environment has for a model's own provider; none without one, or at another URL.

    The model itself can read its cached prefix; the provider's cheaper one competes with it.
    """
    if base_url or why_no_own_summarizers(model):
        return ()
    registry = load_registry()
    cheaper = registry.cheaper(registry.find(model))
    return tuple(_writer(name) for name in (model, *([cheaper.name] if cheaper else [])))


def why_no_own_summarizers(model: str) -> str:
    """Return why no model may be asked for summaries by itself, in the words of the environment; empty if one may.

    A login is not charged, and a key that goes with another URL is not sent to the provider's own.
    """
    provider = load_registry().find(model).provider
    variable, (url, own) = _KEYS.get(provider, ""), _URLS.get(provider, ("", ""))
    key = os.environ.get(variable, "").strip() if variable else ""
    if not key:
        return f"{variable} is not set" if variable else "there is no key for it"
    if is_login(key):
        return f"{variable} holds a login, which is not charged for them"
    host = urlsplit(os.environ.get(url, "").strip()).hostname or ""
    return "" if not host or f".{host}".endswith(own) else f"{url} sends calls elsewhere"


def is_login(credential: str) -> bool:
    """Return whether a credential is the token of a subscription's login rather than an API key: an OAuth or a JSON Web Token."""
    return credential.startswith(_LOGINS) or credential.count(".") == _DOTS_IN_JWT


def key_variable(model: str) -> str:
    """Return the environment variable with the key for a model's own provider; empty if Lowwater cannot ask that provider."""
    return _KEYS.get(load_registry().find(model).provider, "")


def summarizers_for(
    given: Writer | Sequence[Writer], settings: Settings
) -> tuple[Summarizer | AsyncSummarizer, ...]:
    """Return the given summarizers, or else the one for the model that the settings name."""
    named = settings.compression.summary_model
    writers = (given,) if isinstance(given, str) or not isinstance(given, Sequence) else tuple(given)
    return tuple(_writer(each) for each in writers or ((named,) if named else ()))


def installed_writer(name: str) -> Summarizer | AsyncSummarizer | None:
    """Return the summarizer that an installed package adds under a name that is not a model's; None if there is none.

    `plugin:NAME` always means one that is installed.
    """
    is_model = not name.startswith(EXPLICIT) and load_registry().match(name).how != "unknown"
    return None if is_model else summarizer_called(name)


def model_of(summarizer: Summarizer | AsyncSummarizer, registry: Registry) -> Model | None:
    """Return the model a summarizer asks, if it says which."""
    name = getattr(summarizer, "model", None)
    return registry.find(name) if isinstance(name, str) and name else None


def compacts(summarizer: Summarizer | AsyncSummarizer) -> bool:
    """Return whether a summarizer can ask its provider to compact by itself."""
    return getattr(summarizer, "compacts", False) is True


def _writer(given: Writer) -> Summarizer | AsyncSummarizer:
    if isinstance(given, str):
        from lowwater.summarizers.model import ModelSummarizer  # noqa: PLC0415 - for those who name a model

        context = load_registry().find(given).context_length
        return installed_writer(given) or ModelSummarizer(
            model=given, context_length=context, tokenizer=counter_for(given)
        )
    if not callable(getattr(given, "summarize", None)):
        raise BadSetting(f"a {type(given).__name__} is no summarizer: it needs a method `summarize`")
    return given
