"""The contract of every store, as checks to parametrise a test with.

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_contract(check, tmp_path):
        check(lambda: MyStore(tmp_path / "store"))

A check is given a function that opens the same storage each time it is called; the storage is empty at first. `CHECKS` call it
once. `LASTING_CHECKS` call it several times, and are for stores that outlive their process. `CONCEALING_CHECKS` call it with a
function that removes secrets from a text before its words are indexed.
"""

from lowwater.testing.store_contract import queries, sessions
from lowwater.testing.store_contract.samples import (
    Check,
    ConcealingCheck,
    Open,
    OpenConcealing,
    add,
    append_patiently,
    said,
    texts,
)

CHECKS: tuple[Check, ...] = (
    *sessions.READING,
    *sessions.APPENDING,
    *queries.ACCOUNTING,
    *sessions.COPYING,
    *sessions.DELETING,
    *queries.SEARCHING,
    *queries.TRAILING,
)
LASTING_CHECKS: tuple[Check, ...] = sessions.LASTING
CONCEALING_CHECKS: tuple[ConcealingCheck, ...] = queries.CONCEALING_CHECKS

__all__ = [
    "CHECKS",
    "CONCEALING_CHECKS",
    "LASTING_CHECKS",
    "Check",
    "ConcealingCheck",
    "Open",
    "OpenConcealing",
    "add",
    "append_patiently",
    "said",
    "texts",
]
