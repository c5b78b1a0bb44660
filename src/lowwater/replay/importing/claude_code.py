"""Claude Code: one JSON line for each block, in files of sessions and of their sub-agents."""

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from lowwater.logs.recording import Recording
from lowwater.replay.importing.claude_code_lines import UNNAMED, Entry, entries_of
from lowwater.replay.importing.claude_code_messages import told
from lowwater.replay.importing.claude_code_tree import Step, branches, in_order
from lowwater.replay.importing.detect import first_objects
from lowwater.replay.importing.gathering import gathered
from lowwater.replay.importing.lines import RecordedFile

_MARKS = (
    {"uuid", "parentUuid", "sessionId"},
    {"type", "summary", "leafUuid"},
    {"type", "messageId", "snapshot", "isSnapshotUpdate"},
    {"type", "operation", "sessionId"},
)
"""Fields that stand together in lines of no other format."""


class ClaudeCode:
    """Sessions with their forks, and sub-agents as sessions of their own."""

    name = "claude-code"

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Tell whether a line has the fields that Claude Code gives to each."""
        return any(mark <= found.keys() for found in first_objects(head) for mark in _MARKS)

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield sessions first, each with its newest branch before those it left, then sub-agents."""
        for (thread, _), entries in sorted(_threads(file).items(), key=lambda item: item[0][0] != ""):
            for at, path in enumerate(branches(file, entries)):
                yield from _recording(file, thread, path, is_newest=at == 0)


def _threads(file: RecordedFile) -> dict[tuple[str, str], list[Entry]]:
    """Return the lines of each sub-agent, or of none, in each session.

    A line belongs where the one it hangs on does: in a resumed session, older lines have the session's older name.
    """
    threads: dict[tuple[str, str], list[Entry]] = {}
    homes: dict[str, tuple[str, str]] = {}
    for entry in in_order(entries_of(file)):
        above = homes.get(entry.parent, ("", ""))
        thread = entry.thread
        if thread == UNNAMED:
            thread = above[0] or entry.uuid
        home = above if entry.parent in homes and above[0] == thread else (thread, entry.session)
        lines = threads.setdefault(home, [])
        # What a session repeats of a sub-agent says nothing of where it hangs.
        chained = replace(entry, parent=lines[-1].uuid) if thread and not entry.parent and lines else entry
        homes.setdefault(entry.uuid, home)
        lines.append(chained)
    return threads


def _recording(file: RecordedFile, thread: str, path: list[Step], *, is_newest: bool) -> Iterator[Recording]:
    """Yield the branch, unless others have told all its calls."""
    session = path[-1].lines[-1].session or file.path.stem
    whole = f"{session}/{thread}" if thread else session
    id = whole if is_newest else f"{whole}/{path[-1].lines[0].uuid}"
    said = told(file, path, id)
    if not said.messages or said.sharing.is_copy:
        return
    recording = gathered(
        file, id=id, agent=ClaudeCode.name, messages=said.messages, compactions=said.compactions
    )
    if not is_newest:
        yield said.sharing.related(recording, parent=whole, relation="fork")
    elif thread:
        yield said.sharing.related(recording, parent=session, relation="subagent")
    else:
        yield said.sharing.related(recording)
