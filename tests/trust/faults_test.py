#!/usr/bin/env python3
"""Disks that are full or broken: whichever call fails, a command that writes says so and fails, and
each of its outputs is what it was before or what it is to be.

Usage: faults_test.py <lockstep> <library of tests/support/failing_calls.cc> [<command>…]
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

from outputs import ALL, COMMANDS, JOURNALS, PACKET, PATIENCE, VARYING, clean_environment, tree, words

OLD = b"what was there before\n"
MOST = 60 if ALL else 9  # calls of one command that are made to fail, the first and the last among them
lockstep, library = sys.argv[1:3]
failures, faults = [], 0


def run(command, folder, **settings):
    return subprocess.run([lockstep, *words(command, folder)], capture_output=True, timeout=120 * PATIENCE,
                          stdin=subprocess.DEVNULL, env=clean_environment(LD_PRELOAD=library, **settings))


def chosen(count):
    if count <= MOST:
        return range(1, count + 1)
    ends = MOST // 3
    step = (count - 2 * ends) / (MOST - 2 * ends)
    middle = {round(ends + i * step) for i in range(1, MOST - 2 * ends)}
    return sorted({*range(1, ends + 1), *middle, *range(count - ends + 1, count + 1)})


def is_whole(name, command, path, now, wanted):
    if pathlib.Path(path).name in JOURNALS:
        return all(line.startswith((b"{", b"[")) or not line for line in now.split(b"\n")[:-1])
    return now == OLD or now == wanted.get(path) or (name in VARYING and path in wanted)


def fill(folder, wanted):
    """The outputs as an earlier run left them."""
    shutil.rmtree(folder)
    folder.mkdir()
    for path in wanted:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if pathlib.Path(path).name not in JOURNALS:
            (folder / path).write_bytes(OLD)


def parted(folder, wanted):
    """Whether a trace is new and what describes it is old."""
    return any((folder / path).read_bytes() != OLD and (folder / path).with_suffix(".yaml").read_bytes() == OLD
               for path in wanted if path.endswith(".csv") and str(pathlib.Path(path).with_suffix(".yaml")) in wanted)


def check(name, command):
    global faults
    scratch = pathlib.Path(tempfile.mkdtemp())
    try:
        folder = scratch / "out"
        folder.mkdir()
        clean = run(command, folder)
        if clean.returncode != 0:
            failures.append(f"{name}: {clean.stderr.decode()}")
            return
        wanted = tree(folder)
        fill(folder, wanted)
        run(command, folder, FAIL_COUNT=str(scratch / "count"))
        # The last to end is the command itself; what it started ends before.
        count = int((scratch / "count").read_text().split()[-1])
        for call in chosen(count):
            error = "EIO" if call % 2 else "ENOSPC"
            said = "Input/output error" if call % 2 else "No space left on device"
            fill(folder, wanted)
            result = run(command, folder, FAIL_AT=str(call), FAIL_ON="1", FAIL_WITH=error)
            faults += 1
            message = result.stderr.decode(errors="replace")
            where = f"{name}: call {call} of {count} fails ({error})"
            if result.returncode not in (2, 3):
                failures.append(f"{where}: exit code {result.returncode}: {message!r}")
            elif said not in message or "lockstep: " not in message:
                failures.append(f"{where}: the message is {message!r}")
            for path, now in tree(folder).items():
                if path.endswith(".tmp"):
                    failures.append(f"{where}: {path} is left behind")
                elif not is_whole(name, command, path, now, wanted):
                    failures.append(f"{where}: {path} is neither old nor new ({len(now)} bytes)")
            if parted(folder, wanted) and "cannot replace" not in message:
                failures.append(f"{where}: a trace without its .yaml: {message!r}")
    finally:
        shutil.rmtree(scratch)


commands = dict(COMMANDS)
if pathlib.Path(lockstep + "-packet").exists():
    commands |= PACKET
for each in sys.argv[3:] or commands:
    check(each, commands[each])
print(f"{faults} faults in {len(sys.argv[3:] or commands)} commands")
for failure in failures[:60]:
    print("FAILED:", failure)
sys.exit(1 if failures or faults == 0 else 0)
