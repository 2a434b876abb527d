"""How different two colors look to people with a color vision deficiency."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

Color = tuple[float, float, float]

VISIONS: dict[str, tuple[Color, Color, Color]] = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""Matrices on linear RGB for the complete deficiency: Machado, Oliveira and Fernandes (2009), severity 1.0."""

_TO_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
_WHITE = (0.95047, 1.0, 1.08883)


def read_color(text: str) -> Color:
    """Returns the parts of CSS's `rgb(r, g, b)`, from 0 to 1."""
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", text)[:3])
    return red, green, blue


def difference(one: Color, other: Color, vision: str) -> float:
    """Returns the distance of two colors in CIELAB (CIE76), as somebody with this deficiency sees them: below about 2
    they look the same.
    """
    first, second = (_lab(_times(VISIONS[vision], _linear(color))) for color in (one, other))
    return math.dist(first, second)


def _linear(color: Color) -> Color:
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color)
    return red, green, blue


def _times(matrix: Sequence[Color], color: Color) -> Color:
    x, y, z = (min(max(sum(a * b for a, b in zip(row, color, strict=True)), 0.0), 1.0) for row in matrix)
    return x, y, z


def _lab(color: Color) -> Color:
    parts = (part / white for part, white in zip(_times(_TO_XYZ, color), _WHITE, strict=True))
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in parts)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)
