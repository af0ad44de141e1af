#!/usr/bin/env python3
"""What 8 senders of 4 MiB and 64 of 1 MiB to one take beyond the wire's time, by congestion control, over seeds (docs/models.md).

Usage: bench/step_responses.py LOCKSTEP
"""
import json
import subprocess
import sys
import tempfile

WIRE = 1 + 62 / 4096  # a packet's header beside its payload
for control in ("none", "dcqcn", "dctcp", "hpcc", "receiver", "swift", "timely"):
    for senders, mib in ((8, 4), (64, 1)):
        with tempfile.NamedTemporaryFile("w", suffix=".split") as split:
            row = "0 " * senders + "0\n"
            split.write(row + f"{mib}MiB{row[1:]}" * senders)
            split.flush()
            beyond = []
            for seed in range(1, 9):
                run = subprocess.run(
                    [sys.argv[1], "collective", "-q", "--json", "-e", "packet", "--op", "alltoall", "--split", split.name,
                     "--algorithm", "direct", "--protocol", "simple", "-n", f"single-switch:g={senders + 1},gps=1",
                     "--send-latency", "1us", "--congestion", control, "--seed", str(seed)],
                    capture_output=True, text=True, check=True)
                seconds = json.loads(run.stdout)["points"][0]["engines"]["packet"]["time_s"]
                wire = senders * mib * 2**20 * 8 * WIRE / 400e9
                beyond.append(100 * (seconds / wire - 1))
        print(f"{control:9} {senders:3}:1  {min(beyond):+5.1f} to {max(beyond):+5.1f} %", flush=True)
