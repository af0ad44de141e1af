#!/usr/bin/env python3
"""What whatif's remedy planned-gc tells of garbage collection on all GPUs, each at times of its own, against the
simulation in which all pause at the same time. One row of Markdown a setting.

Usage: bench/planned_gc.py [<lockstep>] [<steps>] [<GPUs>:<pp>[:<tp>] …]
"""
import json
import pathlib
import subprocess
import sys
import tempfile

lockstep = sys.argv[1] if len(sys.argv) > 1 else "build/lockstep"
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 60
jobs = [tuple(map(int, words.split(":"))) for words in sys.argv[3:]] or [(gpus, pp) for gpus in (16, 32) for pp in (1, 2, 4)] + [(16, 2, 2)]
PAUSES = [("150ms", "6s"), ("300ms", "6s"), ("300ms", "20s"), ("500ms", "60s")]


def run(words):
    done = subprocess.run([lockstep, *words], capture_output=True, text=True, check=True)
    return done.stdout


def mean_of(job, pauses, count, *more):
    document = run(["simulate", *job, "--steps", str(count), "--straggler", pauses, "--no-straggler-prices", "--json", *more])
    return json.loads(document)["sample"]["mean_s"]


def row(folder, gpus, pp, tp, pause, every):
    job = ["--model", "llama3-8b", "--num-layers", "8", "--gpus", str(gpus), "--tp", str(tp), "--pp", str(pp), "--gbs",
           str(4 * gpus), "--seq", "4096", "--topology", f"Spectrum-X:g={gpus}"]
    trace = pathlib.Path(folder) / "t.csv"
    unplanned = mean_of(job, f"gc:*:{pause}:{every}", steps, "--trace", str(trace))
    # All alike, so quick; few of its steps have a pause.
    planned = mean_of(job, f"gc:*:{pause}:{every}:yes", 20 * steps)
    run(["whatif", "--trace", str(trace), "--meta", str(trace.with_suffix(".yaml")), "-o", folder, "--timelines", "none"])
    causes = json.loads((pathlib.Path(folder) / "causes-simulated.json").read_text())
    told = next(remedy for remedy in causes["remedies"] if remedy["remedy"] == "planned-gc")
    slow = [step["pattern"] for step in causes["steps"] if step["pattern"] != "none"]
    simulated = 1 - planned / unplanned
    print(f"| {gpus} | {pp} | {tp} | {pause} | {every} | {1000 * unplanned:.0f} | {100 * told['saves']:.1f} % | {100 * simulated:.1f} % | "
          f"{100 * (told['step_time_s'] / planned - 1):+.1f} % | {slow.count('gc')} of {len(slow)} | "
          f"{', '.join(cause['cause'] for cause in causes['causes']) or 'none'} |", flush=True)


def main():
    print("| GPUs | pp | tp | pause | every | step, ms | told | simulated | step time off | slow steps told as gc | causes |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for job in jobs:
            gpus, pp, tp = (*job, 1)[:3]
            for pause, every in PAUSES:
                row(folder, gpus, pp, tp, pause, every)


main()
