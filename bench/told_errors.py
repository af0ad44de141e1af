#!/usr/bin/env python3
"""How often the error that `simulate --error-budget` tells holds: random small steps, in full and told.

Usage: bench/told_errors.py [--engine packet|flow] [--tables] [--cases N] [--seed S] [--first I]
                            [--least SHARE] [build/lockstep]

Each case draws a model of one to four layers, a job on 8 to 32 GPUs (tensor, pipeline, data parallel,
microbatches), a fabric (rails, leaf and spine, PXN or hashed over the spines), computations that
vary by rank, microbatch or operation or not at all, for packets a congestion control, for the flow engine (without
symmetry) a flavour and whether it sprays, and a budget of 0.1 to 5 %. With --tables a case is one to four layers, each with a
ring over all of 16 to 64 GPUs in both passes, which is long enough to be cut short. A line a case:
by how much the told step differs from the full one, the error that was told, whether it holds; then
the shares. The last rank's end is what is compared. Deterministic by seed. Exit code 1 where a case fails or the error
holds in less than --least of the cases.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile


def draw(rng, engine):
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
    flags = ["--engine", engine, "--topology", topology]
    if engine == "packet":
        flags += ["--congestion", rng.choice(["none", "dcqcn", "dcqcn", "swift"])]
    else:
        flags += ["--no-symmetry"] + rng.choice([["--flavour", "simai"], ["--no-spray"], ["--spray"]])
    if rng.random() < 0.3:
        flags.append("--no-pxn")
    if rng.random() < 0.6:
        flags += ["--straggler", f"jitter:*:normal:{rng.choice([0.001, 0.01, 0.05])}:"
                  f"{rng.choice(['rank', 'microbatch', 'op'])}"]
    flags += ["--seed", rng.randrange(1, 1 << 20)]
    return [str(word) for word in job + flags], rng.choice(["0.1%", "0.5%", "1%", "1%", "2%", "5%"])


def draw_table(rng, engine, folder):
    gpus = rng.choice([16, 32, 48, 64, 64])
    lines = [f"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {gpus} ep: 1 pp: 1 vpp: 1 ga: 1 "
             f"all_gpus: {gpus} checkpoints: 0 checkpoint_initiates: 0"]
    layers = rng.randint(1, 4)
    lines.append(str(layers))
    for _ in range(layers):
        op = rng.choice(["ALLREDUCE", "ALLGATHER", "REDUCESCATTER"])
        size = 1 << rng.randint(16, 26)
        compute = rng.choice([1000, 100000])
        lines.append(f"layer -1 {compute} {op} {size} {compute} {op} {size} {compute} NONE 0 100")
    path = os.path.join(folder, f"{engine}.txt")
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
    per_server = rng.choice([8, 8, 8, 4])
    topology = rng.choice([f"Spectrum-X:g={gpus},gps={per_server}", f"DCN+:g={gpus},gps={per_server}",
                           f"AlibabaHPN:g={gpus},gps={per_server}"])
    flags = ["--engine", engine, "--workload", path, "--topology", topology,
             "--algorithm", "ring"] + rng.choice([["--flavour", "simai"], [], []])
    if "simai" in flags:
        flags = [word for word in flags if word not in ("--algorithm", "ring")]
    if engine == "packet":
        flags += ["--congestion", rng.choice(["none", "dcqcn"])]
    elif "simai" not in flags:
        flags += ["--no-symmetry"]
    return flags + ["--seed", str(rng.randrange(1, 1 << 20))], rng.choice(["0.5%", "1%", "2%", "5%"])


def run(lockstep, words):
    command = [lockstep, "simulate", "--json", "--quiet"] + words
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        print(f"{' '.join(command)}\n{done.stderr}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lockstep", nargs="?", default="build/lockstep")
    parser.add_argument("--engine", choices=["packet", "flow"], default="packet")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--least", type=float, default=0)
    options = parser.parse_args()
    held = within = telling = failed = 0
    worst = 0.0
    print(f"{'case':>5} {'full us':>12} {'off %':>9} {'told %':>9} {'budget':>7} {'told':>6}  holds")
    folder = tempfile.TemporaryDirectory()
    for case in range(options.first, options.first + options.cases):
        rng = random.Random(f"{options.seed}/{case}")
        words, budget = draw_table(rng, options.engine, folder.name) if options.tables else draw(rng, options.engine)
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
    return int(failed > 0 or held < options.least * options.cases)


if __name__ == "__main__":
    sys.exit(main())
