#!/usr/bin/env python3
"""Damaged profile databases of Aceso and Metis, and clusters that cannot be: each is told in one error
that names the file, and where it can the line and the field (exit 2), or is left out and said so
(exit 0, a plan with finite figures). Nothing crashes, nothing hangs.
Usage: plan_damaged_test.py <lockstep>"""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

LOCKSTEP = os.path.abspath(sys.argv[1])
failures = []


def run(arguments):
    done = subprocess.run([LOCKSTEP, "plan", *arguments, "--json"], capture_output=True, timeout=60)
    return done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")


def check(name, arguments, code, *said):
    try:
        got, out, err = run(arguments)
    except subprocess.TimeoutExpired:
        failures.append(f"{name}: not ended after a minute")
        return
    if got != code:
        failures.append(f"{name}: exit {got}, not {code}: {err.strip()[-400:]}")
        return
    for words in said:
        if words not in (out if got == 0 else err):
            failures.append(f"{name}: '{words}' is not said: {(out if got == 0 else err).strip()[-400:]}")
    if got == 0:
        plan = json.loads(out, parse_constant=lambda text: failures.append(f"{name}: {text} in the plan"))
        if not (0 < plan["time_s"] < math.inf):
            failures.append(f"{name}: a time of {plan['time_s']} s")


def rows(file, change):
    """Rewrites a CSV file's rows."""
    with open(file) as text:
        lines = [line.split(",") for line in text.read().splitlines()]
    with open(file, "w") as text:
        text.write("".join(",".join(line) + "\n" for line in change(lines)))


def setting(row, column, value):
    def change(lines):
        lines[row][column] = value
        return lines
    return change


def aceso(name, file, damage, code, *said, batches=("1", "2")):
    """A search with one file of the database changed; damage(path) does that."""
    with tempfile.TemporaryDirectory() as folder:
        profiles = os.path.join(folder, "profiles")
        shutil.copytree("tests/data/plan/scale-layer", profiles)
        damage(os.path.join(profiles, file))
        check(f"aceso, {name}", ["--aceso-model", "scale-layer", "--aceso-size", "2layers", "--profiles", profiles,
                                 "--gpus-per-node", "2", "--nodes", "2", "--memory-limit", "4000",
                                 "--global-batch", "16", "--micro-batch", *batches], code, *said)


def write(text):
    def damage(path):
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
    return damage


def edit(change):
    return lambda path: rows(path, change)


def directory(path):
    os.remove(path)
    os.mkdir(path)


OPS = "gpt_scale-layer_mbs1_tp1_algo0.csv"
for value in ("nan", "NaN", "inf", "-inf", "-5.0", "", "x", "0x10", "1e999", "1,0"):
    aceso(f"forward time {value!r}", OPS, edit(setting(3, 1, value)), 2, f"{OPS}:4")
for column in range(1, 9):
    aceso(f"column {column} below 0", OPS, edit(setting(3, column, "-1")), 2, f"{OPS}:4", "is no amount")
aceso("an amount beyond all measure", OPS, edit(setting(3, 6, "1e300")), 2, f"{OPS}:4")
aceso("a time beyond all measure", OPS, edit(setting(3, 1, "1e300")), 2, f"{OPS}:4")
aceso("no rows", OPS, edit(lambda lines: lines[:1]), 2, OPS, "no ops")
aceso("an empty file", OPS, write(""), 2, OPS)
aceso("bytes of no text", OPS, write(bytes(range(256)) * 20), 2, OPS)
aceso("no header", OPS, edit(lambda lines: lines[1:]), 2, f"{OPS}:1", "no op table")
aceso("a row cut off", OPS, edit(lambda lines: lines[:5] + [lines[5][:4]] + lines[6:]), 2, f"{OPS}:6", "4 fields")
aceso("a row too few", OPS, edit(lambda lines: lines[:-1]), 2)
aceso("a row twice", OPS, edit(lambda lines: lines[:4] + lines[3:]), 2, f"{OPS}:5")
aceso("another op's name", OPS, edit(setting(3, 0, "enc-attention-other")), 2)
aceso("rows in another order", OPS, edit(lambda lines: [lines[0], lines[2], lines[1], *lines[3:]]), 2)
aceso("lines of another system", OPS, lambda path: rows(path, lambda lines: lines) or write(
    open(path).read().replace("\n", "\r\n"))(path), 0)
aceso("a folder for a file", OPS, directory, 2, OPS)
aceso("a table missing", OPS, os.remove, 0, f"{OPS}: no file", "plans with 1 samples a rank at tp 1 are left out")
aceso("no microbatch that has one", OPS, lambda path: None, 2, "no op table", "gpt_scale-layer_mbs64_tp1_algo0.csv", batches=("64",))


def all_tables(change):
    def damage(path):
        folder = os.path.dirname(path)
        for name in os.listdir(folder):
            if "_mbs" in name:
                rows(os.path.join(folder, name), change)
    return damage


aceso("an op twice in every table", OPS, all_tables(lambda lines: lines[:4] + lines[3:]), 2, ".csv:5", "stands twice")
aceso("an op missing in every table", OPS, all_tables(lambda lines: lines[:3] + lines[4:]), 2, ".csv")
aceso("no op takes any time", OPS, all_tables(lambda lines: lines[:1] + [[l[0], "0", "0", *l[3:]] for l in lines[1:]]), 2,
      ".csv", "time")

REDUCE = "prim_gpt_scale-layer_all_reduce_2gpus.csv"
aceso("a collective's size twice", REDUCE, edit(lambda lines: lines + [[lines[1][0], "99"]]), 2, REDUCE, "stands twice")
aceso("a collective's time no number", REDUCE, edit(setting(1, 1, "nan")), 2, f"{REDUCE}:2")
aceso("a collective's time below 0", REDUCE, edit(setting(1, 1, "-1")), 2, f"{REDUCE}:2")
aceso("a collective missing", REDUCE, os.remove, 0, f"{REDUCE}: no file")
for value in ("0", "nan", "-3", "inf"):
    aceso(f"a bandwidth of {value}", "p2p_intra_node.csv", edit(setting(1, 2, value)), 2, "p2p_intra_node.csv:2")
aceso("one row of p2p", "p2p_intra_node.csv", edit(lambda lines: lines[:1]), 2, "p2p_intra_node.csv", "two rows")
aceso("p2p within a server missing", "p2p_intra_node.csv", os.remove, 2, "p2p_intra_node.csv")
aceso("p2p between servers missing", "p2p_inter_node.csv", os.remove, 0, "p2p_inter_node.csv: no file")

CLUSTERS = ["--aceso-model", "scale-layer", "--aceso-size", "2layers", "--profiles", "tests/data/plan/scale-layer",
            "--global-batch", "16", "--micro-batch", "1", "2", "--memory-limit", "4000"]
for flags in (["--nodes", "0"], ["--gpus-per-node", "0"], ["--nodes", "-1"], ["--gpus-per-node", "-2"]):
    check(f"aceso, a cluster with {' '.join(flags)}", [*CLUSTERS, *flags], 2, flags[0])
for flag, value in (("--memory-limit", "nan"), ("--memory-limit", "-1"), ("--memory-limit", "0"), ("--global-batch", "0"),
                    ("--micro-batch", "0")):
    arguments = list(CLUSTERS)
    at = arguments.index(flag)
    arguments[at + 1] = value
    check(f"aceso, {flag} {value}", arguments, 2, flag)


def metis(name, file, damage, code, *said, layers="4"):
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "metis")
        shutil.copytree("tests/data/plan/metis", data)
        damage(os.path.join(data, file))
        check(f"metis, {name}", ["--metis-hostfile", f"{data}/hostfile", "--metis-clusterfile", f"{data}/cluster.json",
                                 "--profiles", data, "--gbs", "8", "--max-tp", "2", "--max-batch", "2", "--layers", layers],
              code, *said)


def document(change):
    def damage(path):
        with open(path) as text:
            whole = json.load(text)
        change(whole)
        with open(path, "w") as text:
            json.dump(whole, text)
    return damage


def put(value, *keys):
    def change(whole):
        for key in keys[:-1]:
            whole = whole[key]
        whole[keys[-1]] = value
    return document(change)


T4 = "DeviceType.T4_tp1_bs1.json"
for value in (-1, float("nan"), float("inf"), None, "fast", [1]):
    metis(f"a layer takes {value}", T4, put(value, "execution_time", "layer_compute_total_ms", 1), 2, T4)
    metis(f"a step takes {value}", T4, put(value, "execution_time", "forward_backward_time_ms"), 2, T4)
    metis(f"the optimizer takes {value}", T4, put(value, "execution_time", "optimizer_time_ms"), 2, T4)
    metis(f"a layer holds {value}", T4, put(value, "execution_memory", "layer_memory_total_mb", 1), 2, T4)
metis("no layer takes any time", T4, put([0, 0, 0, 0], "execution_time", "layer_compute_total_ms"), 2, T4, "layer_compute_total_ms")
metis("fewer layers than elsewhere", T4, put([1, 1, 1], "execution_time", "layer_compute_total_ms"), 2, T4, "3")
metis("sizes of other layers", T4, put([1, 1, 1], "execution_memory", "layer_memory_total_mb"), 2, T4, "layer_memory_total_mb")
metis("parameters of other layers", T4, put([1], "model", "parameters", "parameters_per_layer_bytes"), 2, T4)
metis("no times", T4, document(lambda whole: whole.pop("execution_time")), 2, T4, "execution_time")
metis("half a file", T4, lambda path: write(open(path).read()[:100])(path), 2, T4)
metis("an empty profile", T4, write(""), 2, T4)
metis("a profile twice", T4, lambda path: shutil.copy(path, path.replace("_tp1_", "_tp01_")), 2, "DeviceType.T4_tp", "twice")
metis("a profile missing", T4, os.remove, 0, f"{T4} is missing")
metis("other layers than asked for", T4, lambda path: None, 2, "--layers is 7", layers="7")
metis("no hosts", "hostfile", write(""), 2, "hostfile", "no hosts")
metis("comments alone", "hostfile", write("# nothing\n\n"), 2, "hostfile", "no hosts")
for line in ("10.0.0.1 slots=0", "10.0.0.1 slots=-2", "10.0.0.1", "10.0.0.1 slots=two", "10.0.0.1 slots=2 slots=2",
             "10.0.0.1 slots=99999999999"):
    metis(f"the host '{line}'", "hostfile", write(line + "\n"), 2, "hostfile:1")
metis("a host twice: two servers, as Metis has it", "hostfile", write("10.0.0.1 slots=2\n10.0.0.1 slots=2\n"), 0, "the host 10.0.0.1 stands twice: as many servers")
metis("more GPUs than Metis has hosts for", "hostfile", write("10.0.0.1 slots=2\n10.0.0.2 slots=3\n"), 2, "hostfile: slots", "--cost fixed")
metis("a host that is not described", "hostfile", write("10.0.0.9 slots=2\n"), 2, "10.0.0.9")
metis("no clusters", "cluster.json", write("{}"), 2, "cluster.json", "10.0.0.1")
metis("an unknown device", "cluster.json", put("Z9000", "10.0.0.2", "instance_type"), 2, "Z9000", "no stage can use")
for key in ("inter_bandwidth", "intra_bandwidth", "memory"):
    for value in (0, -1, "much", None):
        metis(f"{key} of {value}", "cluster.json", put(value, "10.0.0.2", key), 2, "cluster.json", key)

for failure in failures:
    print("FAILED:", failure)
sys.exit(1 if failures else 0)
