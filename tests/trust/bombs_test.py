#!/usr/bin/env python3
"""Every reader of the program with every input bomb: it ends soon, in little memory, with exit code 2
and a message of ours; and the message about a limit names what raises it.

Usage: bombs_test.py <lockstep> [<reader>]
"""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading

from bombs import bombs
from outputs import ALL, PATIENCE, clean_environment
from readers import READERS

LIMIT = "16MiB"              # bombs are cut to size with the program's own limit
MOST_RSS = (500 << 10) * PATIENCE  # KiB; a plain run has some 30 MiB, YAML's tree 75 times its text
DEFAULTS = {("collective --conf", "nothing"), ("simulate --conf", "nothing"),  # sets nothing, which is right
            ("simulate --straggler jitter", "10^9 layers")}  # a column's name and a value
EMPTY = "no line of the log names a communication"  # a warning: AICB writes such a workload, too
SKIPPING = {"score logs", "score-steps"}  # pass over the files of a folder that they cannot read
MOST_CPU = 5 * PATIENCE      # s
MOST_WALL = 60 * PATIENCE
lockstep = sys.argv[1]
failures, runs, slowest, largest = [], 0, (0, ""), (0, "")


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (4 * MOST_CPU, 4 * MOST_CPU))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(words):
    """Exit code, what was said, CPU seconds and KiB at most."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([lockstep, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=said, preexec_fn=limits,
                                   env=clean_environment(LOCKSTEP_MAX_INPUT=LIMIT))
        watch = threading.Timer(MOST_WALL, process.kill)
        watch.start()
        _, status, used = os.wait4(process.pid, 0)
        watch.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return process.returncode, said.read().decode(errors="replace"), used.ru_utime + used.ru_stime, used.ru_maxrss


# What a build without an optional part says in place of reading.
ABSENT = ("Parquet needs Apache Arrow", "this build has no charting library")


def try_reader(name, words, bomb, path, scratch):
    global runs, slowest, largest
    folder = scratch / "folder"
    out = scratch / "out"
    for each in (folder, out):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir()
    placed = []
    for word in words:
        inside = re.search(r"@D:(.*?)@", word)
        if inside:
            os.symlink(path, folder / inside[1])
            word = word.replace(inside[0], str(folder))
        placed.append(word.replace("@F@", str(path)).replace("@O@", str(out)))
    code, said, cpu, rss = run(placed)
    runs += 1
    slowest = max(slowest, (cpu, f"{name} of {bomb}"))
    largest = max(largest, (rss, f"{name} of {bomb}"))
    where = f"{name} of {bomb}"
    if (name, bomb) in DEFAULTS:
        if code != 0:
            failures.append(f"{where}: exit code {code}: {said[:300]!r}")
    elif code == 0 and name == "generate trace-replay" and EMPTY in said:
        pass
    elif code == 3 and any(text in said for text in ABSENT):
        pass
    elif code != 2:
        failures.append(f"{where}: exit code {code}: {said[:300]!r}")
    elif bomb == "nothing there" and name not in SKIPPING and path.name not in said and \
            not any(pathlib.Path(word).name in said for word in placed if str(folder) in word):
        failures.append(f"{where}: does not name the file, so that nothing shows that it is read: {said[:300]!r}")
    elif re.search(r"[\x00-\x08\x0b-\x1f\x7f]", said) or "\nlockstep: " in said.replace("\nlockstep: warning: ", "\n"):
        failures.append(f"{where}: a terminal would obey: {said[:300]!r}")
    elif len(said) > 12000:
        failures.append(f"{where}: {len(said)} bytes of message")
    elif "lockstep: " not in said:
        failures.append(f"{where}: says {said[:300]!r}")
    elif "more than 16 MiB" in said and not ("--max-input" in said and "LOCKSTEP_MAX_INPUT" in said):
        failures.append(f"{where}: does not say what raises the limit: {said[:300]!r}")
    elif "pickle" in bomb and "broken invariant" in said:
        failures.append(f"{where}: {said[:300]!r}")
    if cpu > MOST_CPU or rss > MOST_RSS:
        failures.append(f"{where}: {cpu:.1f} s of CPU, {rss >> 10} MiB")
    if any(out.rglob("*.tmp")):
        failures.append(f"{where}: leaves a file behind")


scratch = pathlib.Path(tempfile.mkdtemp())
try:
    (scratch / "bombs").mkdir()
    for b, (bomb, path) in enumerate(bombs(scratch / "bombs").items()):
        for r, (name, words) in enumerate(READERS.items()):
            if len(sys.argv) > 2 and name not in sys.argv[2:]:
                continue
            if not ALL and len(sys.argv) == 2 and (b + r) % 5:
                continue  # in the suite each bomb meets every fifth reader
            if name == "serve --token-file" and bomb not in ("nothing", "a folder", "nothing there"):
                continue  # any first line is a token, and then the server runs
            try_reader(name, words, bomb, path, scratch)
    # A pickle is refused with advice by whoever reads it.
    code, said, _, _ = run(["simulate", "--workload", str(scratch / "bombs" / "workload.pkl"), "--topology", "Spectrum-X:g=8"])
    if "pickle" not in said or "hint: AICB writes the same as .csv" not in said:
        failures.append(f"a pickle: {said!r}")
    # The limit can be raised by the flag: then 64 MiB of blanks are no log, but read.
    code, said, _, _ = run(["health", str(scratch / "bombs" / "bomb.gz"), "--max-input", "1GiB"])
    if "the file is empty" not in said:
        failures.append(f"--max-input 1GiB: {said!r}")
finally:
    shutil.rmtree(scratch)
print(f"{runs} runs; most CPU {slowest[0]:.2f} s ({slowest[1]}), most memory {largest[0] >> 10} MiB ({largest[1]})")
for failure in failures[:80]:
    print("FAILED:", failure)
sys.exit(1 if failures or runs == 0 else 0)
