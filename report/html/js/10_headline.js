// The figures that people ask for first, as cards, and one sentence on each result.
(function () {
  'use strict';
  var f = Report.format;

  // With several jobs the figures are the first one's, but for the step, which all of them take.
  function first_end(d) { return d.total_s - (d.other_jobs_s || 0); }
  function mean_step(d) { return d.sample ? d.sample.mean_s : first_end(d); }
  // Parts of a step are known of the first of several draws.
  function of_step(d) { return d.sample ? ' of ' + f.time(first_end(d)) + ', the first step drawn' : ' of the step'; }

  function simulate_cards(d) {
    var cards = [], several = (d.jobs || []).length > 1;
    var interval = d.sample ? '95 % of the mean: ' + f.time(d.sample.mean_low_s) + ' – ' + f.time(d.sample.mean_high_s) +
                              '; p99 ' + f.time(d.sample.p99_s) : 'one step, no noise';
    cards.push(['Step time' + (several ? ' of the first job' : ''), f.time(mean_step(d)), interval]);
    if (several) {
      cards.push(['All jobs', f.time(d.total_s), f.whole(d.jobs.length) + ' of them, until the last one ends' + (d.sample ? ' in the first step drawn' : '')]);
    }
    var h = d.headline || {};
    if (h.tokens_per_s !== undefined) {
      cards.push(['Tokens/s', f.plain(h.tokens_per_s), f.number(h.tokens_per_s / d.gpus) + ' per GPU']);
    }
    if (h.mfu !== undefined) {
      cards.push(['MFU', f.percent(h.mfu), f.flops(h.model_flops / mean_step(d) / d.gpus) + ' of ' + f.flops(h.peak_flops_per_gpu) + ' per GPU']);
    }
    if (h.gpu_hours_per_Mtoken !== undefined) {
      cards.push(h.cost_per_Mtoken !== undefined
        ? ['Cost', f.number(h.cost_per_Mtoken), 'per million tokens at ' + f.number(h.gpu_hour_price) + ' a GPU hour']
        : ['GPU hours', f.number(h.gpu_hours_per_Mtoken), 'per million tokens']);
    }
    cards.push(['Communication not hidden', f.percent(d.exposed_s / first_end(d)), f.time(d.exposed_s) + of_step(d)]);
    if (d.bubble_s > 0) {
      cards.push(['Pipeline bubble', f.percent(d.bubble_s / first_end(d)), f.time(d.bubble_s) + of_step(d)]);
    }
    if (d.slowdown !== undefined) {
      // Of several jobs the step without stragglers is known until the last one ends alone.
      cards.push(d.sample && !several
        ? ['Slowdown by stragglers', f.times(d.sample.mean_s / d.clean_s), f.time(d.clean_s) + ' without them']
        : ['Slowdown by stragglers', f.times(d.slowdown), f.time(d.clean_s) + ' without them' + (d.sample ? ', the first step drawn' : '')]);
    }
    if (d.packets && d.packets.sent > 0) {
      cards.push(['Packets lost', f.whole(d.packets.lost), 'of ' + f.plain(d.packets.sent) + '; marked ' + f.plain(d.packets.marked) + ', pauses ' + f.plain(d.packets.pauses)]);
    }
    cards.push(['GPUs', f.whole(d.gpus), layout(d.parallel)]);
    return cards;
  }

  function layout(p) {
    return ['tp', 'cp', 'ep', 'pp', 'dp'].filter(function (k) { return p && p[k] > 1; })
      .map(function (k) { return k.toUpperCase() + ' ' + p[k]; }).join(', ') || 'no parallelism';
  }

  function causes_cards(d) {
    var slowest = d.slowest_workers[0];
    var cards = [
      ['Slowdown S', f.times(d.slowdown), f.percent(d.waste) + ' of the GPU hours lost'],
      ['Step', f.time(d.step_time_s), f.time(d.ideal_step_time_s) + ' without stragglers'],
      ['Slowest worker', slowest ? 'rank ' + slowest.rank : '–', slowest ? 'stage ' + slowest.stage + ', DP rank ' + slowest.dp_rank + ', alone ' + f.times(slowest.slowdown) : '']
    ];
    if (d.causes.length) {
      cards.push(['Main cause', d.causes[0].cause, f.percent(d.causes[0].confidence) + ' of the slow steps']);
    }
    if (d.remedies && d.remedies.length && d.remedies[0].saves > 0) {
      cards.push(['Best remedy', f.percent(d.remedies[0].saves), f.label(d.remedies[0].description, 70)]);
    }
    return cards;
  }

  function error_cards(d) {
    var e = d.error || d.from_1MiB || {}, from = d.error_from_1MiB || d.from_1MiB || {}, below = d.error_below_1MiB || d.below_1MiB || {};
    return [
      ['Median error', f.percent(e.median_error), f.whole(e.rows) + ' rows, p90 ' + f.percent(e.p90_error)],
      ['From 1 MiB', f.percent(from.median_error), 'p90 ' + f.percent(from.p90_error)],
      ['Below 1 MiB', f.percent(below.median_error), 'p90 ' + f.percent(below.p90_error)]
    ];
  }

  function plan_cards(d) {
    var cards = [];
    if (d.time_s !== undefined) {
      cards.push(['Best plan', f.time(d.time_s), 'an iteration']);
      if (d.memory_bytes !== undefined) {
        cards.push(['Memory', f.size(d.memory_bytes), 'of the fullest GPU']);
      }
    }
    if (d.gap !== undefined && d.gap !== null) {
      cards.push(['Gap to the bound', f.percent(d.gap), d.exact ? 'proven optimal' : 'no plan is faster than ' + f.time(d.bound_s)]);
    }
    return cards;
  }

  function job_plan_cards(d) {
    var best = d.best;
    return [
      ['Best plan', f.time(best.step_s || best.bound_s), f.label(best.plan, 70)],
      ['Memory', f.size(best.memory_bytes), d.memory_limit_bytes ? 'of ' + f.size(d.memory_limit_bytes) : ''],
      ['Gap to the bound', f.percent(d.gap), d.proven ? 'proven optimal' : f.whole(d.plans_seen || d.plans_fitting) + ' plans seen']
    ];
  }

  function price_cards(d) {
    var cards = [['Step time', f.time(d.time_s), typeof d.plan === 'string' ? f.label(d.plan, 70) : '']];
    if (d.tokens_per_s !== undefined) {
      cards.push(['Tokens/s', f.plain(d.tokens_per_s), f.number(d.tokens_per_s / d.gpus) + ' per GPU']);
    }
    if (d.memory_bytes !== undefined) {
      cards.push(['Memory', f.size(d.memory_bytes), d.memory_limit_bytes ? 'of ' + f.size(d.memory_limit_bytes) : 'of the fullest GPU']);
    }
    if (d.fits !== undefined) {
      cards.push(['Fits', d.fits ? 'yes' : 'no', f.label((d.warnings || [])[0] || '', 70)]);
    }
    return cards;
  }

  // Of each engine the largest size, and the smallest beside it.
  function collective_cards(d) {
    var first = d.points[0], last = d.points[d.points.length - 1];
    return [['Operation', f.label(d.op, 40), f.whole(d.gpus) + ' GPUs' + (d.servers > 1 ? ' on ' + f.whole(d.servers) + ' servers' : '')]].concat(Object.keys(last.engines).map(function (name) {
      var time = function (point) { return f.size(point.size_bytes) + ' in ' + f.time(point.engines[name].time_s); };
      return ['Bus bandwidth, ' + name, f.rate(last.engines[name].bus_Bps), time(last) + (first !== last && first.engines[name] ? ', ' + time(first) : '')];
    }));
  }

  function steps_cards(d) {
    var cards = ['A', 'B'].map(function (run, i) {
      return ['Step of ' + run, f.time(d.step_s[i]), f.whole(d.steps[i]) + (d.steps[i] === 1 ? ' step, ' : ' steps, ') + f.whole(d.ranks[i]) + (d.ranks[i] === 1 ? ' rank' : ' ranks')];
    });
    return cards.concat([['Difference', f.signed(d.difference), 'of B from A']]);
  }

  // Of one log its figures, of several the error of each.
  function training_cards(d) {
    var beside = function (key, form) { return function (log) { return form(log.predicted[key]) + ' predicted, ' + form(log.measured[key]) + ' measured'; }; };
    if (d.logs.length > 1) {
      return d.logs.slice(0, 8).map(function (log) { return [f.label(log.file, 40), f.signed(log.error), beside('step_s', f.time)(log)]; });
    }
    var log = d.logs[0], cards = [
      ['Error of the step', f.signed(log.error), beside('step_s', f.time)(log)],
      ['Tokens/s', f.plain(log.measured.tokens_per_s), beside('tokens_per_s', f.plain)(log)]
    ];
    if (typeof log.measured.memory_bytes === 'number') {
      cards.push(['Memory', f.size(log.measured.memory_bytes), beside('memory_bytes', f.size)(log) + ', of the fullest GPU']);
    }
    return cards.concat([['GPUs', f.whole(log.gpus), layout(log.parallel)]]);
  }

  function goodput_cards(d) {
    var mean = function (v) { return v && v.mean !== undefined ? v.mean : v; };
    return [
      ['Goodput', f.percent(mean(d.goodput)), 'of the time is useful'],
      ['Tokens a day', f.plain(mean(d.tokens_per_day)), f.whole(d.gpus) + ' GPUs'],
      ['Failures', f.number(mean(d.failures)), 'in ' + f.time(d.horizon_s)]
    ];
  }

  function sweep_cards(d) {
    var done = d.endings.done || 0;
    var ends = Object.keys(d.endings).filter(function (e) { return e !== 'done'; }).map(function (e) { return f.whole(d.endings[e]) + ' ' + e; });
    return [
      ['Points', f.whole(d.points), d.rows < d.points ? f.whole(d.rows) + ' of them computed' : 'all computed'],
      ['Ended well', f.whole(done), ends.join(', ') || 'all of them'],
      ['Axes', f.whole(d.axes.length), f.label(d.axes.join(', '), 70)]
    ];
  }

  var makers = {simulate: simulate_cards, causes: causes_cards, compare: error_cards, score: error_cards, plan: plan_cards, 'job-plan': job_plan_cards, 'mixed-plan': job_plan_cards, 'plan-price': price_cards,
                collective: collective_cards, 'compare-steps': steps_cards, 'compare-training': training_cards, goodput: goodput_cards, sweep: sweep_cards};

  Report.cards = function () {
    var found = [];
    Object.keys(makers).forEach(function (kind) {
      Report.model[kind].forEach(function (document) {
        found.push({document: document, cards: Report.attempt(function () { return makers[kind](document); }, [])});
      });
    });
    return found;
  };
  Report.layout_text = layout;
})();
