#!/usr/bin/env python3
"""The live page in Chromium: the report of a step follows its sliders, without an error on the console;
figures stay where they were, numbers are those of `lockstep simulate`, mistakes are told.

Usage: live_test.py <lockstep> <folder for screenshots>
"""
import json
import os
import subprocess
import sys
import urllib.parse

from browser import Browser, check, equal, failures

LOCKSTEP, SHOTS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
os.makedirs(SHOTS, exist_ok=True)
JOB = "--model llama3-8b --gpus 32 --tp 4 --pp 4 --sp --global-batch 16 --topology Spectrum-X:g=32"


def simulated(*more):
    done = subprocess.run([LOCKSTEP, "simulate", *JOB.split(), *more, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def clean(browser, what):
    equal(browser.errors, [], f"{what}: errors on the console")
    equal([r for r in browser.requests if not r.startswith(("http://127.0.0.1:", "data:"))], [], f"{what}: requests")


def until(browser, condition, what):
    """Waits for it, a minute."""
    done = browser.run(f"""(async () => {{
      for (let i = 0; i < 600 && !({condition}); ++i) {{ await new Promise(next => setTimeout(next, 100)); }}
      return !!({condition});
    }})()""")
    check(done, f"{what}: it did not come that {condition}")


def move(browser, slider, x):
    """The slider to factor 2^x; tells the place that this is."""
    before = browser.run("Number(document.documentElement.dataset.place)")
    browser.run(f"""(() => {{
      const input = document.getElementById('{slider}');
      input.value = {x};
      input.dispatchEvent(new Event('input'));
    }})()""")
    return before


def settled(browser, before, what):
    until(browser, f"Number(document.documentElement.dataset.place) > {before} && !document.querySelector('main.stale')", what)


def opened(browser, where):
    browser.open(f"{where}?flags={urllib.parse.quote(JOB)}")
    until(browser, "document.documentElement.dataset.ready === 'yes'", "the page")
    browser.draw_all()
    for section in ("headline", "time", "timeline", "pipeline", "fabric", "memory", "roofline", "inputs"):
        check(browser.run(f"!!document.getElementById('{section}')"), f"section {section} is missing")
    check(browser.run("[...document.querySelectorAll('.chart')].every(c => c.dataset.drawn === 'yes')"), "figures that are not drawn")
    equal(browser.run("Report.model.documents[0].total_s"), simulated()["total_s"], "the step's time")
    check(JOB in browser.run("document.querySelector('#inputs code').textContent"), "the command is not told")
    check(browser.run("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window")
    browser.screenshot(os.path.join(SHOTS, "live.png"), whole=True)
    clean(browser, "as it opens")


def sliders(browser, _):
    browser.run("Report.go(Report.charts.find(c => c.entry.name === 'timeline').chart, 20, 40)")
    browser.run("document.getElementById('timeline').scrollIntoView()")
    at = browser.run("scrollY")
    before = move(browser, "gpu_speed", -1)
    # The numbers come first, and mark the rest as of before; or the whole was there at once.
    until(browser, f"document.querySelector('main.stale') || Number(document.documentElement.dataset.place) > {before}", "the numbers")
    settled(browser, before, "GPUs of half the speed")
    total, compute = browser.run("[Report.model.documents[0].total_s, Report.model.documents[0].compute_s]")
    was = simulated()
    check(abs(compute - 2 * was["compute_s"]) < 1e-6 * compute, f"half the speed computes {compute} s, before {was['compute_s']} s")
    end = browser.run("Math.max(...Report.model.documents[0].rows.map(row => row.events[row.events.length - 1].end))")
    check(abs(end - total) < 0.02 * total, f"the timeline ends after {end} s, the step after {total} s")
    equal(browser.run("Report.range(Report.charts.find(c => c.entry.name === 'timeline').chart).map(Math.round)"), [20, 40], "the zoom")
    equal(browser.run("scrollY"), at, "the place on the page")
    cards = browser.run("document.getElementById('headline').textContent")
    check("GPU speed × 0.5" in cards, f"the headline does not name the sliders: {cards}")
    clean(browser, "a slider")


def slow_gpu(browser, _):
    browser.run("document.getElementById('reset').click()")
    before = move(browser, "straggler", 0.5)
    settled(browser, before + 1, "a slow GPU")
    wanted = simulated("--straggler", "gpu:0:1.414")
    equal(browser.run("Report.model.documents[0].total_s"), wanted["total_s"], "a step with a slow GPU")
    equal(browser.run("Report.model.documents[0].slowdown"), wanted["slowdown"], "its slowdown")
    check("Slowdown by stragglers" in browser.run("document.getElementById('headline').textContent"), "no slowdown in the headline")
    clean(browser, "a slow GPU")


def compared(browser, _):
    browser.run("document.getElementById('keep').click()")
    before = move(browser, "straggler", 0)
    settled(browser, before, "a second report")
    browser.draw_all()
    check(browser.run("!!document.getElementById('runs')"), "two reports are not shown side by side")
    browser.screenshot(os.path.join(SHOTS, "live-compared.png"), whole=True)
    browser.run("document.getElementById('keep').click()")
    check(browser.run("!document.getElementById('runs')"), "what was to be forgotten is still shown")
    clean(browser, "two reports")


def mistakes(browser, where):
    wrong = JOB.replace("llama3-8b", "llama3-9b")
    browser.run(f"(() => {{ const w = document.getElementById('words'); w.value = '{wrong}'; w.dispatchEvent(new Event('change')); }})()")
    until(browser, "document.querySelector('#note.problem')", "a mistake")
    check("llama3-9b" in browser.run("document.getElementById('note').textContent"), "the mistake is not told")
    browser.errors = [e for e in browser.errors if "400" not in e]  # the answer's status, which the browser logs
    clean(browser, "a mistake")
    # The address keeps the place.
    browser.open(f"{where}?flags={urllib.parse.quote(JOB)}&network_bandwidth=-1")
    until(browser, "document.documentElement.dataset.ready === 'yes'", "the page once more")
    check("network bandwidth × 0.5" in browser.run("document.getElementById('headline').textContent"), "the address does not keep the sliders")
    check(browser.run("location.search.includes('network_bandwidth=-1')"), "the address")
    clean(browser, "an address with sliders")


def looks(browser, _):
    browser.colours("dark")
    browser.run("new Promise(done => setTimeout(done, 300))")
    browser.screenshot(os.path.join(SHOTS, "live-dark.png"))
    browser.size(400, 800)
    browser.run("new Promise(done => setTimeout(done, 300))")
    check(browser.run("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than a narrow window")
    browser.screenshot(os.path.join(SHOTS, "live-narrow.png"))


server = subprocess.Popen([LOCKSTEP, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True)
try:
    where = server.stdout.readline().removeprefix("listening on ").strip()
    with Browser() as browser:
        browser.colours("light")
        for part in (opened, sliders, slow_gpu, compared, mistakes, looks):
            print("==", part.__name__, flush=True)
            part(browser, where)
finally:
    server.terminate()
    server.wait()
print(f"screenshots: {SHOTS}")
sys.exit(1 if failures else 0)
