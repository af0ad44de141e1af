// Stragglers of a measured or simulated job: who, how much, since when, and what shows it.
(function () {
  'use strict';
  var f = Report.format;

  function column(w) { return w.column !== undefined ? w.column : w.dp_rank; }
  function size(d) {
    var dp = 0, stages = 0;
    d.workers.forEach(function (w) { dp = Math.max(dp, column(w) + 1); stages = Math.max(stages, w.stage + 1); });
    return {dp: dp, stages: stages};
  }
  function slowest(d) {
    return d.workers.reduce(function (a, b) { return b.slowdown > a.slowdown ? b : a; });
  }
  Report.slowest_worker = slowest;
  function workers_note(d) { return Report.thinned_note(d, 'workers', 'workers', d.workers.length, true); }

  Report.figure({
    section: 'whatif', name: 'heatmap', kind: 'causes', title: 'How slow each worker makes the job, were it the only slow one',
    interactive: 'heatmap',
    needs: function (d) { return d.workers && d.workers.length > 0; },
    note: workers_note,
    height: function (d) { return 130 + Math.max(60, Math.min(900, 24 * size(d).stages)); },
    option: function (d, theme) {
      var n = size(d), most = Math.max(slowest(d).slowdown, 1.05), worst = slowest(d);
      var small = n.dp * n.stages <= 400;
      return {
        grid: {left: 30, right: 16, top: 48, bottom: 44, containLabel: true},
        visualMap: {type: 'continuous', seriesIndex: 0, min: 1, max: most, orient: 'horizontal', right: 0, top: 0, itemWidth: 12, itemHeight: 140, precision: 3, calculable: n.dp * n.stages > 1,
                    text: n.dp * n.stages > 1 ? undefined : [f.times(most), '1'], formatter: f.times, textStyle: {color: theme.quiet}, inRange: {color: theme.heat}},
        xAxis: Report.axis(theme, {type: 'category', name: d.workers[0].column === undefined ? 'data-parallel rank' : 'worker of the stage', nameGap: 26, data: sequence(n.dp), splitLine: {show: false}}),
        yAxis: Report.axis(theme, {type: 'category', name: 'pipeline stage', nameGap: 34, inverse: true, data: sequence(n.stages), splitLine: {show: false}}),
        series: [{
          type: 'heatmap', data: d.workers.map(function (w) {
            return {value: [column(w), w.stage, w.slowdown], rank: w.rank, dp: w.dp_rank, itemStyle: {borderColor: theme.background, borderWidth: small ? 1 : 0}};
          }),
          label: {show: small, formatter: function (p) { return p.value[2].toFixed(2); }, fontSize: 10},
          emphasis: {itemStyle: {borderColor: theme.strong, borderWidth: 2}},
          tooltip: {formatter: function (p) { return 'rank ' + p.data.rank + ': stage ' + p.value[1] + ', DP rank ' + p.data.dp + '\nS_w ' + f.times(p.value[2]) + '\nclick for the evidence'; }}
        }, {  // a frame around the slowest one, over its neighbours
          type: 'custom', silent: true, z: 3, encode: {x: 0, y: 1}, data: [[column(worst), worst.stage]],
          renderItem: function (params, api) {
            var at = api.coord([api.value(0), api.value(1)]), cell = api.size([1, 1]);
            return {type: 'rect', shape: {x: at[0] - cell[0] / 2, y: at[1] - cell[1] / 2, width: cell[0], height: cell[1]},
                    style: {fill: 'none', stroke: theme.strong, lineWidth: 3}};
          }
        }]
      };
    },
    table: function (d) {
      var sorted = d.workers.slice().sort(function (a, b) { return b.slowdown - a.slowdown; }).slice(0, 200);
      return {head: ['rank', 'stage', 'DP rank', 'S_w'], rows: sorted.map(function (w) { return [w.rank, w.stage, w.dp_rank, f.times(w.slowdown)]; })};
    }
  });

  function sequence(count) {
    var list = [];
    for (var i = 0; i < count; ++i) {
      list.push(String(i));
    }
    return list;
  }

  // What a worker's operations took beside those of its peers on the same stage: rows of a table.
  Report.evidence = function (d, worker) {
    var rows = [];
    (worker.ops || []).forEach(function (op) {
      rows.push([op.type, f.whole(op.count), f.time(op.median_s), f.time(op.peers_median_s), f.signed(op.median_s / op.peers_median_s - 1), f.time(op.longest_s), op.longest_step !== undefined ? 'step ' + op.longest_step : '']);
    });
    return {head: ['operation', 'count', 'median', 'its peers', 'more', 'longest', 'in'], rows: rows};
  };
  Report.worker_steps = function (d, worker) {
    return d.steps.filter(function (s) { return s.slowest_rank === worker.rank; });
  };

  Report.figure({
    section: 'whatif', name: 'steps', kind: 'causes', title: 'Slowdown of each step',
    needs: function (d) { return d.steps && d.steps.length > 1; },
    note: function (d) { return Report.thinned_note(d, 'steps', 'steps', d.steps.length, true); },
    height: 240,
    option: function (d, theme) {
      var colours = {none: theme.sky, 'one-off': theme.pink};
      return {
        grid: {left: 30, right: 16, top: 16, bottom: 40, containLabel: true},
        xAxis: Report.axis(theme, {type: 'category', name: 'step', nameGap: 26, data: d.steps.map(function (s) { return String(s.step); }), splitLine: {show: false}}),
        yAxis: Report.axis(theme, {type: 'value', name: 'T / I', nameGap: 50, min: function (v) { return Math.min(1, v.min); }, axisLabel: {formatter: f.times}}),
        series: [{type: 'bar', data: d.steps.map(function (s) { return {value: s.slowdown, itemStyle: {color: colours[s.pattern] || theme.red}}; }),
                  tooltip: {formatter: function (p) {
                    var s = d.steps[p.dataIndex];
                    return 'step ' + s.step + ': ' + f.times(s.slowdown) + '\npattern: ' + s.pattern + '\nslowest: rank ' + s.slowest_rank + ', stage ' + s.slowest_stage;
                  }},
                  markLine: {silent: true, symbol: 'none', lineStyle: {color: theme.quiet, type: 'dashed'}, label: {color: theme.quiet, formatter: '1.1: slow'}, data: [{yAxis: 1.1}]}}]
      };
    },
    table: function (d) {
      return {head: ['step', 'T / I', 'pattern', 'slowest rank', 'slowest stage'], rows: d.steps.slice(0, 500).map(function (s) { return [s.step, f.times(s.slowdown), s.pattern, s.slowest_rank, s.slowest_stage]; })};
    }
  });

  Report.figure({
    section: 'whatif', name: 'remedies', kind: 'causes', title: 'What mending would bring',
    needs: function (d) { return d.remedies && d.remedies.some(function (r) { return r.saves > 0; }); },
    height: function (d) { return 40 + 34 * d.remedies.length; },
    option: function (d, theme) {
      return {
        grid: {left: 8, right: 70, top: 6, bottom: 24, containLabel: true},
        xAxis: Report.axis(theme, {type: 'value', min: 0, axisLabel: {formatter: f.percent}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, splitLine: {show: false}, axisLabel: {width: 340, overflow: 'break', lineHeight: 14},
                                   data: d.remedies.map(function (r) { return f.label(r.description, 110); })}),
        series: [{type: 'bar', itemStyle: {color: theme.green}, data: d.remedies.map(function (r) { return r.saves; }),
                  label: {show: true, position: 'right', color: theme.quiet, formatter: function (p) { return f.percent(p.value); }},
                  tooltip: {formatter: function (p) { var r = d.remedies[p.dataIndex]; return f.label(r.description, 80) + '\n' + f.time(r.step_time_s) + ' a step, saves ' + f.percent(r.saves); }}}]
      };
    },
    table: function (d) {
      return {head: ['remedy', 'a step', 'saves'], rows: d.remedies.map(function (r) { return [r.description, f.time(r.step_time_s), f.percent(r.saves)]; })};
    }
  });

  function extremes(values) {
    return values.reduce(function (ends, v) { return [Math.min(ends[0], v), Math.max(ends[1], v)]; }, [Infinity, -Infinity]);
  }
  // A histogram of values between their extremes.
  function histogram(values, bins) {
    var low = extremes(values)[0], high = extremes(values)[1];
    if (high <= low) {
      high = low + Math.max(Math.abs(low) * 1e-3, 1e-12);
    }
    var counts = [];
    for (var i = 0; i < bins; ++i) {
      counts.push(0);
    }
    values.forEach(function (v) { counts[Math.min(bins - 1, Math.floor((v - low) / (high - low) * bins))] += 1; });
    return counts.map(function (count, i) { return [low + (high - low) * i / bins, low + (high - low) * (i + 1) / bins, count]; });
  }
  function bars(theme, list, text, unit) {
    return {
      grid: {left: 40, right: 16, top: 16, bottom: 44, containLabel: true},
      xAxis: Report.axis(theme, {type: 'value', scale: true, name: text, nameGap: 28, min: list[0][0], max: list[list.length - 1][1], axisLabel: {formatter: unit}}),
      yAxis: Report.axis(theme, {type: 'value', name: 'count', nameGap: 36, minInterval: 1}),
      series: [{type: 'custom', encode: {x: [0, 1], y: 2}, data: list, renderItem: function (params, api) {
        var a = api.coord([api.value(0), api.value(2)]), b = api.coord([api.value(1), 0]);
        return {type: 'rect', shape: {x: a[0], y: a[1], width: Math.max(1, b[0] - a[0] - 1), height: b[1] - a[1]}, style: {fill: theme.blue}};
      }, tooltip: {formatter: function (p) { return unit(p.value[0]) + ' – ' + unit(p.value[1]) + ': ' + f.whole(p.value[2]); }}}]
    };
  }
  function bins_for(count) { return Math.max(5, Math.min(60, Math.ceil(2 * Math.sqrt(count)))); }

  Report.figure({
    section: 'distribution', name: 'workers', kind: 'causes', title: 'Workers by how slow they make the job',
    needs: function (d) { return d.workers && d.workers.length > 3; },
    note: workers_note,
    height: 240,
    option: function (d, theme) {
      return bars(theme, histogram(d.workers.map(function (w) { return w.slowdown; }), bins_for(d.workers.length)), 'S_w of a worker', f.times);
    },
    table: function (d) {
      return {head: ['S_w from', 'to', 'workers'], rows: histogram(d.workers.map(function (w) { return w.slowdown; }), bins_for(d.workers.length)).map(function (bin) {
        return [f.times(bin[0]), f.times(bin[1]), f.whole(bin[2])];
      })};
    }
  });
  Report.figure({
    section: 'distribution', name: 'sample', kind: 'simulate', title: 'Step times of several draws',
    needs: function (d) {  // of some spread: a deterministic step has one time
      var ends = d.sample && extremes(d.sample.total_s);
      return d.sample && d.sample.total_s.length > 3 && ends[1] > 1.000001 * ends[0];
    },
    height: 240,
    option: function (d, theme) {
      return bars(theme, histogram(d.sample.total_s, bins_for(d.sample.total_s.length)), 'step time', f.time);
    },
    table: function (d) {
      var s = d.sample;
      return {head: ['mean', '95 % of the mean', 'deviation', 'p50', 'p90', 'p99', 'steps'], rows: [[f.time(s.mean_s), f.time(s.mean_low_s) + ' – ' + f.time(s.mean_high_s), f.time(s.deviation_s), f.time(s.p50_s), f.time(s.p90_s), f.time(s.p99_s), f.whole(s.steps)]]};
    }
  });
  Report.figure({
    section: 'distribution', name: 'stragglers', kind: 'simulate', title: 'What each straggler costs',
    needs: function (d) { return d.stragglers && d.stragglers.length > 0; },
    height: function (d) { return 44 + 26 * d.stragglers.length; },
    option: function (d, theme) {
      return {
        grid: {left: 8, right: 80, top: 6, bottom: 24, containLabel: true},
        xAxis: Report.axis(theme, {type: 'value', axisLabel: {formatter: f.time}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, axisLine: {onZero: false}, splitLine: {show: false}, data: d.stragglers.map(function (s) { return f.label(s.spec, 50); })}),
        series: [{type: 'bar', itemStyle: {color: theme.red}, data: d.stragglers.map(function (s) { return s.cost_s; }), label: {show: true, position: 'right', color: theme.quiet, formatter: function (p) { return f.time(p.value); }}}]
      };
    },
    table: function (d) {
      return {head: ['straggler', 'costs', 'step without it', 'slowdown'], rows: d.stragglers.map(function (s) { return [s.spec, f.time(s.cost_s), f.time(s.without_s), f.times(s.slowdown)]; })};
    }
  });
})();
