"""What packages of others add, found by their entry points: policies, mechanisms, stores and summarizers, by name.

Nothing is looked for unless a name is not ours, and then once; so ours cannot be replaced.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeVar

from msgspec.structs import replace

from lowwater.core.mechanisms.mechanism import Mechanism
from lowwater.core.policies.policy import Policy
from lowwater.core.policies.registry import POLICIES, policy_named
from lowwater.errors import BadSetting, LowwaterError
from lowwater.protocols import AsyncSummarizer, Store, Summarizer
from lowwater.settings.coercion import did_you_mean, shown
from lowwater.stores.shared import Conceal

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PluginKind = Literal["policy", "mechanism", "store", "summarizer"]
T = TypeVar("T")

GROUPS: dict[PluginKind, str] = {
    "policy": "lowwater.policies",
    "mechanism": "lowwater.mechanisms",
    "store": "lowwater.stores",
    "summarizer": "lowwater.summarizers",
}
EXPLICIT = "plugin:"
"""Before the name of a summarizer, it says that no model is meant."""
_FAILED = "failed"
_OWN_POLICIES = frozenset(policy.name for policy in POLICIES)


@cache
def installed(kind: PluginKind) -> "tuple[EntryPoint, ...]":
    """Return what installed packages add of a kind, sorted by name; none of it is imported."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - for names that are not ours

    return tuple(sorted(entry_points(group=GROUPS[kind]), key=lambda point: point.name))


def names_of(kind: PluginKind) -> tuple[str, ...]:
    """Return the names that installed packages add of a kind."""
    return tuple(dict.fromkeys(point.name for point in installed(kind)))


def policy_names() -> tuple[str, ...]:
    """Return the policies that installed packages add; one with a name of ours does not count."""
    return tuple(name for name in names_of("policy") if name not in _OWN_POLICIES)


def policy_of(name: str) -> Policy:
    """Return the policy with this name, ours or an installed one, or raise BadSetting with the name most like it."""
    if name in _OWN_POLICIES:
        return policy_named(name)
    found = _loaded("policy", name)
    if found is None:
        known = (*(policy.name for policy in POLICIES), *policy_names())
        hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
        raise BadSetting(f"there is no policy {shown(name)}{hint}")
    if not isinstance(found, Policy):
        raise _unfit(
            "policy", name, f"is a {type(found).__name__} and not a lowwater.core.policies.registry.Policy"
        )
    return replace(found, name=name, decide=_named_if_it_fails("policy", name, found.decide))


def is_policy(name: str) -> bool:
    """Return whether there is a policy with this name, ours or an installed one."""
    return name in _OWN_POLICIES or name in policy_names()


def mechanisms_of(names: Sequence[str]) -> tuple[Mechanism, ...]:
    """Return installed mechanisms by their names, or raise BadSetting."""
    return tuple(_mechanism(name) for name in dict.fromkeys(names))


def _mechanism(name: str) -> Mechanism:
    from lowwater.core.mechanisms.registry import MECHANISMS  # noqa: PLC0415 - it imports every mechanism

    if name in MECHANISMS:
        raise BadSetting(f"{name} is one of Lowwater's own mechanisms, which are always asked: leave it out")
    found = _loaded("mechanism", name)
    if found is None:
        raise BadSetting(f"no installed package adds a mechanism {shown(name)}{_hint('mechanism', name)}")
    if not isinstance(found, Mechanism):
        raise _unfit(
            "mechanism",
            name,
            f"is a {type(found).__name__} and not a lowwater.core.mechanisms.registry.Mechanism",
        )
    if not callable(found.loses) and not 0 <= found.loses <= 1:
        raise _unfit("mechanism", name, f"says that it loses {found.loses}, which is no share from 0 to 1")
    return replace(
        found,
        name=name,
        reach="middle",
        shares_parts=False,
        propose=_named_if_it_fails("mechanism", name, found.propose),
        apply=_named_if_it_fails("mechanism", name, found.apply),
    )


def store_at(address: str, *, conceal: Conceal) -> Store | None:
    """Return the store that an installed package opens at an address with its scheme; None if none does."""
    scheme, colon, _ = address.partition(":")
    found = _loaded("store", scheme) if colon else None
    if found is None:
        return None
    if not callable(found):
        raise _unfit("store", scheme, f"is a {type(found).__name__}, and cannot be called to open a store")
    store: Store = _named_if_it_fails("store", scheme, found)(address, conceal=conceal)
    if not callable(getattr(store, "append", None)):
        raise _unfit("store", scheme, f"opened a {type(store).__name__}, which is no store")
    return store


def summarizer_called(name: str) -> Summarizer | AsyncSummarizer | None:
    """Return a new summarizer that an installed package adds under this name; None if none does.

    With `plugin:` before its name, it is a BadSetting if there is none.
    """
    bare = name.removeprefix(EXPLICIT)
    found = _loaded("summarizer", bare)
    if found is None:
        if bare == name:
            return None
        raise BadSetting(f"no installed package adds a summarizer {shown(bare)}{_hint('summarizer', bare)}")
    if not callable(found):
        raise _unfit(
            "summarizer", bare, f"is a {type(found).__name__}, and cannot be called to make a summarizer"
        )
    made: Summarizer | AsyncSummarizer = _named_if_it_fails("summarizer", bare, found)()
    if not callable(getattr(made, "summarize", None)):
        raise _unfit("summarizer", bare, f"made a {type(made).__name__}, which has no method `summarize`")
    return made


def _loaded(kind: PluginKind, name: str) -> object | None:
    """Import what a package adds under a name; None if none does, and a BadSetting if it cannot be had."""
    found = [point for point in installed(kind) if point.name == name]
    owners = sorted({_owner(point) for point in found})
    if len(owners) > 1:
        raise BadSetting(
            f"{' and '.join(owners)} each add a {kind} {shown(name)}: uninstall all of them but one"
        )
    return _named_if_it_fails(kind, name, found[0].load, doing="cannot be loaded")() if found else None


def _named_if_it_fails(
    kind: PluginKind, name: str, call: Callable[..., T], *, doing: str = _FAILED
) -> Callable[..., T]:
    """Return `call` such that whatever it raises becomes one sentence that names the package."""

    def guarded(*args: object, **kwargs: object) -> T:
        try:
            return call(*args, **kwargs)
        except LowwaterError:
            raise
        except Exception as error:
            # What it says once it runs may quote a conversation; what it says when it is loaded cannot.
            said = getattr(error, "strerror", None) if doing == _FAILED else " ".join(str(error).split())
            what = type(error).__name__ + (f": {said}" if said else "")
            raise _unfit(kind, name, f"{doing} ({what})") from error

    return guarded


def _unfit(kind: PluginKind, name: str, problem: str) -> BadSetting:
    owner = next((_owner(point) for point in installed(kind) if point.name == name), "a package")
    return BadSetting(f"the {kind} {shown(name)} of {owner} {problem}")


def _owner(point: "EntryPoint") -> str:
    return point.dist.name if point.dist is not None else "a package"


def _hint(kind: PluginKind, name: str) -> str:
    known = names_of(kind)
    there = f"; there are {', '.join(known)}" if known else "; there is none at all"
    return did_you_mean(name, known) or there
