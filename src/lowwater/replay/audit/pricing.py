"""Models by the name a recording has, each with the prices of the day of its call."""

from collections.abc import Callable
from datetime import UTC, date, datetime

from lowwater.adapters.models import load_registry
from lowwater.core.models.model import Model
from lowwater.core.models.registry import Registry


class Pricing:
    """Finds models as they were priced on a day, and remembers them: a log names the same few over and over."""

    def __init__(self, load: Callable[[date | None], Registry] | None = None) -> None:
        self._load = load or (lambda day: load_registry(as_of=day))
        self._registries: dict[date | None, Registry] = {}
        self._models: dict[tuple[str, date | None], Model] = {}

    def model(self, name: str, at: float | None) -> Model:
        """Return the model called `name` with the prices of the moment's day; without one, those of the registry."""
        day = None if at is None else datetime.fromtimestamp(at, tz=UTC).date()
        found = self._models.get((name, day))
        if found is None:
            registry = self._registries.get(day)
            if registry is None:
                registry = self._registries[day] = self._load(day)
            found = self._models[name, day] = registry.find(name)
        return found
