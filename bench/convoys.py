#!/usr/bin/env python3
"""Convoys (docs/models.md): a ring all-reduce of 128 MiB over 64 GPUs in SimAI's flavour, on a fabric where no
transfer shares an uplink, by packets of several sizes and by the flow engine. Hop delays are up to 20 % apart, as no
two are the same in a room; the draw is fixed.

    bench/convoys.py build/lockstep [PAYLOAD ...]

Prints the time of rank 0 and of the last rank, and for packets the mean time of a NIC's transfers in each sixth of the
run; of each payload as it is, sprayed, and with sends that begin up to 200 ns and up to 1 us late. Payloads default to
9000 and 2000 bytes; small ones take long."""
import os
import random
import subprocess
import sys
import tempfile
import json

GPUS, PER_SERVER = 64, 8
WORKLOAD = f"""HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {GPUS} ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: {GPUS} checkpoints: 0 checkpoint_initiates: 0
1
all_reduce -1 1 ALLREDUCE {128 << 20} 1 NONE 0 1 NONE 0 1
"""


def topology(program, folder):
    """Spectrum-X with uplinks ten times as fast, each hop's delay its own."""
    plain = os.path.join(folder, "plain")
    subprocess.run([program, "topology", "build", "--template", "Spectrum-X", "-g", str(GPUS), "-o", plain],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    draw = random.Random(5)
    with open(plain) as file:
        lines = file.read().splitlines()
    for i, line in enumerate(lines[2:], 2):
        fields = line.split()
        if int(fields[0]) >= GPUS and int(fields[1]) >= GPUS:
            fields[2] = "4000Gbps"
        delay_ms = float(fields[3].removesuffix("ms"))
        fields[3] = f"{delay_ms * draw.uniform(1, 1.2):.9f}ms"
        lines[i] = " ".join(fields)
    path = os.path.join(folder, "topology")
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
    return path


def rank_of(address):
    """Of an address in SimAI's table of transfers, 0b00RR01 with RR the rank."""
    return int(address, 16) >> 8 & 0xFFFF


def nic_means(table, parts=6):
    """Mean microseconds of the transfers between servers, by sixths of the run."""
    rows = []
    with open(table) as file:
        for line in file:
            fields = line.split()
            if rank_of(fields[0]) // PER_SERVER != rank_of(fields[1]) // PER_SERVER:
                rows.append((int(fields[5]), int(fields[6])))
    first, last = min(rows)[0], max(rows)[0] + 1
    means = []
    for part in range(parts):
        begin, end = (first + (last - first) * k / parts for k in (part, part + 1))
        times = [took for start, took in rows if begin <= start < end]
        means.append(f"{sum(times) / len(times) / 1000:.1f}" if times else "-")
    return means


def main():
    program, *payloads = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        fabric = topology(program, folder)
        workload = os.path.join(folder, "workload.txt")
        with open(workload, "w") as file:
            file.write(WORKLOAD)
        table = os.path.join(folder, "fct")
        ways = [("", []), (", sprayed", ["--spray"])]
        ways += [(f", jitter {jitter}", ["--fabric", f"SendJitter={jitter}"]) for jitter in ("200ns", "1us")]
        for what in ["flow"] + [(payload, way) for payload in payloads or ["9000", "2000"] for way in ways]:
            command = [program, "simulate", "--flavour", "simai", "--send-latency", "6us", "--workload", workload,
                       "--topology", fabric, "--json"]
            name = "flow engine"
            if what == "flow":
                command += ["--engine", "flow"]
            else:
                payload, (label, flags) = what
                name = f"packets of {payload} B{label}"
                command += ["--engine", "packet", "--fabric", f"Payload={payload}", "--fct", table]
                command += flags
            result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            ends = [f"{1e6 * result[key]:.0f}" for key in ("first_rank_end_s", "last_rank_end_s")]
            means = "" if what == "flow" else "  NIC: " + ", ".join(nic_means(table))
            print(f"{name:28} {' '.join(ends)} us{means}", flush=True)


if __name__ == "__main__":
    main()
