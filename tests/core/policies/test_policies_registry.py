"""Policies by name, and what each asks of the mechanisms (specification B, D, G, L)."""

from typing import get_args

import pytest

from lowwater.core.policies.at_threshold import threshold
from lowwater.core.policies.policy import Policy, preset_under
from lowwater.core.policies.registry import POLICIES, policy_named
from lowwater.errors import BadSetting
from lowwater.settings import PolicyName, ToolResultSettings

SEEDS = ("threshold", "summary-only", "prune-naive", "runway", "hermes-classic")
EVERY = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)


def test_every_policy_that_can_be_set_exists_and_no_other() -> None:
    assert {policy.name for policy in POLICIES} == set(get_args(PolicyName))


def test_threshold_and_summary_only_are_one_rule() -> None:
    assert policy_named("threshold").decide is policy_named("summary-only").decide is threshold


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("run-way", "there is no policy run-way; did you mean runway?"),
        ("hermes", "there is no policy hermes; did you mean hermes-classic?"),
        (
            "xyz",
            "there is no policy xyz; there are rent-or-buy, guarded, hermes-classic, hygiene, never, prune-naive, "
            "runway, summary-only, threshold",
        ),
    ],
)
def test_an_unknown_policy_is_refused_with_the_name_most_like_it(name: str, error: str) -> None:
    with pytest.raises(BadSetting) as caught:
        policy_named(name)
    assert str(caught.value) == error


@EVERY
def test_b_the_elide_limit_is_200_in_the_seed_presets_and_600_elsewhere(policy: Policy) -> None:
    preset = preset_under(policy.preset, ToolResultSettings())
    assert preset.elide_limit_chars == (200 if policy.name in SEEDS else 600)


@EVERY
def test_d_file_reads_are_never_pruned_in_the_seed_presets_only(policy: Policy) -> None:
    preset = preset_under(policy.preset, ToolResultSettings())
    assert ("read" in preset.never_prune) is (policy.name in SEEDS)
    assert set(preset.never_prune) >= {"clarify", "memory", "skill", "todo"}


@EVERY
def test_l_hermes_classic_and_runway_keep_the_plain_one_liner(policy: Policy) -> None:
    assert policy.preset.plain_placeholders is (policy.name in {"runway", "hermes-classic"})


@EVERY
def test_c_only_hermes_classic_has_no_floor_and_a_note_in_the_system_prompt(policy: Policy) -> None:
    classic = policy.name == "hermes-classic"
    assert policy.preset.threshold_floor is not classic
    assert policy.preset.note_in_system is classic


@EVERY
def test_d_the_seed_presets_protect_the_newest_tool_output_and_the_others_the_worthiest(
    policy: Policy,
) -> None:
    assert policy.preset.by_value is (policy.name not in SEEDS)


@EVERY
def test_g_rent_or_buy_follows_the_model_in_use_and_the_others_the_smallest_context(policy: Policy) -> None:
    assert policy.smallest_context is (policy.name != "rent-or-buy")


@EVERY
def test_e_guarded_alone_takes_the_larger_count(policy: Policy) -> None:
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
