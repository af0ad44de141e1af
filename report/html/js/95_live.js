// The live page: sliders over a step, and its report as they stand. Every place is asked for at once, for its
// numbers and where the time goes; all else follows when the sliders rest.
(function () {
  'use strict';
  if (typeof document === 'undefined') {
    return;
  }
  var f = Report.format, make = Report.make;
  var kRest = 250;  // ms
  var kTries = 8;
  var kJob = '--model llama3-8b --gpus 64 --tp 8 --pp 2 --global-batch 64 --topology Spectrum-X:g=64';
  // Factors on a logarithmic scale: at x a slider stands for 2^x.
  var kSliders = [
    ['nvlink_bandwidth', 'NVLink bandwidth', -3, 3], ['network_bandwidth', 'Network bandwidth', -3, 3],
    ['latency', 'Latency', -3, 3], ['gpu_speed', 'GPU speed', -2, 2], ['straggler', 'One GPU slower by', 0, 2]
  ];
  var inputs = {}, shown = {};  // by slider
  var place = 0;       // counts the places that the sliders were at
  var kept = null;     // a report to compare with
  var latest = null;   // the report that is shown
  var timer = null;
  var words, gpu, token, step, note, keep;

  // Words of a command line; quotes hold blanks together.
  function words_of(text) {
    return (text.match(/"[^"]*"|'[^']*'|[^\s"']+/g) || []).map(function (word) { return word.replace(/^(["'])(.*)\1$/, '$2'); });
  }
  function factor_of(key) { return Number(Math.pow(2, Number(inputs[key].value)).toPrecision(4)); }
  function slider_values() {
    var values = {straggler_gpu: Number(gpu.value) || 0};
    kSliders.forEach(function (slider) { values[slider[0]] = factor_of(slider[0]); });
    return values;
  }
  function show_factors() {
    kSliders.forEach(function (slider) { shown[slider[0]].textContent = '× ' + factor_of(slider[0]).toPrecision(3); });
  }

  function complain(problem) {
    note.className = 'problem';
    note.textContent = problem.message;
  }
  function post(report) {
    var headers = {'Content-Type': 'application/json'};
    if (token.value) {
      headers.Authorization = 'Bearer ' + token.value;
    }
    return fetch('/api/v1/live', {method: 'POST', headers: headers, body: JSON.stringify({
      arguments: words_of(words.value), sliders: slider_values(), report: report})
    }).then(function (reply) {
      return reply.json().then(function (answer) {
        if (answer.error) {
          throw Object.assign(new Error(answer.error), {busy: reply.status === 503});
        }
        return answer;
      });
    });
  }
  // One question at a time; of places that come meanwhile only the last counts. Who is told that others are
  // served asks again, a few times.
  function asker(report, answered) {
    var busy = false, again = false, refused = 0;
    return function ask() {
      if (busy) {
        again = true;
        return;
      }
      var asked = place, begin = performance.now();
      busy = true;
      post(report).then(function (answer) {
        refused = 0;
        answered(answer, asked, performance.now() - begin);
      }).catch(function (problem) {
        if (asked !== place) {
          return;
        }
        if (problem.busy && ++refused < kTries) {
          setTimeout(ask, kRest * refused);
        } else {
          refused = 0;
          complain(problem);
        }
      }).then(function () {
        busy = false;
        if (again) {
          again = false;
          ask();
        }
      });
    };
  }
  function show_latest() { Report.show({documents: kept ? [latest, kept] : [latest]}); }

  var ask_numbers = asker(false, function (answer, asked, took) {
    if (latest && latest.place > asked) {
      return;  // the report of a later place is there
    }
    step.textContent = f.time(answer.total_s) + ' a step';
    note.className = 'note';
    note.textContent = f.whole(answer.gpus) + ' GPUs, ' + (answer.kept ? 'seen before' : 'simulated in ' + f.time(answer.took_s)) + ', answered in ' + f.time(took / 1e3);
    if (latest && latest.place !== asked) {
      var exposed = {};
      Object.keys(answer.exposed_by_group_s).forEach(function (group) { exposed[group + '_s'] = answer.exposed_by_group_s[group]; });
      var numbers = {total_s: answer.total_s, compute_s: answer.compute_s, exposed_s: answer.exposed_s, bubble_s: answer.bubble_s,
                     skew_s: answer.skew_s, other_jobs_s: answer.other_jobs_s, exposed_by_group: exposed, headline: answer.headline, sliders: answer.sliders, file: 'now: ' + answer.sliders};
      // What stragglers cost comes with the report.
      Report.show_numbers(Object.assign(numbers, {slowdown: undefined, clean_s: undefined}));
    }
  });
  var ask_report = asker(true, function (answer, asked) {
    if (asked !== place) {
      return;  // the sliders have moved on
    }
    latest = Object.assign(answer.report, {file: 'now: ' + answer.report.sliders, place: asked});
    show_latest();
    keep.disabled = false;
    document.documentElement.setAttribute('data-ready', 'yes');
    document.documentElement.setAttribute('data-place', asked);
  });

  function moved() {
    place += 1;
    show_factors();
    keep.disabled = true;  // what is shown is of two places
    ask_numbers();
    clearTimeout(timer);
    timer = setTimeout(rested, latest ? kRest : 0);
  }
  function rested() {
    var query = new URLSearchParams({flags: words.value, straggler_gpu: gpu.value});
    kSliders.forEach(function (slider) { query.set(slider[0], inputs[slider[0]].value); });
    history.replaceState(null, '', '?' + query + location.hash);
    ask_report();
  }
  function slider_of(slider, value) {
    var key = slider[0];
    shown[key] = make('output', {});
    inputs[key] = make('input', {type: 'range', min: slider[2], max: slider[3], step: 0.05, value: value || 0, id: key, on: {input: moved}});
    return make('label', {}, [make('span', {text: slider[1]}), shown[key], inputs[key]]);
  }
  function all_as_it_was() {
    kSliders.forEach(function (slider) { inputs[slider[0]].value = 0; });
    moved();
  }
  function keep_or_forget() {
    kept = kept ? null : Object.assign({}, latest, {file: 'kept: ' + latest.sliders});
    keep.textContent = kept ? 'Forget: ' + kept.sliders : 'Keep to compare';
    show_latest();
  }

  Report.live = function () {
    var query = new URLSearchParams(location.search);
    words = make('textarea', {id: 'words', rows: 3, spellcheck: 'false', 'aria-label': 'flags of lockstep simulate'});
    words.value = query.get('flags') || kJob;
    gpu = make('input', {id: 'straggler_gpu', type: 'number', min: 0, value: query.get('straggler_gpu') || 0});
    token = make('input', {id: 'token', type: 'password', autocomplete: 'off'});
    step = make('output', {id: 'step', 'aria-live': 'polite', text: '…'});
    note = make('p', {id: 'note', 'class': 'note'});
    keep = make('button', {id: 'keep', text: 'Keep to compare', on: {click: keep_or_forget}});
    var sliders = kSliders.map(function (slider) { return slider_of(slider, query.get(slider[0])); });
    [words, gpu, token].forEach(function (input) { input.addEventListener('change', moved); });
    Report.frame('Lockstep, live', make('div', {id: 'panel'}, [
      make('div', {'class': 'sliders'}, sliders.concat([make('label', {}, [make('span', {text: 'The slow GPU'}), gpu])])),
      make('div', {'class': 'tools'}, [step, make('button', {id: 'reset', text: 'All × 1', on: {click: all_as_it_was}}), keep,
        make('details', {}, [make('summary', {text: 'Flags of lockstep simulate'}), words, make('label', {}, [make('span', {text: 'Token, if the server has one'}), token])])]),
      note
    ]));
    moved();
  };
})();
