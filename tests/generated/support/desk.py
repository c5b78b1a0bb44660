"""What a support agent works with: the shop's records, tools that read and change them, the ticket at hand."""

import json

from tests.generated.draw import Draw
from tests.generated.memory import Memory
from tests.generated.steps import Call
from tests.generated.support import articles
from tests.generated.support.records import Record, Shop, listed

_KINDS = {"total": "amount", "tracking": "tracking", "order_id": "order"}


class Desk:
    """Makes tool calls about one ticket after another."""

    def __init__(self, draw: Draw, memory: Memory) -> None:
        self._draw = draw
        self._memory = memory
        self.shop = Shop(draw)
        self._articles = {
            subject: articles.write_article(draw.child(subject), subject) for subject in articles.SUBJECTS
        }
        self.ticket: Record = {}
        self.outcome = "other"

    @property
    def order(self) -> Record:
        """The order that the ticket at hand is about."""
        return self.shop.orders[str(self.ticket["order_id"])]

    @property
    def customer(self) -> Record:
        """The customer who wrote it."""
        return self.shop.customers[str(self.ticket["customer_id"])]

    def get_ticket(self) -> Call:
        """Look at the ticket."""
        return self._get("get_ticket", self.ticket, "ticket_id")

    def get_order(self) -> Call:
        """Look at the order."""
        payment = self.order["payment"]
        assert isinstance(payment, dict)
        self._memory.note("payment", str(payment["reference"]))
        return self._get("get_order", self.order, "order_id")

    def get_customer(self) -> Call:
        """Look at the customer."""
        return self._get("get_customer", self.customer, "customer_id")

    def list_orders(self) -> Call:
        """Look at everything the customer ever ordered."""
        customer_id = str(self.customer["customer_id"])
        orders = self.shop.orders_of(customer_id)
        for order in orders:
            self._memory.note("order", str(order["order_id"]))
        output = json.dumps(orders, ensure_ascii=False, indent=2)
        return Call(tool="list_orders", arguments={"customer_id": customer_id}, output=output, seconds=1.0)

    def track(self) -> Call:
        """Ask the carrier."""
        order_id = str(self.order["order_id"])
        self.outcome = "late"
        if self._draw.chance(0.08):
            output = f"Error: carrier {self.order['carrier']} did not answer within 10 s (order {order_id})"
            return Call(
                tool="track_shipment",
                arguments={"order_id": order_id},
                output=output,
                failed=True,
                seconds=10,
            )
        output = json.dumps(self.shop.shipment(order_id), ensure_ascii=False, indent=2)
        return Call(tool="track_shipment", arguments={"order_id": order_id}, output=output, seconds=1.5)

    def search(self) -> Call:
        """Look up a policy."""
        subject = self._draw.one(articles.SUBJECTS)
        arguments = {"query": f"{self.ticket['subject']}: {subject}"}
        return Call(tool="search_articles", arguments=arguments, output=self._articles[subject], seconds=0.6)

    def refund(self) -> list[Call]:
        """Pay something back; now and then the first attempt is too high."""
        draw, order = self._draw, self.order
        total = float(str(order["total"]).split()[0])
        tried = {
            "order_id": order["order_id"],
            "amount": f"{total * 1.2:.2f}",
            "reason": self.ticket["subject"],
        }
        amount = f"{total * draw.within(0.2, 1):.2f}"
        refunds = listed(order, "refunds")
        refunds.append({"refund_id": f"RF-{draw.hex(8)}", "amount": f"{amount} EUR"})
        self._memory.note("amount", f"{amount} EUR")
        self.outcome = "refund"
        paid = Call(
            tool="refund", arguments={**tried, "amount": amount}, output=json.dumps(refunds[-1]), seconds=2
        )
        refused = f"Error: {tried['amount']} EUR exceeds the total of {order['total']}"
        return (
            [Call(tool="refund", arguments=tried, output=refused, failed=True), paid]
            if draw.chance(0.25)
            else [paid]
        )

    def change_address(self) -> Call:
        """Send the order elsewhere, if it has not left."""
        address, order = self.shop.address(), self.order
        arguments = {"order_id": order["order_id"], "address": address}
        if order["status"] != "processing":
            self.outcome = "address refused"
            output = (
                f"Error: order {order['order_id']} is {order['status']}, the address can no longer be changed"
            )
            return Call(tool="change_address", arguments=arguments, output=output, failed=True)
        self.outcome = "address"
        order["address"] = address
        return Call(
            tool="change_address", arguments=arguments, output=json.dumps(address, ensure_ascii=False)
        )

    def replace(self) -> Call:
        """Send an item again."""
        order_id = str(self.order["order_id"])
        item = self._draw.one(self.shop.items(order_id))
        made = self._memory.note("replacement", f"RPL-{self._draw.between(10_000, 99_999)}")
        self.outcome = "replacement"
        answer = json.dumps(
            {"replacement_id": made, "order_id": order_id, "sku": item["sku"], "state": "queued"}
        )
        return Call(
            tool="send_replacement", arguments={"order_id": order_id, "sku": item["sku"]}, output=answer
        )

    def escalate(self, reason: str) -> Call:
        """Hand the ticket to a person."""
        self.ticket["status"] = self.outcome = "escalated"
        arguments = {"ticket_id": self.ticket["ticket_id"], "reason": reason}
        answer = json.dumps({"state": "queued", "position": self._draw.between(1, 30)})
        return Call(tool="escalate", arguments=arguments, output=answer)

    def note_down(self, note: str) -> Call:
        """Write a note on the customer's record."""
        notes = self.customer["notes"]
        assert isinstance(notes, list)
        notes.append(note)
        self.outcome = "noted"
        arguments = {"customer_id": self.customer["customer_id"], "note": note}
        return Call(tool="add_note", arguments=arguments, output=f"ok, {len(notes)} notes", seconds=0.2)

    def _get(self, tool: str, record: Record, key: str) -> Call:
        for field, kind in _KINDS.items():
            if field in record:
                self._memory.note(kind, str(record[field]))
        output = json.dumps(record, ensure_ascii=False, indent=2)
        return Call(
            tool=tool, arguments={key: record[key]}, output=output, seconds=self._draw.within(0.1, 1.2)
        )
