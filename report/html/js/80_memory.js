// Memory of a rank of each stage: what it is made of, and how it moves over the step.
(function () {
  'use strict';
  var f = Report.format;
  var kParts = [['weights', 'weights_bytes', 'blue'], ['gradients', 'gradients_bytes', 'sky'], ['optimizer', 'optimizer_bytes', 'green'], ['activations', 'activations_bytes', 'orange'], ['working', 'working_bytes', 'grey']];

  // Of several jobs the memory model speaks of the first one's ranks.
  function stage_name(d, stage) { return Report.stage_label({job: d.jobs && d.jobs.length > 1 ? 0 : undefined, stage: stage}); }
  function modelled_stages(d) { return d.stages.filter(function (s) { return !(s.job > 0); }); }

  Report.figure({
    section: 'memory', name: 'memory', kind: 'simulate', title: 'Peak memory of a rank, by stage',
    needs: function (d) { return d.memory && d.memory.stages.length > 0; },
    height: function (d) { return 80 + 24 * Math.min(32, d.memory.stages.length); },
    option: function (d, theme) {
      var stages = d.memory.stages.slice(0, 32);
      return {
        grid: {left: 8, right: 36, top: 34, bottom: 24, containLabel: true}, legend: Report.legend(theme),
        xAxis: Report.size_axis(theme, stages.reduce(function (most, s) { return Math.max(most, s.total_bytes); }, d.memory.capacity_bytes)),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, splitLine: {show: false}, data: stages.map(function (s, i) { return stage_name(d, i); })}),
        series: kParts.map(function (part, i) {
          return {name: part[0], type: 'bar', stack: 'all', itemStyle: {color: theme[part[2]]}, data: stages.map(function (s) { return s[part[1]]; }),
                  tooltip: {formatter: function (p) { return stage_name(d, p.dataIndex) + '\n' + part[0] + ': ' + f.size(p.value); }},
                  markLine: i === 0 ? {silent: true, symbol: 'none', data: [{xAxis: d.memory.capacity_bytes}], lineStyle: {color: theme.red, type: 'dashed', width: 2}, label: {formatter: f.label(d.memory.gpu, 20), color: theme.red, position: 'start'}} : undefined};
        })
      };
    },
    table: function (d) {
      return {head: ['stage'].concat(kParts.map(function (p) { return p[0]; }), ['total', 'of the GPU']), rows: d.memory.stages.map(function (s, i) {
        return [stage_name(d, i)].concat(kParts.map(function (p) { return f.size(s[p[1]]); }), [f.size(s.total_bytes), f.percent(s.total_bytes / d.memory.capacity_bytes)]);
      })};
    }
  });

  // A microbatch's activations are kept from its forward pass to the end of its backward pass; the
  // most that are kept at once are the memory model's.
  function curve(stage, memory) {
    var changes = [], last_pass = {};
    stage.list.forEach(function (p) {
      var key = p.microbatch + '/' + p.chunk;
      if (p.pass === 'forward') {
        changes.push([p.begin, 1]);
      } else {
        last_pass[key] = Math.max(last_pass[key] || 0, p.end);
      }
    });
    Object.keys(last_pass).forEach(function (key) { changes.push([last_pass[key], -1]); });
    changes.sort(function (a, b) { return a[0] - b[0] || a[1] - b[1]; });
    var now = 0, most = 1;
    changes.forEach(function (c) { now += c[1]; most = Math.max(most, now); });
    var fixed = memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes + memory.working_bytes;
    var unit = memory.activations_bytes / most, points = [[0, fixed]];
    now = 0;
    changes.forEach(function (c) { now += c[1]; points.push([c[0], fixed + now * unit]); });
    return {points: points, most: most};
  }

  Report.figure({
    section: 'memory', name: 'memory-over-time', kind: 'simulate', title: 'Memory of a rank over the step',
    interactive: 'zoom',
    needs: function (d) { return d.memory && d.stages && modelled_stages(d).length > 0 && modelled_stages(d).every(function (s) { return s.stage < d.memory.stages.length; }); },
    height: 320,
    option: function (d, theme) {
      var all = modelled_stages(d), stages = all.length <= 6 ? all : [0, 1, 2, 3].map(function (i) { return all[Math.round(i * (all.length - 1) / 3)]; });
      var colours = [theme.blue, theme.orange, theme.green, theme.pink, theme.red, theme.sky];
      return {
        grid: {left: 16, right: 24, top: 36, bottom: 58, containLabel: true}, legend: Report.legend(theme),
        dataZoom: [{type: 'inside', filterMode: 'none', zoomOnMouseWheel: 'ctrl'}, {type: 'slider', filterMode: 'none', bottom: 4, height: 18, labelFormatter: f.time, showDataShadow: false, borderColor: theme.line, textStyle: {color: theme.quiet}}],
        xAxis: Report.axis(theme, {type: 'value', axisLabel: {formatter: f.time}}),
        yAxis: Report.size_axis(theme, stages.reduce(function (most, s) { return Math.max(most, d.memory.stages[s.stage].total_bytes); }, 0)),
        series: stages.map(function (s, i) {
          var line = curve(s, d.memory.stages[s.stage]);
          return {name: stage_name(d, s.stage), type: 'line', step: 'end', showSymbol: false, sampling: 'max', color: colours[i % colours.length],
                  lineStyle: {width: 1.6, type: ['solid', 'dashed', 'dotted'][Math.floor(i / 3) % 3]}, data: line.points};
        })
      };
    },
    note: function () { return 'Weights, gradients, optimizer and working memory as they are modelled for the whole step; activations come with a microbatch’s forward pass and go with its backward pass.'; }
  });
})();
