"""The shop's help articles: policies with numbers in them."""

from tests.generated.draw import Draw

SUBJECTS = (
    "returns", "refunds", "delivery times", "customs", "warranty", "address changes", "gift cards", "damaged goods",
    "trail club", "invoices", "cancelled orders", "size exchange", "repairs", "lost parcels",
)  # fmt: skip
_RULES = (
    "Requests about {subject} are accepted within {days} days of delivery; later ones need the approval of a team lead.",
    "Amounts above {amount} EUR are paid back only to the original payment method.",
    "For members of the trail club the limit is {days} days instead of the usual {fewer}.",
    "If the carrier has not scanned the parcel for {fewer} working days, it counts as lost and a replacement may be sent.",
    "Ask for a photograph when the damage is not visible in the carrier's report (form {form}).",
    "The customer pays for the way back unless the goods are faulty; then a label of type {form} is issued.",
    "Goods marked as not returnable are exempt, even when they were never used.",
    "Never promise a date. The carrier's estimate plus {fewer} days may be given as a range.",
    "Orders in state `processing` can still be changed. From `shipped` on, only the carrier can redirect the parcel.",
    "Refunds take {fewer} to {days} working days, depending on the bank; cards are usually faster than invoices.",
    "Notes on {subject} belong on the customer's record, with the reference of the order.",
    "A voucher of up to {amount} EUR may be offered once per order without asking anybody.",
    "Do not ask for card numbers, passwords or documents in the chat.",
    "Parcels to islands need {fewer} more days and have their own table in form {form}.",
)


def write_article(draw: Draw, subject: str) -> str:
    """Return a help article with its number, date and rules."""
    lines = [
        f"# KB-{draw.between(100, 999)}: {subject[:1].upper()}{subject[1:]}",
        f"Last reviewed 2026-0{draw.between(1, 4)}-{draw.between(10, 28)}",
        "",
    ]
    for part in ("Who this is for", "What applies", "What to do", "Exceptions")[: draw.between(1, 4)]:
        lines += [f"## {part}", ""]
        for number, rule in enumerate(draw.some(_RULES, draw.between(2, 7)), start=1):
            text = rule.format(
                subject=subject,
                days=draw.between(14, 60),
                fewer=draw.between(2, 13),
                amount=draw.between(10, 400),
                form=f"F{draw.between(10, 99)}",
            )
            lines.append(f"{number}. {text}")
        lines.append("")
    return "\n".join(lines).rstrip()
