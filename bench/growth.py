#!/usr/bin/env python3
"""How the CPU time of a collective on the flow engine grows over GPUs, bytes and channels.

Usage: growth.py LONE_COLLECTIVE [PICTURE.svg]     (about three CPU minutes)

Prints a table in Markdown, with the slope of each curve's last step on logarithmic axes (1: as fast as
what grows, 0: not at all), and draws the curves. Times are CPU seconds of one thread with the topology
given, the least of three runs of each stage; the smallest of all there is to show is 10 us.
"""
import math
import re
import subprocess
import sys

RING1 = ["allreduce", "ring", "simple", "1"]
RING8 = ["allreduce", "ring", "simple", "8"]
TREE = ["allreduce", "tree", "simple", "16"]

def fabric(gpus):
    return f"Spectrum-X:g={gpus},app=2048"

def over_gpus(flags, size, counts, *words):
    return [(n, [fabric(n), *flags, size, *words]) for n in counts]

def over_bytes(flags, gpus, sizes, *words):
    return [(s, [fabric(gpus), *flags, f"{s}MiB", *words]) for s in sizes]

def over_channels(algorithm, gpus, size, channels, *words):
    return [(c, [fabric(gpus), "allreduce", algorithm, "simple", str(c), size, *words]) for c in channels]

UP_TO = [1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]
CURVES = [
    ("GPUs", "ring, 1 channel, folded", over_gpus(RING1, "1GiB", UP_TO)),
    ("GPUs", "the same, every transfer", over_gpus(RING1, "1GiB", [64, 128, 256, 512, 1024, 2048], "full", "every")),
    ("GPUs", "ring, 8 channels, folded", over_gpus(RING8, "1GiB", UP_TO[:4])),
    ("GPUs", "double binary tree, 16 channels, folded", over_gpus(TREE, "1GiB", [128, 256, 512, 1024, 2048, 4096, 8192], "spray")),
    ("MiB", "ring, 1 channel, 4096 GPUs, folded", over_bytes(RING1, 4096, [64, 256, 1024, 4096, 16384])),
    ("MiB", "ring, 8 channels, 1024 GPUs, folded", over_bytes(RING8, 1024, [64, 256, 1024, 4096, 16384])),
    ("MiB", "double binary tree, 16 channels, 1024 GPUs, folded", over_bytes(TREE, 1024, [16, 64, 256, 1024, 4096], "spray")),
    ("channels", "ring, 1024 GPUs, 1 GiB, folded", over_channels("ring", 1024, "1GiB", [1, 2, 4, 8])),
    ("channels", "ring, 256 GPUs, 1 GiB, every transfer", over_channels("ring", 256, "1GiB", [1, 2, 4, 8], "full", "every")),
    ("channels", "double binary tree, 1024 GPUs, 1 GiB, folded", over_channels("tree", 1024, "1GiB", [2, 4, 8, 16, 32], "spray")),
]

FIELDS = re.compile(
    r"(\d+) slots +(\d+) classes +(\d+) transfers +(\d+) simulated.* run ([\d.]+) +sum ([\d.]+) s")

def measure(program, arguments):
    said = subprocess.run([program, *arguments, "repeat=3"], capture_output=True, text=True, check=True).stdout
    slots, classes, transfers, simulated, run, total = FIELDS.search(said).groups()
    return {"slots": int(slots), "classes": int(classes), "transfers": int(transfers),
            "simulated": int(simulated), "run": float(run), "sum": max(float(total), 1e-5)}

def slope(points):
    (x0, a), (x1, b) = points[-2:]
    return math.log(b["sum"] / a["sum"]) / math.log(x1 / x0)

def short(number):
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.3g} {name}"
    return str(number)

def table(results):
    print("| over | collective | from … to | CPU s | classes | transfers | simulated | slope |")
    print("|---|---|---|---|---|---|---|---|")
    for what, name, points in results:
        (x0, a), (x1, b) = points[0], points[-1]
        print(f"| {what} | {name} | {x0:,} … {x1:,} | {a['sum']:.2g} … {b['sum']:.2g} | "
              f"{short(a['classes'])} … {short(b['classes'])} | {short(a['transfers'])} … {short(b['transfers'])} | "
              f"{short(a['simulated'])} … {short(b['simulated'])} | {slope(points):.2f} |")

COLOURS = ["#0b6e99", "#c2410c", "#4d7c0f", "#7e22ce"]

def panel(curves, left, width, height):
    """One set of axes, logarithmic both ways."""
    xs = [math.log10(x) for _, _, points in curves for x, _ in points]
    lo, hi = min(xs), max(xs)
    bottom, top = -4, 2
    def place(x, y):
        return (left + (math.log10(x) - lo) / (hi - lo) * width,
                30 + (top - max(bottom, math.log10(y))) / (top - bottom) * height)
    out = []
    for power in range(bottom, top + 1):
        y = place(10 ** lo, 10.0 ** power)[1]
        out.append(f'<line x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        label = f"{10.0 ** power:g} s"
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    ticks = sorted({x for _, _, points in curves for x, _ in points})
    keep = ticks if len(ticks) < 6 else ticks[::2]
    for x in keep:
        out.append(f'<text x="{place(x, 1)[0]:.1f}" y="{height + 48}" text-anchor="middle">{x}</text>')
    out.append(f'<text x="{left + width / 2}" y="{height + 66}" text-anchor="middle">{curves[0][0]}</text>')
    for number, (_, name, points) in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        line = " ".join("{:.1f},{:.1f}".format(*place(x, m["sum"])) for x, m in points)
        out.append(f'<polyline points="{line}" stroke="{colour}" fill="none" stroke-width="2"/>')
        for x, m in points:
            px, py = place(x, m["sum"])
            out.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="2.5" fill="{colour}"/>')
        out.append(f'<text x="{left}" y="{height + 88 + 16 * number}" fill="{colour}">{name}</text>')
    return out

def draw(results, path):
    width, height = 270, 260
    body = []
    for number, what in enumerate(("GPUs", "MiB", "channels")):
        body += panel([r for r in results if r[0] == what], 60 + number * (width + 70), width, height)
    with open(path, "w", encoding="utf-8") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1050 420" font-family="sans-serif" '
                   'font-size="11">\n<style>.grid{stroke:#ddd}</style>\n<rect width="1050" height="420" fill="#fff"/>\n')
        file.write('<text x="60" y="18" font-size="13">CPU time of one all-reduce on the flow engine, topology given</text>\n')
        file.write("\n".join(body) + "\n</svg>\n")

def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    results = [(what, name, [(x, measure(sys.argv[1], arguments)) for x, arguments in points])
               for what, name, points in CURVES]
    table(results)
    if len(sys.argv) == 3:
        draw(results, sys.argv[2])

if __name__ == "__main__":
    main()
