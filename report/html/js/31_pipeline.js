// The pipeline as the papers draw it: a row a stage, a box a microbatch's pass.
(function () {
  'use strict';
  var f = Report.format;

  function colour_of(pass, chunk, theme) {
    var even = chunk % 2 === 0 || chunk < 0;
    return {forward: even ? theme.sky : theme.orange, backward: even ? theme.blue : theme.red, weight: theme.plum}[pass];
  }

  // What a pass looks like in a box of this width.
  function look(pass, width, theme) {
    var number = String(pass.microbatch);
    var fill = colour_of(pass.pass, pass.chunk, theme);
    return {fill: fill, edge: width > 3, text: width > 9 + 6 * number.length ? number : '', ink: Report.ink(fill)};
  }

  function paint_stage(stage, theme, context, x_of, from, to, top, height) {
    context.font = '10px DejaVu Sans, Helvetica, Arial, sans-serif';
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.lineWidth = 0.7;
    context.strokeStyle = theme.background;
    stage.list.forEach(function (pass) {
      if (pass.end <= from || pass.begin >= to) {
        return;
      }
      var x = x_of(pass.begin), width = Math.max(1, x_of(pass.end) - x), style = look(pass, width, theme);
      var left = Math.max(x, -2), right = Math.min(x + width, context.canvas.width + 2);
      context.fillStyle = style.fill;
      context.fillRect(left, top, right - left, height);
      if (style.edge) {
        context.strokeRect(left, top, right - left, height);
      }
      if (style.text) {
        context.fillStyle = style.ink;
        context.fillText(style.text, x + width / 2, top + height / 2);
      }
    });
  }

  // The stages are a picture that moves (29_sheet.js), or shapes where there is no document.
  function draw_stages(d, theme, end, state) {
    var sheet = Report.sheet(end);
    return function (params, api) {
      var area = params.coordSys;
      var half = api.size([0, 1])[1] * 0.42, first = api.coord([0, 0])[1], pitch = api.coord([0, 1])[1] - first;
      var origin = api.coord([0, 0])[0], unit = api.coord([end, 0])[0] - origin;
      var picture = sheet([first, pitch, half].join(), area, origin, unit, function (context, x_of, from, to) {
        if (state.place_labels) {
          state.place_labels(d.stages.map(function (stage, s) { return [Report.stage_label(stage), first + pitch * s]; }));
        }
        d.stages.forEach(function (stage, s) {
          paint_stage(stage, theme, context, x_of, from, to, Math.round(first + pitch * s - half - area.y), Math.round(2 * half));
        });
      });
      if (picture) {
        return {type: 'group', children: [picture]};
      }
      var children = [];
      d.stages.forEach(function (stage, s) {
        stage.list.forEach(function (pass) {
          var x = origin + unit * pass.begin / end, width = Math.max(1, unit * (pass.end - pass.begin) / end), style = look(pass, width, theme);
          children.push({type: 'rect', shape: {x: x, y: first + pitch * s - half, width: width, height: 2 * half},
                         style: {fill: style.fill, stroke: style.edge ? theme.background : null, lineWidth: 0.7},
                         textContent: style.text ? {type: 'text', style: {text: style.text, fontSize: 10, fill: style.ink}} : undefined,
                         textConfig: {position: 'inside'}});
        });
      });
      return {type: 'group', children: children};
    };
  }

  // What is at a time on a stage; of passes that overlap the last that began.
  Report.pass_text = function (d, s, time) {
    var stage = d.stages[s], found = null;
    (stage ? stage.list : []).forEach(function (pass) {
      found = pass.begin <= time && time < pass.end ? pass : found;
    });
    return found && Report.stage_label(stage) + ', microbatch ' + found.microbatch + (found.chunk >= 0 ? ', chunk ' + found.chunk : '') + '\n' + found.pass + ': ' +
      f.time(found.begin) + ' – ' + f.time(found.end) + ' (' + f.time(found.end - found.begin) + ')';
  };

  Report.figure({
    section: 'pipeline', name: 'pipeline', kind: 'simulate', title: 'Microbatches on the pipeline’s stages',
    interactive: 'pipeline', pans: true, many: true,
    table: function (d) {
      var kMost = 1000, rows = [];
      d.stages.forEach(function (stage) {
        stage.list.forEach(function (pass) {
          if (rows.length < kMost) {
            rows.push([Report.stage_label(stage), pass.microbatch, pass.pass, f.time(pass.begin), f.time(pass.end)]);
          }
        });
      });
      return {head: ['', 'microbatch', 'pass', 'from', 'to'], rows: rows};
    },
    needs: function (d) { return d.stages && d.stages.length > 0; },
    note: function (d) {
      var several = d.stages.some(function (stage) { return stage.job > 0; });
      return several ? d.jobs.map(function (job, j) { return 'Job ' + (j + 1) + ': ' + f.label(job.name, 60) + '.'; }).join(' ') : '';
    },
    height: function (d) { return 100 + 26 * d.stages.length; },
    option: function (d, theme, state) {
      var end = d.stages.reduce(function (last, stage) {
        return stage.list.reduce(function (most, pass) { return Math.max(most, pass.end); }, last);
      }, 0);
      var has_weights = d.stages.some(function (stage) { return stage.list.some(function (pass) { return pass.pass === 'weight'; }); });
      var chunks = d.stages.some(function (s) { return s.list.some(function (p) { return p.chunk > 0; }); });
      var legend = [['forward', theme.sky], ['backward', theme.blue]];
      if (has_weights) {
        legend.push(['weight gradient', theme.plum]);
      }
      if (chunks) {
        legend = [['forward, even chunks', theme.sky], ['forward, odd chunks', theme.orange], ['backward, even chunks', theme.blue], ['backward, odd chunks', theme.red]].concat(legend.slice(2));
      }
      return {
        grid: {left: 8, right: 16, top: 34, bottom: 58, containLabel: true},
        legend: Report.legend(theme, {data: legend.map(function (l) { return l[0]; }), selectedMode: false}),
        tooltip: {show: false},
        dataZoom: [{type: 'inside', xAxisIndex: 0, filterMode: 'none', zoomOnMouseWheel: 'ctrl'},
                   {type: 'slider', xAxisIndex: 0, filterMode: 'none', bottom: 4, height: 18, labelFormatter: f.time, showDataShadow: false, borderColor: theme.line, textStyle: {color: theme.quiet}}],
        xAxis: Report.axis(theme, {type: 'value', min: 0, max: end, axisLabel: {formatter: f.time}, splitLine: {show: false}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, data: d.stages.map(Report.stage_label), splitLine: {show: false}}),
        series: [{
          type: 'custom', clip: true, silent: true, encode: {x: -1, y: -1}, data: [[0]],
          renderItem: draw_stages(d, theme, end, state)
        }].concat(legend.map(function (l) { return {type: 'line', name: l[0], data: [], color: l[1], symbol: 'roundRect', lineStyle: {width: 0}}; }))
      };
    }
  });
})();
