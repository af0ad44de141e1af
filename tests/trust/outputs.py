"""Commands that write, for tests of faults: each with its outputs in the folder @O@."""
import os
import pathlib

# The suite tries a sample of each kind of fault; LOCKSTEP_TRUST=all tries everything.
ALL = os.environ.get("LOCKSTEP_TRUST") == "all"
# Under a sanitizer a program takes many times the CPU and the memory, and limits of memory that the
# kernel keeps are below what the sanitizer itself takes.
SANITIZED = os.environ.get("LOCKSTEP_SANITIZED")
PATIENCE = 8 if SANITIZED else 1

TINY = "tests/data/simulate/tiny.txt"
TOPOLOGY = "Spectrum-X:g=8"
STEP = ["simulate", "--workload", TINY, "--topology", TOPOLOGY]
ACESO = ["plan", "--aceso-model", "scale-layer", "--profiles", "tests/data/plan/scale-layer",
         "--gpus-per-node", "2", "--nodes", "2", "--global-batch", "16", "--micro-batch", "1", "2"]
WHATIF = ["whatif", "--trace", "tests/data/whatif/two-stages.csv", "--meta",
          "tests/data/whatif/two-stages.yaml"]
LOGS = "tests/data/logs/two-tables.txt"

# name: words; "@O@" is a folder that is there
COMMANDS = {
    "generate text": ["generate", "--generator", "simai-training", "--num_layers", "2", "-o", "@O@/w.txt"],
    "generate csv": ["generate", "--generator", "megatron", "--num_layers", "2", "-o", "@O@/w.csv"],
    "generate json": ["generate", "--model", "llama3-8b", "--num-layers", "2", "--gpus", "8", "-o", "@O@/w.json"],
    "topology build": ["topology", "build", "--template", "Spectrum-X", "-g", "64", "-o", "@O@/t.txt"],
    "topology draw": ["topology", "draw", TOPOLOGY, "-o", "@O@/t.svg"],
    "simulate csv": [*STEP, "--csv", "@O@/csv"],
    "simulate chrome": [*STEP, "--trace", "@O@/t.json"],
    "simulate chrome gz": [*STEP, "--trace", "@O@/t.json.gz"],
    "simulate perfetto": [*STEP, "--trace", "@O@/t.pftrace"],
    "simulate table gz": [*STEP, "--trace", "@O@/t.csv.gz"],
    "simulate columns": ["simulate", "--model", "llama3-8b", "--num-layers", "2", "--gpus", "8",
                         "--topology", TOPOLOGY, "--trace", "@O@/t.csv"],
    "simulate memory": ["simulate", "--model", "llama3-8b", "--num-layers", "2", "--gpus", "8",
                        "--topology", TOPOLOGY, "--memory-csv", "@O@/m.csv"],
    "simulate report": [*STEP, "--report", "@O@/r.html"],
    "simulate byteps": [*STEP, "--byteps-trace", "@O@/byteps"],
    "simulate json": [*STEP, "--json"],
    "collective": ["collective", "--op", "allreduce", "--size", "1KiB:1MiB", "--topology", TOPOLOGY],
    "whatif": [*WHATIF, "-o", "@O@/out"],
    "compare picture": ["compare", LOGS, "--picture", "@O@/p.svg"],
    "calibrate": ["calibrate", LOGS, "-o", "@O@/preset.json"],
    "score": ["score", "tests/data/logs", "-o", "@O@/score.md"],
    "plan aceso": [*ACESO, "--aceso-size", "4layers", "--memory-limit", "1200", "-o", "@O@/plans"],
    "plan model": ["plan", "--model", "llama3-8b", "--gpus", "8", "--gbs", "8", "--topology", TOPOLOGY,
                   "--effort", "1", "-o", "@O@/plans", "--resume", "@O@/prices"],
    "sweep": ["sweep", "tests/data/sweep/engines.yaml", "-o", "@O@/sweep"],
    "manual": ["manual", "-o", "@O@/man"],
    "profile": ["profile", "--model", "llama3-8b", "--num-layers", "2", "--gpus", "1", "--list"],
    "run": ["run", "--workload", "tests/data/run/one-gpu.txt", "--transport", "control", "-o", "@O@/run"],
    "goodput": ["goodput", "--step", "1s", "--gpus", "8", "--gpu-mtbf", "1y", "--runs", "16"],
    "doctor": ["doctor"],
}
PACKET = {
    "simulate packet": [*STEP, "--engine", "packet", "--fct", "@O@/fct.txt", "--pfc", "@O@/pfc.txt"],
}
# Journals grow by whole lines, on purpose; times of the machine stand in these.
JOURNALS = {"prices", "journal.jsonl"}
VARYING = {"sweep", "run", "plan aceso"}


def some(items, most):
    """All of them, or in the suite so many, evenly picked."""
    items = list(items)
    if ALL or len(items) <= most:
        return items
    return [items[round(i * (len(items) - 1) / max(1, most - 1))] for i in range(most)]


def words(command, folder):
    return [word.replace("@O@", str(folder)) for word in command]


def tree(folder):
    """Every file below a folder with its bytes."""
    root = pathlib.Path(folder)
    return {str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*")) if path.is_file()}


def clean_environment(**more):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("LOCKSTEP_", "FAIL_"))}
    return {**kept, **more}
