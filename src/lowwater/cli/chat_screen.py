"""What `lowwater chat` shows of a turn: text as it comes, tools, compactions, warnings, questions."""

import sys
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from lowwater.chat.tools import Outcome
from lowwater.cli.chat_wrapping import Wrapping
from lowwater.cli.kept_words import on_one_line, printable
from lowwater.cli.printing import fitted_block, page_width
from lowwater.core.events import Compaction, Event
from lowwater.core.messages import ToolCall
from lowwater.core.policies.explanations import sentence
from lowwater.core.policies.warnings import UsageWarning
from lowwater.core.tools import class_of, subject_of
from lowwater.core.wording import counted

_WARNINGS = {"info": "cyan", "notice": "cyan", "warning": "yellow", "critical": "bold red"}
_NOBODY = "not allowed: nobody can be asked here; --yes allows everything"


class Screen:
    """Writes to standard output; nothing that a model, a tool or a file says is obeyed by the terminal.

    `ask` puts a question to the user and returns what was typed; None if nobody is there.
    """

    def __init__(self, *, allows_all: bool = False, ask: Callable[[str], str] | None = None) -> None:
        self._console = Console(highlight=False)
        self._allows_all = allows_all
        self._ask = ask
        self._is_midline = False
        self._wrapping: Wrapping | None = None

    def said(self, piece: str, /) -> None:
        """Show a piece of the model's text; on a terminal lines are broken between words."""
        text = printable(piece)
        if self._console.is_terminal:
            self._wrapping = self._wrapping or Wrapping(self._console.width)
            text = self._wrapping.feed(text)
        self._write(text)

    def calling(self, call: ToolCall, /) -> None:
        """Show a tool call, on the line that its outcome will end."""
        self.end_line()
        room = max(20, page_width() - len(call.name) - 30)
        subject = "" if class_of(call) == "todo" else on_one_line(subject_of(call), room)
        line = Text.assemble(("  ▸ ", "cyan"), (on_one_line(call.name, 30), "cyan"), f" {subject}")
        self._console.print(line, end="", no_wrap=True, overflow="ellipsis")
        self._is_midline = True

    def called(self, call: ToolCall, outcome: Outcome, /) -> None:
        """Show how large a result is, or what was wrong; a plan is shown as it is."""
        if not self._is_midline:
            self._console.print("   ", end="")
        if outcome.is_error:
            said = Text(f" ✗ {on_one_line(outcome.text, 100)}", style="red")
        else:
            said = Text(f"  {counted(len(outcome.text), 'character')}", style="bright_black")
        self._console.print(said)
        self._is_midline = False
        if class_of(call) == "todo" and not outcome.is_error:
            self.show(Padding(Text(printable(outcome.text)), (0, 0, 0, 4)))

    def note(self, sentence: str, /) -> None:
        """Show something worth knowing that nobody said."""
        self.show(Text(printable(sentence), style="bright_black"))

    def failed(self, sentence: str, /) -> None:
        """Show what went wrong."""
        self.show(Text(printable(" ".join(sentence.split())), style="red"))

    def warned(self, warning: UsageWarning, /) -> None:
        """Show a warning on the way to the threshold."""
        self.show(Text(f"▲ {warning.level}: {warning.sentence}", style=_WARNINGS[warning.level]))

    def happened(self, _session: str, event: Event, /) -> None:
        """Show a compaction: what it did, and why."""
        if not isinstance(event, Compaction):
            return
        by = ", ".join(event.mechanisms)
        done = f"{event.before:,} → {event.after:,} tokens by {by}"
        if event.summarizer:
            done += f", a summary of {event.summary_tokens:,} tokens by {event.summarizer}"
        self.show(Text.assemble(("◆ compacted ", "bold magenta"), done))
        self.show(Padding(Text(sentence(event.because), style="bright_black"), (0, 0, 0, 2)))

    def allow(self, question: str, /) -> bool:
        """Ask the user whether something may be done; `a` allows everything from now on."""
        if self._allows_all:
            return True
        self.end_line()
        if self._ask is None:
            self.note(_NOBODY)
            return False
        self.show(Text.assemble(("  ? ", "bold yellow"), printable(question)))
        answer = self._ask("    yes, no or always [y/N/a] ").strip().lower()
        self._allows_all = answer in ("a", "always")
        return self._allows_all or answer in ("y", "yes")

    def show(self, *blocks: RenderableType) -> None:
        """Show blocks one below the other."""
        self.end_line()
        width = page_width()
        for block in blocks:
            self._console.print(fitted_block(block, width), width=width)

    def end_line(self) -> None:
        """Begin a new line unless one has just begun."""
        if self._wrapping is not None:
            self._write(self._wrapping.end())
            self._wrapping = None
        if self._is_midline:
            self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._is_midline = not text.endswith("\n")
