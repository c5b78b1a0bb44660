"""Makes the file of what is scored: for each decision point its action and the views of its prompt."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.likelihood.inputs import FULL, Case, Pieces, Spot, read_cases, write_case
from bench.likelihood.peers import Peers, sizes_of
from bench.likelihood.points import Decision, Point, decisions
from bench.likelihood.prompts import Chat, prompt_pieces, prompt_tokens
from bench.likelihood.validity import views_of
from bench.likelihood.views import ABLATED_AT, CEILINGS, PARTS, drawn, lowwater_view, newest


def case_of(decision: Decision, views: Mapping[str, Sequence[Chat]]) -> Case:
    """Return a decision point with its views, the full prompt first."""
    pieces = Pieces()
    action = decision.action
    numbered = {
        name: pieces.add(prompt_pieces(messages))
        for name, messages in {FULL: decision.messages, **views}.items()
    }
    return Case(
        point=decision.point.name,
        action=action.tokens,
        kinds=action.kinds,
        spots=tuple(Spot(kind=each.kind, tokens=each.tokens) for each in action.references),
        pieces=pieces.all(),
        views=numbered,
    )


def own_views(decision: Decision) -> Iterator[tuple[str, Sequence[Chat]]]:
    """Yield the views of the validity check, Lowwater's, the two baselines of its sizes, and Lowwater's without its parts."""
    messages, point = decision.messages, decision.point
    yield from views_of(decision)
    for share in CEILINGS:
        ours = lowwater_view(messages, round(share * point.tokens))
        size = len(prompt_tokens(ours))
        yield f"lowwater-{share:.0%}", ours
        baselines = {"newest": newest(messages, size), "random": drawn(messages, size, point.name)}
        yield from ((f"{name}-{share:.0%}", view) for name, view in baselines.items() if view)
    yield (
        f"extractive-{ABLATED_AT:.0%}",
        lowwater_view(messages, round(ABLATED_AT * point.tokens), summarizer=lambda _: None),
    )
    for part in PARTS:
        yield f"without-{part}", lowwater_view(messages, round(ABLATED_AT * point.tokens), without=part)


def peer_views(decision: Decision, peers: Peers) -> Iterator[tuple[str, Sequence[Chat]]]:
    """Yield the peers' views, and Lowwater's that they are to be as small as."""
    ceilings = {f"{share:.0%}": round(share * decision.point.tokens) for share in CEILINGS}
    ours = {f"lowwater-{label}": lowwater_view(decision.messages, each) for label, each in ceilings.items()}
    yield from ours.items()
    yield from peers.views(decision, sizes_of(ours, ceilings))


Views = Callable[[Decision], Iterable[tuple[str, Sequence[Chat]]]]


def build(path: Path, points: Sequence[Point], views: Views, *, most: int, minutes: float) -> Iterator[Case]:
    """Append the case of each point that the file has not, and yield it; points with longer prompts than `most` are left out."""
    path.parent.mkdir(exist_ok=True)
    known = {case.point for case in read_cases(path)} if path.exists() else set()
    wanted = [each for each in points if each.name not in known and (not most or each.tokens <= most)]
    until = time.monotonic() + 60 * minutes
    with path.open("ab") as file:
        for decision in in_order(wanted):
            case = case_of(decision, dict(views(decision)))
            file.write(write_case(case))
            file.flush()
            yield case
            if time.monotonic() > until:
                return


def in_order(points: Iterable[Point]) -> list[Decision]:
    """Return the decision points with their contents, in the order given."""
    listed = list(points)
    found = {decision.point.name: decision for decision in decisions(listed)}
    return [found[point.name] for point in listed]
