"""Policies by name, and what each asks of the mechanisms (specification B, D, G, L)."""

from typing import get_args

import pytest

from lowwater.core.policies.policy import Policy, preset_under
from lowwater.core.policies.registry import POLICIES, policy_named
from lowwater.errors import BadSetting
from lowwater.settings import PolicyName, ToolResultSettings

SEEDS = ("threshold", "prune-naive", "runway", "hermes-classic")
EVERY = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)


def test_every_policy_that_can_be_set_exists_and_no_other() -> None:
    assert {policy.name for policy in POLICIES} == set(get_args(PolicyName))


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("run-way", "there is no policy run-way; did you mean runway?"),
        ("hermes", "there is no policy hermes; did you mean hermes-classic?"),
        (
            "xyz",
            "there is no policy xyz; there are rent-or-buy, guarded, hermes-classic, hygiene, never, prune-naive, "
            "runway, threshold",
        ),
    ],
)
def test_an_unknown_policy_is_refused_with_the_name_most_like_it(name: str, error: str) -> None:
    with pytest.raises(BadSetting) as caught:
        policy_named(name)
    assert str(caught.value) == error


@EVERY
def test_what_each_policy_asks_of_the_mechanisms(policy: Policy) -> None:
    """Specification B, C, D, E, G and L: where the seed presets and the others differ."""
    preset, seed, classic = (
        preset_under(policy.preset, ToolResultSettings()),
        policy.name in SEEDS,
        policy.name == "hermes-classic",
    )
    assert preset.elide_limit_chars == (200 if seed else 600)
    assert ("read" in preset.never_prune) is seed, "files are never pruned in the seed presets only"
    assert set(preset.never_prune) >= {"clarify", "memory", "skill", "todo"}
    assert preset.plain_placeholders is (policy.name in {"runway", "hermes-classic"})
    assert (preset.threshold_floor, preset.note_in_system) == (not classic, classic)
    assert preset.by_value is not seed, "the seed presets protect the newest output, the others the worthiest"
    assert policy.smallest_context is (policy.name != "rent-or-buy")
    assert policy.larger_count is (policy.name == "guarded")


@EVERY
@pytest.mark.parametrize(
    ("limit", "never"), [(0, ()), (200, ("clarify", "memory", "skill", "todo")), (600, ("deploy",))]
)
def test_b_what_the_user_set_overrules_the_preset_even_where_it_is_somebodys_default(
    policy: Policy, limit: int, never: tuple[str, ...]
) -> None:
    preset = preset_under(policy.preset, ToolResultSettings(elide_limit_chars=limit, never_prune=never))
    assert preset.elide_limit_chars == limit
    assert preset.never_prune == never
