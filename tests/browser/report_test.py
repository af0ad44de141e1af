#!/usr/bin/env python3
"""The HTML report in Chromium: real results of every kind, without an error on the console and
without a request to a network; zoom, search, click-through and keys work; users' names are harmless.

Usage: report_test.py <lockstep> <folder for screenshots>
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from browser import Browser, check, equal, failures

LOCKSTEP, SHOTS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
OUT = tempfile.mkdtemp()
os.makedirs(SHOTS, exist_ok=True)


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
lockstep("simulate", *JOB, "--straggler", "gpu:5:1.4", "--straggler", "gpu:20:1.1",
         "--straggler", "jitter:0-31:normal:0.02", "--steps", "8",
         "--detail", "--json", to=path("slow.json"))
lockstep("whatif", "--trace", "tests/data/whatif/two-stages.csv", "--meta", "tests/data/whatif/two-stages.yaml", "-o", OUT, "--json", to=path("causes.json"))
lockstep("compare", "tests/data/logs/two-tables.txt", "--json", to=path("compare.json"))
lockstep("plan", "--aceso-model", "scale-layer", "--aceso-size", "4layers", "--profiles", "tests/data/plan/scale-layer", "--gpus-per-node", "2",
         "--nodes", "2", "--memory-limit", "1200", "--global-batch", "16", "--micro-batch", "1", "2", "--json", to=path("plan.json"))
lockstep("goodput", "--step", "5.2s", "--tokens", "16777216", "--gpus", "1024", "--gpu-mtbf", "5.8y", "--checkpoint", "20s", "--restart", "10min", "--json", to=path("goodput.json"))
lockstep("collective", "--op", "allreduce", "--size", "1MiB:64MiB", "--topology", "Spectrum-X:g=16", "--engine", "analytic,flow", "--json", to=path("collective.json"))

with open(path("grid.yaml"), "w") as grid:
    json.dump({"command": "simulate", "flags": {"model": "llama3-8b", "gpus": 16, "global-batch": 16, "topology": "Spectrum-X:g=16"},
               "axes": [{"tp": [1, 2, 4, 8, 32]}, {"pp": [1, 2]}, {"send-latency": ["1us", "6us"]}]}, grid)
lockstep("sweep", path("grid.yaml"), "-o", path("sweep"), "--json", to=path("sweep.json"))

RESULTS = [path(n) for n in ("step.json", "slow.json", "causes.json", "compare.json", "plan.json", "goodput.json", "collective.json", "sweep.json")]
lockstep("report", *RESULTS, "-o", path("all.html"))

SECTIONS = {
    "time": ["time", "ranks", "operators", "sensitivity"], "whatif": ["heatmap"], "timeline": ["timeline", "timeline-2"],
    "pipeline": ["pipeline"], "fabric": ["fabric", "links"], "distribution": ["sample", "stragglers"], "accuracy": ["accuracy", "curves", "collective"],
    "plan": ["pareto", "plan-stages"], "sweep": ["sweep"], "goodput": ["goodput"], "memory": ["memory", "memory-over-time"], "roofline": ["roofline"], "runs": ["runs", "difference"]}

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
    # Each figure's numbers are there as a table, too.
    tables = browser.run("""[...document.querySelectorAll('figure')].map(figure => {
      const details = figure.querySelector('details');
      if (details) { details.open = true; details.dispatchEvent(new Event('toggle')); }
      const cells = details ? [...details.querySelectorAll('td')].map(c => c.textContent) : [];
      if (details) { details.open = false; }
      return [figure.dataset.figure, cells.filter(c => /[0-9]/.test(c)).length, cells.filter(c => /undefined|NaN|object/.test(c)).length];
    })""")
    equal([t for t in tables if t[1] < 2 or t[2] > 0], [], "figures without a table of numbers")
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
    on_paper(browser)
    browser.size(400, 800)
    browser.run("new Promise(done => setTimeout(done, 300))")
    browser.draw_all()
    browser.screenshot(os.path.join(SHOTS, "narrow.png"), whole=True)
    browser.colours("dark")
    browser.run("new Promise(done => setTimeout(done, 300))")
    browser.screenshot(os.path.join(SHOTS, "narrow-dark.png"), whole=True)
    browser.colours("light")
    check(browser.run("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than a narrow window")
    browser.size(1280, 900)
    clean(browser, "themes and print")


def on_paper(browser):
    """Printed from a dark page: light, every section, every figure whole."""
    sheet = 7.7 * 96  # letter between Chromium's margins, CSS pixels
    browser.pdf(os.path.join(SHOTS, "print.pdf"))
    with open(os.path.join(SHOTS, "print.pdf"), "rb") as file:
        pdf = file.read()
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    figures = browser.run("document.querySelectorAll('.chart').length")
    images = [int(width) for width in re.findall(rb"/Subtype\s*/Image\s*/Width\s+(\d+)", pdf)]
    check(figures / 4 <= pages <= 2 * figures, f"{figures} figures are printed on {pages} pages")
    check(max(images, default=0) <= sheet, f"pictures of these widths are printed: {images}")
    if shutil.which("pdftotext"):
        text = subprocess.run(["pdftotext", os.path.join(SHOTS, "print.pdf"), "-"], capture_output=True, text=True, check=True).stdout
        text = " ".join(text.split())
        for heading in browser.run("[...document.querySelectorAll('main h2, main h3, .card .value')].map(h => h.textContent)"):
            check(" ".join(heading.split()) in text, f"not on paper: {heading!r}")
    # What paper shows, on a window of its width.
    browser.size(int(sheet), 1000)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    browser.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    equal(browser.run("document.documentElement.dataset.theme"), "light", "the theme on paper")
    equal(browser.run("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)", "the colour of paper")
    cut = browser.run("""[...document.querySelectorAll('.chart canvas')].filter(canvas => {
      const main = document.getElementById('report').getBoundingClientRect(), box = canvas.getBoundingClientRect();
      return canvas.closest('.bar') === null && (box.right > main.right + 1 || box.width < 600);
    }).map(canvas => canvas.closest('figure').dataset.figure)""")
    equal(cut, [], "figures that the paper cuts off")
    equal(browser.run("[...document.querySelectorAll('button, input, nav, details')].filter(e => e.offsetParent !== null).length"), 0, "what only a hand can use, on paper")
    browser.screenshot(os.path.join(SHOTS, "paper.png"), whole=True)
    browser.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "light"}])
    browser.run("dispatchEvent(new Event('afterprint'))")
    browser.size(1280, 900)
    browser.run("new Promise(done => setTimeout(done, 300))")
    narrow = browser.run("Report.charts.filter(c => c.chart.getWidth() < 1000).map(c => c.entry.name)")
    equal(narrow, [], "figures that keep paper's width")


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
    browser.run("new Promise(done => setTimeout(done, 400))")
    slider = browser.run("Report.range(Report.charts.find(c => c.entry.name === 'timeline').bar)")
    check(abs(slider[0] - hit[0]) < 0.1 and abs(slider[1] - hit[1]) < 0.1, f"the slider shows {slider}, the figure {hit}")
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
    moving_pictures(browser)
    panning(browser)
    clean(browser, "timeline")


# Everything but the moment at which it is drawn: a figure's canvas as a list of colours.
PIXELS = """(name => {
  const item = Report.charts.find(c => c.entry.name === name), canvas = item.element.querySelector('canvas');
  item.chart.getZr().refreshImmediately();
  const copy = Object.assign(document.createElement('canvas'), {width: canvas.width, height: canvas.height});
  const context = copy.getContext('2d', {willReadFrequently: true});
  context.drawImage(canvas, 0, 0);
  return [...new Uint32Array(context.getImageData(0, 0, copy.width, copy.height).data.buffer)];
})"""


def is_elsewhere(moved, fresh, at):
    """Whether the pixels around one differ by more than edges that fall on another part of a pixel: moved by up to three
    quarters of a pixel, the mean of three changes by a quarter at most."""
    def mean(pixels, shift):  # alpha, or a colour as it is seen
        three = pixels[max(0, at - 1):at + 2]
        return sum((p >> 24) * (255 if shift == 24 else p >> shift & 255) for p in three) / 255 / len(three)
    return any(abs(mean(moved, shift) - mean(fresh, shift)) > 64 for shift in (0, 8, 16, 24))


def moving_pictures(browser):
    """While one pans, rows are moved pictures: they show what a fresh drawing of the place does."""
    for name in ("timeline", "pipeline"):
        for start, end in ((30, 40), (0, 100 / 3), (90, 100)):
            browser.run(f"window.chart = Report.charts.find(c => c.entry.name === '{name}').chart; Report.go(chart, {start / 2}, {start / 2 + end - start})")
            width = end - start
            for step in range(1, 9):
                at = start / 2 + (start - start / 2) * step / 8
                browser.run(f"Report.go(chart, {at}, {at + width})")
            moved = browser.run(f"{PIXELS}('{name}')")
            browser.run(f"Report.redraw(Report.charts.find(c => c.entry.name === '{name}'))")
            fresh = browser.run(f"{PIXELS}('{name}')")
            off = sum(a != b and is_elsewhere(moved, fresh, i) for i, (a, b) in enumerate(zip(moved, fresh))) / len(fresh)
            check(len(moved) == len(fresh) and off < 0.005, f"{name} at {start} to {end}: {100 * off:.1f} % of the pixels differ from a fresh drawing")
        check(len(set(fresh)) > 4, f"{name} is blank")
    browser.run("Report.go(Report.charts.find(c => c.entry.name === 'pipeline').chart, 0, 100)")
    place = browser.run("""(() => {
      const item = Report.charts.find(c => c.entry.name === 'pipeline'), p = item.entry.document.stages[1].list[0];
      item.element.scrollIntoView({block: 'center'});
      const at = item.chart.convertToPixel({gridIndex: 0}, [(p.begin + p.end) / 2, 1]), box = item.element.getBoundingClientRect();
      return [box.x + at[0], box.y + at[1], p.microbatch];
    })()""")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1], button="none")
    browser.run("new Promise(done => setTimeout(done, 100))")
    tip = browser.run("document.querySelector('#figure-pipeline .tip').textContent")
    check(tip.startswith(f"stage 1, microbatch {place[2]}"), f"the pointer on stage 1's first pass shows {tip!r}")


def panning(browser):
    """A step of a pan is a frame, and costs a fraction of a frame's 33 ms: counted and by CPU time, so that other
    work on the machine does not matter."""
    browser.call("Performance.enable", timeDomain="threadTicks")

    def used():
        return {m["name"]: m["value"] for m in browser.call("Performance.getMetrics")["metrics"]}["TaskDuration"]

    for name, most in (("timeline", 120), ("pipeline", 40)):
        browser.run(f"""(async () => {{
          window.item = Report.charts.find(c => c.entry.name === '{name}');
          item.element.scrollIntoView({{block: 'center'}});
          window.frame = () => new Promise(done => requestAnimationFrame(done));
          window.pan = async steps => {{
            let drawn = 0, pictures = 0;
            const finished = () => {{ ++drawn; }}, watch = new MutationObserver(() => {{ ++pictures; }});
            item.chart.on('rendered', finished);
            watch.observe(item.names, {{childList: true}});
            for (let i = 0; i < steps; ++i) {{
              Report.go(item.chart, 80 * i / steps, 80 * i / steps + 20);
              await frame();
              await frame();
            }}
            item.chart.off('rendered', finished);
            watch.disconnect();
            return [drawn, pictures, item.chart.getZr().storage.getDisplayList(true).length];
          }};
          await pan(10);
        }})()""")
        before = used()
        drawn, pictures, elements = browser.run("pan(60)")
        cpu = 1000 * (used() - before) / 60
        print(f"pan {name}: {cpu:.1f} ms of CPU a step on the page's thread, {drawn} drawings, {pictures} pictures, {elements} elements")
        check(60 <= drawn <= 75, f"{name}: 60 steps of a pan draw it {drawn} times")
        check(1 <= pictures <= 12, f"{name}: in 60 steps of a pan its rows are drawn anew {pictures} times")
        check(elements <= most, f"{name}: {elements} elements are drawn in each frame")
        check(cpu < 25, f"{name}: a step of a pan takes {cpu:.1f} ms of CPU")


NOTE = "document.querySelector('[data-figure=sweep] .note').textContent"


def sweep(browser):
    lockstep("report", path("sweep.json"), "-o", path("sweep.html"))
    browser.open(path("sweep.html"))
    browser.draw_all()
    marks = "Report.charts[0].chart.getOption().series.filter(s => s.type === 'scatter').reduce((n, s) => n + s.data.length, 0)"
    done = json.load(open(path("sweep.json")))["endings"]["done"]
    check(done < 20, "every point ended well, so that the test shows nothing")
    equal(browser.run(marks), done, "marks")
    browser.run("(() => { const s = document.querySelector('[data-choice=x]'); s.value = 'send-latency'; s.dispatchEvent(new Event('change')); })()")
    equal(browser.run("Report.charts[0].chart.getOption().xAxis[0].data"), ["1us", "6us"], "over the latency")
    equal(browser.run(marks), done, "marks over the latency")
    # The choices say what is shown: colours by another flag now, and none for a value without marks.
    equal(browser.run("document.querySelector('[data-choice=by]').value"), "tp", "the colours' flag")
    equal(browser.run("Report.charts[0].chart.getOption().legend[0].data"), ["tp 1", "tp 2", "tp 4", "tp 8"], "the colours")
    failed = 20 - done
    equal(browser.run(NOTE), f"A mark a point; lines join the medians. Without total_s and so without a mark: {failed}, of which {failed} did not end well.", "failed points")
    browser.screenshot(os.path.join(SHOTS, "sweep.png"), whole=True)
    # A point whose check failed has its numbers and its mark; the note is of the output that is shown.
    document = json.load(open(path("sweep.json")))
    cells = {column["name"]: column["cells"] for column in document["columns"]}
    cells["ending"][cells["ending"].index("done")] = "check-failed"
    cells["compute_s"][cells["total_s"].index(max(t for t in cells["total_s"] if t))] = None
    with open(path("checked.json"), "w") as file:
        json.dump(document, file)
    lockstep("report", path("checked.json"), "-o", path("sweep.html"))
    browser.open(path("sweep.html"))
    browser.draw_all()
    equal(browser.run(marks), done, "marks where a check failed")
    check(f"without a mark: {failed}, of which {failed} did" in browser.run(NOTE), f"where a check failed: {browser.run(NOTE)}")
    browser.run("(() => { const s = document.querySelector('[data-choice=y]'); s.value = 'compute_s'; s.dispatchEvent(new Event('change')); })()")
    check(f"Without compute_s and so without a mark: {failed + 1}, of which {failed} did" in browser.run(NOTE), f"of another output: {browser.run(NOTE)}")
    clean(browser, "sweep")


CARDS = "Object.fromEntries([...document.querySelectorAll('.card')].map(c => [c.querySelector('.name').textContent, c.querySelector('.value').textContent + '; ' + c.querySelector('.more').textContent]))"


def many_steps(browser):
    """Of many draws: the headline is of the mean step, and what is of the first one says so; they are all in the histogram."""
    document = json.load(open(path("slow.json")))
    document["total_s"], document["exposed_s"], document["bubble_s"], document["clean_s"], document["slowdown"] = 2, 0.5, 0.25, 1, 2
    document["sample"].update({"mean_s": 3, "total_s": [2 + i % 1000 / 1000 for i in range(300_000)]})
    with open(path("many.json"), "w") as file:
        json.dump(document, file)
    lockstep("report", path("many.json"), "-o", path("many.html"))
    browser.open(path("many.html"))
    cards = {name: text.replace("\u202f", " ") for name, text in browser.run(CARDS).items()}
    check(cards["Step time"].startswith("3 s; "), f"the mean step: {cards}")
    equal(cards["Communication not hidden"], "25 %; 500 ms of 2 s, the first step drawn", "of the first step drawn")
    equal(cards["Pipeline bubble"], "12.5 %; 250 ms of 2 s, the first step drawn", "of the first step drawn")
    equal(cards["Slowdown by stragglers"], "3.000×; 1 s without them", "of the mean step")
    browser.draw_all()
    check(browser.run("!!document.querySelector('#figure-sample canvas')"), "many steps have no histogram")
    clean(browser, "many steps")


def every_headline(browser):
    """Each kind of result has cards."""
    lockstep("plan", "--aceso-model", "scale-layer", "--aceso-size", "2layers", "--profiles", "tests/data/plan/scale-layer", "--gpus-per-node", "2", "--nodes", "2",
             "--memory-limit", "4000", "--price", "tests/data/plan/scale-layer/two-stages.json", "--json", to=path("price.json"))
    lockstep("compare", "tests/fuzz/corpus/kineto/rank_1.json", "--against", "tests/fuzz/corpus/kineto/rank_1.json", "--json", to=path("steps.json"))
    files = ["step", "causes", "compare", "plan", "goodput", "collective", "sweep", "price", "steps"]
    lockstep("report", *(path(name + ".json") for name in files), "-o", path("headline.html"))
    browser.open(path("headline.html"))
    cards = browser.run("Report.cards().map(c => [c.document.schema, c.cards.length, JSON.stringify(c.cards)])")
    equal(len(cards), len(files), "results with cards")
    equal([c for c in cards if c[1] < 3 or re.search("undefined|NaN", c[2])], [], "results without cards")
    for wanted in ("Bus bandwidth, flow", "Step of B", "Step time"):
        check(any(wanted in c[2] for c in cards), f"no card '{wanted}'")
    clean(browser, "headline")


def slow_gpu(browser):
    """A step is simulated with one slow GPU among 32; from its trace one click shows which it is."""
    slow = 13
    lockstep("simulate", "--model", "llama3-8b", "--gpus", "32", "--pp", "4", "--global-batch", "64", "--topology", "Spectrum-X:g=32",
             "--straggler", f"gpu:{slow}:1.5", "--trace", path("slow.csv"))
    lockstep("whatif", "--trace", path("slow.csv"), "--meta", path("slow.yaml"), "-o", path("whatif"), "--timelines", "none", "--report", path("slow.html"))
    browser.open(path("slow.html"))
    place = browser.run("(() => { const b = document.getElementById('show-slowest').getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()")
    check(0 < place[1] < 900, "the way to the slow GPU is not on the first screen")
    browser.click(*place)
    equal(browser.run("document.getElementById('worker').dataset.rank"), str(slow), "one click on a simulated trace shows rank")
    evidence = browser.run("document.getElementById('worker').textContent")
    check("forward-compute" in evidence and "+50" in evidence, f"the evidence does not say that it computes 1.5 times as long: {evidence}")
    browser.screenshot(os.path.join(SHOTS, "slow-gpu.png"))
    clean(browser, "slow GPU")


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


def lost_packets(browser):
    with open(path("step.json")) as file:
        document = json.load(file)
    document["packets"] = {"sent": 12000, "lost": 3, "marked": 5, "pauses": 7}
    with open(path("packets.json"), "w") as file:
        json.dump(document, file)
    lockstep("report", path("packets.json"), "-o", path("packets.html"))
    browser.open(path("packets.html"))
    cards = browser.run("document.getElementById('headline').textContent")
    check("Packets lost3of 12" in cards.replace("\u202f", ""), f"no packets in the headline: {cards}")
    clean(browser, "packets")


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
    for part in (sections, timeline, sweep, many_steps, every_headline, slowest_worker, slow_gpu, lost_packets, hostile_names):
        print("==", part.__name__, flush=True)
        part(browser)
print(f"screenshots: {SHOTS}")
sys.exit(1 if failures else 0)
