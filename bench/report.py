#!/usr/bin/env python3
"""How fast the report of a step of Llama 3 405B on 16,384 GPUs opens in Chromium, and how many frames
a second it draws while its timeline is panned.

Usage: .venv/bin/python bench/report.py <lockstep> [GPUs]
"""
import os
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "browser"))
from browser import Browser  # noqa: E402

lockstep, gpus = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 16384
page = os.path.join(tempfile.mkdtemp(), "report.html")
start = time.time()
subprocess.run([lockstep, "simulate", "--model", "llama3-405b", "--gpus", str(gpus), "--tp", "8", "--pp", "16", "--gbs", str(gpus // 128 * 128), "--spray",
                "--topology", f"Spectrum-X:g={gpus},app={min(gpus // 8, 16384)}", "--report", page], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"simulate --report   {time.time() - start:7.2f} s, {used.ru_utime + used.ru_stime:.2f} s of CPU, {used.ru_maxrss // 1024} MB")
print(f"page                {os.path.getsize(page) / 1e6:7.2f} MB")

PAN = """(async () => {
  const item = Report.charts.find(c => c.entry.name === '%s');
  item.element.scrollIntoView({block: 'center'});
  const frame = () => new Promise(done => requestAnimationFrame(done));
  while (!item.chart) { await frame(); }
  Report.go(item.chart, 0, %f);
  await frame(); await frame();
  const frames = [];
  let last = await frame();
  for (let i = 0; i < 150; ++i) {
    Report.go(item.chart, i * (100 - %f) / 150, i * (100 - %f) / 150 + %f);
    const now = await frame();
    frames.push(now - last);
    last = now;
  }
  frames.sort((a, b) => a - b);
  return [1000 * frames.length / frames.reduce((a, b) => a + b, 0), frames[Math.floor(frames.length * 0.95)]];
})()"""

with Browser() as browser:
    opened = []
    for _ in range(3):
        browser.open(page)
        browser.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        opened.append(browser.run("[performance.getEntriesByType('navigation')[0].loadEventEnd, Math.max(...Report.charts.filter(c => c.drawn_ms).map(c => c.drawn_ms))]"))
    load, drawn = sorted(opened)[1]
    print(f"open                {drawn / 1000:7.2f} s until the first screen is drawn ({load / 1000:.2f} s until loaded); median of 3")
    events = browser.run("Report.model.simulate[0].rows.reduce((n, r) => n + r.events.length, 0)")
    for name in ("timeline", "pipeline"):
        for width in (100 / 3, 5, 0.5):
            before = browser.cpu_seconds()
            rate, slow = browser.run(PAN % (name, width, width, width, width))
            cpu = 1000 * (browser.cpu_seconds() - before) / 150
            print(f"pan {name:<15} {rate:7.1f} frames/s, 95 % of them within {slow:.0f} ms; {cpu:.1f} ms of CPU a frame in all processes"
                  f" ({events} bars, {width:.3g} % of the step shown)")
    print(f"load                {os.getloadavg()[0]:7.1f} on {os.cpu_count()} cores")
    print("errors on the console:", browser.errors)
