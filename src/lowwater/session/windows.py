"""Context lengths that differ from the registry's: those that providers reported in errors, and those that callers set.

What a provider's error taught holds for that provider, URL and model, in every session of one `Lowwater`, and is stored with
the session that learned it. What a caller set holds for that session only, and takes precedence.
"""

import threading

from msgspec.structs import replace

from lowwater.core.models.model import FallbackChain, Model
from lowwater.core.turns.state import Route, Setup, State


class Windows:
    """Context lengths learned from errors, by provider, URL and model; shared by all sessions of one `Lowwater`."""

    def __init__(self) -> None:
        self._learned: dict[str, int] = {}
        self._lock = threading.Lock()

    def taught(self, state: State, tokens: int) -> State:
        """Return the session with the context length that an error reported for its model and URL; all sessions learn it."""
        place = _place(state.model, state.route)
        with self._lock:
            self._learned[place] = tokens
        return replace(state, taught=_with(state.taught, place, tokens), windows=_with(state.windows, place))

    def accepted(self, state: State, prompt: int) -> State:
        """Return the session without a learned context length if a larger prompt was accepted: the limit has risen again."""
        place = _place(state.model, state.route)
        with self._lock:
            if prompt <= self._learned.get(place, prompt):
                known = dict(state.taught).get(place, prompt)
                return state if prompt <= known else replace(state, taught=_with(state.taught, place))
            del self._learned[place]
        return replace(state, taught=_with(state.taught, place))

    def applied(self, state: State) -> State:
        """Return the session with its model's context length as it was set or learned."""
        model = self._model(state.model, state.route, state)
        return state if model is state.model else replace(state, model=model)

    def applied_to(self, setup: Setup, state: State) -> Setup:
        """Return the setup with the context lengths of all its models as they were set or learned."""
        if not (self._learned or state.windows or state.taught):
            return setup
        models = tuple(
            self._model(model, route, state)
            for model, route in zip(setup.chain.models, setup.routes, strict=True)
        )
        return replace(setup, chain=FallbackChain(models=models))

    def _model(self, model: Model, route: Route, state: State) -> Model:
        place = _place(model, route)
        known = {**dict(state.taught), **self._learned, **dict(state.windows)}
        tokens = known.get(place, model.context_length)
        return model if tokens == model.context_length else replace(model, context_length=tokens)


def set_by_caller(state: State, tokens: int) -> State:
    """Return the session with the context length that a caller set for the model in use; other sessions do not learn it."""
    place = _place(state.model, state.route)
    return replace(state, windows=_with(state.windows, place, tokens))


def _with(
    known: tuple[tuple[str, int], ...], place: str, tokens: int | None = None
) -> tuple[tuple[str, int], ...]:
    others = tuple(pair for pair in known if pair[0] != place)
    return others if tokens is None else (*others, (place, tokens))


def _place(model: Model, route: Route) -> str:
    return f"{model.provider} {route.storable().base_url} {model.name}"
