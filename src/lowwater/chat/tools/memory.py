"""The tool `memory`: notes that outlive a session, in a file of the user's."""

from collections.abc import Sequence
from pathlib import Path

from platformdirs import user_data_path

from lowwater.chat.tools.tool import Arguments, Tool, text_of
from lowwater.core.secrets.redaction import conceal
from lowwater.core.wording import counted
from lowwater.errors import BadInput

_MOST_NOTES = 200
_MOST_CHARACTERS = 500
_HEADING = "# What lowwater chat was asked to remember\n"


def default_file() -> Path:
    """Return where notes are kept unless something else is said."""
    return user_data_path("lowwater", appauthor=False) / "memory.md"


class Memory:
    """Notes, one a line; what is new is written by `flush`: before each compaction, and after each turn.

    It is a memory hook of Lowwater. Secrets are not written down.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._notes = _read(file)
        self._is_changed = False

    @property
    def notes(self) -> tuple[str, ...]:
        """All notes, oldest first."""
        return tuple(self._notes)

    def on_pre_compress(self, messages: Sequence[object], /) -> None:
        """Nothing is taken from the messages: what matters was noted when it was said."""

    def flush(self) -> None:
        """Write what is new to the file."""
        if not self._is_changed:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_name(f"{self._file.name}.new")
        fresh.write_text(_HEADING + "".join(f"- {note}\n" for note in self._notes), encoding="utf-8")
        fresh.replace(self._file)
        self._is_changed = False

    def tool(self) -> Tool:
        """Return the tool by which the model reads and changes its notes."""
        return Tool(
            name="memory",
            description="Notes that outlive this conversation: preferences, decisions, facts about the project. `add` a "
            "note in one sentence, `remove` one by its words, or `list` them all.",
            parameters={
                "action": {"type": "string", "enum": ["add", "remove", "list"]},
                "note": {"type": "string", "description": "The note; not needed to list."},
            },
            required=("action",),
            run=self._run,
        )

    def _run(self, arguments: Arguments) -> str:
        match text_of(arguments, "action"):
            case "add":
                self._add(conceal(" ".join(text_of(arguments, "note").split())))
            case "remove":
                self._remove(" ".join(text_of(arguments, "note").split()))
            case "list":
                pass
            case other:
                raise BadInput(f"there is no action {other[:40]!r}: use add, remove or list")
        lines = [counted(len(self._notes), "note"), *(f"- {note}" for note in self._notes)]
        return "\n".join(lines)

    def _add(self, note: str) -> None:
        if len(note) > _MOST_CHARACTERS:
            raise BadInput(f"a note has at most {_MOST_CHARACTERS} characters: say it in one sentence")
        if len(self._notes) >= _MOST_NOTES:
            raise BadInput(f"there are {_MOST_NOTES} notes already: remove some first")
        if note not in self._notes:
            self._notes.append(note)
            self._is_changed = True

    def _remove(self, words: str) -> None:
        kept = [note for note in self._notes if words.casefold() not in note.casefold()]
        if len(kept) == len(self._notes):
            raise BadInput("no note has these words: `list` shows them")
        self._notes, self._is_changed = kept, True


def _read(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line.removeprefix("- ").strip() for line in lines if line.startswith("- ")]
