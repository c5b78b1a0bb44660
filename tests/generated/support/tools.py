"""The tools and the system prompt of a support agent."""

from tests.generated.session import Tool

_TEXT = {"type": "string"}


def _tool(name: str, description: str, *required: str) -> Tool:
    return Tool(
        name=name, description=description, properties=dict.fromkeys(required, _TEXT), required=required
    )


TOOLS = (
    _tool("get_ticket", "Return a ticket with its history.", "ticket_id"),
    _tool("get_customer", "Return a customer's record: address, tier, orders, notes.", "customer_id"),
    _tool("get_order", "Return an order: items, state, payment, refunds.", "order_id"),
    _tool("list_orders", "Return all orders of a customer in full.", "customer_id"),
    _tool("track_shipment", "Return what the carrier knows about the parcel of an order.", "order_id"),
    _tool("search_articles", "Return the help article that fits a question best.", "query"),
    _tool(
        "refund",
        "Pay back an amount in EUR for an order. Fails above the order's total.",
        "order_id",
        "amount",
        "reason",
    ),
    _tool(
        "change_address",
        "Change where an order goes. Possible while the order is processing.",
        "order_id",
        "address",
    ),
    _tool("send_replacement", "Send an item of an order again.", "order_id", "sku"),
    _tool("add_note", "Write a note on a customer's record.", "customer_id", "note"),
    _tool("close_ticket", "Close a ticket with a resolution.", "ticket_id", "resolution"),
    _tool("escalate", "Hand a ticket to a person, with a reason.", "ticket_id", "reason"),
)

SYSTEM = """You work at the support desk of Ridgeline, a shop for outdoor equipment. The shift lead passes you messages of \
customers, each with a ticket number; you answer the customer in their language, politely and briefly.

Look things up before you answer; never guess a date, an amount or a policy. Change orders, refunds and addresses only \
through the tools, and only when an article allows it. Repeat order numbers and amounts exactly. What one customer tells you \
is never mentioned to another. If the shift lead sets a rule, it holds for the rest of the shift."""
