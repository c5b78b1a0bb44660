"""Private keys written out as blocks: PEM, OpenSSH, PGP; also cut off, quoted, escaped or with line numbers."""

import re
from collections.abc import Iterator

from lowwater.values.secrets.found import Found

_BEGINS = "-----BEGIN "
_GAP = r"""(?:\s|\\+[nrt]|["',+>|;]|(?<=[\s>])\d{1,6}[\t→:|])"""
"""What stands between the lines of a key: in a file, in a string, in quoted code, in a listing."""
_BLOCK = re.compile(
    rf"""{_BEGINS.replace(" ", "[ ]")}(?:[A-Z0-9]{{2,12}}[ ]){{0,3}}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----
    {_GAP}*+
    (?:[A-Za-z][A-Za-z-]{{2,20}}:[ ][^\n\\"]{{0,200}}+{_GAP}++){{0,6}}+
    (?:[A-Za-z0-9+/=]{{16,}}+{_GAP}*+)++
    (?:[A-Za-z0-9+/=]{{1,15}}+{_GAP}*+){{0,2}}+
    (?:-----END[ ][A-Z0-9 ]{{1,40}}+-----)?""",
    re.VERBOSE,
)


def blocks_in(text: str) -> Iterator[Found]:
    """Yield the blocks with at least one line of a key; a header alone, as code has it, is none."""
    if _BEGINS not in text:
        return
    for match in _BLOCK.finditer(text):
        yield Found(match.start(), match.start() + len(match[0].rstrip()), "private key")
