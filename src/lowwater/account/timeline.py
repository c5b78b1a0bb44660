"""Which turn came after which event."""

from bisect import bisect_left
from itertools import accumulate

from lowwater.values.stored import Account


def turns_before(account: Account) -> list[int]:
    """Return for each event how many turns had been recorded before it; the numbers never fall.

    A store tells that by the versions it wrote them under. Where nobody does, their times have to: an event at the moment of a turn belongs to that turn and stands before it: views are changed before they are sent.
    Where clocks disagree, nothing counts as earlier than what was kept before it.
    """
    if account.turns_before is not None:
        return list(account.turns_before)
    turns = list(accumulate((record.at for record in account.records), max))
    events = accumulate((event.at for event in account.events), max)
    return [bisect_left(turns, at) for at in events]
