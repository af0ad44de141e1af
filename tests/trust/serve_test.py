#!/usr/bin/env python3
"""A server and who means it harm: files that are not for callers, requests without end, time and
files beyond the limits. It gives nothing away, takes little memory, answers others, and ends when told.

Usage: serve_test.py <lockstep>
"""
import base64
import gzip
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

from outputs import PATIENCE, SANITIZED, clean_environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
lockstep = str(pathlib.Path(sys.argv[1]).resolve())
failures, tried = [], 0
TOPOLOGY = ["--topology", "Spectrum-X:g=8"]
JOB = ["--model", "llama3-8b", "--gpus", "8", *TOPOLOGY]
# Minutes of a live model.
LONG = ["--model", "llama3-70b", "--gpus", "512", "--tp", "8", "--pp", "8", "--global-batch", "8192", "--topology",
        "Spectrum-X:g=512", "--straggler", "jitter:0-511:normal:0.05:op"]
TINY = (ROOT / "tests/data/simulate/tiny.txt").read_text()
SECRET = "KEEP-IT"


def check(what, good, seen=""):
    global tried
    tried += 1
    if not good:
        failures.append(f"{what}: {str(seen)[:400]}")


class Server:
    def __init__(self, folder, *flags):
        self.process = subprocess.Popen([lockstep, "serve", "--port", "0", *flags], cwd=folder, text=True,
                                        stdout=subprocess.PIPE, env=clean_environment())
        self.port = int(self.process.stdout.readline().strip().rstrip("/").rsplit(":", 1)[1])

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60 * PATIENCE)

    def ask(self, method, path, body=None, host="localhost"):
        """Status and body."""
        text = b"" if body is None else json.dumps(body).encode()
        with self.connect() as link:
            link.sendall(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json"
                         f"\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
            answer = b""
            while data := link.recv(1 << 16):
                answer += data
        head, _, rest = answer.partition(b"\r\n\r\n")
        return int((head.split() + [b""] * 2)[1] or 0), rest.decode()

    def run(self, arguments, **more):
        return self.ask("POST", "/api/v1/run", {"arguments": arguments, **more})

    def live(self, arguments, **more):
        return self.ask("POST", "/api/v1/live", {"arguments": arguments, **more})

    def answers(self):
        return self.ask("GET", "/api/v1/about")[0] == 200

    def mebibytes(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) >> 10
        return 0


def files_that_are_not_for_callers(server, folder):
    """Named by flags, in clusters of flags, and by inputs that name other files."""
    secret = folder / "secret.csv"
    for named in (str(secret), "../../secret.csv", f"{folder}/files/../secret.csv"):
        status, answer = server.run(["simulate", "--workload", "w.txt", *TOPOLOGY, "--scenario", "s.yaml"],
                                    files={"w.txt": TINY, "s.yaml": f"stragglers:\n  - jitter:0-7:{named}\n"})
        check(f"a scenario that names {named}", status == 200 and SECRET not in answer and "is not served" in answer, answer)
    status, answer = server.run(["simulate", "--workload", "w.txt", *TOPOLOGY, "--scenario", "s.yaml"],
                                files={"w.txt": TINY, "s.yaml": "stragglers:\n  - jitter:0-7:own.csv\n", "own.csv": "1,1\n"})
    check("a scenario that names the request's own file", status == 200 and '"exit_code":0' in answer, answer)
    status, answer = server.run(["simulate", "--workload", "w.txt", *TOPOLOGY, "--scenario", "s.yaml"],
                                files={"w.txt": TINY, "s.yaml": f"stragglers:\n  - jitter:0-7:{folder}/files/served.csv\n"})
    check("a scenario that names a served file", status == 200 and '"exit_code":0' in answer, answer)
    build = ["topology", "build", "--template", "Spectrum-X", "-g", "8"]
    status, answer = server.run([*build, f"-qo{folder}/written.txt"])
    check("an output in a cluster of flags", not (folder / "written.txt").exists(), answer)
    status, answer = server.run([*build, "-o", f"{folder}/files/written.txt"])
    check("an output in the served folder", not (folder / "files/written.txt").exists() and "is not served" in answer, answer)
    # The live model's own folder is empty, and not the server's.
    for flags in (["--workload", "here.csv", *TOPOLOGY], [*JOB, "--scenario", "here.csv"], [*JOB, "--straggler", "jitter:0-7:here.csv"]):
        status, answer = server.live(flags)
        check(f"live {flags}", status == 400 and SECRET not in answer and "No such file" in answer, answer)
    for word in ("/etc/passwd", "../x", "a/../../x", "//etc/passwd", "x=/etc/passwd", "file:///etc/passwd", "/dev/stdin",
                 "/proc/self/environ"):
        status, answer = server.run(["simulate", "--workload", word, *TOPOLOGY])
        check(f"the word {word}", status == 403, answer)


def outputs_that_are_no_text(server):
    trace = [{"w.txt": TINY}, ["simulate", "--workload", "w.txt", *TOPOLOGY]]
    status, answer = server.run([*trace[1], "--trace", "t.json.gz"], files=trace[0], want_files=["t.json.gz"])
    packed = base64.b64decode(json.loads(answer)["files"]["t.json.gz"]["base64"], validate=True)
    check("a packed trace", status == 200 and "traceEvents" in gzip.decompress(packed).decode()[:200], answer)
    text = gzip.compress(TINY.encode())
    status, answer = server.run(["topology", "check", "w.gz"], want_files=["w.gz"],
                                files={"w.gz": {"base64": base64.b64encode(text).decode()}})
    given = json.loads(answer)["files"]["w.gz"]["base64"]
    check("a packed file there and back", base64.b64decode(given) == text, answer)


def folders_that_are_not_for_callers(server, folder):
    """Neither below the served folder nor, by a link in it, elsewhere."""
    (folder / "elsewhere").mkdir()
    (folder / "files/link").symlink_to(folder / "elsewhere")
    simulate = ["simulate", "--workload", "w.txt", *TOPOLOGY, "--csv"]
    for made in ("files/made/below", "files/link/made"):
        status, answer = server.run([*simulate, f"{folder}/{made}"], files={"w.txt": TINY})
        check(f"the folder {made}", not (folder / made).parent.joinpath("below").exists()
              and not (folder / made).exists() and "is not served" in answer, answer)
    status, answer = server.run(["generate", "--generator", "simai-training", "--num_layers", "2", "-o", f"{folder}/files/generated/"])
    check("the folder of a workload", not (folder / "files/generated").exists() and "is not served" in answer, answer)
    check("no folders", sorted(os.listdir(folder / "files")) == ["link", "served.csv"], os.listdir(folder / "files"))


def http_as_it_is_written(server):
    def hear(link, wanted):
        """What comes until `wanted` is there, or nothing more for a while."""
        answer = b""
        try:
            while wanted not in answer and (data := link.recv(1 << 16)):
                answer += data
        except TimeoutError:
            pass
        return answer

    def say(text, wanted=b"\r\n\r\n"):
        with server.connect() as link:
            link.settimeout(10 * PATIENCE)
            link.sendall(text)
            answer = hear(link, wanted)
            if b" 100 " in answer:
                link.sendall(b"{}")
                answer = b"100, then " + hear(link, b"error")
        return answer

    about = b" /api/v1/about HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    whole, head = say(b"GET" + about, b"\n\n\n"), say(b"HEAD" + about, b"\n\n\n")
    check("HEAD", head.endswith(b"\r\n\r\n") and head == whole[:len(head)], head)
    check("405", b"\r\nAllow: GET, HEAD\r\n" in say(b"DELETE" + about), say(b"DELETE" + about))
    post = b"POST /api/v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: "
    check("Expect", say(post + b"2\r\n\r\n").startswith(b"100, then HTTP/1.1 400"), say(post + b"2\r\n\r\n"))
    check("Expect, and a body too large", say(post + b"99999999\r\n\r\n").startswith(b"HTTP/1.1 413"))
    for name, header, wanted in (("no host", b"", b"400"), ("two hosts", b"Host: localhost\r\nHost: localhost\r\n", b"400"),
                                 ("a packed body", b"Host: localhost\r\nTransfer-Encoding: gzip\r\n", b"501")):
        answer = say(b"GET /api/v1/about HTTP/1.1\r\n" + header + b"\r\n", b"error")
        check(name, answer.startswith(b"HTTP/1.1 " + wanted) and b"Connection: close" in answer, answer)


def clients_of_the_live_model_that_hang_up(server):
    """Who asks next need not wait for what nobody wants; the server ends though it is busy."""
    with server.connect() as link:
        text = json.dumps({"arguments": LONG}).encode()
        link.sendall(b"POST /api/v1/live HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(text) + text)
        time.sleep(0.5)
    began = time.monotonic()
    status, answer = server.live(JOB)
    took = time.monotonic() - began
    check("after a client that hung up", status == 200 and took < 60 * PATIENCE, f"{took} s: {answer}")
    busy = []

    def wait():
        try:
            busy.append(server.live(LONG))
        except OSError:
            pass  # the server has gone

    waits = threading.Thread(target=wait)
    waits.start()
    time.sleep(1)
    check("the live model is busy", not busy, busy)
    server.process.terminate()
    try:
        check("the end of a busy server", server.process.wait(timeout=60 * PATIENCE) == 0)
    except subprocess.TimeoutExpired:
        check("the end of a busy server", False, "it goes on")
        server.process.kill()
    waits.join()


def names_that_lead_here(server):
    for host, wanted in (("[::1]:8080", 200), ("[::1].elsewhere.example", 403), ("localhost.elsewhere.example", 403),
                         ("127.0.0.1.elsewhere.example", 403),
                         ("LOCALHOST", 200), ("127.0.0.2", 200)):
        status, answer = server.ask("GET", "/api/v1/about", host=host)
        check(f"host {host}", status == wanted, answer)


def limits(server):
    began = time.monotonic()
    long = ["collective", "--op", "alltoall", "--size", "1GiB", "--algorithm", "direct", "--topology", "Spectrum-X:g=1024"]
    status, answer = server.run(long, time_limit_s=1e-13)
    check("a limit of time that rounds to none", '"ending":"timed-out"' in answer, answer)
    status, answer = server.run(["topology", "check", "x"], files={str(i): "" for i in range(20000)})
    check("20,000 files", status == 400 and "1000" in answer, answer)
    check("limits", time.monotonic() - began < 15 * PATIENCE, time.monotonic() - began)
    status, answer = server.live(JOB, sliders={"gpu_speed": 1e300})
    check("a slider beyond its range", status == 400, answer)


def requests_without_end(server):
    """Each grows for as long as the server takes it: it takes none beyond its limits."""
    request = b"POST /api/v1/run HTTP/1.1\r\nHost: localhost\r\n"
    for name, begin, more in (("a chunk's header", request + b"Transfer-Encoding: chunked\r\n\r\n1;", b"a"),
                              ("a chunk's size", request + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
                              ("trailers", request + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n"),
                              ("a header", request + b"X: ", b"a"), ("headers", request, b"a: b\r\n"),
                              ("a target", b"GET /", b"a"), ("a method", b"", b"A"),
                              ("a body", request + b"Content-Length: 99999999\r\n\r\n", b" "),
                              ("chunks", request + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n")):
        with server.connect() as link:
            sent = 0
            try:
                link.sendall(begin)
                block = more * ((1 << 20) // len(more))
                while sent < 64:
                    link.sendall(block)
                    sent += 1
            except OSError:
                pass
        check(f"{name} without end", sent < 64, f"{sent} MiB were taken")
        check(f"after {name} without end", server.answers())


with tempfile.TemporaryDirectory() as scratch:
    place = pathlib.Path(scratch).resolve()
    for name in ("cwd", "files"):
        (place / name).mkdir()
    (place / "secret.csv").write_text(f"{SECRET},1\n")
    (place / "cwd/here.csv").write_text(f"{SECRET},1\n")
    (place / "files/served.csv").write_text("1,1\n")
    first = Server(place / "cwd", "--files", str(place / "files"), "--body-limit", "1MB", "--time-limit", "20s")
    try:
        files_that_are_not_for_callers(first, place)
        folders_that_are_not_for_callers(first, place)
        outputs_that_are_no_text(first)
        http_as_it_is_written(first)
        names_that_lead_here(first)
        limits(first)
        before = first.mebibytes()
        requests_without_end(first)
        grown = first.mebibytes() - before
        check("memory", SANITIZED or grown < 50, f"{grown} MiB more")
        first.process.terminate()
        check("the end", first.process.wait(timeout=30 * PATIENCE) == 0, first.process.returncode)
    finally:
        first.process.kill()
    second = Server(place / "cwd", "--time-limit", "1000s", "--grace", "0.5s")
    try:
        clients_of_the_live_model_that_hang_up(second)
    finally:
        second.process.kill()
print(f"{tried} things tried, {grown} MiB more")
for failure in failures:
    print("FAILED:", failure)
sys.exit(1 if failures else 0)
