"""Context lengths that providers reported in errors (SPEC G)."""

import threading

from msgspec.structs import replace

from lowwater.engine.setup import Setup
from lowwater.engine.state import Route, State
from lowwater.values.model import FallbackChain, Model

_Key = tuple[str, str, str]


class Windows:
    """What was learned, by provider, URL and model; every session of one library knows it at once."""

    def __init__(self) -> None:
        self._learned: dict[_Key, int] = {}
        self._lock = threading.Lock()

    def learn(self, state: State, tokens: int) -> None:
        """Remember the window of the model in use, where it is in use."""
        with self._lock:
            self._learned[_key(state.model, state.route)] = tokens

    def applied(self, state: State) -> State:
        """Return the session with the window of its model as it was learned."""
        model = self._model(state.model, state.route)
        return state if model is state.model else replace(state, model=model)

    def applied_to(self, setup: Setup) -> Setup:
        """Return the setup with the windows of all its models as they were learned."""
        if not self._learned:
            return setup
        models = tuple(
            self._model(model, route) for model, route in zip(setup.chain.models, setup.routes, strict=True)
        )
        return replace(setup, chain=FallbackChain(models=models))

    def _model(self, model: Model, route: Route) -> Model:
        tokens = self._learned.get(_key(model, route), model.context_length)
        return model if tokens == model.context_length else replace(model, context_length=tokens)


def _key(model: Model, route: Route) -> _Key:
    return (model.provider, route.base_url, model.name)
