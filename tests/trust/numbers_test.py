#!/usr/bin/env python3
"""Numbers at the ends of their ranges, and random collectives in two ways: each run ends soon, with a
time that makes sense or a message that names the range.

Usage: numbers_test.py <lockstep> [<number of random cases>]
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from outputs import ALL, PATIENCE, some

lockstep = sys.argv[1]
cases = int(sys.argv[2]) if len(sys.argv) > 2 else 40 if ALL else 10
failures, counts = [], {"refused": 0, "answered": 0, "random": 0}


def run(*arguments):
    done = subprocess.run([lockstep, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=60 * PATIENCE)
    return done.returncode, done.stdout, done.stderr


def collective(op, size, topology, *more):
    return run("collective", "--op", op, "--size", str(size), "--topology", topology, "--json", *more)


def times(text, engine):
    return [point["engines"][engine]["time_s"] for point in json.loads(text)["points"]]


def at_the_ends_of_sizes():
    ends = [1, 2, 3, 7, 8, 13, 4095, 4097, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1, 10**12 + 7, 2**50,
            2**53 + 1, 10**18, 2**62, 9199999999999999999, 2**63 - 1, 2**63, 2**64, 10**30]
    for op in ("allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "sendrecv"):
        for topology in some(("Spectrum-X:g=8", "Spectrum-X:g=16"), 2 if op == "allreduce" else 1):
            last = 0
            for size in some(ends, 12):
                gpus = ("--gpus", "2") if op == "sendrecv" else ()
                code, out, err = collective(op, size, topology, "--threads", "1", *gpus)
                where = f"{op} of {size} B on {topology}"
                if code == 2 and ("left the range" in err or "106 days" in err or "is too large" in err):
                    counts["refused"] += 1
                    if size <= 2**50:
                        failures.append(f"{where} is refused: {err}")
                elif code == 0:
                    counts["answered"] += 1
                    time = times(out, "flow")[0]
                    # No link of a GPU is faster than 3.6 TB/s; more bytes take no less time, but for
                    # NCCL's other algorithms and protocols.
                    if not size / 1e14 < time < 1e8:
                        failures.append(f"{where} takes {time} s")
                    # NCCL's equal chunks make some odd size a little cheaper than the even one below.
                    if size > 2**31 and time < 0.99 * last:
                        failures.append(f"{where} takes {time} s, less than a smaller one")
                    last = time
                else:
                    failures.append(f"{where}: {code} {err}")


def every_algorithm_at_any_size():
    for algorithm in ("ring", "tree", "nvls", "recursive-halving-doubling", "hierarchical", "collnet-chain", "nvls-tree"):
        for size in some((1, 3, 2**31 + 1, 2**45 + 1, 2**52, 10**18), 3):
            code, _, err = collective("allreduce", size, "Spectrum-X:g=16", "--algorithm", algorithm, "--threads", "1")
            counts["answered" if code == 0 else "refused"] += 1
            if code not in (0, 2) or "lockstep: " not in err and code == 2:
                failures.append(f"{algorithm} of {size} B: {code} {err}")


def in_packets():
    """Other simulators finish nothing at 2 GiB."""
    if not pathlib.Path(lockstep + "-packet").exists():
        return
    for size in (1, 5, 2**31):
        code, out, err = collective("sendrecv", size, "Spectrum-X:g=16", "--gpus", "2", "--engine", "packet", "--paranoid")
        if code != 0 or times(out, "packet")[0] <= 0:
            failures.append(f"{size} B in packets: {code} {err}")
    # Beyond the clock's end, where 64 bits would begin again; and more transfers than a frame holds.
    for op, size, gpus, said in (("sendrecv", 4 * 10**17, "2", None), ("sendrecv", 2 * 10**18, "2", "100 days"),
                                 ("sendrecv", 4 * 10**18, "2", "100 days"), ("allreduce", 10**15, "16", "start at once")):
        code, out, err = collective(op, size, "Spectrum-X:g=16", "--gpus", gpus, "--placement", "spread", "--engine", "packet")
        if said is None and (code != 0 or not size / 60e9 < times(out, "packet")[0] < size / 40e9):
            failures.append(f"{size} B in packets: {code} {err} {out[-200:]}")
        if said is not None and (code != 2 or said not in err):
            failures.append(f"{op} of {size} B in packets: {code} {err} {out[-200:]}")


def wrong_numbers():
    for flag, values in {
            "--size": ("nan", "inf", "-1", "1e400", "0x10", "", "1 GiB extra", "-0.5GiB", "0"),
            "--send-latency": ("nan", "-1us", "1e30s", "2561h", "us"),
            "--mtu": ("0", "-1", "nan", "1e30"),
            "--header": ("-1", "1e30", "inf")}.items():
        for value in values:
            size = () if flag == "--size" else ("--size", "1MiB")
            code, _, err = run("collective", "--op", "allreduce", *size, f"{flag}={value}", "--topology", "Spectrum-X:g=8")
            counts["refused"] += code == 2
            if code != 2 or "lockstep: " not in err:
                failures.append(f"{flag} {value!r}: {code} {err}")


def links_without_bandwidth():
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "t.txt"
        run("topology", "build", "--template", "Spectrum-X", "-g", "8", "-o", str(file))
        text = file.read_text()
        for rate in ("0Gbps", "-1Gbps", "nanGbps", "1e300Gbps", "infGbps", "5e15bps", "9.1e18bps"):
            file.write_text(text.replace("2880Gbps", rate))
            if file.read_text() == text:
                failures.append("the topology has no link of 2880Gbps any more")
            code, _, err = run("collective", "--op", "allreduce", "--size", "1MiB", "--topology", str(file))
            counts["refused"] += code == 2
            if code != 2 or "lockstep: " not in err:
                failures.append(f"links of {rate}: {code} {err}")


def in_two_ways():
    """Random collectives: folded and every transfer by itself, to the picosecond, with every
    invariant watched (--paranoid); and no faster than the slowest link allows."""
    rng = random.Random(7)
    for _ in range(cases):
        gpus = rng.choice((2, 4, 8, 16, 24, 32))
        topology = rng.choice(("Spectrum-X:g={}", "AlibabaHPN:gpus={}", "DCN+:g={}")).format(max(8, (gpus + 7) // 8 * 8))
        op = rng.choice(("allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "reduce"))
        size = rng.choice((rng.randrange(1, 64), rng.randrange(1, 2**20), rng.randrange(1, 2**28)))
        more = ["--gpus", str(gpus), "--seed", str(rng.randrange(1, 99))]
        more += rng.choice(([], ["--placement", "random"], ["--placement", "spread"]))
        more += rng.choice(([], ["--spray"], ["--no-pxn"], ["--channels", str(rng.randrange(1, 9))]))
        more += rng.choice(([], ["--jitter", "50us"]))
        more += rng.choice(([], ["--protocol", "simple"], ["--mtu", "1000B"]))
        where = f"{op} of {size} B on {topology} {' '.join(more)}"
        code, out, err = collective(op, size, topology, *more, "--paranoid")
        counts["random"] += 1
        if code != 0:
            failures.append(f"{where}: {code} {err}")
            continue
        plain_code, plain, plain_err = collective(op, size, topology, *more)
        if plain_code != 0 or times(plain, "flow") != times(out, "flow"):
            failures.append(f"{where}: --paranoid changes the time: {plain_code} {plain_err}")


for test in (at_the_ends_of_sizes, every_algorithm_at_any_size, in_packets, wrong_numbers, links_without_bandwidth,
             in_two_ways):
    test()
print(", ".join(f"{n} {what}" for what, n in counts.items()))
for failure in failures[:60]:
    print("FAILED:", failure.strip())
sys.exit(1 if failures else 0)
