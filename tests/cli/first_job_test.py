#!/usr/bin/env python3
# Figures of a job are of its own step and GPUs, whatever runs beside it.
import json
import subprocess
import sys
import tempfile

MODEL = ["--model", "llama3-8b", "--seq-length", "64", "--gpus", "8", "--global-batch", "8", "--num-layers"]


def lockstep(*flags):
    return subprocess.run([sys.argv[1], *flags], check=True, capture_output=True, text=True).stdout


def simulate(*flags):
    return json.loads(lockstep("simulate", *MODEL, "1", "--topology", "Spectrum-X:g=16", "--json", *flags))


def check(fine, what):
    if not fine:
        sys.exit(f"first_job_test.py: {what}")


def of_step(document, step_s):
    headline = document["headline"]
    return abs(headline["tokens_per_s"] * step_s / headline["tokens_per_step"] - 1) < 1e-9


alone = simulate()
check(of_step(alone, alone["total_s"]), "tokens a second of a lone job are not of its step")

drawn = simulate("--straggler", "jitter:*:normal:0.3", "--steps", "5")
check(abs(drawn["sample"]["mean_s"] / drawn["total_s"] - 1) > 1e-3, f"the steps are to differ: {drawn['sample']}")
check(of_step(drawn, drawn["sample"]["mean_s"]), "tokens a second are not of the mean step")

with tempfile.TemporaryDirectory() as folder:
    beside = ["--beside", f"{folder}/beside.json"]
    lockstep("generate", *MODEL, "16", "-o", beside[1])
    two = simulate(*beside)
    steps = simulate(*beside, "--steps", "3")["sample"]["total_s"]
    with open(f"{folder}/two.json", "w") as file:
        json.dump(two, file)
    goodput = json.loads(lockstep("goodput", "--from", file.name, "--gpus", "8", "--gpu-mtbf", "5y", "--checkpoint", "1s", "--for", "1d", "--json"))
first, other = two["jobs"]
check(other["end_s"] > 2 * first["end_s"], f"the other job is to be much longer: {two['jobs']}")
check(two["gpus"] == 8, f"the first job has 8 GPUs: {two['gpus']}")
check(of_step(two, first["end_s"]), f"tokens a second are of all jobs' time: {two['headline']}")
check(steps == 3 * [first["end_s"]], f"the steps sampled are not the first job's: {steps}")
check(abs(goodput["step_s"] / first["end_s"] - 1) < 1e-9, f"the steps of a long run are not the first job's: {goodput}")
