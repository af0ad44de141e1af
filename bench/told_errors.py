#!/usr/bin/env python3
"""How often the error that `simulate --error-budget` tells holds: random small steps, in full and told.

Usage: bench/told_errors.py [--cases N] [--seed S] [--first I] [build/lockstep]

Each case draws a model of one to four layers, a job on 8 to 32 GPUs (tensor, pipeline, data parallel,
microbatches), a fabric (rails, leaf and spine, PXN or hashed over the spines), computations that
vary by rank, microbatch or operation or not at all, a congestion control, and a budget of 0.1 to 5 %. A line a case:
by how much the told step differs from the full one, the error that was told, whether it holds; then
the shares. The last rank's end is what is compared. Deterministic by seed.
"""
import argparse
import json
import random
import subprocess
import sys


def draw(rng):
    gpus = rng.choice([8, 16, 16, 32])
    tp = rng.choice([d for d in (1, 2, 4, 8) if d <= gpus])
    pp = rng.choice([p for p in (1, 1, 2) if gpus // tp % p == 0])
    dp = gpus // tp // pp
    layers = pp * rng.choice([1, 2])
    microbatches = rng.choice([2, 4, 8])
    heads = 8
    job = ["--model", "gpt3-1.3b", "--num_layers", layers, "--hidden_size", rng.choice([512, 1024, 2048]),
           "--num_attention_heads", heads, "--seq", rng.choice([512, 1024]), "--vocab_size", 8192,
           "--gpus", gpus, "--tp", tp, "--pp", pp, "--mbs", 1, "--gbs", dp * microbatches]
    if tp > 1 and rng.random() < 0.6:
        job.append("--sp")
    topology = rng.choice([f"Spectrum-X:g={gpus}", f"Spectrum-X:g={gpus},npa=128", f"DCN+:g={gpus}",
                           f"AlibabaHPN:g={gpus}"])
    flags = ["--topology", topology, "--congestion", rng.choice(["none", "dcqcn", "dcqcn", "swift"])]
    if rng.random() < 0.3:
        flags.append("--no-pxn")
    if rng.random() < 0.6:
        flags += ["--straggler", f"jitter:*:normal:{rng.choice([0.001, 0.01, 0.05])}:"
                  f"{rng.choice(['rank', 'microbatch', 'op'])}"]
    flags += ["--seed", rng.randrange(1, 1 << 20)]
    return [str(word) for word in job + flags], rng.choice(["0.1%", "0.5%", "1%", "1%", "2%", "5%"])


def run(lockstep, words):
    command = [lockstep, "simulate", "--engine", "packet", "--json", "--quiet"] + words
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        print(f"{' '.join(command)}\n{done.stderr}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lockstep", nargs="?", default="build/lockstep")
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    held = within = telling = failed = 0
    worst = 0.0
    print(f"{'case':>5} {'full us':>12} {'off %':>9} {'told %':>9} {'budget':>7} {'told':>6}  holds")
    for case in range(options.first, options.first + options.cases):
        words, budget = draw(random.Random(f"{options.seed}/{case}"))
        whole = run(options.lockstep, words)
        told = run(options.lockstep, words + ["--error-budget", budget])
        if whole is None or told is None:
            failed += 1
            continue
        full = whole["last_rank_end_s"]
        off = abs(told["last_rank_end_s"] - full)
        error = told.get("error_s", 0)
        recalled = told.get("recalled_flows", 0)
        share = recalled / told["flows"] if told.get("flows") else 0
        holds = off <= error + 1e-12
        telling += recalled > 0
        held += holds
        within += off <= float(budget[:-1]) / 100 * full
        worst = max(worst, off / full)
        print(f"{case:5} {full * 1e6:12.3f} {100 * off / full:9.4f} {100 * error / full:9.4f} {budget:>7} "
              f"{100 * share:5.1f}%  {'yes' if holds else 'NO: ' + ' '.join(words)}", flush=True)
    print(f"{options.cases} cases, {failed} failed, {telling} with collectives told: the error told holds "
          f"in {held}, the budget in {within}; largest difference {100 * worst:.3f} %")


if __name__ == "__main__":
    sys.exit(main())
