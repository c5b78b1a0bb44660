"""Lines on axes as SVG: enough for the pictures of the docs, and nothing to install."""

from collections.abc import Sequence

from msgspec import Struct

_WIDTH, _HEIGHT = 760, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 170, 20, 50
_COLOURS = ("#00897b", "#e65100", "#5e35b1", "#c62828", "#1565c0", "#6d4c41")


class Line(Struct, frozen=True, kw_only=True):
    """A named line, and points on it that are marked."""

    name: str
    points: Sequence[tuple[float, float]]
    marked: Sequence[tuple[float, float]] = ()


def plot(lines: Sequence[Line], *, across: str, up: str) -> str:
    """Return a picture of the lines, both axes from 0."""
    widest = max(x for line in lines for x, _ in line.points) or 1
    highest = max(y for line in lines for _, y in line.points) or 1

    def place(x: float, y: float) -> tuple[float, float]:
        inside = (_WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM)
        return _LEFT + x / widest * inside[0], _HEIGHT - _BOTTOM - y / highest * inside[1]

    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for step in range(5):
        x, y = widest * step / 4, highest * step / 4
        (left, bottom), (at, _), (_, above) = place(0, 0), place(x, 0), place(0, y)
        end = place(widest, 0)[0]
        drawn.append(
            f'<line x1="{left:.0f}" y1="{above:.1f}" x2="{end:.0f}" y2="{above:.1f}" stroke="#ddd"/>'
        )
        drawn.append(f'<text x="{left - 8:.0f}" y="{above + 4:.1f}" text-anchor="end">{_short(y)}</text>')
        drawn.append(f'<text x="{at:.1f}" y="{bottom + 18:.0f}" text-anchor="middle">{_short(x)}</text>')
    for number, line in enumerate(lines):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in (place(*point) for point in line.points))
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for a, b in (place(*point) for point in line.marked):
            drawn.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4" fill="{colour}"/>')
        label = _TOP + 16 + 20 * number
        drawn.append(
            f'<rect x="{_WIDTH - _RIGHT + 12}" y="{label - 9}" width="14" height="4" fill="{colour}"/>'
        )
        drawn.append(f'<text x="{_WIDTH - _RIGHT + 32}" y="{label}">{line.name}</text>')
    middle = place(widest / 2, 0)[0]
    drawn.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 10}" text-anchor="middle">{across}</text>')
    drawn.append(f'<text x="{_LEFT}" y="{_TOP - 6}">{up}</text>')
    return "\n".join([*drawn, "</svg>", ""])


def _short(number: float) -> str:
    if number >= 1_000:
        return f"{number / 1_000:,.0f}K"
    return f"{number:,.2f}".rstrip("0").rstrip(".") if number else "0"
