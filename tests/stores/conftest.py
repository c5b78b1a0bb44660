"""A real PostgreSQL for the tests of stores: one server per test process, an empty schema per test."""

from collections.abc import Iterator
from itertools import count

import pytest

from lowwater.testing.postgres import apart, postgres_server

_numbers = count(1)


@pytest.fixture(scope="session")
def postgres_database() -> Iterator[str]:
    """The address of a database on a server that is there for this test run."""
    with postgres_server() as address:
        yield address


@pytest.fixture
def postgres_address(postgres_database: str) -> str:
    """The address of a store that does not exist yet."""
    return apart(postgres_database, f"test{next(_numbers)}")
