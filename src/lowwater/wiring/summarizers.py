"""Who writes summaries: objects of the user's, or models by name."""

from collections.abc import Sequence

from lowwater.core.models.model import Model
from lowwater.core.models.registry import Registry
from lowwater.errors import BadSetting
from lowwater.load.registry import load_registry
from lowwater.protocols import AsyncSummarizer, Summarizer
from lowwater.send.summarizer import ModelSummarizer
from lowwater.settings import Settings
from lowwater.wiring.counting import counter_for
from lowwater.wiring.plugins import EXPLICIT, summarizer_called

Writer = Summarizer | AsyncSummarizer | str
"""A summarizer, or the name of a model that is asked at its provider's own URL, or of a summarizer that is installed."""


def summarizers_for(
    given: Writer | Sequence[Writer], settings: Settings
) -> tuple[Summarizer | AsyncSummarizer, ...]:
    """Return the summarizers that were given, or else the one whose model the settings name."""
    named = settings.compression.summary_model
    writers = (given,) if isinstance(given, str) or not isinstance(given, Sequence) else tuple(given)
    return tuple(_writer(each) for each in writers or ((named,) if named else ()))


def installed_writer(name: str) -> Summarizer | AsyncSummarizer | None:
    """Return the summarizer that an installed package adds under a name that is no model's; None if none does.

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
        context = load_registry().find(given).context_length
        return installed_writer(given) or ModelSummarizer(
            model=given, context_length=context, tokenizer=counter_for(given)
        )
    if not callable(getattr(given, "summarize", None)):
        raise BadSetting(f"a {type(given).__name__} is no summarizer: it needs a method `summarize`")
    return given
