#!/usr/bin/env python3
"""`lockstep goodput` against a second writing of docs/goodput.md's process, step by step: failures of Weibull shapes 0.6, 1
and 2, checkpoints that are safe a while later, restarts that fail; and step times drawn from those of a simulation.
Usage: goodput_second_reading.py <lockstep>
"""
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile

MTBF, CHECKPOINT, DRAIN, RESTART, HORIZON, INTERVAL = 40500.0, 10.0, 300.0, 600.0, 2419200.0, 3600.0


def played(shape, steps, rng):
    """The share of the horizon that goes into steps that count."""
    scale = MTBF / math.gamma(1 + 1 / shape)
    between = lambda: scale * rng.expovariate(1) ** (1 / shape)
    every = round(INTERVAL / statistics.mean(steps))
    now, failure, done, safe, count = 0.0, between(), 0.0, 0.0, 0
    unsafe = None  # when a checkpoint will be safe, and what it holds
    while True:
        if unsafe and unsafe[0] <= now:
            safe, unsafe = unsafe[1], None
        saves = count >= every and unsafe is None
        work = CHECKPOINT if saves else rng.choice(steps)
        if min(failure, now + work) > HORIZON:
            return done / HORIZON
        if failure < now + work:
            if unsafe and unsafe[0] <= failure:
                safe = unsafe[1]
            unsafe, done, count, now = None, safe, 0, failure
            failure = now + between()
            while failure < now + RESTART:
                now, failure = failure, failure + between()
            now += RESTART
        elif saves:
            now += work
            unsafe, count = (now + DRAIN, done), 0
        else:
            now, done, count = now + work, done + work, count + 1


def told(*more):
    words = [sys.argv[1], "goodput", "--tokens", "1e6", "--gpus", "1024", "--server-mtbf", "60d", "--checkpoint", "10s", "--checkpoint-drain",
             "300s", "--interval", "1h", "--restart", "10min", "--for", "4w", "--runs", "400", "--json", *more]
    goodput = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)["goodput"]
    return goodput["mean"], (goodput["high"] - goodput["low"]) / 2


failed = False
rng = random.Random(1)
with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    drawn = [30.0, 30.0, 30.0, 75.0]
    json.dump({"schema": "lockstep-simulate/1", "sample": {"total_s": drawn}}, file)
    file.flush()
    for shape, flags, steps in [(0.6, ["--step", "60s"], [60.0]), (1.0, ["--step", "60s"], [60.0]), (2.0, ["--step", "60s"], [60.0]),
                                (1.0, ["--from", file.name], drawn)]:
        mean, width = told("--weibull", str(shape), *flags)
        sample = [played(shape, steps, rng) for _ in range(120)]
        own, own_width = statistics.mean(sample), 1.96 * statistics.stdev(sample) / math.sqrt(len(sample))
        if abs(mean - own) > 1.5 * (width + own_width):
            print(f"FAILED: shape {shape}, {flags[0]}: {mean:.5f} +- {width:.5f}, by the second reading {own:.5f} +- {own_width:.5f}")
            failed = True
sys.exit(failed)
