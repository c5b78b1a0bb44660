"""Whatever stands in a request, it is answered or refused: no rule stumbles over a value it did not expect."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lowwater.testing.provider import Say, Think
from lowwater.testing.provider.anthropic import MessagesDialect
from lowwater.testing.provider.openai import ChatDialect
from lowwater.testing.provider.prompt import Dialect, Ids, ReceivedRequest, first_refusal, quarter

SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 2**40) | st.floats(allow_nan=False) | st.text(max_size=3)
)
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.text(max_size=4), SCALARS, max_size=2)
OPTIONS = {
    "thinking": {"type": "adaptive", "block_binding": {}},
    "stream": True,
    "stream_options": {},
    "cache_control": None,
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a body, as the steps that lead there."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for step, held in steps for found in places(held, (*path, step)))]


def replaced(body: Any, path: tuple[Any, ...], value: object) -> Any:
    changed = deepcopy(body)
    holder = changed
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return changed


def decide(dialect: Dialect, body: Any, headers: dict[str, str]) -> None:
    incoming = ReceivedRequest(headers=headers, size=1, body=body, context_length=10_000, count=quarter)
    if first_refusal(dialect.rules, incoming) is None:
        for answer in (Say("ok"), Think("hm")):
            assert list(dialect.events(dialect.reply(answer, incoming), incoming))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("name", ["messages", "chat"])
def test_any_value_anywhere_is_answered_or_refused(
    name: str, data: Any, messages_draft: Any, chat_draft: Any
) -> None:
    draft = messages_draft if name == "messages" else chat_draft
    dialect: Dialect = (
        MessagesDialect(ids=Ids(), key=b"lowwater") if name == "messages" else ChatDialect(ids=Ids())
    )
    body = draft.body | OPTIONS
    for _ in range(data.draw(st.integers(1, 3))):
        body = replaced(body, data.draw(st.sampled_from(places(body)[1:])), data.draw(VALUES))
    decide(dialect, body, {**draft.headers, "anthropic-beta": "thinking-binding-controls-2026-08-01"})
