// Where the time goes: of the step as a whole, by class of ranks, and by layer.
(function () {
  'use strict';
  var f = Report.format;

  function parts(d, theme) {
    var groups = d.exposed_by_group || {};
    var list = [{name: 'compute', value: d.compute_s, colour: theme.blue}];
    Report.group_order.forEach(function (group) {
      if (groups[group + '_s'] > 0) {
        list.push({name: Report.group_name[group], value: groups[group + '_s'], colour: Report.group_colour(theme, group)});
      }
    });
    if (d.bubble_s > 0) {
      list.push({name: 'pipeline bubble', value: d.bubble_s, colour: theme.grey});
    }
    if (d.skew_s > 0) {
      list.push({name: 'waiting for the last rank', value: d.skew_s, colour: theme.sky});
    }
    if (d.other_jobs_s > 0) {
      list.push({name: 'other jobs alone', value: d.other_jobs_s, colour: theme.plum});
    }
    var known = list.reduce(function (sum, part) { return sum + part.value; }, 0);
    if (d.total_s - known > 1e-6 * d.total_s) {
      list.push({name: 'idle', value: d.total_s - known, colour: theme.line});
    }
    return list;
  }
  Report.time_parts = parts;

  Report.figure({
    section: 'time', name: 'time', kind: 'simulate', title: 'Where the step’s time goes (reporting rank)',
    needs: function (d) { return d.total_s > 0; },
    height: 130,
    note: function (d) { return d.sample ? 'Of the first step drawn.' : ''; },
    option: function (d, theme) {
      return {
        grid: {left: 16, right: 24, top: 44, bottom: 24},
        legend: Report.legend(theme),
        xAxis: Report.axis(theme, {type: 'value', max: d.total_s, axisLabel: {formatter: f.time}, splitLine: {show: false}}),
        yAxis: {type: 'category', data: ['step'], show: false},
        series: parts(d, theme).map(function (part) {
          return {
            name: part.name, type: 'bar', stack: 'all', barWidth: 34, data: [part.value],
            itemStyle: {color: part.colour, borderColor: theme.background, borderWidth: 1},
            label: {show: part.value > 0.07 * d.total_s, formatter: f.percent(part.value / d.total_s), color: Report.ink(part.colour)},
            tooltip: {formatter: function () { return part.name + '\n' + f.time(part.value) + ', ' + f.percent(part.value / d.total_s) + ' of the step'; }}
          };
        })
      };
    },
    table: function (d) {
      return {head: ['part', 'time', 'share'], rows: parts(d, Report.theme(false)).map(function (part) {
        return [part.name, f.time(part.value), f.percent(part.value / d.total_s)];
      })};
    }
  });

  // Of several jobs "job 2, stage 0".
  function stage_label(stage) { return (stage.job !== undefined ? 'job ' + (stage.job + 1) + ', ' : '') + 'stage ' + stage.stage; }
  Report.stage_label = stage_label;

  function class_label(klass) {
    return (klass.stage !== undefined ? stage_label(klass) + ', ' : '') + 'rank ' + klass.rank + (klass.ranks > 1 ? ' (×' + f.whole(klass.ranks) + ')' : '');
  }
  Report.class_label = class_label;

  var kMostClasses = 48;
  function shown_classes(d) { return d.detail.classes.slice(0, kMostClasses); }

  Report.figure({
    section: 'time', name: 'ranks', kind: 'simulate', title: 'Compute, communication hidden and not, by class of ranks',
    needs: function (d) { return d.detail && d.detail.classes.length > 0 && d.detail.classes[0].compute_s !== undefined; },
    height: function (d) { return 90 + 22 * shown_classes(d).length; },
    option: function (d, theme) {
      var classes = shown_classes(d);
      var groups = Report.group_order.filter(function (g) {
        return classes.some(function (c) { return c.exposed_by_group[g + '_s'] > 0; });
      });
      function series(name, colour, value, hatch) {
        return {name: name, type: 'bar', stack: 'all', barCategoryGap: '25%', itemStyle: {color: colour, decal: hatch ? {symbol: 'rect', dashArrayX: [1, 0], dashArrayY: [2, 4], rotation: -0.7, color: 'rgba(0,0,0,0.25)'} : undefined}, data: classes.map(value),
                tooltip: {formatter: function (p) { return class_label(classes[p.dataIndex]) + '\n' + name + ': ' + f.time(p.value); }}};
      }
      return {
        grid: {left: 8, right: 24, top: 34, bottom: 24, containLabel: true},
        legend: Report.legend(theme),
        xAxis: Report.axis(theme, {type: 'value', axisLabel: {formatter: f.time}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, data: classes.map(class_label), splitLine: {show: false}}),
        series: [
          series('compute alone', theme.blue, function (c) { return Math.max(0, c.compute_s - c.hidden_s); }),
          series('compute over hidden communication', theme.sky, function (c) { return Math.min(c.hidden_s, c.compute_s); })
        ].concat(groups.map(function (g) {
          return series('exposed: ' + Report.style_name[g], Report.group_colour(theme, g), function (c) { return c.exposed_by_group[g + '_s'] || 0; });
        }), classes.some(function (c) { return c.bubble_s > 0; }) ? [
          series('pipeline bubble', theme.grey, function (c) { return c.bubble_s || 0; })
        ] : [], [series('idle', theme.line, function (c) { return Math.max(0, c.idle_s); })])
      };
    },
    note: function (d) {
      var total = d.detail.classes_total || d.detail.classes.length;
      return total > shown_classes(d).length ? 'The first ' + shown_classes(d).length + ' of ' + f.whole(total) + ' classes of like ranks.' : '';
    }
  });

  // Layers add up by name: AICB lists each of them.
  function layers(d) {
    var by_name = {}, order = [];
    d.layers.forEach(function (layer) {
      var sum = by_name[layer.name];
      if (!sum) {
        sum = by_name[layer.name] = {name: layer.name, count: 0, compute: 0, exposed: 0, hidden: 0};
        order.push(sum);
      }
      sum.count += layer.count || 1;  // as one already where they are many (report_document.cc)
      [layer.forward, layer.input_grad, layer.weight_grad].forEach(function (phase) {
        sum.compute += phase.compute_s || 0;
        sum.exposed += phase.exposed_s || 0;
        sum.hidden += Math.max(0, (phase.comm_s || 0) - (phase.exposed_s || 0));
      });
    });
    return order.sort(function (a, b) { return b.compute + b.exposed - a.compute - a.exposed; });
  }
  function operators(d) {
    return d.detail.operators.slice().sort(function (a, b) { return b.time_s - a.time_s; });
  }

  Report.figure({
    section: 'time', name: 'layers', kind: 'simulate', title: 'The dearest layers',
    needs: function (d) { return d.layers && d.layers.length > 0; },
    height: function (d) { return 80 + 24 * Math.min(15, layers(d).length); },
    option: function (d, theme) {
      var list = layers(d).slice(0, 15);
      function series(name, colour, key) {
        return {name: name, type: 'bar', stack: 'all', itemStyle: {color: colour}, data: list.map(function (l) { return l[key]; }),
                tooltip: {formatter: function (p) { return f.label(list[p.dataIndex].name) + '\n' + name + ': ' + f.time(p.value); }}};
      }
      return {
        grid: {left: 8, right: 24, top: 34, bottom: 24, containLabel: true}, legend: Report.legend(theme),
        xAxis: Report.axis(theme, {type: 'value', axisLabel: {formatter: f.time}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, splitLine: {show: false}, data: list.map(function (l) { return f.label(l.name, 32) + (l.count > 1 ? ' ×' + l.count : ''); })}),
        series: [series('compute', theme.blue, 'compute'), series('communication not hidden', theme.orange, 'exposed')]
      };
    },
    table: function (d) {
      return {head: ['layer', 'count', 'compute', 'not hidden', 'hidden'], rows: layers(d).slice(0, 200).map(function (l) {
        return [l.name, f.whole(l.count), f.time(l.compute), f.time(l.exposed), f.time(l.hidden)];
      })};
    }
  });

  Report.figure({
    section: 'time', name: 'operators', kind: 'simulate', title: 'The dearest operations',
    needs: function (d) { return d.detail && d.detail.operators && d.detail.operators.length > 0; },
    height: function (d) { return 60 + 24 * Math.min(20, d.detail.operators.length); },
    option: function (d, theme) {
      var list = operators(d).slice(0, 20);
      return {
        grid: {left: 8, right: 70, top: 8, bottom: 24, containLabel: true},
        xAxis: Report.axis(theme, {type: 'value', axisLabel: {formatter: f.time}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, splitLine: {show: false}, data: list.map(function (o) { return f.label(o.name, 40); })}),
        series: [{type: 'bar', data: list.map(function (o) {
                    return {value: o.time_s, itemStyle: {color: o.comm ? Report.group_colour(theme, o.group) : theme.blue}};
                  }), label: {show: true, position: 'right', color: theme.quiet, formatter: function (p) { return f.time(p.value); }},
                  tooltip: {formatter: function (p) {
                    var o = list[p.dataIndex];
                    return f.label(o.name) + '\n' + (o.comm ? o.comm + ', ' + (Report.group_name[o.group] || o.group) : 'compute') + '\n' + f.whole(o.count) + ' × ' + f.time(o.time_s / o.count);
                  }}}]
      };
    },
    note: function () { return 'Sums over the operations of the drawn classes’ first ranks; communication from entry to end, waiting included.'; },
    table: function (d) {
      return {head: ['operation', 'kind', 'count', 'sum', 'each'], rows: operators(d).slice(0, 300).map(function (o) {
        return [o.name, o.comm || 'compute', f.whole(o.count), f.time(o.time_s), f.time(o.time_s / o.count)];
      })};
    }
  });

  Report.figure({
    section: 'time', name: 'sensitivity', kind: 'simulate', title: 'What a tenth more would bring',
    needs: function (d) { return d.sensitivity && d.sensitivity.length > 0; },
    height: function (d) { return 50 + 22 * Math.min(20, d.sensitivity.length); },
    option: function (d, theme) {
      var list = d.sensitivity.slice().sort(function (a, b) { return b.saves - a.saves; }).slice(0, 20);
      return {
        grid: {left: 8, right: 70, top: 8, bottom: 24, containLabel: true},
        xAxis: Report.axis(theme, {type: 'value', axisLabel: {formatter: f.percent}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, splitLine: {show: false}, data: list.map(function (s) { return f.label(s.what, 60); })}),
        series: [{type: 'bar', itemStyle: {color: theme.green}, data: list.map(function (s) { return s.saves; }),
                  label: {show: true, position: 'right', color: theme.quiet, formatter: function (p) { return f.percent(p.value); }}}]
      };
    }
  });
})();
