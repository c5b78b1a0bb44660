"""Layouts written as lists of block sizes."""

from collections.abc import Sequence

from lowwater.core.cache.belief import Block, Layout, MarkLifetime, chained


def layout_of(
    sizes: Sequence[int],
    *,
    marks: dict[int, MarkLifetime] | None = None,
    names: Sequence[str] | None = None,
    automatic: MarkLifetime = "short",
) -> Layout:
    """Return a layout with blocks of these sizes; block i is named i unless `names` says otherwise."""
    names = names or [str(at) for at in range(len(sizes))]
    keys = chained(name.encode() for name in names)
    marks = marks or {}
    blocks = tuple(
        Block(key=key, tokens=tokens, mark=marks.get(at, ""))
        for at, (key, tokens) in enumerate(zip(keys, sizes, strict=True))
    )
    return Layout(blocks=blocks, automatic=automatic)
