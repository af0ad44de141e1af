#!/usr/bin/env python3
"""Every figure that `lockstep report --list-figures` names, for results of every kind, is written as SVG, which is well
formed and draws something, and some of them as PNG, which has its picture's shape.

Usage: report_figures_test.py <lockstep>
"""
import os
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

LOCKSTEP, OUT = os.path.abspath(sys.argv[1]), tempfile.mkdtemp()
JOB = ["simulate", "--model", "llama3-8b", "--gpus", "16", "--tp", "2", "--pp", "4", "--global-batch", "8", "--topology", "Spectrum-X:g=16", "--json"]
RESULTS = {
    "step": [*JOB, "--detail", "--explain", "--sensitivity"],
    "slow": [*JOB, "--straggler", "gpu:3:1.5", "--straggler", "jitter:0-15:normal:0.02", "--steps", "8", "--detail"],
    "causes": ["whatif", "--trace", "tests/data/whatif/two-stages.csv", "--meta", "tests/data/whatif/two-stages.yaml", "-o", OUT, "--json"],
    "compare": ["compare", "tests/data/logs/two-tables.txt", "--json"],
    "training": ["compare", "tests/fuzz/corpus/megatron/train.log", "--topology", "Spectrum-X:g=8", "--json"],
    "score": ["score", "tests/data/logs", "--json"],
    "plan": ["plan", "--aceso-model", "scale-layer", "--aceso-size", "4layers", "--profiles", "tests/data/plan/scale-layer", "--gpus-per-node", "2",
             "--nodes", "2", "--memory-limit", "1200", "--global-batch", "16", "--micro-batch", "1", "2", "--json"],
    "metis": ["plan", "--metis-hostfile", "tests/data/plan/metis/hostfile", "--metis-clusterfile", "tests/data/plan/metis/cluster.json", "--profiles",
              "tests/data/plan/metis", "--gbs", "8", "--max-tp", "2", "--max-batch", "2", "--layers", "4", "--json"],
    "goodput": ["goodput", "--step", "5.2s", "--tokens", "16777216", "--gpus", "1024", "--gpu-mtbf", "5.8y", "--checkpoint", "20s", "--restart", "10min", "--json"],
    "collective": ["collective", "--op", "allreduce", "--size", "1MiB:4MiB", "--topology", "Spectrum-X:g=16", "--engine", "analytic,flow", "--json"],
    "sweep": ["sweep", "tests/data/sweep/engines.yaml", "-o", os.path.join(OUT, "sweep"), "--json"],
}
SHAPES = ("path", "rect", "circle", "line", "polyline", "polygon", "text")
failures, names = 0, set()


def complain(text):
    global failures
    failures += 1
    print("FAILED:", text)


def lockstep(*words):
    done = subprocess.run([LOCKSTEP, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"lockstep {' '.join(words)}: exit code {done.returncode}: {done.stderr}")
    return done.stdout


def check_svg(path, name):
    root = xml.etree.ElementTree.parse(path).getroot()
    shapes = [e for e in root.iter() if e.tag.split("}")[1] in SHAPES]
    if root.tag.split("}")[1] != "svg" or len(shapes) < 8:
        complain(f"{name}: its SVG has {len(shapes)} shapes")
    if any(e.tag.split("}")[1] in ("script", "image", "foreignObject") for e in root.iter()):
        complain(f"{name}: its SVG holds more than shapes")
    return round(float(root.get("width"))), round(float(root.get("height")))


def check_png(path, name, size):
    data = open(path, "rb").read()
    if data[:8] != b"\x89PNG\r\n\x1a\n" or len(data) < 1000:
        return complain(f"{name}: no PNG of {len(data)} bytes")
    width, height = struct.unpack(">II", data[16:24])
    if abs(width / height - size[0] / size[1]) > 0.02 * width / height:
        complain(f"{name}: the PNG has {width} by {height} pixels, the SVG {size}")


files = []
for kind, words in RESULTS.items():
    files.append(os.path.join(OUT, kind + ".json"))
    with open(files[-1], "w") as file:
        file.write(lockstep(*words))
listed = [line.split()[0] for line in lockstep("report", *files, "--list-figures").splitlines() if line.strip()]
pixels = set(listed[::4])
flags = [word for name in listed for word in ("--figure", f"{name}={OUT}/{name}.svg")] + [word for name in pixels for word in ("--figure", f"{name}={OUT}/{name}.png")]
lockstep("report", *files, *flags)
for name in listed:
    size = check_svg(f"{OUT}/{name}.svg", name)
    if name in pixels:
        check_png(f"{OUT}/{name}.png", name, size)
wanted = {"time", "ranks", "operators", "sensitivity", "heatmap", "remedies", "timeline", "pipeline", "fabric", "links", "sample", "stragglers",
          "accuracy", "curves", "training", "training-parts", "collective", "pareto", "plan-stages", "plan-costs", "plan-layers", "sweep", "goodput", "memory", "memory-over-time", "roofline", "runs", "difference"}
if not wanted <= set(listed):
    complain(f"not listed: {sorted(wanted - set(listed))}")
print(f"{len(listed)} figures, {failures} failures")
sys.exit(1 if failures else 0)
