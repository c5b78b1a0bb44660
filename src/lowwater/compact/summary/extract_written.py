"""Names in what the assistant wrote into files and other long arguments: the last thing a summary has room for."""

from collections import Counter
from collections.abc import Iterator

from lowwater.compact.summary.critical import Kept
from lowwater.compact.summary.naming import Naming
from lowwater.compact.summary.notes import LAST, Note, Room
from lowwater.compact.summary.story import Step, Story
from lowwater.compact.summary.template import Section
from lowwater.values.summaries import Critical
from lowwater.values.tools import path_of

WRITTEN = "Names in what was written to "
_MOST = 24
"""Names of one file."""
_READ = 20_000
"""Characters of one argument that are read."""


def written_notes(story: Story, text: str, room: Room) -> Iterator[Note]:
    """Yield for each file written to, the newest first, the names in it that `text` does not have, those used most first."""
    naming = Naming()
    times: dict[str, Counter[Critical]] = {}
    for step in story.steps:
        if step.kind != "write" or step.failed:
            continue
        path = path_of(step.call).rpartition("/")[2] or step.call.name
        names = times.pop(path, Counter[Critical]())
        for value in _texts(step):
            names.update(
                Critical(kind=kind, text=name) for kind, name in naming.named_in(value) if kind != "value"
            )
        times[path] = names
    kept, listed = Kept(text), set[Critical]()
    for path in reversed(times):
        fresh = [name for name, _ in times[path].most_common() if name not in listed and not kept.has(name)][
            :_MOST
        ]
        listed.update(fresh)
        if fresh:
            line = f"{WRITTEN}`{path}`: {', '.join(name.text for name in fresh)}"
            yield Note(section=Section.CONTEXT, text=line, worth=room.worth(line, 0.4), at=LAST)


def _texts(step: Step) -> Iterator[str]:
    """Yield every text in the arguments of a call, however deep."""
    waiting: list[object] = list(step.arguments.values())
    while waiting:
        match waiting.pop():
            case str(text):
                yield text[:_READ]
            case list(items):
                waiting += items
            case dict(fields):
                waiting += fields.values()
            case _:
                pass
