#!/usr/bin/env python3
"""clang-tidy over the sources but tests and benchmarks, with what stands in .clang-tidy: what it says
is either mended or stands in clang_tidy.txt with the reason why it is not so.

Up to twelve sources of a folder are looked at as one, since reading the headers is most of the work (a second
of CPU a source instead of five). A source that does not compile beside the others, whose names hide
those that it means, comes into a later lot.

Usage: tests/source/clang_tidy_test.py <build folder> [--turn | <file or folder>…]
  --turn   one lot alone, another one after each commit; what the test source_clang_tidy runs
Environment: JOBS, how many at a time, 1 unless given
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from compiled import compiled

LOT = 12
ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPLAINED = ROOT / "tests/source/clang_tidy.txt"
REMARK = re.compile(r"(.+?):(\d+):\d+: (?:error|warning): (.*) \[([\w.-]+)")
build, asked = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]


def listed(*patterns):
    return subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True).stdout.split()


def flags_of(command):
    """What the compiler was told that decides what a source says."""
    flags, words = [], iter(shlex.split(command)[1:])
    for word in words:
        if word in ("-isystem", "-I", "-D", "-include"):
            flags += [word, next(words)]
        elif word.startswith(("-I", "-D", "-std", "-f", "-pthread")) and not word.startswith(("-flto", "-fno-fat")):
            flags.append(word)
    return tuple(flags)


def made(folder, sources):
    path = pathlib.Path(folder) / "lot.cc"
    path.write_text("".join(f'#include "{ROOT / source}"\n' for source in sources))
    return path


def named(text, sources):
    """Those of the sources that the compiler has errors in, and never all."""
    places = re.findall(rf"^(?:In file included from )?{re.escape(str(ROOT))}/([^:\n]*\.cc):\d+", text, re.M)
    found = {place for place in places if place in sources}
    return found if 0 < len(found) < len(sources) else set(sources[1:])


def look(sources, flags):
    """The remarks on a lot, (file, line, text, check), the sources left for another one, how many were looked at."""
    left = set()
    with tempfile.TemporaryDirectory() as folder:
        path = made(folder, sources)
        checked = len(sources) > 1 and subprocess.run(["clang++-14", "-fsyntax-only", "-w", "-ferror-limit=0", *flags, path],
                                                      capture_output=True, text=True)
        if checked and checked.returncode:
            left |= named(checked.stderr, sources)
        while True:
            sources = [source for source in sources if source not in left]
            made(folder, sources)
            done = subprocess.run(["clang-tidy-14", f"--config-file={ROOT / '.clang-tidy'}", f"--header-filter=^{ROOT}/",
                                   "--quiet", "--checks=-bugprone-suspicious-include", path, "--", "-w", *flags],
                                  capture_output=True, text=True)
            if len(sources) == 1 or "[clang-diagnostic-error" not in done.stdout:
                break
            left |= named(done.stdout, sources)
    remarks = set()
    for line in done.stdout.splitlines():
        if match := REMARK.match(line):
            path = os.path.relpath(match[1], ROOT)
            remarks.add((sources[0] if path.startswith("..") else path, int(match[2]), match[3], match[4]))
    if done.returncode and not remarks:
        remarks.add((sources[0], 0, f"clang-tidy ended with {done.returncode}: {done.stderr[:300]}", "none"))
    return remarks, sorted(left), len(sources)


if not shutil.which("clang-tidy-14") or not shutil.which("clang++-14"):
    print("SKIPPED: clang-tidy-14 is not here (./setup installs it)")
    sys.exit(77)
commands = {os.path.relpath(source, ROOT): flags_of(command) for source, command in compiled(build / "compile_commands.json")}
turn = asked == ["--turn"]
wanted = listed("*.cc", ":!tests", ":!bench", ":!ns3-module", ":!profiler/cuda")
if asked and not turn:
    wanted = [source for source in wanted if any(source == one or source.startswith(one.rstrip("/") + "/") for one in asked)]
if not wanted:
    print("SKIPPED: no sources, or no list of them")
    sys.exit(77 if turn else 1)
absent = [source for source in wanted if source not in commands]
groups = collections.defaultdict(list)
for source in wanted:
    if source in commands:
        groups[os.path.dirname(source), commands[source]].append(source)
lots = [(sources[i:i + LOT], flags) for (_, flags), sources in groups.items() for i in range(0, len(sources), LOT)]
if turn:
    commits = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    lots = [lots[int(commits or 0) % len(lots)]]

explained = {tuple(line.split(":", 1)) for line in EXPLAINED.read_text().splitlines() if line and not line.startswith("//")}
remarks, looked = set(), 0
with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "1"))) as pool:
    while lots:
        later = []
        for (sources, flags), (found, left, count) in zip(lots, pool.map(lambda lot: look(*lot), lots)):
            for path, line, text, check in sorted(found - remarks):
                if (check, path) not in explained:
                    print(f"{path}:{line}: {text} [{check}]", flush=True)
            remarks |= found
            looked += count
            if left:
                later.append((left, flags))
        lots = later
unexplained = [remark for remark in remarks if (remark[3], remark[0]) not in explained]
used = os.times()
print(f"{looked} files, {len(remarks)} remarks, {len(unexplained)} of them not explained in "
      f"tests/source/clang_tidy.txt, {used.children_user + used.children_system:.0f} s of CPU")
if absent:
    print(f"not compiled in this build: {' '.join(absent)}")
if not asked and (idle := explained - {(check, path) for path, _, _, check in remarks}):
    print("explained, but never said:", *sorted(":".join(one) for one in idle), sep="\n  ")
    unexplained = True
sys.exit(1 if unexplained else 0)
