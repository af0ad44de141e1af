#!/usr/bin/env python3
"""The same bytes out, whatever the machine: every command twice, on 1 and 2 threads, with and without
the cache, under another locale and time zone, with another hash of addresses.

Usage: determinism_test.py <lockstep>
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from outputs import ALL, COMMANDS, PACKET, PATIENCE, VARYING, clean_environment, tree, words

THREADS = ("collective", "plan model", "plan aceso", "goodput")
# Names and journals of these hold times of the machine.
UNSTABLE = VARYING - {"plan aceso"}
CPU_TIMES = ("search.csv", "search.svg", "search.png")  # what a search cost
lockstep = sys.argv[1]
failures, runs = [], 0
scratch = pathlib.Path(tempfile.mkdtemp())


def german_locale():
    """A locale with a decimal comma, made where the system has the sources; else none."""
    folder = scratch / "locales"
    folder.mkdir()
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")],
                          capture_output=True, check=False) if shutil.which("localedef") else None
    return {"LOCPATH": str(folder), "LC_ALL": "de_DE.UTF-8"} if made and made.returncode in (0, 1) and \
        (folder / "de_DE.UTF-8").exists() else None


def result(name, command, **settings):
    """Everything a command says and writes, with its folder's name taken out."""
    global runs
    runs += 1
    folder = scratch / "out"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    done = subprocess.run([lockstep, *words(command, folder)], capture_output=True, stdin=subprocess.DEVNULL,
                          env=clean_environment(**settings), timeout=120 * PATIENCE)
    if done.returncode != 0:
        failures.append(f"{name}: {done.stderr.decode(errors='replace')}")
    files = {path: data for path, data in tree(folder).items()
             if (name not in UNSTABLE or path.endswith("table.csv")) and not path.endswith(CPU_TIMES)}
    printed = re.sub(rb"in [0-9.]+ s of CPU", b"", done.stdout)
    return {"standard output": b"" if name in UNSTABLE else printed, "messages": done.stderr, **files}


def without_threads(parts):
    return {part: re.sub(rb'"--threads",\s*"[12]"|--threads [12]', b"", data) for part, data in parts.items()}


def compare(what, first, second):
    for part in sorted(first.keys() | second.keys()):
        if first.get(part) != second.get(part):
            failures.append(f"{what}: {part} differs")


try:
    german = german_locale()
    commands = dict(COMMANDS)
    if pathlib.Path(lockstep + "-packet").exists():
        commands |= PACKET
    for i, (name, command) in enumerate(commands.items()):
        first = result(name, command)
        if not any(first.values()):
            failures.append(f"{name} says nothing")
        ways = {"again": {}, "in Kiritimati": {"TZ": "Pacific/Kiritimati"}, "with LC_ALL=C": {"LC_ALL": "C"},
                "with other memory": {"MALLOC_PERTURB_": "165", "MALLOC_ARENA_MAX": "1"}}
        if german:
            ways["in German"] = german
        if not ALL:  # in the suite each command goes one of these ways
            ways = dict([list(ways.items())[i % len(ways)]])
        for way, settings in ways.items():
            compare(f"{name} {way}", first, result(name, command, **settings))
        if name not in UNSTABLE:
            cache = {"LOCKSTEP_CACHE": str(scratch / "cache")}
            compare(f"{name}, into the cache", first, result(name, command, **cache))
            compare(f"{name}, from the cache", first, result(name, command, **cache))
        if name in THREADS or name.startswith("simulate"):
            # A document says the command that makes it again, flags included.
            told = any(b"--threads" in data for data in result(name, [*command, "--threads", "1"]).values())
            one, two = (without_threads(result(name, [*command, "--threads", n])) for n in ("1", "2"))
            compare(f"{name} on 1 and 2 threads", one, two)
            if not told:
                compare(f"{name} on 1 thread", first, one)
finally:
    shutil.rmtree(scratch)
print(f"{runs} runs of {len(commands)} commands" + ("" if german else "; no German locale here"))
for failure in failures[:60]:
    print("FAILED:", failure)
sys.exit(1 if failures or runs == 0 else 0)
