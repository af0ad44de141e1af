#!/usr/bin/env python3
"""The roofline's numbers for attention and for what is bound by memory, as profiles of an H200 and an H100 tell them.

The jobs of bench/fitted_jobs.txt are fitted, the others are told. What is bound by memory: mean error of
launch + bytes / min(share of bandwidth, rate), both cards alike, which differ in their memory alone. Attention: mean
of |log|, on the H200 alone; all of the H100 are told. What is in
generator/compute/{memory_efficiency,roofline}.cc is rounded from this output; where the memory alone binds, the H200's share is the rate over its
bandwidth.

Usage: bench/fit_roofline.py [workloads/profiles]
"""
import glob
import json
import math
import os
import sys

root = sys.argv[1] if len(sys.argv) > 1 else "workloads/profiles"
BANDWIDTH = {"h200": 4.8e12, "h100": 3.35e12}  # of their data sheets, B/s
with open(os.path.join(os.path.dirname(__file__), "fitted_jobs.txt"), encoding="utf-8") as names:
    FITTED = set(names.read().split("\n"))
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


def work_of(k):
    """As MemoryWork, generator/exact/operator.h."""
    kind, back = k["kind"], " backward" if k.get("backward", False) else ""
    if kind in ("residual", "activation") and k.get("variant") != "gelu":
        return "stream"
    if kind == "norm":
        return k["variant"] + " norm" + back
    return {"stream": "update" if k.get("variant") == "copy" else "one way", "adam": "update"}.get(kind, kind + back)


def read():
    """Whether it is fitted, the card and the kernel."""
    for gpu in BANDWIDTH:
        for file in sorted(glob.glob(f"{root}/{gpu}/*/*.measurements.json")):
            with open(file, encoding="utf-8") as text:
                job = json.load(text)
            if "--aceso-size" in job["command"]:
                continue
            name = f"{gpu}/{os.path.basename(os.path.dirname(file))}"
            for kernel in job["kernels"]:
                yield name in FITTED, gpu, kernel


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else float("nan")


def pattern_search(loss, at, step, until=1e-4):
    while max(s / a for s, a in zip(step, at)) > until:
        tries = [at[:i] + [at[i] + sign * step[i]] + at[i + 1:] for i in range(len(at)) for sign in (1, -1)]
        better = min(tries, key=loss)
        at, step = (better, step) if loss(better) < loss(at) else (at, [s / 2 for s in step])
    return at


kernels = list(read())
groups = {}
for fitted, gpu, k in kernels:
    if bytes_of(k) > 0:
        groups.setdefault(work_of(k), []).append((fitted, gpu, bytes_of(k), k["median_s"]))
for key, rows in sorted(groups.items()):
    def error(numbers, which, card):
        launch, share, rate = numbers
        through = min(share * BANDWIDTH[card], rate * 1e12)
        return mean(abs((launch * 1e-6 + b / through) / t - 1) for fitted, gpu, b, t in rows
                    if fitted == which and gpu == card)

    def misfit(numbers):
        if numbers[0] < 3.5 or not 0.02 < numbers[1] < 1.1 or numbers[2] < 0.01:
            return math.inf
        return error(numbers, True, "h200") + error(numbers, True, "h100")

    best = min((pattern_search(misfit, [6.0, share, rate], [3.0, share / 4, rate / 4], 1e-3)
                for share in (0.5, 0.9) for rate in (1.0, 3.0, 8.0)), key=misfit)
    print(f"{key:24} launch {best[0]:5.1f} us, {best[1]:5.3f} of bandwidth, {best[2]:5.2f} TB/s, error "
          + ", ".join(f"{card} {error(best, True, card):6.1%}, of the others {error(best, False, card):6.1%}"
                      for card in BANDWIDTH))


def attention_s(k, share, extra, block_ns, power):
    key = 2 * k["batch"] * k["heads"] * k["queries"] * (k["head_dim"] + k["value_dim"]) * (2.5 if k["backward"] else 1)
    work, way = key * (k["keys"] / 2 + extra) / (share * PRODUCTS), block_ns * 1e-9 * k["keys"]
    return 5e-6 + (work**power + way**power) ** (1 / power)


for backward in (False, True):
    rows = [(fitted and gpu == "h200", gpu, k) for fitted, gpu, k in kernels
            if k["kind"] == "attention" and k["backward"] == backward]

    def misfit(p):
        if min(p) <= 0 or p[0] > 1 or not 1 <= p[3] <= 6:
            return math.inf
        return mean(abs(math.log(attention_s(k, *p) / k["median_s"])) for fitted, _, k in rows if fitted)

    at = pattern_search(misfit, [0.7, 400.0, 20.0, 1.3], [0.1, 100.0, 5.0, 0.1])
    others = [f"{card} {mean(abs(attention_s(k, *at) / k['median_s'] - 1) for fitted, gpu, k in rows if not fitted and gpu == card):.1%}"
              for card in BANDWIDTH]
    print(f"attention {'backward' if backward else 'forward':8} share {at[0]:.3f}, {at[1]:.0f} more keys, "
          f"{at[2]:.1f} ns a key, power {at[3]:.2f}, error {misfit(at):.1%}, of the others {', '.join(others)}")
