"""The pages' colours: enough contrast to be read, and apart for people who see fewer of them."""

import re
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from lowwater.lab.pages.document import asset

Numbers = npt.NDArray[np.float64]

THEMES = pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
HUES = [f"hue-{number}" for number in range(1, 9)]
TEXT, MARK = 4.5, 3.0
"""The least contrast of text and of graphics (WCAG 2.2, AA)."""
APART = 15.0
"""The least distance in CIELAB; 2 can just be seen."""

SEEING: dict[str, Numbers] = {
    "all colours": np.eye(3),
    "no red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "no blue": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
"""What is seen of linear light, in full strength (Machado, Oliveira and Fernandes, 2009)."""
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])


def light_of(name: str, theme: int) -> Numbers:
    """Return a colour of the style sheet as linear light."""
    found = re.search(rf"--{name}: light-dark\((#\w{{6}}), (#\w{{6}})\);", asset("colours.css"))
    assert found, name
    spelled = found[theme + 1]
    values = np.array([int(spelled[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one: Numbers, other: Numbers) -> float:
    dark, bright = sorted(float(XYZ[1] @ each) for each in (one, other))
    return (bright + 0.05) / (dark + 0.05)


def lab(light: Numbers) -> Numbers:
    scaled = XYZ @ np.clip(light, 0, 1) / WHITE
    x, y, z = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@THEMES
@pytest.mark.parametrize(
    ("ink", "paper"),
    [
        ("ink", "card"),
        ("ink", "page"),
        ("soft", "card"),
        ("soft", "page"),
        ("accent", "card"),
        ("accent", "wash"),
        ("ink", "wash"),
    ],
)
def test_text_can_be_read(ink: str, paper: str, theme: int) -> None:
    assert contrast(light_of(ink, theme), light_of(paper, theme)) >= TEXT


@THEMES
@pytest.mark.parametrize("hue", HUES)
def test_lines_and_areas_stand_out(hue: str, theme: int) -> None:
    assert contrast(light_of(hue, theme), light_of("card", theme)) >= MARK


@THEMES
@pytest.mark.parametrize("seeing", SEEING)
def test_no_two_hues_look_alike_to_anybody(seeing: str, theme: int) -> None:
    seen = {name: lab(SEEING[seeing] @ light_of(name, theme)) for name in (*HUES, "ink")}
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) >= APART, (one, other)
