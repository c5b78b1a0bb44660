"""What a turn that keeps runs through: what every call pays for, and what a reader has to read to know what happens in one."""

from collections.abc import Mapping

import pytest

from tools.measure_house import loaded_modules, modules_of, walked_turns

MODULES = frozenset(
    f"{module}.py"
    for module in """
    adapters/tokenizer
    core/cache/belief core/cache/marks core/costs/prices core/decisions
    core/formats/anthropic core/formats/codec core/ledger core/legality core/limits
    core/mechanisms/mechanism core/messages core/models/model
    core/policies/policy core/policies/rent_or_buy core/policies/safety_rules
    core/reconcile core/sequences core/strict_json core/tokens/counting
    core/turns/arrival core/turns/cache core/turns/decision_context core/turns/pricing
    core/turns/state core/turns/state_storage core/turns/turn core/view
    observe/sinks
    session/dependencies session/repository session/request session/session session/turn_input session/turns
    stores/serialization stores/shared stores/sql stores/sqlite/connections stores/sqlite/store
    """.split()
)
"""Forty, and no more: whoever adds a module here takes one out. What is seldom needed is imported where it is needed."""
FUNCTIONS = 390
LOADED = 120
ONCE = """
    core/turns/decision_context.py decision_context
    core/turns/decision_context.py limits_for
    core/tokens/counting.py Calibration.scale
    core/mechanisms/mechanism.py _survey
    core/turns/cache.py marks_of
    core/cache/marks.py settle_ttl
    core/cache/marks.py place_marks
    core/reconcile.py reconcile
    core/view.py bytes_of
    core/legality.py made_legal
    core/tokens/counting.py count_message
    core/turns/state_storage.py pack_state
"""
"""What is worked out once for all who need it, and what looks at every message or writes."""


@pytest.fixture(scope="module")
def keeping() -> Mapping[str, int]:
    """How often each function runs in the second turn of a session in a SQLite file."""
    return walked_turns()["keeping"]


def test_a_turn_that_keeps_runs_through_these_modules_only(keeping: Mapping[str, int]) -> None:
    assert modules_of(dict(keeping)) - MODULES == set()
    assert len(MODULES) <= 40
    assert len(keeping) <= FUNCTIONS


def test_what_it_needs_more_than_once_is_computed_once(keeping: Mapping[str, int]) -> None:
    computed = {function.strip(): keeping.get(function.strip(), 0) for function in ONCE.strip().splitlines()}
    assert computed == dict.fromkeys(computed, 1)


def test_importing_the_library_loads_what_a_session_needs() -> None:
    assert loaded_modules() <= LOADED
