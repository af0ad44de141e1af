#!/usr/bin/env python3
"""Processes that are ended, starved or lied to: killed at random points, out of memory, interrupted,
without standard output, with a clock that jumps. Outputs stay old or become new, what is known is
printed, and the message says what happened.

Usage: ends_test.py <lockstep> <library of tests/support/failing_calls.cc>
"""
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from outputs import (ALL, COMMANDS, JOURNALS, PATIENCE, SANITIZED, STEP, TOPOLOGY, VARYING, clean_environment, some,
                     tree, words)
from readers import READERS

OLD = b"what was there before\n"
lockstep, library = sys.argv[1:3]
packet = pathlib.Path(lockstep + "-packet").exists()
failures, counts = [], {}
scratch = pathlib.Path(tempfile.mkdtemp())


def fail(text):
    failures.append(text)


def count(what, n=1):
    counts[what] = counts.get(what, 0) + n


def start(arguments, **more):
    environment = clean_environment(**more.pop("settings", {}))
    return subprocess.Popen([lockstep, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=environment, **more)


def run(arguments, **more):
    process = start(arguments, **more)
    out, err = process.communicate(timeout=120 * PATIENCE)
    return process.returncode, out, err.decode(errors="replace")


def fresh(name, wanted=()):
    folder = scratch / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in wanted:
        if pathlib.Path(path).name not in JOURNALS:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(OLD)
    return folder


def killed_at_random():
    """SIGKILL, SIGTERM and SIGINT at random moments: each file is old or new; the last two leave no
    temporary file either."""
    rng = random.Random(20)
    for name in ("simulate chrome gz", "simulate columns", "simulate report", "whatif", "plan model", "manual",
                 "generate json", "simulate byteps"):
        folder = fresh("killed")
        began = time.monotonic()
        code, _, err = run(words(COMMANDS[name], folder))
        lasts = time.monotonic() - began
        if code != 0:
            fail(f"{name}: {err}")
            continue
        wanted = tree(folder)
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            for _ in range(8 if ALL else 2):
                folder = fresh("killed", wanted)
                process = start(words(COMMANDS[name], folder))
                time.sleep(rng.uniform(0, 1.1 * lasts))
                process.send_signal(number)
                process.communicate()
                count("kills")
                for path, now in tree(folder).items():
                    where = f"{name} killed by {number.name}: {path}"
                    if path.endswith(".tmp"):
                        if number != signal.SIGKILL:
                            fail(f"{where} is left behind")
                    elif pathlib.Path(path).name not in JOURNALS and now != OLD and now != wanted.get(path):
                        fail(f"{where} is neither old nor new")


def goes_on_after_a_kill():
    """A search and a sweep that are killed go on from their journals to the same end."""
    for name in ("plan model", "sweep"):
        whole = fresh("whole")
        code, wanted, err = run(words(COMMANDS[name], whole))
        if code != 0:
            fail(f"{name}: {err}")
            continue
        rng = random.Random(3)
        folder = fresh("again")
        for _ in range(5):
            process = start(words(COMMANDS[name], folder))
            time.sleep(rng.uniform(0, 0.4))
            process.kill()
            process.communicate()
            count("kills")
        code, got, err = run(words(COMMANDS[name], folder))
        if code != 0 or (name not in VARYING and got.replace(str(folder).encode(), b"") !=
                         wanted.replace(str(whole).encode(), b"")):
            fail(f"{name} goes on after kills: exit code {code}: {err} {got[:200]!r}")


def out_of_memory():
    """Under a limit of memory a command does its work, or says that it lacks memory and leaves old
    outputs as they were."""
    commands = {name: COMMANDS[name] for name in ("simulate chrome gz", "simulate report", "whatif", "plan model",
                                                  "simulate columns", "generate json")}
    commands["fat tree"] = ["topology", "build", "--template", "fat-tree", "--ports", "64", "-o", "@O@/t.txt"]
    commands["all-to-all"] = ["collective", "--op", "alltoall", "--size", "1MiB", "--topology", "Spectrum-X:g=256",
                              "--no-symmetry", "--no-fast-forward"]
    seen = set()
    for name, command in commands.items():
        folder = fresh("memory")
        run(words(command, folder))
        wanted = tree(folder)
        for mebibytes in some((3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 128), 5):
            folder = fresh("memory", wanted)
            limit = mebibytes << 20

            def bound():
                resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

            code, _, said = run(words(command, folder), preexec_fn=bound)
            count("memory limits")
            where = f"{name} with {mebibytes} MiB"
            if code == 0:
                seen.add("done")
            elif code == 127 and "loading shared libraries" in said:
                seen.add("did not start")
            elif code == 2 and any(text in said for text in ("out of memory", "Cannot allocate memory",
                                                             "Resource temporarily unavailable")):
                seen.add("said")
            else:
                fail(f"{where}: exit code {code}: {said[:300]!r}")
            for path, now in tree(folder).items():
                if path.endswith(".tmp"):
                    fail(f"{where}: {path} is left behind")
                elif pathlib.Path(path).name not in JOURNALS and now != OLD and now != wanted.get(path):
                    fail(f"{where}: {path} is neither old nor new")
    if not {"said", "done"} <= seen:
        fail(f"limits of memory tried nothing: {seen}")


def interrupted():
    """Ctrl-C: what is done by then is printed, with exit code 130; where there is nothing, that is
    said."""
    steps = [*STEP, "--straggler", "jitter:0-7:normal:0.1", "--steps", "1000000", "--threads", "2"]
    process = start(steps)
    time.sleep(6 if SANITIZED else 1.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60 * PATIENCE)
    count("interrupts")
    if process.returncode != 130 or b" steps (seed 1)" not in out or b"stopped: the first" not in err:
        fail(f"steps, interrupted: {process.returncode} {out[-300:]!r} {err[-300:]!r}")

    sizes = ["collective", "--op", "allreduce", "--size", "8B:4MiB", "--topology", "Spectrum-X:g=64",
             "--no-symmetry", "--no-fast-forward", "--algorithm", "ring", "--threads", "1"]
    process = start(sizes)
    lines = 0
    for wait in (2, 4, 8):
        time.sleep(wait)
        if process.poll() is None:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60 * PATIENCE)
    lines = sum(line.strip()[:1].isdigit() for line in out.decode().splitlines())
    count("interrupts")
    if process.returncode == 130:
        if b"stopped" not in err:
            fail(f"sizes, interrupted: {err!r}")
        if (lines > 0) != (b"sizes are missing" in err):
            fail(f"sizes, interrupted: {lines} lines, {err!r}")
    elif process.returncode != 0:
        fail(f"sizes, interrupted: {process.returncode} {err!r}")

    plan = ["plan", "--model", "llama3-70b", "--gpus", "128", "--gbs", "128", "--topology", "Spectrum-X:g=128"]
    process = start(plan)
    time.sleep(6)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60 * PATIENCE)
    count("interrupts")
    if process.returncode not in (0, 130) or (process.returncode == 130 and b"stopped" not in err):
        fail(f"a search, interrupted: {process.returncode} {err[-300:]!r}")

    # Other tools' problems have a plan early; then it is shown with the bound that is proven by then.
    data = pathlib.Path(__file__).resolve().parents[1] / "data/plan/scale-layer"
    aceso = ["plan", "--aceso-model", "scale-layer", "--aceso-size", "200layers", "--profiles", str(data), "--nodes",
             "8", "--gpus-per-node", "2", "--max-tp", "2", "--global-batch", "64", "--micro-batch", "1", "2",
             "--memory-limit", "6000", "--json"]
    target = fresh("interrupted-search")
    process = start([*aceso, "-o", str(target / "plans")])
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60 * PATIENCE)
    count("interrupts")
    if process.returncode == 130:
        found = json.loads(out)
        if b"stopped" not in err or not found["plans"] or found["bound_s"] > found["time_s"] or list(target.iterdir()):
            fail(f"Aceso's search, interrupted: {found['time_s']} {found['bound_s']} {err!r}")
    elif process.returncode != 0:
        fail(f"Aceso's search, interrupted: {process.returncode} {err[-300:]!r}")

    # What was played is what --runs of that number says; a run that is under way does not hold it up.
    weeks = ["goodput", "--step", "1s", "--gpus", "1024", "--gpu-mtbf", "5y", "--restart", "5min", "--threads", "2",
             "--json"]
    process = start([*weeks, "--for", "1w", "--runs", "8000"])
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60 * PATIENCE)
    count("interrupts")
    told = re.search(rb"stopped: the first (\d+) of 8000 runs", err)
    if process.returncode != 130 or not told or int(told[1]) != json.loads(out)["runs"]:
        fail(f"runs, interrupted: {process.returncode} {out[-300:]!r} {err[-300:]!r}")
    else:
        part, whole = json.loads(out), json.loads(run([*weeks, "--for", "1w", "--runs", told[1].decode()])[1])
        if part["goodput"] != whole["goodput"]:
            fail(f"runs, interrupted: {part['goodput']}, not {whole['goodput']}")
    if SANITIZED != "thread":  # which holds signals back from threads that do nothing but compute
        process = start([*weeks, "--for", "70y", "--runs", "2"])
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10 * PATIENCE)
        count("interrupts")
        if process.returncode != 130 or out or b"stopped" not in err:
            fail(f"no run, interrupted: {process.returncode} {out[-300:]!r} {err[-300:]!r}")

    # Twice: at once, by the signal.
    process = start(steps)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60 * PATIENCE)
    count("interrupts")
    if process.returncode not in (130, -signal.SIGINT):
        fail(f"interrupted twice: {process.returncode}")
    if packet:
        process = start([*STEP, "--engine", "packet", "--steps", "100000"], start_new_session=True)
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60 * PATIENCE)
        count("interrupts")
        if process.returncode not in (130, -signal.SIGINT) or b"unexpectedly" in err:
            fail(f"packets, interrupted: {process.returncode} {err[-300:]!r}")


def packet_engine_dies():
    """lockstep-packet killed in mid-run: a message, exit code 3, and no hang."""
    if not packet:
        return
    for wait in (0.2, 0.6, 1.2):
        process = start(["collective", "--op", "alltoall", "--size", "16GiB", "--topology", "Spectrum-X:g=32", "--engine",
                         "packet"])
        time.sleep(wait)
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
        for child in children.stdout.split():
            subprocess.run(["kill", "-9", child], check=False)
        out, err = process.communicate(timeout=60 * PATIENCE)
        count("dead engines")
        if children.stdout.split() and (process.returncode != 3 or b"has ended unexpectedly" not in err):
            fail(f"lockstep-packet killed: {process.returncode} {err!r}")


def a_file_shrinks():
    """An input that becomes shorter while it is read."""
    big = scratch / "big.json"
    hit = 0
    for wait in (0.05, 0.1, 0.2, 0.3, 0.5, 0.8):
        with open(big, "wb") as file:
            file.write(b'{"schema": "lockstep-workload/1", "jobs": [')
            file.write(b'"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",\n' * 1_500_000)
        process = start(["simulate", "--workload", str(big), "--topology", TOPOLOGY])
        time.sleep(wait)
        big.write_bytes(b"")
        _, err = process.communicate(timeout=60 * PATIENCE)
        count("lost inputs")
        hit += b"became shorter" in err
        if process.returncode != 2 or b"lockstep: " not in err:
            fail(f"a file that shrinks: {process.returncode} {err[-300:]!r}")
    if hit == 0:
        fail("no file became shorter while it was read: the test tries nothing")


def pipes_that_say_nothing():
    """Ctrl-C while a reader waits for a pipe: no second one is needed."""
    pipe = scratch / "pipe.csv"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)
    for name, command in some(READERS.items(), 16):
        if name in ("score logs", "score-steps", "serve --token-file"):
            continue
        folder = fresh("read")
        placed = []
        for word in command:
            inside = re.search(r"@D:(.*?)@", word)
            if inside and not (folder / inside[1]).is_symlink():
                (folder / inside[1]).symlink_to(pipe)
            placed.append(re.sub(r"@D:.*?@", str(folder), word).replace("@F@", str(pipe)).replace("@O@", str(folder / "o")))
        process = start(placed)
        time.sleep(0.3 * PATIENCE)
        waited = process.poll() is None
        process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=10 * PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            err = b"it goes on"
        count("silent pipes")
        if not waited or process.returncode not in (130, -signal.SIGINT):
            fail(f"{name} of a pipe that says nothing: {process.returncode} {err[-300:]!r}")
    os.close(held)


def files_may_not_grow():
    """ulimit -f: as a full disk."""
    # The thread sanitizer writes a file of its own before main().
    for kibibytes in (1, 4, 16) if SANITIZED == "thread" else (0, 1, 4, 16):
        folder = fresh("fsize", ["t.json"])

        def bound():
            resource.setrlimit(resource.RLIMIT_FSIZE, (kibibytes << 10, kibibytes << 10))

        code, _, err = run(words(COMMANDS["simulate chrome"], folder), preexec_fn=bound)
        count("file size limits")
        if code != 2 or "File too large" not in err or (folder / "t.json").read_bytes() != OLD:
            fail(f"a file of at most {kibibytes} KiB: {code} {err!r}")


def no_standard_output():
    """Closed, full, or with a reader that has gone, for every command that prints."""
    for name, command in some(COMMANDS.items(), 10):
        for where, code in (("/dev/full", 2), (">&-", 2)):
            folder = fresh("streams")
            command_line = " ".join(f"'{word}'" for word in [lockstep, *words(command, folder)])
            redirect = ">&-" if where == ">&-" else f">{where}"
            done = subprocess.run(["sh", "-c", f"{command_line} {redirect}"], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, env=clean_environment(), timeout=60 * PATIENCE)
            count("standard outputs")
            prints = run(words(command, fresh("streams")))[1]
            if prints and (done.returncode != code or "standard output" not in done.stderr):
                fail(f"{name} {redirect}: {done.returncode} {done.stderr!r}")
            if not prints and done.returncode != 0:
                fail(f"{name} {redirect}: {done.returncode} {done.stderr!r}")


def clock_jumps():
    """The time of day jumps by years between two looks: nothing depends on it."""
    for name in ("simulate json", "collective", "whatif", "plan model", "sweep", "goodput"):
        steady, jumping = fresh("steady"), fresh("jumping")
        cache = str(scratch / "cache" / name.replace(" ", "-"))
        first = run(words(COMMANDS[name], steady))
        for settings in ({}, {"LOCKSTEP_CACHE": cache}, {"LOCKSTEP_CACHE": cache}):
            second = run(words(COMMANDS[name], jumping), settings={"LD_PRELOAD": library, "FAIL_CLOCK": "1", **settings})
            count("jumping clocks")
            if second[0] != 0 or (name not in VARYING and second[1].replace(str(jumping).encode(), b"") !=
                                  first[1].replace(str(steady).encode(), b"")):
                fail(f"{name} with a clock that jumps: {second[0]} {second[2]} {second[1][:200]!r}")


def no_threads():
    """The system gives no threads (a limit of processes): the same answer, by the one that there is."""
    settings = {"LD_PRELOAD": library, "FAIL_THREADS": "1"}
    for name, command in some(COMMANDS.items(), 10):
        with_threads, alone = fresh("threads"), fresh("alone")
        first, second = run(words(command, with_threads)), run(words(command, alone), settings=settings)
        count("runs without threads")
        if second[0] != first[0] or (name not in VARYING and second[1].replace(str(alone).encode(), b"") !=
                                     first[1].replace(str(with_threads).encode(), b"")):
            fail(f"{name} without threads: {second[0]} {second[2]} {second[1][:200]!r}")
    code, _, err = run(["serve", "--port", "0"], settings=settings)
    count("runs without threads")
    if code != 2 or "cannot start threads" not in err:
        fail(f"serve without threads: {code} {err!r}")


for test in (killed_at_random, goes_on_after_a_kill, out_of_memory, interrupted, packet_engine_dies, a_file_shrinks,
             pipes_that_say_nothing, files_may_not_grow, no_standard_output, clock_jumps, no_threads):
    if len(sys.argv) > 3 and test.__name__ not in sys.argv[3:]:
        continue
    if SANITIZED and test in (out_of_memory, no_threads):  # sanitizers have threads of their own
        continue
    began = time.monotonic()
    test()
    print(f"{test.__name__}: {time.monotonic() - began:.0f} s", flush=True)
shutil.rmtree(scratch)
print(", ".join(f"{n} {what}" for what, n in counts.items()))
for failure in failures[:60]:
    print("FAILED:", failure)
sys.exit(1 if failures else 0)
