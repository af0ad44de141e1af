// Predictions beside measurements.
(function () {
  'use strict';
  var f = Report.format;
  var kSymbols = ['circle', 'rect', 'triangle', 'diamond', 'pin', 'arrow', 'roundRect'];

  function palette(theme) { return [theme.blue, theme.orange, theme.green, theme.pink, theme.sky, theme.red, theme.yellow, theme.grey]; }
  function table_name(t) { return f.label(t.op + ', ' + t.gpus + ' GPUs' + (t.servers > 1 ? ' on ' + t.servers + ' servers' : ''), 40); }

  // Sizes from the smallest to the largest, powers of two.
  function sizes(theme, d) {
    var low = Infinity, high = 1;
    [d.points || []].concat((d.tables || []).map(function (t) { return t.rows; })).forEach(function (rows) {
      rows.forEach(function (r) {
        if (r.size_bytes > 0) {
          low = Math.min(low, r.size_bytes);
          high = Math.max(high, r.size_bytes);
        }
      });
    });
    return Report.axis(theme, {type: 'log', logBase: 2, name: 'size', nameGap: 26, min: low, max: Math.max(high, 2 * low), axisLabel: {formatter: f.size}});
  }

  function extremes(d) {
    var low = Infinity, high = 0;
    d.tables.forEach(function (t) {
      t.rows.forEach(function (r) {
        [r.measured_s, r.predicted_s].forEach(function (v) {
          if (v > 0) {
            low = Math.min(low, v);
            high = Math.max(high, v);
          }
        });
      });
    });
    return [Math.pow(10, Math.floor(Math.log(low) / Math.LN10)), Math.pow(10, Math.ceil(Math.log(high) / Math.LN10))];
  }
  function rows_note(d) {
    return Report.thinned_note(d, 'rows', 'rows', d.tables.reduce(function (sum, t) { return sum + t.rows.length; }, 0));
  }
  // Where predictions are off by at most this share of what was measured, on axes that are both logarithmic: from 1 - error
  // times it, which is down to the axis where all of it may be missing, to 1 + error times.
  function band(ends, error, fill) {
    var low = function (measured) { return error < 1 ? measured * (1 - error) : ends[0]; };
    return {type: 'custom', silent: true, clip: true, z: 1, encode: {x: -1, y: -1}, data: [[0]], renderItem: function (params, api) {
      var corners = [[ends[0], ends[0] * (1 + error)], [ends[1], ends[1] * (1 + error)], [ends[1], low(ends[1])], [ends[0], low(ends[0])]];
      return {type: 'polygon', shape: {points: corners.map(function (c) { return api.coord(c); })}, style: {fill: fill}};
    }};
  }

  Report.figure({
    section: 'accuracy', name: 'accuracy', kind: 'compare', title: 'Predicted against measured time',
    needs: function (d) { return d.tables.some(function (t) { return t.rows.length > 0; }); },
    height: 520, note: rows_note,
    option: function (d, theme, state) {
      var ends = extremes(d), colours = palette(theme), p90 = d.error.p90_error || 0;
      var fill = theme.dark ? 'rgba(255,255,255,0.07)' : 'rgba(0,0,0,0.06)';
      return {
        grid: {left: 20, right: 24, top: 64, bottom: 48, containLabel: true},
        legend: Report.legend(theme, {data: d.tables.slice(0, 40).map(table_name)}),
        xAxis: Report.axis(theme, {type: 'log', name: 'measured', nameGap: 28, min: ends[0], max: ends[1], axisLabel: {formatter: f.time}}),
        yAxis: Report.axis(theme, {type: 'log', name: 'predicted', nameGap: 52, min: ends[0], max: ends[1], axisLabel: {formatter: f.time}}),
        graphic: [{type: 'text', right: 26, bottom: 78, silent: true, style: {text: state && state.narrow ? 'bands: off by 10 %, by ' + f.percent(p90) : 'dark band: off by 10 %, light band: by ' + f.percent(p90) + ' (nine of ten rows are within it)', fill: theme.quiet, fontSize: 11}}],
        series: [band(ends, p90, fill), band(ends, 0.1, fill),
          {type: 'line', silent: true, showSymbol: false, data: [[ends[0], ends[0]], [ends[1], ends[1]]], lineStyle: {color: theme.quiet, width: 1, type: 'dashed'}, tooltip: {show: false}}
        ].concat(d.tables.slice(0, 40).map(function (t, i) {
          return {
            type: 'scatter', name: table_name(t), symbol: kSymbols[i % kSymbols.length], symbolSize: 8, z: 3,
            itemStyle: {color: colours[i % colours.length], borderColor: theme.background, borderWidth: 0.5},
            data: t.rows.filter(function (r) { return r.measured_s > 0 && r.predicted_s > 0; }).map(function (r) { return {value: [r.measured_s, r.predicted_s], row: r}; }),
            tooltip: {formatter: function (p) {
              var r = p.data.row;
              return table_name(t) + '\n' + f.size(r.size_bytes) + (r.in_place ? ', in place' : '') + '\nmeasured ' + f.time(r.measured_s) + ', predicted ' + f.time(r.predicted_s) + '\nerror ' + f.signed(r.error) + '\n' + r.algorithm + ', ' + r.protocol + (r.why ? '\n' + f.label(r.why, 80) : '');
            }}
          };
        }))
      };
    },
    table: function (d) {
      var rows = [];
      d.tables.forEach(function (t) {
        t.rows.slice(0, 100).forEach(function (r) { rows.push([table_name(t), f.size(r.size_bytes), f.time(r.measured_s), f.time(r.predicted_s), f.signed(r.error)]); });
      });
      return {head: ['table', 'size', 'measured', 'predicted', 'error'], rows: rows};
    }
  });

  Report.figure({
    section: 'accuracy', name: 'curves', kind: 'compare', title: 'Bus bandwidth by size: measured as points, predicted as lines',
    needs: function (d) { return d.tables.some(function (t) { return t.rows.length > 2; }); },
    height: 380, note: rows_note,
    option: function (d, theme) {
      var colours = palette(theme), series = [];
      d.tables.slice(0, 16).forEach(function (t, i) {
        var colour = colours[i % colours.length];
        var rows = t.rows.filter(function (r) { return r.size_bytes > 0 && !r.in_place; });
        rows = rows.length ? rows : t.rows.filter(function (r) { return r.size_bytes > 0; });
        series.push({type: 'line', name: table_name(t), showSymbol: false, color: colour, lineStyle: {width: 1.5}, data: rows.map(function (r) { return [r.size_bytes, r.predicted_busbw_Bps]; }), tooltip: {show: false}});
        series.push({type: 'scatter', name: table_name(t), symbol: kSymbols[i % kSymbols.length], symbolSize: 6, color: colour, data: rows.map(function (r) { return [r.size_bytes, r.measured_busbw_Bps]; }),
                     tooltip: {formatter: function (p) { return table_name(t) + '\n' + f.size(p.value[0]) + ': ' + f.rate(p.value[1]); }}});
      });
      return {
        grid: {left: 32, right: 24, top: 56, bottom: 44, containLabel: true}, legend: Report.legend(theme),
        xAxis: sizes(theme, d),
        yAxis: Report.axis(theme, {type: 'value', name: 'bus bandwidth', nameGap: 74, axisLabel: {formatter: f.rate}}),
        series: series
      };
    }
  });

  Report.figure({
    section: 'accuracy', name: 'score', kind: 'score', title: 'Median error by system, operation and size',
    needs: function (d) { return d.groups && d.groups.length > 0; },
    height: function (d) { return 40 + 20 * Math.min(30, d.groups.length); },
    option: function (d, theme) {
      var list = d.groups.slice(0, 30);
      return {
        grid: {left: 8, right: 70, top: 6, bottom: 24, containLabel: true},
        xAxis: Report.axis(theme, {type: 'value', min: 0, axisLabel: {formatter: f.percent}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, splitLine: {show: false}, data: list.map(function (g) { return f.label([g.system, g.op, g.gpus, g.size].join(', '), 60); })}),
        series: [{type: 'bar', itemStyle: {color: theme.orange}, data: list.map(function (g) { return g.median_error; }), label: {show: true, position: 'right', color: theme.quiet, formatter: function (p) { return f.percent(p.value); }}}]
      };
    },
    table: function (d) {
      return {head: ['system', 'operation', 'GPUs', 'size', 'rows', 'median error', 'p90'], rows: d.groups.slice(0, 300).map(function (g) { return [g.system, g.op, g.gpus, g.size, f.whole(g.rows), f.percent(g.median_error), f.percent(g.p90_error)]; })};
    }
  });

  Report.figure({
    section: 'accuracy', name: 'collective', kind: 'collective', title: 'A collective by size',
    needs: function (d) { return d.points && d.points.length > 0; },
    note: function (d) { return Report.thinned_note(d, 'points', 'sizes', d.points.length); },
    height: 340,
    option: function (d, theme) {
      var colours = palette(theme), engines = {};
      d.points.forEach(function (p) { Object.keys(p.engines).forEach(function (name) { engines[name] = true; }); });
      return {
        grid: {left: 32, right: 24, top: 40, bottom: 44, containLabel: true}, legend: Report.legend(theme),
        xAxis: sizes(theme, d),
        yAxis: Report.axis(theme, {type: 'value', name: 'bus bandwidth', nameGap: 74, axisLabel: {formatter: f.rate}}),
        series: Object.keys(engines).map(function (name, i) {
          return {type: 'line', name: name, color: colours[i], symbol: kSymbols[i], symbolSize: 7,
                  data: d.points.filter(function (p) { return p.engines[name] && p.size_bytes > 0; }).map(function (p) { return [p.size_bytes, p.engines[name].bus_Bps]; }),
                  tooltip: {formatter: function (p) { return name + '\n' + f.size(p.value[0]) + ': ' + f.rate(p.value[1]); }}};
        })
      };
    },
    table: function (d) {
      var rows = [];
      d.points.forEach(function (p) { Object.keys(p.engines).forEach(function (name) { rows.push([f.size(p.size_bytes), name, f.time(p.engines[name].time_s), f.rate(p.engines[name].bus_Bps)]); }); });
      return {head: ['size', 'engine', 'time', 'bus bandwidth'], rows: rows};
    }
  });

  // A line of the figure: the step of a log, or what its timers tell apart.
  function training_lines(d) {
    var lines = [];
    d.logs.forEach(function (log) {
      var of_log = d.logs.length > 1 ? f.label(log.file, 32) + ': ' : '';
      [{name: 'step', measured_s: log.measured.step_s, predicted_s: log.predicted.step_s, error: log.error}].concat(log.parts || []).forEach(function (part) {
        lines.push({name: of_log + f.label(part.name, 32), measured: part.measured_s, predicted: part.predicted_s, error: part.error});
      });
    });
    return lines;
  }
  var kMostLines = 40;

  Report.figure({
    section: 'accuracy', name: 'training', kind: 'compare-training', title: 'The step of a training: measured, and predicted',
    needs: function (d) { return d.logs.length > 0 && d.logs.every(function (log) { return log.measured.step_s > 0 && log.predicted.step_s > 0; }); },
    height: function (d) { return 80 + 44 * Math.min(kMostLines, training_lines(d).length); },
    option: function (d, theme) {
      var lines = training_lines(d).slice(0, kMostLines);
      var bars = function (name, key, colour) {
        return {type: 'bar', name: name, barMaxWidth: 15, itemStyle: {color: colour}, data: lines.map(function (l) { return l[key]; }),
                label: {show: true, position: 'right', color: theme.quiet, formatter: function (p) { return f.time(p.value) + (key === 'predicted' ? ', ' + f.signed(lines[p.dataIndex].error) : ''); }}};
      };
      return {
        grid: {left: 8, right: 110, top: 34, bottom: 24, containLabel: true}, legend: Report.legend(theme),
        xAxis: Report.axis(theme, {type: 'value', axisLabel: {formatter: f.time}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, splitLine: {show: false}, data: lines.map(function (l) { return l.name; })}),
        series: [bars('measured', 'measured', theme.grey), bars('predicted', 'predicted', theme.blue)]
      };
    },
    note: function (d) {
      return d.logs.length > 1 ? '' : 'Measured: the median of ' + f.whole(d.logs[0].iterations) + ' lines of iterations, ' + f.time(d.logs[0].measured.p10_s) + ' – ' + f.time(d.logs[0].measured.p90_s) + ' between the 10th and the 90th percentile.';
    },
    table: function (d) {
      return {head: ['', 'measured', 'predicted', 'error'], rows: training_lines(d).slice(0, 300).map(function (l) { return [l.name, f.time(l.measured), f.time(l.predicted), f.signed(l.error)]; })};
    }
  });

  Report.figure({
    section: 'accuracy', name: 'training-parts', kind: 'compare-training', title: 'What the predicted step of a training is made of',
    needs: function (d) { return d.logs.some(function (log) { return log.predicted.compute_s > 0; }); },
    height: function (d) { return 70 + 34 * Math.min(kMostLines, d.logs.length); },
    option: function (d, theme) {
      var logs = d.logs.slice(0, kMostLines);
      var rest = function (p) { return Math.max(0, p.step_s - p.compute_s - p.exposed_s - p.bubble_s); };
      var parts = [['compute', theme.blue, function (p) { return p.compute_s; }], ['communication not hidden', theme.orange, function (p) { return p.exposed_s; }],
                   ['pipeline bubble', theme.grey, function (p) { return p.bubble_s; }], ['rest', theme.sky, rest]];
      return {
        grid: {left: 8, right: 24, top: 34, bottom: 24, containLabel: true}, legend: Report.legend(theme),
        xAxis: Report.axis(theme, {type: 'value', axisLabel: {formatter: f.time}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, splitLine: {show: false}, data: logs.map(function (log) { return f.label(log.file, 40); })}),
        series: parts.map(function (part) { return {type: 'bar', name: part[0], stack: 'all', barMaxWidth: 26, itemStyle: {color: part[1]}, data: logs.map(function (log) { return part[2](log.predicted); })}; })
      };
    },
    note: function () { return 'Of rank 0.'; }
  });
})();
