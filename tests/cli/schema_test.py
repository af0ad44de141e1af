#!/usr/bin/env python3
"""Every JSON document that a schema of docs/formats/schema describes keeps to it, in real runs; and
the schemas refuse what is wrong.

Usage: schema_test.py <lockstep>
"""
import copy
import glob
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("SKIPPED: the Python module jsonschema is not here (./setup installs it)")
    sys.exit(77)

LOCKSTEP, OUT = sys.argv[1], tempfile.mkdtemp()
TINY = ["simulate", "--workload", "tests/data/simulate/tiny.txt", "--json"]
JOB = ["simulate", "--model", "llama3-8b", "--gpus", "16", "--tp", "2", "--pp", "4", "--global-batch", "8", "--topology", "Spectrum-X:g=16", "--json"]
PLAN = ["plan", "--aceso-model", "scale-layer", "--profiles", "tests/data/plan/scale-layer", "--gpus-per-node", "2", "--nodes", "2", "--json"]
RUNS = [
    [*TINY, "--engine", "analytic", "--nvlink", "360GBps", "--nic", "48.5GBps"],
    [*TINY, "--topology", "Spectrum-X:g=8", "--detail"],
    [*JOB, "--detail", "--explain", "--sensitivity", "--gpu-hour-price", "2.5"],
    [*JOB, "--straggler", "gpu:3:1.5", "--steps", "3", "--trace", os.path.join(OUT, "step.json")],
    ["whatif", "--trace", "tests/data/whatif/two-stages.csv", "--meta", "tests/data/whatif/two-stages.yaml", "-o", OUT, "--json"],
    ["whatif", "--trace", "tests/data/whatif/two-stages.csv", "--meta", "tests/data/whatif/two-stages.yaml", "-o", OUT, "--json", "--set", "pp-comm = 0"],
    ["compare", "tests/data/logs/two-tables.txt", "--json"],
    [*PLAN, "--aceso-size", "4layers", "--memory-limit", "1200", "--global-batch", "16", "--micro-batch", "1", "2"],
    [*PLAN, "--aceso-size", "2layers", "--memory-limit", "4000", "--price", "tests/data/plan/scale-layer/two-stages.json"],
    ["goodput", "--step", "5.2s", "--gpus", "1024", "--gpu-mtbf", "5.8y", "--spares", "1", "--json"],
    ["goodput", "--step", "5.2s", "--tokens", "16777216", "--gpus", "1024", "--gpu-mtbf", "5.8y", "--checkpoint", "20s", "--restart", "10min", "--json"],
    ["collective", "--op", "allreduce", "--size", "1MiB:4MiB", "--topology", "Spectrum-X:g=16", "--engine", "analytic,flow", "--json"],
    ["doctor", "--json"],
    ["plan", "--metis-hostfile", "tests/data/plan/metis/hostfile", "--metis-clusterfile", "tests/data/plan/metis/cluster.json", "--profiles",
     "tests/data/plan/metis", "--layers", "4", "--gbs", "8", "--max-tp", "2", "--max-batch", "2", "--json"],
    ["plan", "--metis-hostfile", "tests/data/plan/metis/hostfile", "--metis-clusterfile", "tests/data/plan/metis/cluster.json", "--profiles",
     "tests/data/plan/metis", "--layers", "4", "--gbs", "8", "--max-batch", "1", "--price", "tests/data/plan/metis/plan.json", "--json"],
    ["score", "tests/data/logs", "--json"],
    ["compare", os.path.join(OUT, "step.json"), "--against", os.path.join(OUT, "step.json"), "--json"],
    ["sweep", "tests/data/sweep/engines.yaml", "-o", os.path.join(OUT, "sweep"), "--json"],
    ["sweep", "tests/data/sweep/engines.yaml", "--list", "--json"],
    ["plan", "--model", "llama3-8b", "--gpus", "8", "--global-batch", "8", "--topology", "Spectrum-X:g=8", "--threads", "1", "--json"],
    ["simulate", "--list-stragglers", "--json"],
    ["plan", "--model", "llama3-8b", "--num-layers", "4", "--gpus", "8", "--global-batch", "16", "--topology", "Spectrum-X:g=8", "--price",
     "tests/data/plan/llama3-8b-given.json", "--json"],
    ["plan", "--model", "llama3-8b", "--gpus", "8", "--global-batch", "8", "--tp", "4", "--mbs", "1", "--seq", "2048", "--effort", "8000000",
     "--topology", "heterogeneous:gpus-a=4,gpus-b=4,gpus-per-server-a=4,gpus-per-server-b=4", "--json"],
    ["plan", "--model", "llama3-8b", "--gpus", "8", "--global-batch", "8", "--topology", "Spectrum-X:g=8", "--threads", "1",
     "--straggler", "gpu:1:1.3", "--objective", "cost", "--gpu-price", "2", "--json"],
    [*PLAN, "--aceso-size", "2layers", "--memory-limit", "4000", "--actual", "tests/data/plan/scale-layer/measured.csv"],
    ["plan", "--aceso-model", "scale-layer", "--profiles", "tests/data/plan/scale-layer", "--gpus-per-node", "2", "--memory-limit", "4000",
     "--global-batch", "16", "--micro-batch", "1", "2", "--scaling", "2", "4", "--json"],
    ["topology", "describe", "AlibabaHPN:gpus=64", "--json"],
    ["topology", "describe", "Spectrum-X:g=8", "--json"],
    ["topology", "check", "Spectrum-X:g=8", "--json"],
    ["topology", "links", "Spectrum-X:g=8", "--of", "3", "--json"],
    ["generate", "--model", "llama3-8b", "--gpus", "16", "--tp", "2", "--pp", "2", "--memory", "--json"],
    ["generate", "--list-models", "--json"],
    ["run", "--workload", "tests/data/simulate/tiny.txt", "--world", "8", "--dry-run", "--json"],
    ["run", "--workload", "tests/data/simulate/tiny.txt", "--local-ranks", "8", "--transport", "control", "--json"],
    ["health", "tests/data/logs/two-tables.txt", "--json"],
    ["compare", "tests/fuzz/corpus/megatron/train.log", "--topology", "Spectrum-X:g=8", "--json"],
    ["calibrate", "tests/data/logs/two-tables.txt",
     "-o", os.path.join(OUT, "preset.json"), "--json"],
    ["score-steps", os.path.join(OUT, "steps"), "--rows", "--json"],
    ["profile", "--model", "llama3-8b", "--num-layers", "1", "--gpus", "1", "--seq", "1024", "--from",
     "tests/fuzz/corpus/measurements/small.json", "--json"],
    ["profile", "--sweep", "--list", "--json"],
    ["cache", "ls", "--dir", os.path.join(OUT, "cache"), "--json"],
    ["cache", "verify", "--dir", os.path.join(OUT, "cache"), "--json"],
    ["cache", "gc", "--size", "1MiB", "--dir", os.path.join(OUT, "cache"), "--json"],
    ["whatif", "--follow", os.path.join(OUT, "traces"), "--meta", "tests/data/whatif/two-stages.yaml", "-o", os.path.join(OUT, "followed"),
     "--once", "--settle", "0", "--alert-slowdown", "1.04", "--alert-steps", "1", "--json"],
]


def prepare():
    """What some of the runs read."""
    os.mkdir(os.path.join(OUT, "traces"))
    rows = open("tests/data/whatif/two-stages.csv").read()
    open(os.path.join(OUT, "traces", "1.csv"), "w").write(rows)
    open(os.path.join(OUT, "traces", "2.csv"), "w").write("no trace")
    os.mkdir(os.path.join(OUT, "steps"))
    with open(os.path.join(OUT, "steps", "megatron_seqsel_table5.csv"), "w") as table:  # the numbers are made up
        table.write("model,recompute,seq_par,gpus,tp,pp,vpp,global_batch,micro_batch,measured_s\n"
                    "megatron-22B,selective,1,8,8,1,1,4,4,1.2\nmegatron-22B,full,0,8,8,1,1,3,4,1.5\nother,full,0,8,8,1,1,4,4,1.5\n")
    subprocess.run([LOCKSTEP, *TINY, "--topology", "Spectrum-X:g=8"], env={**os.environ, "LOCKSTEP_CACHE": os.path.join(OUT, "cache")},
                   check=True, capture_output=True)

schemas = {}
for path in glob.glob("docs/formats/schema/*.json"):
    schema = json.load(open(path))
    jsonschema.Draft202012Validator.check_schema(schema)
    first = schema["oneOf"][0] if "oneOf" in schema else schema  # of a journal: its first line
    name = first["properties"]["schema"]["const"]
    assert os.path.basename(path) == name.replace("/", "-") + ".json", path
    schemas[name] = jsonschema.Draft202012Validator(schema)

failures = 0


def complain(text):
    global failures
    failures += 1
    print("FAILED:", text)


seen = set()


def check(document, of):
    validator = schemas.get(document.get("schema"))
    if validator is None:
        complain(f"{of}: {document.get('schema')} has no schema")
        return
    seen.add(document["schema"])
    for problem in validator.iter_errors(document):
        complain(f"{of}: {'/'.join(map(str, problem.path))}: {problem.message}")
    # A document without one of its members, or with another version, is refused.
    required = validator.schema["oneOf"][0]["required"] if "oneOf" in validator.schema else validator.schema["required"]
    for key in document["schema"], *required:
        spoiled = copy.copy(document)
        spoiled.pop(key, None)
        if key == document["schema"]:
            spoiled["schema"] = "lockstep-other/9"
        if validator.is_valid(spoiled):
            complain(f"{document['schema']}: valid without {key}")


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the socket of a server."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.path.join(OUT, "socket"))


def ask(method, path, body=None):
    connection = UnixConnection("localhost")
    connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
    return json.loads(connection.getresponse().read())


def check_lines(text, of):
    """A journal: a JSON document a line, the first of which names the schema."""
    lines = [json.loads(line) for line in text.splitlines()]
    check(lines[0], of)
    for line in lines:
        for problem in schemas[lines[0]["schema"]].iter_errors(line):
            complain(f"{of}: {line.get('event')}: {problem.message}")
        if schemas[lines[0]["schema"]].is_valid({**line, "event": "other"}):
            complain(f"{of}: any event is valid")
    return {line["event"] for line in lines}


prepare()
for words in RUNS:
    run = subprocess.run([LOCKSTEP, *words], capture_output=True, text=True)
    if run.returncode != 0:
        complain(f"lockstep {' '.join(words)}: exit code {run.returncode}: {run.stderr}")
        continue
    if "--follow" in words:
        events = check_lines(run.stdout, "follow")
        if events != {"journal", "step", "alert", "file", "refused"}:
            complain(f"follow prints {events}")
        check_lines(open(os.path.join(OUT, "followed", "follow-two-stages.jsonl")).read(), "the journal")
        continue
    check(json.loads(run.stdout), f"lockstep {' '.join(words)}")

server = subprocess.Popen([LOCKSTEP, "serve", "--socket", os.path.join(OUT, "socket")], stdout=subprocess.PIPE, text=True)
try:
    server.stdout.readline()  # it listens
    check(ask("GET", "/api/v1/about"), "about")
    check(ask("POST", "/api/v1/run", {"arguments": ["topology", "build", "--template", "Spectrum-X", "-g", "8", "-o", "t.txt"], "want_files": ["t.txt"]}), "run")
    check(ask("POST", "/api/v1/run", {"arguments": ["simulate", "--workload", "nowhere", "--engine", "analytic"]}), "run that fails")
    job = ["--model", "llama3-8b", "--gpus", "8", "--tp", "4", "--global-batch", "8", "--topology", "Spectrum-X:g=8"]
    check(ask("POST", "/api/v1/live", {"arguments": job, "sliders": {"straggler": 2, "straggler_gpu": 3}}), "live")
finally:
    server.terminate()
    server.wait()
for name in schemas.keys() - seen:
    complain(f"no run gives {name}")

print(f"{len(RUNS)} runs and a server, {len(seen)} schemas")
sys.exit(1 if failures else 0)
