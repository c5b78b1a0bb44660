"""Where cache marks go: `system_and_3` (SPEC F)."""

from msgspec import Struct

from lowwater.values.model import Marks as TakesMarks
from lowwater.values.model import Model

_MESSAGES = 3


class Marks(Struct, frozen=True, kw_only=True):
    """The system prompt and the last three other messages carry a mark each."""

    ttl: str = "5m"
    in_chat: bool = False
    """The provider takes marks in the chat format too (Claude through OpenRouter)."""

    def last(self, count: int) -> range:
        """Return the indexes of the messages to mark, of `count` that are no system prompt."""
        return range(max(0, count - _MESSAGES), count)


def marks_for(model: Model, *, name: str, ttl: str) -> Marks | None:
    """Return the marks for a model called `name`, or None where the provider takes no `cache_control`."""
    if not isinstance(model.cache.matching, TakesMarks) or model.provider == "openai":
        return None
    in_chat = model.provider != "anthropic" or "openrouter" in name.lower()
    return Marks(ttl="5m" if ttl == "auto" else ttl, in_chat=in_chat)
