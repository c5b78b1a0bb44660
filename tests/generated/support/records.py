"""Customers, orders and tickets of a made-up shop; what the agent does to them stays done."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from tests.generated.draw import Draw
from tests.generated.words import CITIES, PEOPLE

_GOODS = (
    "Tarn 2-person tent|Harrow hiking boots|Fjell down jacket|Otter dry bag 35 l|Kite 2.4 m packraft|Beacon head torch|Ridge "
    "trekking poles|Ember gas stove|Moss merino shirt|Larch folding saw|Skerry sea kayak paddle|Drift sleeping mat|Cairn "
    "water filter|Pine hammock|Gale rain trousers|Fell running vest|Osprey map case|Bothy shelter 4|Slate cook set|Lichen gaiters"
).split("|")
_CARRIERS = ("Nordpost", "ParcelHare", "DHV Express", "Linnet Logistics")
_STREETS = (
    "Harbour Road",
    "Rue des Tanneurs",
    "Lindenweg",
    "Calle Mayor",
    "Station Street",
    "Via Cavour",
    "Kirkegata",
)
_EVENTS = ("label created", "picked up by carrier", "arrived at sorting centre", "departed sorting centre", "customs clearance",
           "out for delivery", "delivery attempted, nobody home", "held at pick-up point", "delivered")  # fmt: skip
Record = dict[str, object]


class Shop:
    """The shop's records by id."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self.customers: dict[str, Record] = {}
        self.orders: dict[str, Record] = {}
        self.tickets: dict[str, Record] = {}

    def open_ticket(self, subject: str) -> Record:
        """Return a new ticket of a new customer with some orders."""
        draw = self._draw
        name = draw.one(PEOPLE)
        customer_id = f"CUS-{draw.between(100_000, 999_999)}"
        orders = [self._order(customer_id) for _ in range(draw.between(1, 4))]
        self.customers[customer_id] = {
            "customer_id": customer_id,
            "name": name,
            "email": f"{name.split()[0].lower()}{draw.between(1, 99)}@mail.example",
            "phone": f"+{draw.between(30, 59)} {draw.between(100, 999)} {draw.between(100_000, 999_999)}",
            "tier": draw.one(("basic", "plus", "trail club")),
            "customer_since": f"{draw.between(2012, 2025)}-{draw.between(1, 12):02}-{draw.between(1, 28):02}",
            "address": self.address(),
            "orders": orders,
            "lifetime_value": f"{draw.within(40, 4_800):.2f} EUR",
            "notes": [],
        }
        ticket_id = f"T-{draw.between(20_000, 99_999)}"
        self.tickets[ticket_id] = {
            "ticket_id": ticket_id,
            "customer_id": customer_id,
            "order_id": draw.one(orders),
            "subject": subject,
            "status": "open",
            "priority": draw.one(("low", "normal", "normal", "high")),
            "history": [],
        }
        return self.tickets[ticket_id]

    def address(self) -> Record:
        """Return an address."""
        draw = self._draw
        return {
            "street": f"{draw.one(_STREETS)} {draw.between(1, 180)}",
            "postcode": str(draw.between(10_000, 99_999)),
            "city": draw.one(CITIES),
        }

    def shipment(self, order_id: str) -> Record:
        """Return where an order's parcel is; the same order always has the same journey."""
        draw = self._draw.child(order_id)
        at = datetime(2026, 5, draw.between(1, 9), draw.between(6, 21), draw.between(0, 59), tzinfo=UTC)
        events: list[Record] = []
        for event in _EVENTS[: draw.between(2, len(_EVENTS))]:
            at += timedelta(hours=draw.between(1, 30), minutes=draw.between(0, 59))
            events.append({"time": at.isoformat(), "event": event, "place": draw.one(CITIES)})
        order = self.orders[order_id]
        return {
            "order_id": order_id,
            "tracking": order["tracking"],
            "carrier": order["carrier"],
            "weight_kg": round(draw.within(0.2, 24), 2),
            "events": events,
        }

    def orders_of(self, customer_id: str) -> list[Record]:
        """Return all orders of a customer."""
        return [order for order in self.orders.values() if order["customer_id"] == customer_id]

    def items(self, order_id: str) -> Sequence[Record]:
        """Return the items of an order."""
        return listed(self.orders[order_id], "items")

    def _order(self, customer_id: str) -> str:
        draw = self._draw
        order_id = f"ORD-{draw.between(2024, 2026)}-{draw.hex(6).upper()}"
        items: list[Record] = []
        for good in draw.some(_GOODS, draw.weighted(((1, 4), (2, 3), (3, 2), (5, 1)))):
            sku = f"{good[:3].upper()}-{draw.between(1_000, 9_999)}"
            items.append(
                {
                    "sku": sku,
                    "name": good,
                    "quantity": draw.between(1, 3),
                    "unit_price": round(draw.within(9, 480), 2),
                    "returnable": draw.chance(0.85),
                }
            )
        total = sum(float(str(item["unit_price"])) * int(str(item["quantity"])) for item in items)
        self.orders[order_id] = {
            "order_id": order_id,
            "customer_id": customer_id,
            "status": draw.one(("processing", "shipped", "delivered", "delivered", "returned")),
            "placed_at": f"2026-{draw.between(1, 5):02}-{draw.between(1, 28):02}T{draw.between(0, 23):02}:{draw.between(0, 59):02}:00Z",
            "items": items,
            "total": f"{total:.2f} EUR",
            "payment": {
                "method": draw.one(("card", "invoice", "wallet", "gift card")),
                "reference": f"pay_{draw.alnum(14)}",
            },
            "carrier": draw.one(_CARRIERS),
            "tracking": f"{draw.alnum(2).upper()}{draw.between(10**9, 10**10 - 1)}",
            "refunds": [],
        }
        return order_id


def listed(record: Record, field: str) -> list[Record]:
    """Return a field of a record that is a list."""
    value = record[field]
    assert isinstance(value, list)
    return value
