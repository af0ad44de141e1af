#!/usr/bin/env python3
"""The HTML report in Chromium: real results of every kind, without an error on the console and
without a request to a network; zoom, search, click-through and keys work; users' names are harmless.

Usage: report_test.py <lockstep> <folder for screenshots>
"""
import json
import os
import subprocess
import sys
import tempfile

from browser import Browser

LOCKSTEP, SHOTS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
OUT = tempfile.mkdtemp()
os.makedirs(SHOTS, exist_ok=True)
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED:", what)


def equal(found, wanted, what):
    check(found == wanted, f"{what}: {found!r}, expected {wanted!r}")


def lockstep(*words, to=None):
    done = subprocess.run([LOCKSTEP, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"lockstep {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    if to:
        with open(to, "w") as file:
            file.write(done.stdout)
    return done.stdout


def path(name):
    return os.path.join(OUT, name)


# Real results: a pipeline of an 8B model, the same with a slow GPU, stragglers found in a trace,
# predictions beside a log, plans, and weeks of training.
JOB = ["--model", "llama3-8b", "--gpus", "32", "--tp", "4", "--pp", "4", "--global-batch", "16", "--sp", "--topology", "Spectrum-X:g=32"]
lockstep("simulate", *JOB, "--explain", "--detail", "--sensitivity", "--json", to=path("step.json"))
lockstep("simulate", *JOB, "--straggler", "gpu:5:1.4", "--straggler", "gpu:20:1.1", "--steps", "8",
         "--detail", "--json", to=path("slow.json"))
lockstep("whatif", "--trace", "tests/data/whatif/two-stages.csv", "--meta", "tests/data/whatif/two-stages.yaml", "-o", OUT, "--json", to=path("causes.json"))
lockstep("compare", "tests/data/logs/two-tables.txt", "--json", to=path("compare.json"))
lockstep("plan", "--aceso-model", "scale-layer", "--aceso-size", "4layers", "--profiles", "tests/data/plan/scale-layer", "--gpus-per-node", "2",
         "--nodes", "2", "--memory-limit", "1200", "--global-batch", "16", "--micro-batch", "1", "2", "--json", to=path("plan.json"))
lockstep("goodput", "--step", "5.2s", "--tokens", "16777216", "--gpus", "1024", "--gpu-mtbf", "5.8y", "--checkpoint", "20s", "--restart", "10min", "--json", to=path("goodput.json"))
lockstep("collective", "--op", "allreduce", "--size", "1MiB:64MiB", "--topology", "Spectrum-X:g=16", "--engine", "analytic,flow", "--json", to=path("collective.json"))

RESULTS = [path(n) for n in ("step.json", "slow.json", "causes.json", "compare.json", "plan.json", "goodput.json", "collective.json")]
lockstep("report", *RESULTS, "-o", path("all.html"))

SECTIONS = {
    "time": ["time", "ranks", "operators", "sensitivity"], "whatif": ["heatmap"], "timeline": ["timeline", "timeline-2"],
    "pipeline": ["pipeline"], "fabric": ["fabric", "links"], "distribution": ["sample", "stragglers"], "accuracy": ["accuracy", "curves", "collective"],
    "plan": ["pareto", "plan-stages"], "goodput": ["goodput"], "memory": ["memory", "memory-over-time"], "roofline": ["roofline"], "runs": ["runs", "difference"]}

# Colours in a figure's canvas: an empty picture has one or two.
COLOURS = """(id => {
  const canvas = document.querySelector('#' + id + ' canvas');
  const data = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return new Set(data).size;
})"""


def clean(browser, what):
    equal(browser.errors, [], f"{what}: errors on the console")
    equal([r for r in browser.requests if not r.startswith(("file://", "data:"))], [], f"{what}: requests")


def sections(browser):
    browser.colours("light")
    browser.open(path("all.html"))
    count = browser.draw_all()
    check(count >= sum(len(names) for names in SECTIONS.values()), f"only {count} figures")
    for section, names in SECTIONS.items():
        check(browser.run(f"!!document.getElementById('{section}')"), f"section {section} is missing")
        for name in names:
            if not browser.run(f"!!document.querySelector('#figure-{name} canvas')"):
                check(False, f"figure {name} is not drawn")
            else:
                check(browser.run(f"{COLOURS}('figure-{name}')") > 4, f"figure {name} is blank")
    for id in ("headline", "inputs"):
        check(browser.run(f"document.getElementById('{id}').textContent.length > 50"), f"section {id} says nothing")
    commands = browser.run("[...document.querySelectorAll('#inputs code')].map(c => c.textContent)")
    check(len(commands) >= 5 and all(c.startswith("lockstep ") for c in commands), f"commands: {commands}")
    check("llama3-8b" in commands[0], f"the first command is {commands[0]}")
    check(browser.run("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window")
    clean(browser, "all sections")
    browser.screenshot(os.path.join(SHOTS, "light.png"), whole=True)
    browser.colours("dark")
    browser.run("new Promise(done => setTimeout(done, 300))")
    equal(browser.run("document.documentElement.dataset.theme"), "dark", "the theme in the dark")
    browser.draw_all()
    browser.screenshot(os.path.join(SHOTS, "dark.png"), whole=True)
    browser.colours("light")
    browser.pdf(os.path.join(SHOTS, "print.pdf"))
    browser.size(400, 800)
    browser.run("new Promise(done => setTimeout(done, 300))")
    browser.screenshot(os.path.join(SHOTS, "narrow.png"))
    check(browser.run("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than a narrow window")
    browser.size(1280, 900)
    clean(browser, "themes and print")


RANGE = "(() => { const z = Report.charts.find(c => c.entry.name === 'timeline').chart.getOption().dataZoom[0]; return [z.start, z.end]; })()"


def timeline(browser):
    browser.open(path("all.html"))
    browser.draw_all()
    browser.run("document.getElementById('figure-timeline').focus()")
    browser.key("+", "+")
    zoomed = browser.run(RANGE)
    check(abs(zoomed[1] - zoomed[0] - 50) < 0.1, f"+ zooms to {zoomed}")
    browser.key("ArrowRight")
    moved = browser.run(RANGE)
    check(moved[0] > zoomed[0] and abs((moved[1] - moved[0]) - 50) < 0.1, f"the arrow moves to {moved}")
    browser.key("0", "0")
    equal(browser.run(RANGE), [0, 100], "0 shows all")
    browser.run("""(() => { const box = document.querySelector('[data-figure=timeline] input'); box.value = 'qkv'; box.dispatchEvent(new Event('input')); })()""")
    check("found" in browser.run("document.querySelector('[data-figure=timeline] .count').textContent"), "search finds nothing")
    browser.run("document.querySelector('[data-figure=timeline] input').focus()")
    browser.key("Enter")
    check(browser.run("document.querySelector('[data-figure=timeline] .count').textContent").startswith("1 of "), "Enter goes to no hit")
    hit = browser.run(RANGE)
    check(hit[1] - hit[0] < 50, f"the hit is shown in {hit}")
    browser.run("document.querySelector('[data-figure=timeline]').scrollIntoView()")
    browser.screenshot(os.path.join(SHOTS, "search.png"))
    browser.run("(() => { const box = document.querySelector('[data-figure=timeline] input'); box.value = ''; box.dispatchEvent(new Event('input')); })()")
    # The numbers under the pointer are those of the operation there.
    place = browser.run("""(() => {
      const item = Report.charts.find(c => c.entry.name === 'timeline'), d = item.entry.document;
      Report.go(item.chart, 0, 100);
      const row = d.rows.findIndex(r => r.events.length > 0);
      const e = d.rows[row].events.reduce((a, b) => b.end - b.begin > a.end - a.begin ? b : a);
      const at = item.chart.convertToPixel({gridIndex: 0}, [(e.begin + e.end) / 2, row]);
      const box = item.element.getBoundingClientRect();
      return [box.x + at[0], box.y + at[1], d.detail.ops[e.op].name];
    })()""")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1], button="none")
    browser.run("new Promise(done => setTimeout(done, 100))")
    tip = browser.run("document.querySelector('#figure-timeline .tip').textContent")
    check(place[2] in tip, f"the pointer on {place[2]!r} shows {tip!r}")
    # Dragging pans.
    browser.run("Report.go(Report.charts.find(c => c.entry.name === 'timeline').chart, 40, 60)")
    before = browser.run(RANGE)
    browser.call("Input.dispatchMouseEvent", type="mousePressed", x=place[0], y=place[1], button="left", clickCount=1)
    for step in range(1, 6):
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0] - 20 * step, y=place[1], button="left", buttons=1)
    browser.call("Input.dispatchMouseEvent", type="mouseReleased", x=place[0] - 100, y=place[1], button="left", clickCount=1)
    browser.run("new Promise(done => setTimeout(done, 200))")
    after = browser.run(RANGE)
    check(after[0] > before[0], f"dragging to the left went from {before} to {after}")
    clean(browser, "timeline")


def slowest_worker(browser):
    causes = json.load(open(path("causes.json")))
    slowest = causes["slowest_workers"][0]["rank"]
    lockstep("report", path("causes.json"), "-o", path("causes.html"))
    browser.open(path("causes.html"))
    place = browser.run("(() => { const b = document.getElementById('show-slowest').getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()")
    check(0 < place[1] < 900, "the way to the slowest worker is not on the first screen")
    browser.click(*place)  # one click
    equal(browser.run("document.getElementById('worker').dataset.rank"), str(slowest), "one click shows rank")
    check("forward-compute" in browser.run("document.getElementById('worker').textContent"), "the evidence has no operations")
    browser.screenshot(os.path.join(SHOTS, "slowest-worker.png"))
    # A click on another cell shows that worker.
    browser.draw_all()
    other = browser.run(f"""(() => {{
      const item = Report.charts.find(c => c.entry.name === 'heatmap'), d = item.entry.document;
      const w = d.workers.find(w => w.rank !== {slowest});
      item.element.scrollIntoView({{block: 'center'}});
      const at = item.chart.convertToPixel({{gridIndex: 0}}, [w.dp_rank, w.stage]), box = item.element.getBoundingClientRect();
      return [box.x + at[0], box.y + at[1], w.rank];
    }})()""")
    browser.click(other[0], other[1])
    browser.run("new Promise(done => setTimeout(done, 100))")
    equal(browser.run("document.getElementById('worker').dataset.rank"), str(other[2]), "a click on a cell shows rank")
    # By keys alone.
    browser.run("document.getElementById('figure-heatmap').focus()")
    browser.key("n")
    equal(browser.run("document.getElementById('worker').dataset.rank"), str(slowest), "the key n shows rank")
    clean(browser, "slowest worker")


def hostile_names(browser):
    bad = "</script><script>window.harm = 1</script><img src=x onerror='window.harm = 2'>\u2028\U0001f600\x00"
    long = "n" * 10_000_000
    for name, file in ((bad, "step.json"), (long, "step.json"), (bad, "causes.json"), (bad, "compare.json"), (bad, "plan.json")):
        document = json.load(open(path(file)))

        def spoil(value, key=""):
            if isinstance(value, dict):
                return {k: spoil(v, k) for k, v in value.items()}
            if isinstance(value, list):
                return [spoil(v, key) for v in value]
            keep = key in ("schema", "type", "comm", "group", "kind", "from", "to")
            return value if keep or not isinstance(value, str) else name

        if name is long:  # some of them: all would be gigabytes
            document["workload"], document["warnings"] = long, [long]
            document["detail"]["ops"][0]["name"] = document["detail"]["tracks"][0]["name"] = long
        else:
            document = spoil(document)
        with open(path("bad.json"), "w") as out:
            json.dump(document, out)
        lockstep("report", path("bad.json"), "-o", path("bad.html"))
        check(os.path.getsize(path("bad.html")) < 5_000_000, f"{file}: the page has {os.path.getsize(path('bad.html'))} bytes")
        browser.open(path("bad.html"))
        browser.draw_all()
        browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        browser.run("new Promise(done => setTimeout(done, 100))")
        equal(browser.run("window.harm === undefined"), True, f"{file}: a name is run")
        equal(browser.run("document.querySelectorAll('img, script[src], main script').length"), 0, f"{file}: elements from names")
        clean(browser, f"names in {file}")


with Browser() as browser:
    for part in (sections, timeline, slowest_worker, hostile_names):
        print("==", part.__name__, flush=True)
        part(browser)
print(f"screenshots: {SHOTS}")
sys.exit(1 if failures else 0)
