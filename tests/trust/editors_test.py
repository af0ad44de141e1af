#!/usr/bin/env python3
"""Inputs as other editors and systems leave them: behind a byte order mark, with CR LF, without the
last line's end. They say the same, and give the same bytes; UTF-16 is refused with advice.

Usage: editors_test.py <lockstep>
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from outputs import ACESO, PATIENCE, STEP, TINY, TOPOLOGY, clean_environment, tree
from readers import AIOB, ANALYTIC, METIS, MODEL, replaced

lockstep = sys.argv[1]
ALLREDUCE = ["collective", "--op", "allreduce", "--size", "1MiB", "--topology"]
SCENARIO = "stragglers:\n  - gpu:3:1.5\n"

# name: words, "@F@" is the file; the file, or its text with an ending of its name
FILES = {
    "topology": (["topology", "check", "@F@"], "topologies/catalogue/server8.txt"),
    "topology in JSON": (["topology", "describe", "@F@"], "topologies/catalogue/nvl72x2.json"),
    "algorithm in XML": (["collective", "--op", "allreduce", "--size", "1MiB", "--gpus", "2", "--topology", TOPOLOGY,
                          "--algorithm-file", "@F@"], "tests/data/collective/allreduce2.xml"),
    "workload": (["simulate", "--workload", "@F@", "--topology", TOPOLOGY], TINY),
    "workload in JSON": (["simulate", "--workload", "@F@", "--topology", TOPOLOGY],
                         "workloads/samples/pipeline-4gpu-tp2-pp2.json"),
    "scenario": ([*STEP, "--scenario", "@F@"], (SCENARIO, ".yaml")),
    "histogram": ([*STEP, "--straggler", "jitter:0-7:@F@"], ("1,3\n1.5,1\n", ".csv")),
    "settings of SimAI": ([*ALLREDUCE, TOPOLOGY, "--conf", "@F@"], ("ENABLE_QCN 1\nPACKET_PAYLOAD_SIZE 9000\n", ".conf")),
    "bandwidths": ([*ANALYTIC, "--busbw", "@F@"], "tests/fuzz/corpus/busbw_yaml/plain.yaml"),
    "model": (["generate", "--model-file", "@F@", "--gpus", "8", "-o", "-"], "tests/fuzz/corpus/model_file/with_process.yaml"),
    "process": ([*MODEL, "--process", "@F@"], "tests/data/process/two-layers.yaml"),
    "profile": ([*MODEL, "--profile", "@F@"], "tests/data/profile/llama3-8b-h100.json"),
    "script of Megatron-LM": (["generate", "--from-megatron-args", "@F@", "-o", "-"], "tests/data/megatron/llama-70b.sh"),
    "times of AIOB": ([*AIOB, "--comp_filepath", "@F@"], "tests/fuzz/corpus/aiob/all_kinds.txt"),
    "job of a trace": (["whatif", "--trace", "tests/data/whatif/two-stages.csv", "--meta", "@F@", "-o", "@O@"],
                       "tests/data/whatif/two-stages.yaml"),
    "trace": (["compare", "@F@", "--against", "tests/data/whatif/two-peers.csv"], "tests/data/whatif/two-peers.csv"),
    "log": (["compare", "@F@"], "tests/data/logs/two-tables.txt"),
    "grid": (["sweep", "@F@", "--list"], "tests/data/sweep/engines.yaml"),
    "plan": ([*replaced(ACESO, "--global-batch", "8"), "--aceso-size", "2layers", "--memory-limit", "4000", "--price", "@F@"],
             "tests/data/plan/scale-layer/two-stages.json"),
    "plan of a model": (["plan", "--model", "llama3-8b", "--num-layers", "2", "--gpus", "8", "--gbs", "8", "--topology", "Spectrum-X:g=8", "--price", "@F@"],
                        "tests/data/plan/llama3-8b-given.json"),
    "hosts of Metis": (replaced(METIS, "--metis-hostfile", "@F@"), "tests/data/plan/metis/hostfile"),
    "cluster of Metis": (replaced(METIS, "--metis-clusterfile", "@F@"), "tests/data/plan/metis/cluster.json"),
}
# The line ends of these stand for themselves.
NO_CR = {"script of Megatron-LM"}  # a shell takes the CR for a part of the word
NO_MARK = {"times of AIOB"}  # AICB takes the mark for a part of the first line, which is told
WAYS = {
    "behind a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "with CR LF": lambda data: data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
    "without the last line's end": lambda data: data.rstrip(b"\r\n"),
}
failures, runs = [], 0


def result(words, name, data):
    """Exit code, and everything said and written, without the folder's name and the CPU time that it took."""
    global runs
    runs += 1
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "out").mkdir()
        (folder / name).write_bytes(data)
        placed = [word.replace("@F@", str(folder / name)).replace("@O@", str(folder / "out")) for word in words]
        done = subprocess.run([lockstep, *placed], capture_output=True, stdin=subprocess.DEVNULL, env=clean_environment(),
                              timeout=60 * PATIENCE)
        texts = [done.stdout, done.stderr, *(data for _, data in sorted(tree(folder / "out").items()))]
        return done.returncode, [re.sub(rb"in [0-9.]+ s of CPU", b"", text.replace(scratch.encode(), b"")) for text in texts]


for kind, (command, source) in FILES.items():
    if isinstance(source, tuple):
        name, plain = "input" + source[1], source[0].encode()
    else:
        name, plain = pathlib.Path(source).name, pathlib.Path(source).read_bytes()
    code, said = result(command, name, plain)
    if code != 0:
        failures.append(f"{kind}: exit code {code}: {said[1][:300]!r}")
        continue
    for way, change in WAYS.items():
        if kind in (NO_CR if way == "with CR LF" else NO_MARK if way == "behind a byte order mark" else ()):
            continue
        other_code, other = result(command, name, change(plain))
        if (other_code, other) != (code, said):
            failures.append(f"{kind} {way}: exit code {other_code}: {other[1][:300]!r}")
    other_code, other = result(command, name, plain.decode().encode("utf-16"))
    if other_code != 2 or b"UTF-16" not in other[1]:
        failures.append(f"{kind} in UTF-16: exit code {other_code}: {other[1][:300]!r}")
print(f"{runs} runs over {len(FILES)} kinds of files")
for failure in failures:
    print("FAILED:", failure)
sys.exit(1 if failures or runs == 0 else 0)
