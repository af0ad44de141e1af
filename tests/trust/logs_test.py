#!/usr/bin/env python3
"""Logs of measurements, damaged at random: `compare`, `calibrate` and `health` end soon, with a result
or with exit code 2 and a message of ours, whatever became of a log.

Usage: logs_test.py <lockstep> [<log>…]
"""
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile

from damage import DAMAGE
from outputs import PATIENCE, clean_environment

MOST_CPU = 10 * PATIENCE  # s
COMMANDS = (["compare", "@F@", "-q", "--preset", "dgx-h100"],
            ["calibrate", "@F@", "-q", "--preset", "dgx-h100", "-o", "@O@"], ["health", "@F@", "-q"])
WAYS = ("cut", "flipped", "doubled", "shuffled", "with lines lost", "with digits shifted", "with some numbers huge",
        "with many numbers huge", "a hundred times", "on one line")
lockstep = sys.argv[1]
failures, runs, slowest = 0, 0, (0, "")


def fail(text):
    global failures
    failures += 1
    print("FAILED:", text, flush=True)


def of_many_ranks():
    """A log that claims as many ranks as a reader takes, with 300 rows."""
    text = pathlib.Path("tests/data/logs/two-tables.txt").read_text()
    lines = [line for line in text.replace("nRanks 4 nNodes 2", "nRanks 16777215 nNodes 2097151").splitlines()
             if "Group  0 Pid" not in line]
    first = next(i for i, line in enumerate(lines) if line.startswith("     1048576 "))
    rows = [f"     {1048576 + 4 * i}  {262144 + i}  float  sum  -1  50.00  20.97  31.46  0  49.00  21.40  32.10  0"
            for i in range(300)]
    return "\n".join(lines[:first] + rows + lines[first:] + [""]).encode()


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (2 * MOST_CPU, 2 * MOST_CPU))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def check(where, command):
    global runs, slowest
    runs += 1
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([lockstep, *command], capture_output=True, stdin=subprocess.DEVNULL, preexec_fn=limits,
                          env=clean_environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    slowest = max(slowest, (cpu, where))
    message = done.stderr.decode(errors="replace")
    if done.returncode not in (0, 1, 2):
        fail(f"{where}: exit code {done.returncode}: {message[:300]!r}")
    elif done.returncode == 2 and ("lockstep: " not in message or "broken invariant" in message):
        fail(f"{where}: says {message[:300]!r}")
    elif done.returncode == 0 and re.search(rb"\b-?nan\b|\binf\b", done.stdout):
        fail(f"{where}: prints no number: {done.stdout[:300]!r}")
    if cpu > MOST_CPU:
        fail(f"{where}: {cpu:.1f} s of CPU")


def placed(words, file):
    return [word.replace("@F@", str(file)).replace("@O@", scratch + "/preset.json") for word in words]


logs = [pathlib.Path(name) for name in sys.argv[2:]] or sorted(pathlib.Path("tests/data/logs").iterdir())
with tempfile.TemporaryDirectory() as scratch:
    for log in logs:
        for way in WAYS:
            rng = random.Random(f"{log.name} {way}")
            data = log.read_bytes()
            if not data:
                continue
            file = pathlib.Path(scratch) / log.name
            file.write_bytes(DAMAGE[way](rng, data))
            for words in COMMANDS:
                check(f"{words[0]} of {log.name}, {way}", placed(words, file))
            file.unlink()
    many = pathlib.Path(scratch) / "many-h100.txt"
    many.write_bytes(of_many_ranks())
    for words in COMMANDS:
        check(f"{words[0]} of a log of 16777215 ranks", placed(words, many))
print(f"{runs} runs over {len(logs)} logs; most CPU {slowest[0]:.2f} s ({slowest[1]})")
sys.exit(1 if failures or runs == 0 else 0)
