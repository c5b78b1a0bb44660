"""Makes the pictures of the terminal in docs/pictures: `lowwater demo` and `lowwater chat`, as they look.

Run it as `python -m tools.pictures [demo|chat]` from the project's directory; it needs tmux and no network.
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
PICTURES = ROOT / "docs" / "pictures"
COLUMNS = 98
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts that rich would have a browser fetch from elsewhere; any monospaced one will do."""


def main() -> None:
    """Make the pictures that are named, or all."""
    if not Terminal.is_here():
        sys.exit("tmux is not installed: `apt-get install tmux` or `brew install tmux`, and run this again")
    pictures = {"demo": demo, "chat": chat}
    for name in sys.argv[1:] or pictures:
        if name not in pictures:
            sys.exit(f"there is no picture {name!r}: name {' or '.join(pictures)}")
        write(name, pictures[name]())


def demo() -> str:
    """Return the screen at the end of the demo."""
    with tempfile.TemporaryDirectory() as home, _terminal(home, "demo", "--fast", rows=30) as terminal:
        terminal.wait_for("lowwater audit")
        screen = terminal.shown(coloured=True)
    return screen.partition("left with")[0]


def chat() -> str:
    """Return the screen of a chat after some work."""
    with tempfile.TemporaryDirectory() as home, _terminal(home, "chat", "harbour", rows=44) as terminal:
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
        return terminal.shown(coloured=True)


def _terminal(home: str, *arguments: str, rows: int) -> Terminal:
    environment = {
        "HOME": home,
        "XDG_DATA_HOME": str(Path(home) / "data"),
        "TERM": "tmux-256color",
        "LANG": "C.UTF-8",
    }
    command = ["env", "-u", "LOWWATER_STORE", sys.executable, "-m", "lowwater", *arguments]
    return Terminal(command, cwd=ROOT, env=environment, columns=COLUMNS, rows=rows)


def write(name: str, screen: str) -> None:
    """Write a screen with its colours as a picture."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen.rstrip("\n")), no_wrap=True, overflow="crop")
    PICTURES.mkdir(exist_ok=True)
    picture = console.export_svg(title=f"lowwater {name}", unique_id=name)
    path = PICTURES / f"{name}.svg"
    path.write_text(_FONTS.sub("", picture).replace("Fira Code, ", ""), encoding="utf-8")
    sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
