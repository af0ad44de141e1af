#!/usr/bin/env python3
# Of several jobs the pipeline of each is drawn, each stage in a row of its own.
import json
import re
import subprocess
import sys
import tempfile

MODEL = ["--model", "llama3-8b", "--seq-length", "64", "--gpus", "8", "--global-batch", "8"]


def lockstep(*flags):
    return subprocess.run([sys.argv[1], *flags], check=True, capture_output=True, text=True).stdout


def check(fine, what):
    if not fine:
        sys.exit(f"stages_of_jobs_test.py: {what}")


with tempfile.TemporaryDirectory() as folder:
    lockstep("generate", *MODEL, "--pp", "4", "--num-layers", "4", "-o", f"{folder}/beside.json")
    step = lockstep("simulate", *MODEL, "--pp", "2", "--num-layers", "2", "--beside", f"{folder}/beside.json", "--topology", "Spectrum-X:g=16",
                    "--detail", "--json")
    stages = {(each.get("job"), each["stage"]) for each in json.loads(step)["detail"]["classes"]}
    check(stages == {(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 3)}, f"not all stages of all jobs have a class: {stages}")
    with open(f"{folder}/step.json", "w") as file:
        file.write(step)
    try:
        lockstep("report", file.name, "--figure", f"pipeline={folder}/pipeline.svg")
    except subprocess.CalledProcessError as error:
        check(error.returncode == 3, error.stderr)  # built without a charting library
        sys.exit()
    rows = sorted(set(re.findall(r">(job \d+, stage \d+)<", open(f"{folder}/pipeline.svg").read())))
    check(rows == [f"job {job + 1}, stage {stage}" for job, stage in sorted(stages)], f"the rows of the figure are {rows}")
