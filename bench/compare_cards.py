#!/usr/bin/env python3
"""What two GPUs' profiles of the same jobs say of each other: by kind of operator the median of its time on the second
over its time on the first. Then what each card's large products reach, and how far samples spread.

Usage: bench/compare_cards.py [workloads/profiles/h200 workloads/profiles/h100]
"""
import glob
import json
import os
import statistics
import sys

SAMPLES = {"samples_s", "median_s", "low_s", "high_s", "spread", "outliers", "algorithm", "clock_low_Hz", "clock_high_Hz",
           "temperature_C", "peak_bytes"}


def kernels(folder):
    """(job, what was timed) to the measured kernel, of each job's folder."""
    found = {}
    for file in sorted(glob.glob(f"{folder}/*/*.measurements.json")):
        with open(file, encoding="utf-8") as text:
            measured = json.load(text)
        if "--aceso-size" in measured["command"]:
            continue
        for kernel in measured["kernels"]:
            what = tuple(sorted((key, str(value)) for key, value in kernel.items() if key not in SAMPLES))
            found[os.path.basename(os.path.dirname(file)), what] = kernel
    return found


folders = sys.argv[1:3] if len(sys.argv) > 2 else ["workloads/profiles/h200", "workloads/profiles/h100"]
first, second = map(kernels, folders)
ratios = {}
for key, kernel in second.items():
    if key in first:
        words = [kernel["kind"], kernel["precision"], kernel.get("variant", ""), "backward" if kernel.get("backward") else ""]
        ratios.setdefault(" ".join(filter(None, words)), []).append(kernel["median_s"] / first[key]["median_s"])
for what, values in sorted(ratios.items()):
    print(f"{what:40} {len(values):5d} {statistics.median(values):6.3f}")
for folder, measured in zip(folders, (first, second)):
    rates = [2e-12 * k["m"] * k["n"] * k["k"] / k["median_s"] for k in measured.values()
             if k["kind"] == "gemm" and k["precision"] == "bf16" and 2 * k["m"] * k["n"] * k["k"] > 0.8e12]
    long = [k["spread"] for k in measured.values() if k["median_s"] > 50e-6]
    print(f"{folder}: {len(rates)} products in bf16 above 0.8 TFLOP at {min(rates):.0f} to {max(rates):.0f} TFLOP/s, median "
          f"{statistics.median(rates):.0f}; {sum(s < 0.02 for s in long)} of {len(long)} operators above 50 us spread below 2 %")
