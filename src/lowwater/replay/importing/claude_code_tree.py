"""The tree of a Claude Code session: its lines joined into steps, and the branches that these make.

One answer is written as a line for each of its blocks, and each tool's result hangs on the block that asked for it, so
that the lines branch where the conversation does not. An answer with all its results is one step; where steps branch,
somebody went back.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from lowwater.replay.importing.claude_code_lines import Entry
from lowwater.replay.importing.lines import RecordedFile


class Step(Struct, kw_only=True):
    """An answer and its results, or one other line."""

    lines: list[Entry]
    parent: int | None
    results: list[Entry] = field(default_factory=list)

    @property
    def real(self) -> bool:
        """Whether a model was called for it."""
        return self.lines[0].real


def in_order(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield lines in the order of the file, but none before the one it hangs on.

    Tools and streams are written down side by side: a result may stand a line or two before the call that it answers.
    """
    lines = list(entries)
    to_come = {entry.uuid for entry in lines}
    waiting: dict[str, list[Entry]] = {}
    for entry in lines:
        if entry.parent != entry.uuid and entry.parent in to_come:
            waiting.setdefault(entry.parent, []).append(entry)
            continue
        ready = [entry]
        while ready:
            first = ready.pop()
            to_come.discard(first.uuid)
            yield first
            ready += reversed(waiting.pop(first.uuid, []))
    # Lines that hang on each other in a circle have no order but that of the file.
    yield from sorted((entry for held in waiting.values() for entry in held), key=lambda entry: entry.number)


def branches(file: RecordedFile, entries: Sequence[Entry]) -> Iterator[list[Step]]:
    """Yield the conversations of one thread from first step to last: the newest, then those that were left.

    A branch counts if a model was called on it that no newer one shares.
    """
    steps = _steps(file, entries)
    if not steps:
        return
    goes_on = [False] * len(steps)
    for at in range(len(steps) - 1, -1, -1):
        parent = steps[at].parent
        if parent is not None and (steps[at].real or goes_on[at]):
            goes_on[parent] = True
    ends = [at for at, step in enumerate(steps) if step.real and not goes_on[at]]
    newest = ends.pop() if ends else len(steps) - 1
    for end in [newest, *ends]:
        yield _path(steps, _newest_under(steps, end))


def _steps(file: RecordedFile, entries: Sequence[Entry]) -> list[Step]:
    steps: list[Step] = []
    home: dict[str, int | None] = {}
    answers: dict[tuple[str, str], int] = {}
    asked: dict[str, int] = {}
    for entry in entries:
        if entry.uuid in home:
            continue  # a line that was written twice
        # A line whose parent was never written, or comes later, goes on where the file was.
        last = len(steps) - 1 if steps else None
        strays = entry.parent != "" or entry.kind == "boundary"
        parent = home.get(entry.parent, last if strays else None)
        known = next((asked[call] for call in entry.results if call in asked), None)
        answer = (entry.answer, entry.request)
        own: int | None
        if entry.kind == "link":
            own = parent
        elif known is not None:
            own = known
            steps[own].results.append(entry)
        elif entry.results:
            own = parent
            file.broken(entry.number, "the result of a tool call that was not recorded")
        elif answer in answers:
            own = answers[answer]
            steps[own].lines.append(entry)
        else:
            own = len(steps)
            steps.append(Step(lines=[entry], parent=parent))
        home[entry.uuid] = own
        if entry.kind == "answer" and own is not None:
            answers.setdefault(answer, own)
            asked |= dict.fromkeys(entry.asks, own)
    return steps


def _newest_under(steps: Sequence[Step], end: int) -> int:
    """Return the newest step among `end` and those behind it, none of which called a model."""
    under = {end}
    for at in range(end + 1, len(steps)):
        if steps[at].parent in under:
            under.add(at)
    return max(under)


def _path(steps: Sequence[Step], end: int) -> list[Step]:
    path: list[Step] = []
    at: int | None = end
    while at is not None:
        path.append(steps[at])
        at = steps[at].parent
    return path[::-1]
