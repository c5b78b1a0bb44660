"""What was seen in a session and is named again later."""

from bisect import bisect_right
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from tests.generated.draw import Draw


class Reference(Struct, frozen=True, kw_only=True):
    """A rare text that first stood in message `seen` and is named again in message `used`, counted from 0."""

    text: str
    kind: str
    seen: int
    used: int


class _Fact(Struct, frozen=True, kw_only=True):
    kind: str
    text: str
    seen: int


class Memory:
    """Facts by kind (path, symbol, error, number, id, rule…), noted while a step is made, settled when its messages stand."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._facts: dict[str, list[_Fact]] = {}
        self._known: dict[str, _Fact] = {}
        self._noted: dict[str, str] = {}
        self._texts: list[str] = []
        self._references: list[Reference] = []

    def note(self, kind: str, text: str) -> str:
        """Remember that the step being made shows or names `text`, and return it."""
        self._noted[text] = kind
        return text

    def knows(self, kind: str) -> bool:
        """Return whether something of this kind was seen."""
        return kind in self._facts

    def recall(self, kind: str, default: str) -> str:
        """Return a text seen before, long ago or lately, or `default` if there is none; either way it is noted."""
        facts = self._facts.get(kind)
        if not facts:
            return self.note(kind, default)
        back = (
            self._draw.below(len(facts)) if self._draw.chance(0.6) else self._draw.below(min(6, len(facts)))
        )
        return self.note(kind, facts[-1 - back].text)

    def settle(self, index: int, text: str, *, is_output: bool) -> None:
        """Take note of the message that now stands at `index`: what it shows for the first time, what it names again.

        Only users and the model name things again; what a tool's output repeats is no reference.
        """
        self._texts.append(text)
        for name, kind in self._noted.items():
            if name not in text:
                continue
            fact = self._known.get(name)
            if fact is None:
                fact = _Fact(kind=kind, text=name, seen=index)
                self._known[name] = fact
                self._facts.setdefault(kind, []).append(fact)
            elif not is_output and fact.seen < index:
                self._references.append(Reference(text=name, kind=fact.kind, seen=fact.seen, used=index))

    def references(self) -> list[Reference]:
        """Return what was named again, each with the first message that holds it, noted or not."""
        everything = "\0".join(self._texts)
        ends = list(accumulate(len(text) + 1 for text in self._texts))
        first = {name: bisect_right(ends, everything.find(name)) for name in self._known}
        return [replace(reference, seen=first[reference.text]) for reference in self._references]

    def finish_step(self) -> None:
        """Forget what was noted but did not make it into a message."""
        self._noted.clear()
