"""The course of a support shift: ticket after ticket, customers who come back, rules from the lead."""

from collections.abc import Callable, Iterator, Sequence

from tests.generated import cjk
from tests.generated.draw import Draw
from tests.generated.memory import Memory
from tests.generated.session import Tool
from tests.generated.steps import Act, Ask, Call, Step, Tell
from tests.generated.support import talk
from tests.generated.support.desk import Desk
from tests.generated.support.records import Record, listed
from tests.generated.support.tools import SYSTEM, TOOLS


class SupportStory:
    """A shift lead who passes on messages and an agent who answers customers."""

    system: str = SYSTEM
    tools: tuple[Tool, ...] = TOOLS

    def __init__(self, draw: Draw, memory: Memory) -> None:
        self._draw = draw
        self._memory = memory
        self._desk = Desk(draw, memory)
        self._rules: list[str] = []
        self._tickets: dict[str, Record] = {}

    def steps(self) -> Iterator[Step]:
        """Yield ticket after ticket."""
        while True:
            comes_back = len(self._tickets) > 2 and self._draw.chance(0.35)
            yield from self._again(self._earlier()) if comes_back else self._new()
            while self._draw.chance(0.4):
                yield from self._again(self._desk.ticket)

    def closing(self) -> Tell:
        """Return a reply to the customer at hand."""
        return self._reply()

    def _new(self) -> Iterator[Step]:
        draw, desk = self._draw, self._desk
        subject, message = draw.one(talk.PROBLEMS)
        ticket = desk.ticket = desk.shop.open_ticket(subject)
        ticket_id = str(ticket["ticket_id"])
        self._tickets[ticket_id] = ticket
        written = self._say((message,))
        if draw.chance(0.08):
            written = cjk.sentence(draw, draw.one(cjk.LANGUAGES), about=str(ticket["order_id"]))
        listed(ticket, "history").append({"from": "customer", "text": written})
        self._memory.note("ticket", ticket_id)
        name = desk.customer["name"]
        yield Ask(
            text=f"[{ticket_id}] {name} ({ticket['customer_id']}) writes: \u201c{written}\u201d{self._rule()}"
        )
        yield self._act([desk.get_ticket()])
        lookups = [desk.get_order, desk.list_orders if draw.chance(0.3) else desk.get_customer]
        if draw.chance(0.35):
            yield self._act([lookup() for lookup in lookups])
        else:
            yield self._act([lookups[0]()])
            yield self._act([lookups[1]()])
        if draw.chance(0.6):
            yield self._act([desk.track()])
        if draw.chance(0.5):
            yield self._act([desk.search()])
        yield from self._resolve()
        yield self._reply()

    def _earlier(self) -> Record:
        wanted = self._memory.recall("ticket", next(iter(self._tickets)))
        return self._tickets[wanted]

    def _again(self, ticket: Record) -> Iterator[Step]:
        draw, desk = self._draw, self._desk
        desk.ticket = ticket
        written = self._say(talk.AGAIN)
        listed(ticket, "history").append({"from": "customer", "text": written})
        yield Ask(text=written + self._rule())
        for look in draw.some([desk.get_ticket, desk.track, desk.get_order], draw.below(3)):
            yield self._act([look()])
        if draw.chance(0.3):
            yield from self._resolve()
        yield self._reply()

    def _resolve(self) -> Iterator[Step]:
        desk = self._desk
        match self._draw.below(5):
            case 0:
                for call in desk.refund():
                    yield self._act([call])
            case 1:
                yield self._act([desk.change_address()])
            case 2:
                yield self._act([desk.replace()])
            case 3:
                yield self._act([desk.escalate(self._say(talk.THOUGHTS))])
            case _:
                yield self._act([desk.note_down(self._say((talk.OUTCOMES["noted"],)))])

    def _rule(self) -> str:
        if not self._draw.chance(0.05):
            return ""
        self._rules.append(self._memory.note("rule", self._say(talk.LEAD_RULES)))
        return f"\n{self._rules[-1]}"

    def _act(self, calls: Sequence[Call]) -> Act:
        return Act(calls=tuple(calls), thought=self._say(talk.THOUGHTS) if self._draw.chance(0.2) else "")

    def _reply(self) -> Tell:
        weights = [(template, 1 if "{cjk}" in template else 8) for template in talk.REPLIES]
        text = self._say((self._draw.weighted(weights),))
        listed(self._desk.ticket, "history").append({"from": "support", "text": text})
        self._desk.outcome = "other"
        return Tell(text=text)

    def _say(self, templates: Sequence[str]) -> str:
        draw, desk, memory = self._draw, self._desk, self._memory
        order, ticket_id = desk.order, str(desk.ticket["ticket_id"])
        slots: dict[str, Callable[[], object]] = {
            "name": lambda: desk.customer["name"],
            "ticket": lambda: memory.note("ticket", ticket_id),
            "earlier": lambda: memory.recall("ticket", ticket_id),
            "order": lambda: memory.note("order", str(order["order_id"])),
            "good": lambda: draw.one(desk.shop.items(str(order["order_id"])))["name"],
            "tracking": lambda: memory.note("tracking", str(order["tracking"])),
            "amount": lambda: memory.note("amount", self._amount()),
            "total": lambda: memory.note("amount", str(order["total"])),
            "payment": lambda: memory.note("payment", self._payment()),
            "address": lambda: ", ".join(str(line) for line in desk.shop.address().values()),
            "carrier": lambda: order["carrier"],
            "number": lambda: draw.between(5, 60),
            "kept": self._kept,
            "outcome": lambda: self._say((talk.OUTCOMES[desk.outcome],)),
            "cjk": lambda: cjk.sentence(draw, draw.one(cjk.LANGUAGES), about=str(order["order_id"])),
        }
        template = draw.one(templates)
        return template.format(**{slot: give() for slot, give in slots.items() if f"{{{slot}}}" in template})

    def _kept(self) -> str:
        """Return a rule of the lead's that still holds."""
        standing = self._draw.one(self._rules) if self._rules else "look things up before you answer."
        return self._memory.note("rule", standing)

    def _amount(self) -> str:
        refunds = listed(self._desk.order, "refunds")
        return str(refunds[-1]["amount"] if refunds else self._desk.order["total"])

    def _payment(self) -> str:
        payment = self._desk.order["payment"]
        assert isinstance(payment, dict)
        return str(payment["reference"])
