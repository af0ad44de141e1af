#include "app/serve/live_page.h"

namespace lockstep {
namespace {

constexpr const char* kPage = R"PAGE(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lockstep, live</title>
<style>
  :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
  body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
  textarea { width: 100%; box-sizing: border-box; font: 13px/1.4 ui-monospace, monospace; }
  label { display: grid; grid-template-columns: 12rem 1fr 5rem; gap: 1rem; align-items: center; }
  output { text-align: right; font-variant-numeric: tabular-nums; }
  #step { font-size: 2.2rem; font-weight: 600; }
  #bar { display: flex; height: 1.6rem; border-radius: 4px; overflow: hidden; margin: .5rem 0; background: #8883; }
  #bar span { display: block; height: 100%; }
  #legend span { margin-right: 1.2rem; white-space: nowrap; }
  #legend i { display: inline-block; width: .8em; height: .8em; margin-right: .35em; border-radius: 2px; }
  .problem { color: #c0392b; white-space: pre-wrap; }
</style>
<h1>A step, live</h1>
<p><label for="words" style="display:block">Flags of <code>lockstep simulate</code></label>
<textarea id="words" rows="3" spellcheck="false">--model llama3-8b --gpus 64 --tp 8 --pp 2 --global-batch 64 --topology Spectrum-X:g=64</textarea></p>
<p id="token-row"><label>Token, if the server has one<input id="token" type="password" autocomplete="off"><span></span></label></p>
<div id="sliders"></div>
<p><label>The slow GPU<input id="straggler_gpu" type="number" min="0" value="0"><span></span></label></p>
<p id="step" role="status" aria-live="polite">…</p>
<div id="bar" role="img" aria-label="where the step's time goes"></div>
<p id="legend"></p>
<p id="note"></p>
<script>
"use strict";
// Factors on a logarithmic scale: a slider at x stands for 2^x.
const factors = [
  ["nvlink_bandwidth", "NVLink bandwidth", -3, 3], ["network_bandwidth", "Network bandwidth", -3, 3],
  ["latency", "Latency", -3, 3], ["gpu_speed", "GPU speed", -2, 2], ["straggler", "One GPU slower by", 0, 2],
];
const colours = ["#2d7dd2", "#97cc04", "#eeb902", "#f45d01", "#474647", "#8e5572", "#17bebb", "#d36582"];
const $ = id => document.getElementById(id);
const state = {};
for (const [key, name, low, high] of factors) {
  state[key] = 1;
  const label = document.createElement("label");
  label.textContent = name;
  const input = Object.assign(document.createElement("input"),
    {type: "range", min: low, max: high, step: 0.05, value: 0, id: key});
  const out = document.createElement("output");
  out.textContent = "× 1";
  input.addEventListener("input", () => {
    state[key] = Number((2 ** Number(input.value)).toPrecision(4));
    out.textContent = "× " + state[key].toPrecision(3);
    ask();
  });
  label.append(input, out);
  $("sliders").append(label);
}
const time = s => s >= 1 ? s.toPrecision(4) + " s" : (s * 1e3).toPrecision(4) + " ms";
let busy = false, again = false;
async function ask() {
  if (busy) { again = true; return; }  // only the last place of the sliders counts
  busy = true;
  const begin = performance.now();
  try {
    const headers = {"Content-Type": "application/json"};
    if ($("token").value) headers.Authorization = "Bearer " + $("token").value;
    const reply = await fetch("/api/v1/live", {method: "POST", headers, body: JSON.stringify({
      arguments: $("words").value.trim().split(/\s+/),
      sliders: {...state, straggler_gpu: Number($("straggler_gpu").value)}})});
    const answer = await reply.json();
    if (answer.error) throw new Error(answer.error);
    show(answer, performance.now() - begin);
  } catch (problem) {
    $("note").className = "problem";
    $("note").textContent = problem.message;
  }
  busy = false;
  if (again) { again = false; ask(); }
}
function show(answer, took) {
  $("step").textContent = time(answer.total_s) + " a step";
  const parts = [["compute", answer.compute_s]];
  for (const [group, s] of Object.entries(answer.exposed_by_group_s)) parts.push([group + " exposed", s]);
  if (answer.bubble_s > 0) parts.push(["bubble", answer.bubble_s]);
  const rest = answer.total_s - parts.reduce((sum, [, s]) => sum + s, 0);
  if (rest > 1e-9) parts.push(["waiting for others", rest]);
  $("bar").replaceChildren(...parts.map(([, s], i) => {
    const span = document.createElement("span");
    span.style.width = 100 * s / answer.total_s + "%";
    span.style.background = colours[i % colours.length];
    return span;
  }));
  $("legend").replaceChildren(...parts.map(([name, s], i) => {
    const span = document.createElement("span"), mark = document.createElement("i");
    mark.style.background = colours[i % colours.length];
    span.append(mark, name + " " + time(s));
    return span;
  }));
  $("note").className = "";
  $("note").textContent = answer.gpus + " GPUs, simulated in " + (answer.took_s * 1e3).toFixed(1) +
    " ms" + (answer.kept ? " (seen before)" : "") + ", answered in " + took.toFixed(0) + " ms";
}
$("words").addEventListener("change", ask);
$("straggler_gpu").addEventListener("input", ask);
$("token").addEventListener("change", ask);
ask();
</script>
</html>
)PAGE";

}  // namespace

std::string live_page() { return kPage; }

}  // namespace lockstep
