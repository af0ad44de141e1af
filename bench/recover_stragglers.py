#!/usr/bin/env python3
"""How many slow GPUs come out of the what-if analysis of simulated steps: random jobs with one to three
slow GPUs each, fewer than half of those that do the same work. A GPU counts as found if a cause names its rank with its factor within 2 %; one that costs
less than 1 % of the step (by a simulation without it) need not be. S is that of the remedy for those that
are named (or for the slowest, if none is), against the simulations with and without them.

Usage: bench/recover_stragglers.py [<lockstep>] [<jobs>] [<seed>] [<kind>]
A kind is dense (any schedule), zb-h1, dualpipe, zero2, zero3, hsdp, experts, 1f1b-overlap (of experts) or interference.
"""
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

lockstep = sys.argv[1] if len(sys.argv) > 1 else "build/lockstep"
jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 100
draw = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
kind = sys.argv[4] if len(sys.argv) > 4 else "dense"


def run(words):
    done = subprocess.run([lockstep, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout


def time_of(job, slow, *more):
    flags = [word for rank, factor in slow.items() for word in ("--straggler", f"gpu:{rank}:{factor}")]
    return json.loads(run(["simulate", *job, *flags, "--no-straggler-prices", "--json", *more]))["total_s"]


def random_job():
    schedule_of_kind = kind if kind in ("zb-h1", "dualpipe", "1f1b-overlap") else ""
    experts = kind in ("experts", "1f1b-overlap")
    tp, pp, dp = draw.choice([1, 1, 2, 4]), draw.choice([2, 4] if schedule_of_kind else [1, 2, 4]), draw.choice([4, 8] if kind == "hsdp" else [3, 4, 8])
    gpus = tp * pp * dp
    model = "mixtral-8x7b" if experts else "llama3-8b"
    job = ["--model", model, "--num-layers", "8", "--seq", "2048", "--mbs", "1", "--gpus", str(gpus), "--tp", str(tp),
           "--pp", str(pp), "--gbs", str(dp * draw.choice([4, 8, 16])), "--topology", f"Spectrum-X:g={(gpus + 7) // 8 * 8}"]
    if schedule_of_kind:
        job += ["--schedule", schedule_of_kind]
    elif pp > 1:
        schedule = draw.choice(["1f1b", "1f1b", "gpipe", "zb-h1", "dualpipe", "vpp"] if kind == "dense" else ["1f1b", "gpipe", "vpp"])
        job += ["--vpp", "2"] if schedule == "vpp" else ["--schedule", schedule]
    if tp > 1 and (experts or draw.random() < 0.5):
        job += ["--sp"]
    if kind in ("zero2", "zero3"):
        job += ["--zero", kind[-1]]
    elif kind == "hsdp":
        job += ["--zero", "3", "--hsdp_replicas", "2"]
    elif experts:
        job += ["--ep", str(draw.choice([each for each in (2, 4, 8) if dp % each == 0] or [1]))]
    elif kind == "interference":
        job += ["--interference", str(draw.choice([0.1, 0.2, 0.3]))]
    return job, gpus, gpus // pp, dp


def random_ranks(gpus, of_a_stage, dp):
    while True:
        ranks = draw.sample(range(gpus), draw.randint(1, 3))
        stages = [rank // of_a_stage for rank in ranks]
        if all(2 * stages.count(stage) < dp for stage in stages):
            return ranks


def main():
    slow_gpus = named = wrong = 0
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "t.csv"
        while len(errors) < jobs:
            job, gpus, of_a_stage, dp = random_job()
            slow = {rank: round(draw.uniform(1.1, 2), 2) for rank in random_ranks(gpus, of_a_stage, dp)}
            try:
                time = time_of(job, slow, "--trace", str(trace))
            except RuntimeError:  # no such plan
                continue
            run(["whatif", "--trace", str(trace), "--meta", str(trace.with_suffix(".yaml")), "-o", folder])
            causes = json.loads((pathlib.Path(folder) / "causes-simulated.json").read_text())
            found = {cause["ranks"][0]: cause.get("factor", 0) for cause in causes["causes"] if cause["cause"] == "worker"}
            for rank, factor in slow.items():
                rest = {other: slow[other] for other in slow if other != rank}
                if 1 - time_of(job, rest) / time < 0.01:
                    continue
                slow_gpus += 1
                if abs(found.get(rank, 0) / factor - 1) <= 0.02:
                    named += 1
                else:
                    print("missed:", rank, factor, "found", found, "of", slow, " ".join(job))
            blamed = {rank: factor for rank, factor in found.items() if rank not in slow}
            if blamed:
                print(f"blamed: {blamed}, not {slow}", " ".join(job))
            wrong += len(blamed)
            remedies = {remedy["remedy"]: remedy["step_time_s"] for remedy in causes["remedies"]}
            mended = remedies.get("replace-workers", remedies["replace-worker"])
            replaced = found or {causes["slowest_workers"][0]["rank"]: 0}
            rest = {rank: factor for rank, factor in slow.items() if rank not in replaced}
            off = abs(causes["step_time_s"] / mended / (time / time_of(job, rest)) - 1)
            errors.append(off)
            if off > 0.01:
                print(f"S {100 * off:.1f} % off: {slow}", " ".join(job))
    close = sum(off <= 0.01 for off in errors)
    print(f"{named} of {slow_gpus} slow GPUs that cost 1 % found, {wrong} others blamed; S within 1 % in {close} of {jobs} jobs, "
          f"half of them within {100 * statistics.median(errors):.2f} %, all within {100 * max(errors):.1f} %")


main()
