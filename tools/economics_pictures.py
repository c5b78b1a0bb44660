"""Draws the pictures of docs/economics.md from the engine itself. `python -m tools.economics_pictures`."""

import json
from pathlib import Path

from msgspec.structs import replace

from lowwater import Lowwater
from lowwater.adapters.models import load_registry
from lowwater.core.costs.prices import cost_of
from lowwater.core.costs.tuning import Ratios, break_even_prune
from lowwater.core.events import Compaction
from lowwater.core.formats.codec import as_completion, encode_messages
from lowwater.session.internals import internals
from lowwater.settings import OutputSettings, Settings
from lowwater.testing.fakes import RecordingSink, ScriptedClock
from tests.generated import GeneratedSession, generate_session
from tools.plotting import Line, plot

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
_MODEL = "claude-opus-4-5"
_POLICIES = ("never", "threshold", "rent-or-buy")
_OUTPUT = 400
_BEHIND = range(0, 101, 5)


def break_even_picture() -> str:
    """Return how many calls a prune of 40,000 tokens takes to pay, by what stands behind it (docs/economics.md, N* = (w − r)·D / (r·X))."""
    lines = [
        Line(
            name=f"read at {read:g} of input",
            points=[
                (1_000 * behind, break_even_prune(_at(read), removes=40_000, survives=1_000 * behind))
                for behind in _BEHIND
            ],
        )
        for read in (0.1, 0.05, 0.025)
    ]
    return plot(lines, across="tokens that survive behind the first change", up="calls until it has paid")


def _at(read: float) -> Ratios:
    return Ratios(read=read, write=1.25, output=5.0)


class Played:
    """One generated session under one policy: the size of each prompt and the bill so far."""

    def __init__(self, policy: str, made: GeneratedSession) -> None:
        model = load_registry().find(_MODEL)
        clock, sink = ScriptedClock(), RecordingSink()
        quiet = Settings(output=OutputSettings(quiet=True))
        session = Lowwater(
            model=_MODEL, policy=policy, store="memory:", clock=clock, sinks=[sink], settings=quiet
        ).session(policy)
        self.sizes: list[tuple[float, float]] = []
        self.bills: list[tuple[float, float]] = []
        self.bought: list[int] = []
        paid = 0.0
        new: list[object] = []
        raws = [json.loads(raw) for raw in encode_messages(made.messages, "openai_chat")]
        for message, at in zip(raws, made.times, strict=True):
            if message["role"] != "assistant":
                new.append(message)
                continue
            clock.advance(max(0.0, at - clock.now()))
            session.append(new)
            new = []
            told = len(sink.events)
            session.prepare(system=made.system, offers_recall=True)
            usage = replace(internals(session).expected_usage, output=_OUTPUT)
            paid += (cost_of(usage, model) or 0) / 1e9
            call = len(self.sizes) + 1
            self.sizes.append((call, usage.prompt))
            self.bills.append((call, paid))
            if any(isinstance(event, Compaction) for _, event in sink.events[told:]):
                self.bought.append(call - 1)
            session.record(as_completion(message, usage, _MODEL))

    def marked(self, points: list[tuple[float, float]]) -> list[tuple[float, float]]:
        """Return the points at which something was compacted."""
        return [points[call] for call in self.bought]


def session_pictures() -> dict[str, str]:
    """Return the size of the prompt and the bill of one session under several policies."""
    made = generate_session("coding", seed=5, model=_MODEL, turns=220)
    played = {policy: Played(policy, made) for policy in _POLICIES}
    sizes = [
        Line(name=name, points=each.sizes, marked=each.marked(each.sizes)) for name, each in played.items()
    ]
    bills = [
        Line(name=name, points=each.bills, marked=each.marked(each.bills)) for name, each in played.items()
    ]
    return {
        "view-size.svg": plot(sizes, across="call", up="tokens of the prompt (● compacted)"),
        "bill.svg": plot(bills, across="call", up="dollars so far (● compacted)"),
    }


def main() -> None:
    """Draw all of them."""
    pictures = {"break-even.svg": break_even_picture(), **session_pictures()}
    for name, drawn in pictures.items():
        (PICTURES / name).write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
