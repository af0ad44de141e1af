#!/usr/bin/env python3
"""Runs fuzz targets of the preset "afl" under AFL++, one after the other, each for so many seconds, and
prints a line of figures for each. What reaches new code and what breaks something stays in
<build folder>/found; then the exit code is 1.

Usage: tests/fuzz/afl.py <build folder> <seconds a target> <target>…
"""
import os
import pathlib
import re
import subprocess
import sys

FLAGS = ["-m", "none", "-t", "5000", "-g", "1", "-G", "16384"]
ENVIRONMENT = {"AFL_SKIP_CPUFREQ": "1", "AFL_NO_AFFINITY": "1", "AFL_NO_UI": "1", "AFL_QUIET": "1",
               "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1", "AFL_IGNORE_PROBLEMS": "1",
               "ASAN_OPTIONS": "abort_on_error=1:symbolize=0:detect_leaks=0:allocator_may_return_null=1",
               "UBSAN_OPTIONS": "abort_on_error=1:symbolize=0"}
CORPORA = pathlib.Path(__file__).resolve().parent / "corpus"
build, seconds = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]


def fuzz(target):
    """How many findings; a target that does not start is one."""
    name = re.sub(r"^fuzz_|_fuzz$", "", target)
    corpus, found = CORPORA / {"chakra_rank": "chakra_et"}.get(name, name), build / "found" / target
    found.mkdir(parents=True, exist_ok=True)
    with open(build / "found" / f"{target}.log", "wb") as log:
        subprocess.run(["afl-fuzz", "-i", corpus, "-o", found, "-V", seconds, *FLAGS, "--", build / "tests/fuzz" / target],
                       stdout=log, stderr=log, env={**os.environ, **ENVIRONMENT},
                       preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, 19))
    try:
        text = (found / "default/fuzzer_stats").read_text()
    except OSError:
        print(f"{target:24} did not start: see {build / 'found' / target}.log", flush=True)
        return 1
    stats = dict(line.split(":", 1) for line in text.replace(" ", "").splitlines() if ":" in line)
    broken = int(stats["saved_crashes"]) + int(stats["saved_hangs"])
    print(f"{target:24} {stats['execs_done']:>9} executions, {stats['run_time']:>5} s, {stats['edges_found']} of "
          f"{stats['total_edges']} edges, {stats['corpus_count']} inputs, {broken} findings", flush=True)
    return broken


sys.exit(1 if sum(fuzz(target) for target in sys.argv[3:]) else 0)
