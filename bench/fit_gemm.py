#!/usr/bin/env python3
"""Fits the parameters of generator/compute/gemm_efficiency.cc on measured matrix products.

    bench/fit_gemm.py [GEMM_CSV]        (../shared/reference/physical/kernels/gemm.csv)

Shapes are split by the parity of the FNV-1a hash of "min(m,n),max(m,n),k": a shape, its transpose and
its batches are all on one side, so the held-out half holds no near copy of what was fitted. Fitted is
the mean of |log(model / measured)| over the fitting half by Nelder-Mead, from several starts. Where
there are a few rows only (A100, FP8) two parameters are fitted and the others are Hopper's in 16 bits.
Needs Python's standard library only; takes two seconds.
"""
import csv
import math
import sys

NAMES = ("launch_us", "depth_ns", "compute", "input", "output")
# name, how gpu begins, type of the operands, SMs, peak FLOP/s, bytes an element
SETS = (
    ("Hopper 16-bit", "sm_90", "BF16", 132, 989.4e12, 2),
    ("Hopper TF32", "sm_90", "F32", 132, 494.7e12, 4),
    ("Hopper FP8", "H", "FP8", 132, 1978.9e12, 1),
    ("Ampere 16-bit", "A100", "FP16", 108, 312e12, 2),
)
BANDWIDTH = {"A100": 2.039e12, "H200": 4.8e12}
TILE = 128


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def read(path):
    rows = []
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            b, m, n, k = (int(row[key]) for key in ("batch", "m", "n", "k"))
            for index, (_, gpu, dtype, sms, peak, element) in enumerate(SETS):
                if row["gpu"].startswith(gpu) and row["dtype"].split("x")[0] == dtype:
                    held = fnv1a(f"{min(m, n)},{max(m, n)},{k}") & 1
                    bandwidth = next((v for g, v in BANDWIDTH.items() if row["gpu"].startswith(g)), 3.35e12)
                    # Quantised arithmetic, input and output at full speed; depth; measured.
                    tiles = b * -(-m // TILE) * -(-n // TILE)
                    waves = max(1, -(-tiles // sms)) if tiles > sms else None
                    rows.append((index, held, tiles / sms, waves, 2.0 * TILE * TILE * k * sms / peak,
                                 element * b * (m + n) * k / bandwidth, element * b * m * n / bandwidth,
                                 k, float(row["time_us"]) * 1e-6,
                                 element * b * (m * k + k * n + m * n) / bandwidth))
    return rows


def model(p, fill, row):
    launch, depth, compute, inputs, output = p
    _, _, u, waves, wave_s, in_s, out_s, k, _, memory_s = row
    q = waves if waves else max(u, fill)
    t = launch * 1e-6 + depth * 1e-9 * k + q * wave_s / compute + inputs * in_s + output * out_s
    return max(t, launch * 1e-6 + memory_s / MEMORY_EFFICIENCY)


MEMORY_EFFICIENCY = 0.9


def minimise(f, start, rounds):
    n = len(start)
    points = [start] + [[v * (1.3 if i == j else 1) + (0.05 if i == j else 0) for i, v in enumerate(start)]
                        for j in range(n)]
    values = [f(p) for p in points]
    for _ in range(rounds):
        order = sorted(range(n + 1), key=values.__getitem__)
        points, values = [points[i] for i in order], [values[i] for i in order]
        centre = [sum(p[i] for p in points[:-1]) / n for i in range(n)]

        def at(a):
            return [c + a * (w - c) for c, w in zip(centre, points[-1])]

        r = at(-1)
        fr = f(r)
        if fr < values[0]:
            e = at(-2)
            fe = f(e)
            points[-1], values[-1] = (e, fe) if fe < fr else (r, fr)
        elif fr < values[-2]:
            points[-1], values[-1] = r, fr
        else:
            c = at(0.5)
            fc = f(c)
            if fc < values[-1]:
                points[-1], values[-1] = c, fc
            else:
                points = [points[0]] + [[(a + b) / 2 for a, b in zip(p, points[0])] for p in points[1:]]
                values = [values[0]] + [f(p) for p in points[1:]]
    best = values.index(min(values))
    return points[best], values[best]


def score(p, rows):
    errors = sorted(abs(model(p[:5], p[5], r) / r[8] - 1) for r in rows)
    bias = math.exp(sum(math.log(model(p[:5], p[5], r) / r[8]) for r in rows) / len(rows)) - 1
    p90 = errors[math.ceil(0.9 * len(errors)) - 1]
    median = errors[math.ceil(0.5 * len(errors)) - 1]
    return (f"{len(rows):4d} rows  median {100 * median:5.1f} %  p90 {100 * p90:5.1f} %"
            f"  worst {100 * errors[-1]:5.0f} %  bias {100 * bias:+5.1f} %")


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "../shared/reference/physical/kernels/gemm.csv"
    rows = read(path)
    hopper = None
    for index, (name, *_) in enumerate(SETS):
        mine = [r for r in rows if r[0] == index]
        fit, held = ([r for r in mine if r[1] == side] for side in (0, 1))

        def loss(p):
            if min(p) < 0 or p[2] > 1 or p[5] > 1 or p[2] == 0:
                return 1e9
            return sum(abs(math.log(model(p[:5], p[5], r) / r[8])) for r in fit) / len(fit)

        if hopper is None or len(mine) > 50:
            best = None
            for start in ([5, 0.8, 0.9, 0.1, 0.7, 0.2], [4, 2, 0.8, 0.6, 0.6, 0.1], [5, 3, 0.9, 0.8, 0.8, 0.05]):
                p = start
                for _ in range(4):
                    p, value = minimise(loss, p, 250)
                if best is None or value < best[1]:
                    best = p, value
            p = best[0]
            hopper = hopper or p
        else:
            def few(p):
                return loss([p[0], hopper[1], p[1], hopper[3], hopper[4], hopper[5]])

            p, _ = minimise(few, [hopper[0], hopper[2]], 300)
            p = [p[0], hopper[1], p[1], *hopper[3:]]
        print(name + ":", "  ".join(f"{n} {v:.3f}" for n, v in zip(NAMES + ("fill",), p)))
        rounded = [float(f"{v:.3f}") for v in p]
        print("  fitted   ", score(rounded, fit))
        print("  held out ", score(rounded, held))


main()
