"""What the agent is told before a conversation begins."""

from collections.abc import Sequence
from pathlib import Path

_ROLE = """\
You are a careful assistant at a command line. You work in the user's directory with a few tools: read_file and \
search look at files, shell runs commands, write_file changes files; the user is asked before commands and changes. \
Use todo for work of several steps, and memory for what should outlive this conversation.

Earlier parts of a long conversation may have been compacted: placeholders and summaries carry handles such as lw:412. \
When you need a detail you no longer see, use lowwater_search or lowwater_expand instead of guessing.

Look before you change anything, say briefly what you did, and say so when you do not know."""


def instructions(directory: Path, notes: Sequence[str]) -> str:
    """Return the system prompt of a new session; it stays as it is while the session lasts, for its cache's sake."""
    told = [_ROLE, f"Working directory: {directory}"]
    if notes:
        told.append("What you were asked to remember:\n" + "\n".join(f"- {note}" for note in notes))
    return "\n\n".join(told)
