"""Whether requests go on from each other: cache marks and the ids of items are no part of what a model reads."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from lowwater.testing.provider import Seen
from tests.gateway.scripted_work import listed_in
from tests.gateway.test_gateway_compaction import bare


def moves(requests: Sequence[Seen]) -> int:
    """Return how often a request did not go on from the one before it."""
    lists = [[_shown(each) for each in bare(listed_in(seen))] for seen in requests]
    return sum(later[: len(earlier)] != earlier for earlier, later in pairwise(lists))


def _shown(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "id"}
