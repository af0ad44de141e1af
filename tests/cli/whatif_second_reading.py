#!/usr/bin/env python3
"""The what-if figures by a second program that follows the description in docs/whatif.md and the paper: plain
recursion over single operations, no tables, no lanes. Simulated jobs of all shapes, and rows and columns in disorder, must
give the same result in both.

Usage: whatif_second_reading.py <lockstep>
"""
import csv
import functools
import itertools
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile

LOCKSTEP, OUT = os.path.abspath(sys.argv[1]), tempfile.mkdtemp()
COMPUTE = {"forward": "forward-compute", "backward": "backward-compute"}
P2P = ["forward-send", "forward-recv", "backward-send", "backward-recv"]
SYNCED = ["params-all-gather", "grads-reduce-scatter", "separate-grads-all-reduce"]
GROUPED = [*P2P, *SYNCED, "embedding-grads-all-reduce", "optimizer-clip-main-grad"]
TYPES = ["backward-compute", "backward-recv", "backward-send", "embedding-grads-all-reduce", "forward-compute", "forward-recv", "forward-send", "gc",
         "grads-reduce-scatter", "layernorm-grads-all-reduce", "optimizer", "optimizer-clip-main-grad", "params-all-gather", "separate-grads-all-reduce"]


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def end_of(row):
    return f32(row["start"] + row["duration"])


class Job:
    def __init__(self, rows, dsp):
        self.rows = {(r["step"], r["dp"], (r["type"], r["seq"], r["stage"])): r for r in rows}
        self.steps = sorted({r["step"] for r in rows})
        self.dp, self.pp = 1 + max(r["dp"] for r in rows), 1 + max(r["stage"] for r in rows)
        self.use_dp = self.dp * dsp > 1
        self.first = {n: r for (s, d, n), r in self.rows.items() if s == self.steps[0] and d == 0}
        self.vpp = 1 + max(r["mc"] for r in self.first.values())
        self.overlap = self.use_dp and any(n[0] == "separate-grads-all-reduce" for n in self.first)
        self.before = {n: set() for n in self.first}
        self.no_op, self.matched = {}, {}
        for stage in range(self.pp):
            self.edges(stage)
        self.groups = self.make_groups()
        self.group_of = {n: g for g in self.groups for n in g[1]}
        self.step_start = {s: min(r["start"] for (t, _, _), r in self.rows.items() if t == s) for s in self.steps}
        self.transfer = self.transfers()

    def ops(self, stage, *types):
        """In start order."""
        chosen = [n for n in self.first if n[2] == stage and n[0] in types]
        return sorted(chosen, key=lambda n: (self.first[n]["start"], n[1], TYPES.index(n[0])))

    def edge(self, after, before):
        self.before[after].add(before)

    def chain(self, nodes):
        for a, b in itertools.pairwise(nodes):
            self.edge(b, a)

    def edges(self, stage):
        compute = self.ops(stage, *COMPUTE.values())
        self.chain(compute)
        for kind in P2P:
            self.chain(self.ops(stage, kind))
            self.match(stage, kind)
        first_backward = next(i for i, n in enumerate(compute) if n[0] == "backward-compute")
        if first_backward >= 2:
            for kind in ("backward-recv", "backward-send"):
                if (kind, 0, stage) in self.first:
                    self.edge((kind, 0, stage), compute[first_backward - 2])
        gathers, scatters = self.ops(stage, "params-all-gather"), self.ops(stage, "grads-reduce-scatter")
        by_seq = lambda nodes: sorted(nodes, key=lambda n: n[1])
        if self.use_dp:
            self.chain(self.ops(stage, "params-all-gather", "grads-reduce-scatter"))
            seen = set()
            for n in reversed(by_seq(gathers)):
                if self.first[n]["mc"] not in seen:
                    seen.add(self.first[n]["mc"])
                    self.edge(next(c for c in self.ops(stage, "forward-compute") if self.first[c]["mc"] == self.first[n]["mc"]), n)
        if self.overlap:
            seen = set()
            for n in by_seq(scatters):
                if self.first[n]["mc"] not in seen:
                    seen.add(self.first[n]["mc"])
                    self.edge(n, max((c for c in self.ops(stage, "backward-compute") if self.first[c]["mc"] == self.first[n]["mc"]), key=lambda c: end_of(self.first[c])))
        at = lambda kind: (kind, 0, stage)
        self.edge(at("gc"), max(compute, key=lambda c: end_of(self.first[c])))
        tail = [at("gc"), at("layernorm-grads-all-reduce")]
        if self.overlap and scatters:
            self.edge(at("layernorm-grads-all-reduce"), by_seq(scatters)[-1])
        if stage in (0, self.pp - 1):
            tail.append(at("embedding-grads-all-reduce"))
        if self.overlap:
            tail.append(at("separate-grads-all-reduce"))
        elif self.use_dp:
            tail += by_seq(scatters)
        self.chain([*tail, at("optimizer-clip-main-grad"), at("optimizer")])

    def match(self, stage, kind):
        direction, recv = kind.split("-")[0], kind.endswith("recv")
        compute = [(COMPUTE[direction], k, stage) for k in range(len(self.ops(stage, COMPUTE[direction])))]
        last_start = max(self.first[c]["start"] for c in compute)
        first_end = min(end_of(self.first[c]) for c in compute)
        valid = []
        for n in self.ops(stage, kind):
            skipped = self.first[n]["start"] > last_start + 5e-5 if recv else end_of(self.first[n]) < first_end - 5e-5
            if skipped:
                self.no_op[n] = 1
            else:
                valid.append(n)
        assert len(valid) == len(compute) or (stage in (0, self.pp - 1) and len(valid) in (0, len(compute) - 1)), (stage, kind, len(valid))
        shift = 1 if recv and len(valid) == len(compute) - 1 else 0
        for k, n in enumerate(valid):
            served, g = compute[k + shift], self.first[compute[k + shift]]["gmc"]
            if (g + 1 >= self.vpp * self.pp) if kind in ("forward-send", "backward-recv") else g - 1 < 0:
                self.no_op[n] = 2
            if recv:
                self.edge(served, n)
                if k + shift >= 1:
                    self.edge(n, compute[k + shift - 1])
            else:
                self.edge(n, served)

    def make_groups(self):
        """(all dp_ranks, nodes)."""
        groups = []
        for stage in range(self.pp):
            for kind, other in (("forward", (stage + 1) % self.pp), ("backward", (stage - 1) % self.pp)):
                sends = [n for n in self.ops(stage, kind + "-send") if n not in self.no_op]
                recvs = [n for n in self.ops(other, kind + "-recv") if n not in self.no_op]
                assert len(sends) == len(recvs), (stage, kind)
                groups += [(False, pair) for pair in zip(sends, recvs)]
            groups += [(False, (n,)) for n in self.ops(stage, *P2P) if n in self.no_op]
            groups += [(True, (n,)) for n in self.ops(stage, *SYNCED)]
        groups.append((False, tuple(n for n in self.first if n[0] == "embedding-grads-all-reduce")))
        groups.append((True, tuple(n for n in self.first if n[0] == "optimizer-clip-main-grad")))
        return groups

    def transfers(self):
        out = {}
        for step in self.steps:
            for synced, nodes in self.groups:
                for dps in ([range(self.dp)] if synced else [[d] for d in range(self.dp)]):
                    latest = max(self.rows[step, d, n]["start"] for d in dps for n in nodes)
                    for d in dps:
                        for n in nodes:
                            t = f32(end_of(self.rows[step, d, n]) - latest)
                            out[step, d, n] = 0.0 if t <= f32(-0.01) else t
        return out

    def simulate(self, value, delay=lambda key: 0.0):
        """Times of the steps, E and F, and start and end of every operation; value: duration, or transfer of a grouped one."""
        starts, ends = {}, {}
        for step in self.steps:
            @functools.cache
            def start(d, n):
                before = [end(d, p) for p in self.before[n]]
                return (max(before) if before else self.step_start[step]) + delay((step, d, n))

            @functools.cache
            def together(group, d):
                synced, nodes = group
                return max(start(e, n) for e in (range(self.dp) if synced else [d]) for n in nodes)

            @functools.cache
            def end(d, n):
                group = self.group_of.get(n)
                if group is None:
                    return start(d, n) + value((step, d, n))
                return together(group, 0 if group[0] else d) + value((step, d, n))

            for d in range(self.dp):
                for n in self.first:
                    starts[step, d, n], ends[step, d, n] = start(d, n), end(d, n)
        e = [max(v for k, v in ends.items() if k[0] == s and k[2][0] == "optimizer") - self.step_start[s] for s in self.steps]
        f = [max(v for k, v in ends.items() if k[0] == s) - min(v for k, v in starts.items() if k[0] == s) for s in self.steps]
        return e, f, {k: ends[k] - starts[k] for k in ends}

    def figures(self):
        traced = lambda key: self.transfer[key] if key[2] in self.group_of else self.rows[key]["duration"]
        e_t, f_t, durations = self.simulate(traced)
        ideal = {}
        for kind in {n[0] for n in self.first}:
            keys = [k for k in self.rows if k[2][0] == kind]
            if kind in GROUPED:
                ideal[kind] = f32(statistics.median(self.transfer[k] for k in keys))
            elif kind == "layernorm-grads-all-reduce":
                ideal[kind] = statistics.median(durations[k] for k in keys)
            else:
                ideal[kind] = sum(durations[k] for k in keys) / len(keys)
        mean = statistics.fmean
        e_i, f_i, _ = self.simulate(lambda key: ideal[key[2][0]])
        mixed = lambda chosen: self.simulate(lambda key: traced(key) if chosen(key) else ideal[key[2][0]])[0]
        label = lambda kind: kind.replace("-send", "-pp-comm").replace("-recv", "-pp-comm")
        share = lambda chosen: mean(mixed(chosen)) / mean(e_i)
        by_dp = {str(d): share(lambda key: key[1] == d) for d in range(self.dp)}
        by_stage = {str(p): share(lambda key: key[2][2] == p) for p in range(self.pp)}
        out = {"slowdown": mean(f_t) / mean(e_i), "dp_rank": by_dp, "stage": by_stage,
               "optype": {t: share(lambda key: label(key[2][0]) == t) for t in {label(n[0]) for n in self.first}}}
        base = [f32(max(end_of(r) for (t, _, _), r in self.rows.items() if t == s) - self.step_start[s]) for s in self.steps]
        out["launch"] = mean(base) / mean(e_t)

        def gap(key):
            step, d, n = key
            before = [end_of(self.rows[step, d, p]) for p in self.before[n]]
            t = f32(self.rows[key]["start"] - (max(before) if before else self.step_start[step]))
            return 0.0 if t <= f32(-0.01) else t
        out["launch_stage"] = {str(p): mean(self.simulate(traced, lambda key: gap(key) if key[2][2] == p else 0.0)[0]) / mean(e_t) for p in range(self.pp)}
        last = self.simulate(lambda key: ideal[key[2][0]] if key[2][2] == self.pp - 1 else traced(key))[1]
        out["Ms"] = (mean(f_t) - mean(last)) / (mean(f_t) - mean(f_i)) if mean(f_t) != mean(f_i) else None
        workers = {self.rows[self.steps[0], d, n]["rank"]: (d, n[2]) for d in range(self.dp) for n in self.first}
        order = sorted(workers, key=lambda r: (-min(by_dp[str(workers[r][0])], by_stage[str(workers[r][1])]), r))
        slow = {workers[r] for r in order[:(3 * len(workers) + 99) // 100]}
        without = self.simulate(lambda key: ideal[key[2][0]] if (key[1], key[2][2]) in slow else traced(key))[1]
        out["Mw"] = (mean(f_t) - mean(without)) / (mean(f_t) - mean(f_i)) if mean(f_t) != mean(f_i) else None
        exact = {r: share(lambda key: (key[1], key[2][2]) == w) for r, w in workers.items()}
        out["exact"] = exact
        return out


def read(path):
    whole = ("step", "dp", "stage", "rank", "seq", "mc", "gmc")
    names = {"dp_rank": "dp", "seq_id": "seq", "optype": "type", "start_ts": "start"}
    rows = []
    with open(path) as file:
        for row in csv.DictReader(file):
            row = {names.get(k, k): v for k, v in row.items()}
            rows.append({**{k: int(row[k]) for k in whole}, "type": row["type"], "start": f32(float(row["start"])), "duration": f32(float(row["duration"]))})
    return rows


def spread(rows, rng, steps):
    """The job's step again and again, with times that vary and operations that start late; the first step as it was."""
    out = []
    for step in range(steps):
        for row in rows:
            own = dict(row, step=7 + 10 * step)
            if step:
                own["duration"] = f32(own["duration"] * (1 + rng.random() / 8))
                own["start"] = f32(own["start"] * (1 + rng.random() / 16))
            out.append(own)
    return out


def scattered_at_the_end(rows):
    """Without the reduction of what is left at the end, as where gradients are scattered behind all passes."""
    return [r for r in rows if r["type"] != "separate-grads-all-reduce"]


def never_launched(rows):
    """Receives that the profiler recorded after the last pass, one a worker that receives."""
    out = []
    for kind, pass_type in (("forward-recv", "forward-compute"), ("backward-recv", "backward-compute")):
        last = {}
        for r in rows:
            if r["type"] in (kind, pass_type):
                of = last.setdefault((r["dp"], r["stage"]), {})
                if r["type"] not in of or r["seq"] > of[r["type"]]["seq"]:
                    of[r["type"]] = r
        out += [dict(of[kind], seq=of[kind]["seq"] + 1, start=f32(of[pass_type]["start"] + 0.25), duration=f32(0.001)) for of in last.values() if kind in of]
    return rows + out


def write(rows, path, rng):
    rng.shuffle(rows)
    order = ["gmc", "dp_rank", "colour", "start_ts", "optype", "mc", "step", "mb_id", "seq_id", "duration", "stage", "rank"]
    rng.shuffle(order)
    with open(path, "w") as file:
        file.write(",".join(order) + "\n")
        for r in rows:
            cells = {"gmc": r["gmc"], "dp_rank": r["dp"], "colour": "red", "start_ts": repr(r["start"]), "optype": r["type"], "mc": r["mc"], "step": r["step"],
                     "mb_id": -1, "seq_id": r["seq"], "duration": repr(r["duration"]), "stage": r["stage"], "rank": r["rank"]}
            file.write(",".join(str(cells[c]) for c in order) + "\n")


def near(a, b):
    return a == b or (a is not None and b is not None and abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1e-3))


failures = 0


def compare(job, name, ours, theirs):
    global failures
    if isinstance(theirs, dict):
        same = set(ours) == set(theirs) and all(near(ours[k], theirs[k]) for k in theirs)
    else:
        same = near(ours, theirs)
    if not same:
        failures += 1
        print(f"FAILED: {job}: {name}: {ours}, by the second program {theirs}")


JOBS = ["--gpus 4 --pp 2 --global-batch 8", "--gpus 2 --pp 1 --global-batch 4", "--gpus 4 --pp 4 --global-batch 6", "--gpus 8 --pp 4 --global-batch 8",
        "--gpus 6 --pp 2 --global-batch 9", "--gpus 4 --pp 2 --vpp 2 --global-batch 8", "--gpus 2 --pp 2 --vpp 4 --global-batch 4",
        "--gpus 8 --pp 4 --vpp 2 --global-batch 16", "--gpus 8 --pp 2 --tp 2 --global-batch 4", "--gpus 4 --pp 2 --zero 1 --global-batch 8", "--gpus 1 --pp 1 --global-batch 2"]
CASES = [(words, None) for words in JOBS] + [("--gpus 4 --pp 2 --global-batch 8", scattered_at_the_end), ("--gpus 4 --pp 2 --vpp 2 --global-batch 8", scattered_at_the_end),
                                              ("--gpus 4 --pp 2 --global-batch 8", never_launched), ("--gpus 8 --pp 4 --vpp 2 --global-batch 16", never_launched)]
rng = random.Random(5)
kinds = set()
for words, change in CASES:
    job = ["simulate", "--model", "llama3-8b", "--num-layers", "8", "--mbs", "1", "--seq", "1024", *words.split(), "--topology", "Spectrum-X:g=8",
           "--straggler", "gpu:0:1.3", "--trace", os.path.join(OUT, "s.csv"), "--trace-workers", "first", "-q"]
    done = subprocess.run([LOCKSTEP, *job], capture_output=True, text=True)
    if done.returncode:
        failures += 1
        print(f"FAILED: {words}: {done.stderr}")
        continue
    rows = read(os.path.join(OUT, "s.csv"))
    rows = spread(change(rows) if change else rows, rng, 3)
    write(rows, os.path.join(OUT, "t.csv"), rng)
    done = subprocess.run([LOCKSTEP, "whatif", "--trace", os.path.join(OUT, "t.csv"), "--meta", os.path.join(OUT, "s.yaml"), "-o", OUT, "--timelines", "none",
                           "--decompose-threshold", "0", "--json", "-q"], capture_output=True, text=True)
    if done.returncode:
        failures += 1
        print(f"FAILED: {words}: {done.stderr}")
        continue
    causes = json.loads(done.stdout)
    result, ms, mw = (json.load(open(os.path.join(OUT, f"{kind}-simulated.json"))) for kind in ("result", "ms", "mw"))
    words += f" ({change.__name__})" if change else ""
    reading = Job(rows, 1)
    kinds |= {"overlap" if reading.overlap else "", "one" if not reading.use_dp else "" if reading.overlap else "end", *reading.no_op.values()}
    second = reading.figures()
    compare(words, "S", result["blocking_slowdown"], second["slowdown"])
    for part in ("dp_rank", "stage", "optype"):
        compare(words, "S by " + part, result[f"blocking_decompose_by_{part}"], second[part])
    compare(words, "launch", result["launch_slowdown"], second["launch"])
    compare(words, "launch by stage", result["launch_decompose_by_stage"], second["launch_stage"])
    compare(words, "Ms", ms["rem"], second["Ms"])
    compare(words, "Mw", mw["rem"], second["Mw"])
    compare(words, "S of every worker", {w["rank"]: w["slowdown"] for w in causes["workers"]}, second["exact"])
if not {"overlap", "end", "one", 1, 2} <= kinds:
    failures += 1
    print("FAILED: the jobs have only these peculiarities:", kinds)
print(f"{len(CASES)} jobs, {failures} failures")
sys.exit(1 if failures else 0)
