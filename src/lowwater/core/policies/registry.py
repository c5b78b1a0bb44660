"""The registry of policies: what the files of this folder offer, by name."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from lowwater.core import policies
from lowwater.core.policies.policy import Policy
from lowwater.errors import BadSetting
from lowwater.settings.coercion import did_you_mean, shown

DEFAULT = "rent-or-buy"


def _found() -> Iterator[Policy]:
    for module in iter_modules(policies.__path__, f"{policies.__name__}."):
        if module.name != __name__:
            yield from getattr(import_module(module.name), "POLICIES", ())


POLICIES = tuple(sorted(_found(), key=lambda policy: (policy.name != DEFAULT, policy.name)))
"""The default first, the others by name."""
_BY_NAME = {policy.name: policy for policy in POLICIES}


def policy_named(name: str) -> Policy:
    """Return the policy with this name, or raise BadSetting with a suggestion."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    hint = did_you_mean(name, _BY_NAME) or f"; there are {', '.join(_BY_NAME)}"
    raise BadSetting(f"there is no policy {shown(name)}{hint}")
