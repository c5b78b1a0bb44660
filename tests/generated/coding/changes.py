"""Changes to make in a file: something that stands there once, and what it becomes."""

import re

from msgspec import Struct

from tests.generated.code.body import BodyWriter
from tests.generated.coding.workspace import Workspace
from tests.generated.draw import Draw
from tests.generated.lexicon import Lexicon

_NUMBER = re.compile(r"\b\d{2,}\b")
_TIED = (":", "{", "(", ",", "}", "[", ")")
_LEADING = (
    "}",
    ")",
    "]",
    "else",
    "except",
    "@",
    "def ",
    "class ",
    "func ",
    "export ",
    "import",
    "from ",
    '"""',
    "/**",
)


class Change(Struct, frozen=True, kw_only=True):
    """Replace `old` by `new`."""

    old: str
    new: str


def propose_change(draw: Draw, workspace: Workspace, path: str, near: int = 0) -> Change:
    """Return a change of a few lines, close to line `near` if given, that `Workspace.edit` will accept."""
    lines = workspace.lines(path)
    whole = "\n".join(lines)
    for attempt in range(40):
        reach = 6 + attempt * 4
        low, high = (max(0, near - reach), min(len(lines), near + reach)) if near else (0, len(lines))
        start = low + draw.below(high - low)
        stop = _block_end(lines, start, draw.between(1, 4))
        old = "\n".join(lines[start:stop])
        if stop > start and len(old.strip()) > 12 and whole.count(old) == 1:
            new = _changed(draw, workspace, path, lines[start:stop])
            if new != old:
                return Change(old=old, new=new)
    return Change(old=whole, new=whole + "\n")


def _block_end(lines: list[str], start: int, most: int) -> int:
    """Return where a run of simple statements of one depth ends that begins at `start`."""
    depth = _depth(lines[start])
    stop = start
    while stop < min(len(lines), start + most) and _depth(lines[stop]) == depth and _is_simple(lines[stop]):
        stop += 1
    return stop


def _is_simple(line: str) -> bool:
    text = line.strip()
    closed = text.endswith(")") or not text.endswith(_TIED)
    return bool(text) and closed and not text.startswith(_LEADING)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _changed(draw: Draw, workspace: Workspace, path: str, block: list[str]) -> str:
    indent = block[0][: _depth(block[0])]
    module = workspace.module(path)
    if module is None:
        remark = Lexicon(draw, workspace.project.domain).remark()
        return "\n".join([*block[:-1], block[-1].rstrip(".") + f" ({remark})"])
    writer = workspace.writer(module, draw)
    writer.enter(["value", "limit"], owned=path == module.path and len(indent) > len(module.dialect.tab))
    match draw.below(5):
        case 0 if any(_NUMBER.search(line) for line in block):
            return _NUMBER.sub(lambda found: str(int(found[0]) + draw.between(1, 400)), "\n".join(block))
        case 1:
            guard = module.dialect.when(writer.condition(), writer.block(1, 3))
            return "\n".join([*(indent + line for line in guard), *block])
        case 2:
            remark = module.dialect.comment(Lexicon(draw, workspace.project.domain).remark())
            return "\n".join([indent + remark, *block[:-1], *_statements(writer, indent, 1)])
        case _:
            return "\n".join(_statements(writer, indent, draw.between(1, 7)))


def _statements(writer: BodyWriter, indent: str, count: int) -> list[str]:
    return [indent + line if line else line for line in writer.block(count, 1)]
