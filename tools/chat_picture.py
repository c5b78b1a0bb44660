"""Makes docs/pictures/chat.svg: `lowwater chat` in a real terminal, as it looks after some work.

Run it as `python -m tools.chat_picture` from the project's directory; it needs tmux and no network.
"""

import io
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.chat.terminal import Terminal

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures" / "chat.svg"
COLUMNS, ROWS = 98, 44
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts that rich would have a browser fetch from elsewhere; any monospaced one will do."""


def main() -> None:
    """Drive a chat and write down what the terminal shows."""
    if not Terminal.is_here():
        sys.exit("tmux is not installed: `apt-get install tmux` or `brew install tmux`, and run this again")
    with tempfile.TemporaryDirectory() as kept:
        home = Path(kept)
        environment = {
            "HOME": kept,
            "XDG_DATA_HOME": str(home / "data"),
            "TERM": "tmux-256color",
            "LANG": "C.UTF-8",
        }
        command = ["env", "-u", "LOWWATER_STORE", str(Path(sys.executable).with_name("lowwater"))]
        with Terminal(
            [*command, "chat", "harbour"], cwd=ROOT, env=environment, columns=COLUMNS, rows=ROWS
        ) as terminal:
            terminal.wait_for("0% of 184K")
            terminal.type("work for 38 steps")
            terminal.wait_for("I have worked for 38 steps", "as if · ")
            terminal.press("C-l")
            for line, shown in (
                ("find class Session", "That is what I found"),
                ("/compress the session", "/rewind takes it back"),
                ("/context", "largest"),
            ):
                terminal.type(line)
                terminal.wait_for(shown, "as if · ")
            screen = terminal.shown(coloured=True)
    write(screen.rstrip("\n"))


def write(screen: str) -> None:
    """Write a screen with its colours as a picture."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen), no_wrap=True, overflow="crop")
    PICTURE.parent.mkdir(exist_ok=True)
    picture = console.export_svg(title="lowwater chat", unique_id="chat")
    PICTURE.write_text(_FONTS.sub("", picture).replace("Fira Code, ", ""), encoding="utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
