"""What a store has to do to know a session again by its client's list."""

from lowwater.core.stored import Followed, Trail
from lowwater.testing.store_contract.samples import Check, Open, add, said

_ONE, _TWO, _THREE = (bytes([number]) * 16 for number in (1, 2, 3))


def _left(store_session: str, *keys: bytes, tenant: str = "t", hint: str = "") -> Trail:
    return Trail(tenant=tenant, session=store_session, keys=keys, hint=hint)


def _a_trail_leads_to_its_session(reopen: Open) -> None:
    store = reopen()
    add(store, "a", 0, said("one"))
    store.leave(_left("a", _ONE, _TWO, hint="h"))
    assert store.follow("t", [_THREE, _TWO]) == [Followed(key=_TWO, session="a", hint="h", newest=True)]
    assert store.follow("t", []) == []
    store.close()


def _only_the_last_trail_is_the_newest(reopen: Open) -> None:
    store = reopen()
    add(store, "a", 0, said("one"))
    store.leave(_left("a", _ONE, _TWO))
    store.leave(_left("a", _TWO, _THREE))
    newest = {followed.key: followed.newest for followed in store.follow("t", [_ONE, _TWO, _THREE])}
    assert newest == {_ONE: False, _TWO: True, _THREE: True}
    store.close()


def _a_tenant_never_follows_another_ones_trail(reopen: Open) -> None:
    store = reopen()
    add(store, "a", 0, said("one"))
    store.leave(_left("a", _ONE, tenant="theirs"))
    assert store.follow("ours", [_ONE]) == []
    store.close()


def _several_sessions_may_have_the_same_key(reopen: Open) -> None:
    store = reopen()
    for name in ("a", "b"):
        add(store, name, 0, said("one"))
        store.leave(_left(name, _ONE))
    assert sorted(followed.session for followed in store.follow("t", [_ONE])) == ["a", "b"]
    assert all(followed.newest for followed in store.follow("t", [_ONE]))
    store.close()


def _a_session_that_is_gone_left_no_trail(reopen: Open) -> None:
    store = reopen()
    store.leave(_left("never", _ONE))
    add(store, "a", 0, said("one"))
    store.leave(_left("a", _ONE))
    store.delete("a")
    add(store, "a", 0, said("again"))
    assert store.follow("t", [_ONE]) == []
    store.close()


def _thousands_of_keys_may_be_asked_for(reopen: Open) -> None:
    store = reopen()
    add(store, "a", 0, said("one"))
    store.leave(_left("a", _ONE))
    keys = [number.to_bytes(16, "big") for number in range(3_000)]
    assert [followed.key for followed in store.follow("t", [*keys, _ONE])] == [_ONE]
    store.close()


def _the_secret_stays_the_same(reopen: Open) -> None:
    store = reopen()
    assert len(store.secret()) == 32
    assert store.secret() == store.secret()
    store.close()


CHECKS: tuple[Check, ...] = (
    _a_trail_leads_to_its_session,
    _only_the_last_trail_is_the_newest,
    _a_tenant_never_follows_another_ones_trail,
    _several_sessions_may_have_the_same_key,
    _a_session_that_is_gone_left_no_trail,
    _thousands_of_keys_may_be_asked_for,
    _the_secret_stays_the_same,
)
