"""What customers, the shift lead and the agent say."""

PROBLEMS = (
    (
        "late parcel",
        "my order {order} should have been here days ago. The tracking page has not changed since last week. Where is it?",
    ),
    (
        "damaged",
        "the {good} from order {order} arrived with a torn seam. I have photographs. What can you do?",
    ),
    ("wrong size", "I ordered the {good} one size too small. Can I swap it? The order number is {order}."),
    ("refund", "I sent back the {good} three weeks ago and still have no money. Order {order}."),
    ("address", "I moved! Please send order {order} to my new address: {address}."),
    ("cancel", "please cancel order {order}, I found the {good} cheaper elsewhere."),
    ("invoice", "the invoice for {order} shows the wrong company name, and my accountant will not take it."),
    ("missing item", "there was no {good} in the box, although it is on the packing slip of {order}."),
)
AGAIN = (
    "{name} again about {order}: \u201cYou promised me {amount}. Nothing has arrived yet.\u201d",
    "{name} wrote back on {ticket}: \u201cThanks, but what about the {good}? It was in {order} too.\u201d",
    "Same customer, {ticket}: \u201cIs the tracking number still {tracking}? The carrier does not know it.\u201d",
    "{name} is on the phone about {order} and wants to know what we noted last time.",
    "Please look at {ticket} once more, the customer rated it with one star.",
)
LEAD_RULES = (
    "From now on: no vouchers above {number} EUR without asking me.",
    "Reminder for everybody: {carrier} is on strike, add {number} days to every estimate.",
    "Do not offer exchanges on the {good} any more, it is sold out.",
    "Always mention the ticket number at the end of the reply.",
)
THOUGHTS = (
    "The customer asks about {order}; I need the order and the carrier's view before I say anything.",
    "The total of {order} is known, and a refund must not exceed it.",
    "Earlier in this shift, {earlier} had the same problem. The article allowed it there.",
    "The lead said: {kept}",
    "The parcel was scanned, so it does not count as lost yet.",
    "This item may not be returnable. The order will tell.",
)
REPLIES = (
    "Dear {name},\n\nthank you for your message about {order}. {outcome}\n\nKind regards\nRidgeline support ({ticket})",
    "Hello {name},\n\nI have looked into {order}. {outcome} Please tell us if anything is unclear.\n\nRidgeline support, ticket {ticket}",
    "Dear {name},\n\nsorry for the trouble with the {good}. {outcome}\n\nBest wishes\nRidgeline support\n{ticket}",
    "{cjk}\n\n{order} · {ticket}\nRidgeline",
)
OUTCOMES = {
    "refund": "I have arranged {amount} back to your original payment method; banks need a few working days.",
    "address": "The order goes to your new address, and nothing else needs to be done.",
    "address refused": "The parcel has already left, so only {carrier} can still redirect it; the number is {tracking}.",
    "replacement": "A replacement for the {good} leaves our warehouse with the next collection.",
    "escalated": "I have passed this on to a colleague, who will write to you today.",
    "noted": "Our records show the payment reference {payment}; please give it to your bank if they ask.",
    "late": "The carrier last saw your parcel {tracking} at a sorting centre, and it is on its way.",
    "other": "The total of {order} is {total}, and nothing has been booked beyond that.",
}
