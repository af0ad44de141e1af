#!/usr/bin/env python3
"""Every file of some folders, and damaged copies of each, made here: `lockstep compare` reads them or
refuses them with exit code 2 and a reason, soon and in little memory. Copies that look different and say
the same (line ends, a launcher's tags, colours, packed) give the same result to the byte. Of many files each has a sixth of the
ways, by turns, unless LOCKSTEP_TRUST=all.

Usage: damaged_logs_test.py <lockstep> <folder>…, or `samples`: those of this tree, or `reference`: those of $LOCKSTEP_REFERENCE.
"""
import gzip
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile

from damage import DAMAGE, PACKED_DAMAGE, SAME, SAME_OF_ANY
from outputs import ALL, PATIENCE, SANITIZED, clean_environment

MOST_CPU = 10 * PATIENCE  # s
MOST_MEMORY = (1 << 30) * PATIENCE  # bytes, of files of at most 64 MB unpacked
SKIPPED = 77
KINDS = ("aicb_comm_log", "bandwidth_table", "byteps", "chakra_et", "collective_csv", "deepspeed_comm", "horovod",
         "kineto", "megatron", "mlperf", "nccl_tests", "nccl_tests_json", "ndtimeline", "perfetto", "pytorch_et",
         "rccl_tests", "timeline_csv")
lockstep = sys.argv[1]
failures, runs, slowest, largest = 0, 0, (0, ""), (0, "")


def fail(text):
    global failures
    failures += 1
    print("FAILED:", text, flush=True)


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (2 * MOST_CPU, 2 * MOST_CPU))
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def check(where, file, against):
    """Runs the program on a file and returns its exit code and output."""
    global runs, slowest, largest
    runs += 1
    words = [lockstep, "compare", str(file), *(["--against", str(file)] if against else ["--preset", "dgx-h100"])]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=limits,
                                 env=clean_environment())
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = code = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        told, message = out.read(), err.read().decode(errors="replace")
    cpu, memory = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
    slowest, largest = max(slowest, (cpu, where)), max(largest, (memory, where))
    if code == 3 and "Parquet needs Apache Arrow" in message:
        code = 2  # a build without it
    if code not in (0, 2):
        fail(f"{where}: exit code {code}: {message[-300:]!r}")
    elif code == 2 and ("lockstep: " not in message or "broken invariant" in message):
        fail(f"{where}: says {message[:300]!r}")
    elif code == 0 and re.search(rb"(?<=\s)[-+]?(nan|inf)\b", told):
        fail(f"{where}: prints no number: {told[:300]!r}")
    if cpu > MOST_CPU:
        fail(f"{where}: {cpu:.1f} s of CPU")
    if memory > MOST_MEMORY:
        fail(f"{where}: {memory >> 20} MiB")
    return code, told, message


def of_lines(data):
    """Whether it is what a program printed, line by line: not JSON, no CSV, no table in Markdown."""
    return b"\0" not in data[:4096] and data[:1] not in (b"{", b"[") and b"redop" in data and b",redop," not in data


def check_copies(path, folder, share, turn):
    """All ways, or of `share` one, by turns."""
    packed = path.name.endswith(".gz")
    data = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    plain = folder / (path.name[:-3] if packed else path.name)
    zipped = folder / (plain.name + ".gz")
    plain.write_bytes(data)
    code, told, message = check(f"{path.name}", path, False)
    against = code == 2 and "no collectives" in message
    if against:
        code, told, message = check(f"{path.name} beside itself", path, True)
    if not data:
        return
    large = len(data) > 1 << 20
    table = plain.name.endswith(".tar")

    def same(way, file):
        other = check(f"{path.name}, {way}", file, against)
        if other[0] != code or other[1].replace(b".gz", b"") != told.replace(b".gz", b""):
            fail(f"{path.name}, {way}: another result, exit code {other[0]}: {other[2][:300]!r}")

    if not table:
        same("unpacked" if packed else "as it is", plain)
        plain.rename(folder / "kept")
        zipped.write_bytes(gzip.compress(data[:len(data) // 2], 1) + gzip.compress(data[len(data) // 2:], 1))
        same("packed in two members", zipped)
        (folder / "kept").rename(plain)
        zipped.unlink()
        ways = SAME if of_lines(data) else SAME_OF_ANY
        for place, way in enumerate(ways if plain.suffix != ".et" else ()):
            if (place + turn) % share:
                continue
            plain.write_bytes(SAME[way](data))
            same(way, plain)
    plain.unlink()
    for file, kinds in (((zipped if table else plain), DAMAGE), (zipped, PACKED_DAMAGE)):
        for place, (way, damage) in enumerate(kinds.items()):
            if (place + turn) % share:
                continue
            if large and not ALL and way in ("doubled", "shuffled", "a hundred times", "with many numbers huge",
                                             "with digits shifted", "with lines lost", "another bit", "cut again"):
                continue
            rng = random.Random(f"{path.name} {way}")
            broken = damage(rng, data)
            file.write_bytes(gzip.compress(broken, 1) if table and kinds is DAMAGE else broken)
            check(f"{path.name}, {way}", file, against)
            file.unlink()


def main():
    folders = sys.argv[2:]
    if folders == ["samples"]:
        folders = ["tests/data/logs", *(f"tests/fuzz/corpus/{kind}" for kind in KINDS)]
    if folders == ["reference"]:
        reference = os.environ.get("LOCKSTEP_REFERENCE", "../shared/reference")
        folders = [reference + "/physical/logs", reference + "/physical/traces"]
        if not reference or not all(os.path.isdir(folder) for folder in folders):
            print("skipped: REFERENCE DATA ABSENT: set LOCKSTEP_REFERENCE to run this test")
            return SKIPPED
    files = sorted(path for folder in folders for path in pathlib.Path(folder).rglob("*") if path.is_file())
    with tempfile.TemporaryDirectory() as folder:
        share = 1 if ALL or len(files) < 50 else 6
        for turn, path in enumerate(files):
            check_copies(path, pathlib.Path(folder), share, turn)
    print(f"{runs} runs over {len(files)} files; most CPU {slowest[0]:.2f} s ({slowest[1]}), "
          f"most memory {largest[0] >> 20} MiB ({largest[1]})")
    return 1 if failures or not files else 0


sys.exit(main())
