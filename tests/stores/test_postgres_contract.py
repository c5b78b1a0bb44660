import pytest

from lowwater.stores.postgres.store import PostgresStore
from lowwater.testing.store_contract import CHECKS, CONCEALING_CHECKS, LASTING_CHECKS


def behaviour(check) -> str:
    return str(check.__name__).strip("_")


@pytest.mark.parametrize("check", [*CHECKS, *LASTING_CHECKS], ids=behaviour)
def test_postgres_keeps_the_contract(check, postgres_address):
    check(lambda: PostgresStore(postgres_address))


@pytest.mark.parametrize("check", CONCEALING_CHECKS, ids=behaviour)
def test_postgres_conceals(check, postgres_address):
    check(lambda conceal: PostgresStore(postgres_address, conceal=conceal))
