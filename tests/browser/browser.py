"""Chromium without a window, driven over its DevTools protocol, and what checks of it share."""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

SKIPPED = 77  # ctest's SKIP_RETURN_CODE


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(SKIPPED)


try:
    import websocket
except ImportError:
    skip("the Python module websocket is not here (./setup installs it)")


failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED:", what)


def equal(found, wanted, what):
    check(found == wanted, f"{what}: {found!r}, expected {wanted!r}")


class Browser:
    """One page. What went wrong in it is collected: errors on the console, requests to a network."""

    def __init__(self, width=1280, height=900):
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if program is None:
            skip("Chromium is not here (./setup installs it)")
        self.folder = tempfile.mkdtemp()
        self.errors, self.requests, self.loaded = [], [], False
        self.number = 0
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--force-device-scale-factor=1", "--hide-scrollbars",
             "--remote-allow-origins=*", "--remote-debugging-port=0", f"--user-data-dir={self.folder}",
             f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.socket = self._connect()
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.call(f"{domain}.enable")
            self.size(width, height)
        except BaseException:
            self.close()
            raise

    def _connect(self):
        import urllib.request
        path = os.path.join(self.folder, "DevToolsActivePort")
        for _ in range(600):
            if os.path.exists(path) and "\n" in open(path).read():
                port = open(path).read().split("\n")[0]
                try:
                    pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=30))
                except OSError:
                    pages = []
                for page in pages:
                    if page["type"] == "page":
                        return websocket.create_connection(page["webSocketDebuggerUrl"], timeout=120, max_size=None)
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError("Chromium does not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _note(self, message):
        method, what = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details.get("text"))
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in what["args"]))
        elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.errors.append(what["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def call(self, method, **parameters):
        self.number += 1
        number = self.number
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self._note(message)

    def open(self, path):
        """A file, or an address that begins with http."""
        self.errors, self.requests, self.loaded = [], [], False
        self.call("Page.navigate", url=path if path.startswith("http://") else "file://" + os.path.abspath(path))
        while not self.loaded:
            self._note(json.loads(self.socket.recv()))

    def run(self, expression):
        """The value of a JavaScript expression; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", expression))
        return result["result"].get("value")

    def cpu_seconds(self):
        """CPU time that all of the browser's processes have used."""
        family, stats = {self.process.pid}, {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                stats[int(pid)] = (int(fields[1]), int(fields[11]) + int(fields[12]))
            except OSError:
                pass
        grown = True
        while grown:
            found = {pid for pid, (parent, _) in stats.items() if parent in family} - family
            family |= found
            grown = bool(found)
        total = sum(stats[pid][1] for pid in family if pid in stats)
        return total / os.sysconf("SC_CLK_TCK")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def colours(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def click(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="none" if kind == "mouseMoved" else "left",
                      clickCount=0 if kind == "mouseMoved" else 1)

    def key(self, key, text=""):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def screenshot(self, path, whole=False):
        clip = {}
        if whole:
            size = self.run("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
            clip = {"clip": {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}, "captureBeyondViewport": True}
        data = self.call("Page.captureScreenshot", format="png", **clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self, path):
        data = self.call("Page.printToPDF", printBackground=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def draw_all(self):
        """Brings every figure near the window, so that all are drawn."""
        return self.run("""(async () => {
          const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)));
          for (const chart of document.querySelectorAll('.chart')) {
            chart.scrollIntoView();
            for (let i = 0; i < 50 && chart.dataset.drawn !== 'yes'; ++i) { await frame(); }
            await frame();
          }
          scrollTo(0, 0);
          await frame();
          return document.querySelectorAll('.chart').length;
        })()""")
