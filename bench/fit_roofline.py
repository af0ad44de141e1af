#!/usr/bin/env python3
"""The roofline's numbers for attention and for what is bound by memory, as profiles of an H200 tell them.

Every second folder of jobs is fitted (mean error of launch + bytes / rate; of attention mean of |log|), the
others are told. What is in generator/compute/{memory_efficiency,roofline}.cc is rounded from this output.

Usage: bench/fit_roofline.py [workloads/profiles/h200]
"""
import glob
import itertools
import json
import math
import os
import sys

root = sys.argv[1] if len(sys.argv) > 1 else "workloads/profiles/h200"
PRODUCTS = 0.77 * 989.4e12  # what products sustain beside them, FLOP/s


def bytes_of(k):
    """As profiler/kernel_cost.cc, in 16 bits."""
    kind, back = k["kind"], k.get("backward", False)
    area = k.get("rows", 0) * k.get("width", 0) * 2
    return {
        "norm": lambda: (3 if back else 2) * area,
        "activation": lambda: ((3 if back else 2) if k["variant"] == "gelu" else (5 if back else 3)) * area,
        "residual": lambda: 3 * area,
        "cross-entropy": lambda: k["rows"] * k["vocabulary"] * 6,
        "embedding": lambda: (5 if back else 2) * area,
        "bias-gradient": lambda: area,
        "permute": lambda: (k["rows"] + k["copies"]) * k["width"] * 2,
        "unpermute": lambda: (k["rows"] + k["copies"]) * k["width"] * 2,
        "router": lambda: 8 * k["rows"] * k["experts"],
        "adam": lambda: 28 * k["elements"],
        "stream": lambda: k["bytes"],
    }.get(kind, lambda: 0)()


def read():
    for n, folder in enumerate(sorted(f for f in glob.glob(root + "/*") if os.path.isdir(f))):
        for file in glob.glob(folder + "/*.measurements.json"):
            with open(file, encoding="utf-8") as text:
                for kernel in json.load(text)["kernels"]:
                    yield n % 2 == 1, kernel


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else float("nan")


kernels = list(read())
groups = {}
for fitted, k in kernels:
    if bytes_of(k) > 0:
        key = (k["kind"], k.get("variant") or "", "backward" if k.get("backward") else "forward")
        groups.setdefault(key, []).append((fitted, bytes_of(k), k["median_s"]))
for key, rows in sorted(groups.items()):
    def error(launch, rate, which):
        return mean(abs((launch + b / rate) / t - 1) for fitted, b, t in rows if fitted == which)

    launches, rates = (i * 0.5e-6 for i in range(61)), [i * 0.05e12 for i in range(2, 100)]
    best = min(itertools.product(launches, rates), key=lambda p: error(*p, True))
    print(f"{' '.join(key):32} launch {best[0] * 1e6:5.1f} us, {best[1] / 1e12:5.2f} TB/s, "
          f"error {error(*best, True):6.1%}, of the others {error(*best, False):6.1%}")


def attention_s(k, share, extra, block_ns, power):
    key = 2 * k["batch"] * k["heads"] * k["queries"] * (k["head_dim"] + k["value_dim"]) * (2.5 if k["backward"] else 1)
    work, way = key * (k["keys"] / 2 + extra) / (share * PRODUCTS), block_ns * 1e-9 * k["keys"]
    return 5e-6 + (work**power + way**power) ** (1 / power)


for backward in (False, True):
    rows = [(fitted, k) for fitted, k in kernels if k["kind"] == "attention" and k["backward"] == backward]

    def loss(p):
        if min(p) <= 0 or p[0] > 1 or not 1 <= p[3] <= 6:
            return math.inf
        return mean(abs(math.log(attention_s(k, *p) / k["median_s"])) for fitted, k in rows if fitted)

    at, step = [0.7, 400.0, 20.0, 1.3], [0.1, 100.0, 5.0, 0.1]
    while max(s / a for s, a in zip(step, at)) > 1e-4:  # a pattern search
        tries = [at[:i] + [at[i] + sign * step[i]] + at[i + 1:] for i in range(4) for sign in (1, -1)]
        better = min(tries, key=loss)
        at, step = (better, step) if loss(better) < loss(at) else (at, [s / 2 for s in step])
    others = mean(abs(attention_s(k, *at) / k["median_s"] - 1) for fitted, k in rows if not fitted)
    print(f"attention {'backward' if backward else 'forward':8} share {at[0]:.3f}, {at[1]:.0f} more keys, "
          f"{at[2]:.1f} ns a key, power {at[3]:.2f}, error {loss(at):.1%}, of the others {others:.1%}")
