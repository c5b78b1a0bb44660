"""Who may read the figures: anybody who can reach the gateway, unless it has keys of its own."""

import httpx2
import pytest

from tests.gateway.conftest import Starting

KEYS = ("gate-1", "gate-2")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"x-lowwater-key": "gate-3"}, 401),
        ({"authorization": "Bearer sk-one"}, 401),
        ({"x-lowwater-key": "gate-3", "authorization": "Bearer gate-1"}, 401),
        ({"x-lowwater-key": "gate-2"}, 200),
        ({"authorization": "Bearer gate-2"}, 200),
    ],
    ids=[
        "nothing",
        "a wrong one",
        "a provider's",
        "two of them",
        "one of its own",
        "one of its own as a token",
    ],
)
def test_a_gateway_with_keys_of_its_own_shows_its_figures_for_one_of_them(
    start: Starting, headers: dict[str, str], status: int
) -> None:
    through = start(require_key=True, access_keys=KEYS)
    answer = httpx2.get(f"{through.url}/metrics", headers=headers)
    assert answer.status_code == status
    assert ("lowwater_gateway" in answer.text) == (status == 200)
    assert httpx2.get(f"{through.url}/healthz").status_code == 200
    assert through.provider.requests == ()


def test_without_keys_of_its_own_whoever_reaches_the_gateway_sees_its_figures(start: Starting) -> None:
    through = start(require_key=True)
    assert httpx2.get(f"{through.url}/metrics").status_code == 200
