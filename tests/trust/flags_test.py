#!/usr/bin/env python3
"""Every flag that a command's --help names, with values that nobody means: each run ends soon, within
its memory, in a result or in a message, which names the flag where the value is none of its kind; and
a flag that changes nothing is refused or told.

Usage: flags_test.py <lockstep> [<part of a command's name>]
"""
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

from outputs import ACESO, ALL, LOGS, PATIENCE, STEP, TINY, TOPOLOGY, WHATIF, clean_environment, some, words

lockstep = str(pathlib.Path(sys.argv[1]).resolve())
part = sys.argv[2] if len(sys.argv) > 2 else ""
ROOT = pathlib.Path(__file__).resolve().parents[2]
CPU_SECONDS, MEMORY, WRITTEN = 20 * PATIENCE, (2 << 30) * PATIENCE, 64 << 20
JOB = ["--model", "llama3-8b", "--num-layers", "2", "--gpus", "8"]

# name: words before the flag; what --help is asked of; "@O@" is a folder
COMMANDS = {
    "simulate": STEP,
    "simulate analytic": [*STEP, "--engine", "analytic"],
    "simulate model": ["simulate", *JOB, "--topology", TOPOLOGY],
    "simulate stragglers": [*STEP, "--straggler", "gpu:3:1.5", "--steps", "2"],
    "collective": ["collective", "--op", "allreduce", "--topology", TOPOLOGY],
    "collective packet": ["collective", "--op", "sendrecv", "--gpus", "2", "--size", "1KiB", "--topology", TOPOLOGY,
                          "--engine", "packet"],
    "plan aceso": [*ACESO, "--aceso-size", "2layers", "--memory-limit", "4000"],
    "plan metis": ["plan", "--metis-hostfile", "tests/data/plan/metis/hostfile", "--metis-clusterfile",
                   "tests/data/plan/metis/cluster.json", "--profiles", "tests/data/plan/metis", "--layers", "4",
                   "--gbs", "8", "--max-tp", "2", "--max-batch", "2"],
    "plan model": ["plan", *JOB, "--gbs", "8", "--topology", TOPOLOGY, "--effort", "1"],
    "whatif": [*WHATIF, "-o", "@O@/out"],
    "whatif follow": ["whatif", "--follow", "@O@", "--once", "--meta", "tests/data/whatif/two-stages.yaml", "-o",
                      "@O@/out"],
    "compare": ["compare", LOGS],
    "calibrate": ["calibrate", LOGS, "-o", "@O@/preset.json"],
    "score": ["score", "tests/data/logs"],
    "score-steps": ["score-steps", "tests/data/logs"],
    "health": ["health", LOGS],
    "sweep": ["sweep", "tests/data/sweep/engines.yaml", "-o", "@O@/sweep", "--list"],
    "goodput": ["goodput", "--step", "1s", "--gpus", "8", "--gpu-mtbf", "1y", "--for", "1d", "--runs", "2"],
    "generate": ["generate", *JOB, "-o", "-"],
    "generate memory": ["generate", *JOB, "--memory"],
    "run": ["run", "--workload", "tests/data/run/one-gpu.txt", "--transport", "control", "--dry-run"],
    "profile": ["profile", *JOB, "--list"],
    "topology build": ["topology", "build", "--template", "Spectrum-X", "-g", "16", "-o", "-"],
    "topology describe": ["topology", "describe", TOPOLOGY],
    "topology draw": ["topology", "draw", TOPOLOGY, "-o", "-"],
    "topology check": ["topology", "check", TOPOLOGY],
    "report": ["report", "tests/golden/collective/alltoall.json"],
    "manual": ["manual"],
    "completion": ["completion", "bash"],
    "doctor": ["doctor"],
}
INFERENCE = ["--model_name", "DeepSeek-671B"]
for generator, more in {"simai-training": ["--num_layers", "2"], "megatron": ["--num_layers", "2"],
                        "deepspeed12": ["--num_layers", "2"], "deepspeed3": ["--num_layers", "2"],
                        "collective": [], "micro": [], "inference": INFERENCE, "vidur": INFERENCE}.items():
    COMMANDS[f"generate {generator}"] = ["generate", "--generator", generator, *more, "-o", "-"]
for template in ("AlibabaHPN", "DCN+", "fat-tree", "dragonfly", "torus"):
    COMMANDS[f"topology build {template}"] = ["topology", "build", "--template", template, "-o", "-"]

LASTING = {"--poll", "--settle"}  # milliseconds to wait: the run lasts as long as they say
VALUES = ["0", "-1", "1", "3", "1e309", "nan", "", "abc", "16777216", "9223372036854775807", "18446744073709551616",
          "-9223372036854775809", "1.5", "0x10", "1us", "1GiB", "99999h", "1e30s", "a:b:c@d", ",", "=", "no/such/file",
          "\N{LATIN SMALL LETTER E WITH ACUTE}\N{SNOWMAN}", "%n%s", "x" * 5000, "1" * 400]
NO_NUMBERS = {"nan", "abc", "1e309", "1us", ",", "x" * 5000}
TOO_LARGE = {"18446744073709551616", "-9223372036854775809", "1" * 400}
# What this engine or problem does not heed is refused, or told: words, exit code, what stderr says.
METIS, MODEL = COMMANDS["plan metis"], COMMANDS["plan model"]
UNHEEDED = [
    ([*COMMANDS["collective"], "--seed", "99999999999999999999999"], 2, "is too large"),
    ([*COMMANDS["collective"], "--seed=-1"], 2, "is negative"),
    ([*STEP, "--fct", "x"], 2, "--fct: the flow engine has no packets"),
    ([*STEP, "--pfc", "x"], 2, "--pfc: the flow engine has no packets"),
    ([*STEP, "--error-budget", "abc"], 2, "--error-budget: 'abc' is no share"),
    ([*STEP, "--sample-interval", "1us"], 2, "--sample-interval requires --samples"),
    ([*STEP, "--nvlink", "5GBps"], 0, "--nvlink changes nothing in the flow engine"),
    ([*STEP, "--busbw", "none.yaml"], 0, "--busbw changes nothing in the flow engine"),
    ([*STEP, "--dp-overlap", "0.5"], 0, "--dp-overlap changes nothing in the flow engine"),
    ([*METIS, "--actual", "x"], 2, "--actual: Metis's problem does not heed this"),
    ([*METIS, "--memory-limit", "1"], 2, "--memory-limit: Metis's problem does not heed this"),
    ([*COMMANDS["plan aceso"], "--gbs", "8"], 2, "--gbs: Aceso's problem does not heed this"),
    ([*MODEL[:-2], "--price", "x"], 2, "x: cannot read the file"),
    ([*MODEL, "--price", "x"], 2, "--effort: only a search heeds this"),
    ([*MODEL, "--max-tp", "2"], 2, "--max-tp: the search of --model does not heed this"),
    ([*MODEL, "--tp", "2", "--no-tp=false"], 0, ""),
    ([*MODEL, "--tp", "2", "--no-tp"], 2, "--no-tp forbids it"),
]
failures, counts, times = [], {}, []


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (WRITTEN, WRITTEN))  # 16777216 iterations are asked for, too


def flags_of(base):
    """(flag, kind of its value or None), as --help has them."""
    asked = [lockstep, *base[:1], "--help"]
    if base[0] == "topology":
        asked = [lockstep, *base[:2], *(["--template", base[3]] if base[1] == "build" else []), "--help"]
    if base[0] == "generate":
        asked = [lockstep, "generate", *(base[1:3] if base[1] == "--generator" else ["--flavour", "exact"]), "--help"]
    text = subprocess.run(asked, capture_output=True, text=True, cwd=ROOT).stdout
    found = {}
    for line in text.splitlines():
        match = re.match(r"  ((?:-[-\w]+,? ?)+)(.*)", line)
        if match:
            names = re.findall(r"--[\w-]+", match[1])
            rest = match[2].strip()
            if names and names[-1] not in ("--help", "--version"):
                kind = re.match(r"TEXT|INT|UINT|FLOAT|N\b|$", rest)
                found[names[0]] = kind[0] or "TEXT" if kind else None
    return sorted(found.items())


def run(arguments, where, folder, names, refused=False):
    started = time.monotonic()
    printed = tempfile.TemporaryFile()
    process = subprocess.Popen([lockstep, *arguments], stdout=printed, stderr=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, cwd=folder, env=clean_environment(), preexec_fn=limits)
    try:
        _, err = process.communicate(timeout=90 * PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        failures.append(f"{where}: no end")
        return
    times.append((time.monotonic() - started, where))
    printed.seek(0)
    out = printed.read(1000)
    printed.close()
    code, err = process.returncode, err.decode(errors="replace")
    counts[code] = counts.get(code, 0) + 1
    if refused and code != 2:
        failures.append(f"{where}: exit code {code} for what is no number")
    if code not in (0, 1, 2, 3):
        failures.append(f"{where}: exit code {code}: {err[:300]}")
    elif code in (2, 3):
        if "lockstep: " not in err:
            failures.append(f"{where}: no message: {err[:300]}")
        elif refused and not any(name in err for name in names):
            failures.append(f"{where}: the message does not say of what: {err[:300]}")
        if len(err) > 12000:
            failures.append(f"{where}: {len(err)} bytes of message")
        if out and "--json" in arguments:
            failures.append(f"{where}: printed beside an error: {out[:200]}")
    if os.environ.get("SHOW"):
        print(code, where, "|", err.strip().replace("\n", " / ")[:230], flush=True)


def one(name, base):
    flags = flags_of(base)
    if len(flags) < (1 if name in ("doctor", "manual", "completion", "topology check") else 3):
        failures.append(f"{name}: --help names {len(flags)} flags")
    for number, (flag, kind) in enumerate(flags):
        if kind:
            tries = [[f"{flag}={value}"] for value in VALUES] + [[flag], [flag, "1", flag, "2"]]
        else:
            tries = [[f"{flag}=abc"], [flag, flag], [flag]]
        if not ALL:
            number_of = {None: 0, "FLOAT": 5, "TEXT": number * 5 % len(tries)}
            tries = [tries[number_of.get(kind, (5, 10)[number % 2])]]
        for words_of in tries:
            if flag in LASTING:
                continue
            with tempfile.TemporaryDirectory() as folder:
                for entry in ("tests", "workloads", "topologies", "generator"):
                    (pathlib.Path(folder) / entry).symlink_to(ROOT / entry)
                (pathlib.Path(folder) / "out").mkdir()
                shown = " ".join(word if len(word) < 60 else word[:40] + "..." for word in words_of)
                plain = flag.lstrip("-")
                given = [word.partition("=")[2] for word in words_of if "=" in word]
                run(words(base, "out") + words_of, f"{name} {shown}", folder,
                    [flag, plain, plain.replace("-", "_")],
                    kind not in (None, "TEXT") and bool(given) and
                    given[0] in (NO_NUMBERS if kind == "FLOAT" else NO_NUMBERS | TOO_LARGE))


for name, base in COMMANDS.items():
    if part in name:
        one(name, base)
for base, code, said in UNHEEDED if not part else []:
    done = subprocess.run([lockstep, *base], capture_output=True, text=True, cwd=ROOT, env=clean_environment())
    if done.returncode != code or said not in done.stderr:
        failures.append(f"{' '.join(base)}: exit code {done.returncode}: {done.stderr[:300]}")
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{sum(counts.values())} runs, exit codes {dict(sorted(counts.items()))}, {used.ru_utime + used.ru_stime:.0f} s of "
      f"CPU, most memory {used.ru_maxrss >> 10} MiB, longest {max(times)[0]:.1f} s: {max(times)[1]}")
if used.ru_maxrss > MEMORY >> 10:
    failures.append(f"{used.ru_maxrss >> 10} MiB of memory")
for failure in failures[:100]:
    print("FAILED:", failure.strip())
sys.exit(1 if failures else 0)
