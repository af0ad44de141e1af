#!/usr/bin/env python3
"""The report's colours as people with protanopia, deuteranopia and tritanopia see them: any two of a
theme, and each of them and the background, stay apart.

Usage: colour_blind_test.py

Dichromacy: Machado, Oliveira, Fernandes, "A physiologically-based model for simulation of color
vision deficiency", IEEE TVCG 15(6), 2009, table 1, severity 1, on linear sRGB. Distance: CIE 1976
L*a*b* (D65), where 2.3 is just noticeable side by side.
"""
import itertools
import math
import re
import sys

LEAST = 14  # six times just noticeable
SIGHT = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
USED = ["background", "blue", "sky", "green", "yellow", "orange", "red", "pink", "grey", "violet", "brown", "plum", "strong"]


def linear(colour):
    channels = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def seen(colour, sight):
    return [min(1, max(0, sum(a * b for a, b in zip(row, linear(colour))))) for row in SIGHT[sight]]


def lab(rgb):
    x, y, z = (sum(a * b for a, b in zip(row, rgb)) for row in (
        (0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505)))
    x, y, z = ((t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116) for t in (x / 0.95047, y, z / 1.08883))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def lightness(colour, sight):
    return lab(seen(colour, sight))[0]


source = open("report/html/js/02_theme.js").read()
themes = re.findall(r"var (k\w+) = \{(.*?)\};", source, re.S)
assert [name for name, _ in themes] == ["kLight", "kDark"], "02_theme.js has two themes"
failures = 0
for name, body in themes:
    colours = {key: value for key, value in re.findall(r"(\w+): '(#[0-9a-f]{6})'", body) if key in USED}
    assert len(colours) == len(USED), f"{name}: {sorted(set(USED) - set(colours))} are missing"
    heat = re.findall(r"#[0-9a-f]{6}", re.search(r"heat: \[(.*?)\]", body).group(1))
    for sight in SIGHT:
        distance, a, b = min((math.dist(lab(seen(colours[a], sight)), lab(seen(colours[b], sight))), a, b)
                             for a, b in itertools.combinations(USED, 2))
        print(f"{name}, {sight}: {a} and {b} are nearest, {distance:.1f} apart")
        if distance < LEAST:
            failures += 1
            print(f"FAILED: less than {LEAST}")
        # Of a heat map hotter is always darker, or always lighter, for everyone.
        steps = [lightness(b, sight) - lightness(a, sight) for a, b in zip(heat, heat[1:])]
        if not (all(s > 2.3 for s in steps) or all(s < -2.3 for s in steps)):
            failures += 1
            print(f"FAILED: {name}, {sight}: heat goes by {[round(s, 1) for s in steps]} in lightness")
sys.exit(1 if failures else 0)
