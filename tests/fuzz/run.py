#!/usr/bin/env python3
"""Runs fuzz targets of the preset "fuzz", one after the other, each for so many seconds of CPU time,
and prints a line of figures for each.

Usage: tests/fuzz/run.py <build folder> <CPU seconds a target> [<target>…]
       tests/fuzz/run.py <build folder> --keep [<target>…]

What reaches new code comes to <build folder>/found/<target>, an input that breaks something to
<build folder>/findings with the log; then the exit code is 1. --keep tries nothing: each corpus
takes over those of the inputs found that the smallest set which reaches all of it needs, up to 20
of at most 1 KiB each.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MOST_NEW, LARGEST = 20, 1024
MOST_FINDINGS = 3  # of one target, then the next one comes
FLAGS = ["-timeout=20", "-rss_limit_mb=3000", "-max_len=16384", "-print_final_stats=1"]
CORPORA = pathlib.Path(__file__).resolve().parent / "corpus"
build = pathlib.Path(sys.argv[1]).resolve()


def corpus_of(target):
    name = re.sub(r"^fuzz_|_fuzz$", "", target)
    return CORPORA / {"chakra_rank": "chakra_et"}.get(name, name)


def cpu_so_far(pid):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(command, log, cpu_limit):
    """CPU seconds used, and whether it was we who ended it."""
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=build,
                                   preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, 19))
        interrupted = False
        while True:
            pid, _, used = os.wait4(process.pid, os.WNOHANG)
            if pid != 0:
                return used.ru_utime + used.ru_stime, interrupted
            if not interrupted and cpu_so_far(process.pid) >= cpu_limit:
                process.send_signal(signal.SIGINT)
                interrupted = True
            time.sleep(0.2)


def fuzz(target, seconds):
    """How many findings."""
    found, findings = build / "found" / target, build / "findings"
    for folder in (found, findings):
        folder.mkdir(parents=True, exist_ok=True)
    log = build / "found" / f"{target}.log"
    executions = used = broken = 0
    edges = []
    while used < seconds and broken < MOST_FINDINGS:
        cpu, interrupted = run([build / "tests/fuzz" / target, found, corpus_of(target), *FLAGS,
                                f"-artifact_prefix={findings}/{target}-"], log, seconds - used)
        used += cpu
        text = log.read_text(errors="replace")
        executions += max(map(int, re.findall(r"number_of_executed_units: (\d+)", text)), default=0)
        edges += [int(edge) for edge in re.findall(r" cov: (\d+)", text)]
        if not interrupted:
            broken += 1
            shutil.copy(log, findings / f"{target}-{broken}.log")
    print(f"{target:24} {executions:9} executions, {used:5.0f} s of CPU, edges {edges[0] if edges else 0} to "
          f"{max(edges, default=0)}, {broken} findings", flush=True)
    return broken


def keep(target):
    found, corpus = build / "found" / target, corpus_of(target)
    if not found.is_dir():
        return 0
    with tempfile.TemporaryDirectory() as least:
        small = pathlib.Path(least) / "small"
        for folder in (small, pathlib.Path(least) / "all"):
            folder.mkdir()
        for path in found.iterdir():
            if path.stat().st_size <= LARGEST:
                shutil.copy(path, small)
        had = len(list(corpus.iterdir()))
        before = {path.read_bytes() for path in corpus.iterdir()}
        shutil.copytree(corpus, pathlib.Path(least) / "all", dirs_exist_ok=True)
        subprocess.run([build / "tests/fuzz" / target, "-merge=1", pathlib.Path(least) / "all", small], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=build)
        new = [path for path in sorted((pathlib.Path(least) / "all").iterdir(), key=lambda path: path.stat().st_size)
               if path.read_bytes() not in before][:MOST_NEW]
        for path in new:
            shutil.copy(path, corpus / path.name[:12])
    print(f"{target:24} {len(new)} new inputs beside {had}", flush=True)
    return 0


targets = sys.argv[3:] or sorted(path.name for path in (build / "tests/fuzz").iterdir()
                                 if "fuzz" in path.name and path.is_file() and os.access(path, os.X_OK))
if sys.argv[2] == "--keep":
    total = sum(keep(target) for target in targets)
else:
    total = sum(fuzz(target, float(sys.argv[2])) for target in targets)
sys.exit(1 if total else 0)
