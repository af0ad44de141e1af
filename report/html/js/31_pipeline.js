// The pipeline as the papers draw it: a row a stage, a box a microbatch's pass.
(function () {
  'use strict';
  var f = Report.format;

  function colour_of(pass, chunk, theme) {
    var even = chunk % 2 === 0 || chunk < 0;
    return {forward: even ? theme.sky : theme.orange, backward: even ? theme.blue : theme.red, weight: theme.green}[pass];
  }

  Report.figure({
    section: 'pipeline', name: 'pipeline', kind: 'simulate', title: 'Microbatches on the pipeline’s stages',
    interactive: 'zoom',
    needs: function (d) { return d.stages && d.stages.length > 0; },
    height: function (d) { return 100 + 26 * d.stages.length; },
    option: function (d, theme) {
      var items = [], end = 0;
      d.stages.forEach(function (stage, s) {
        stage.list.forEach(function (pass) {
          items.push([s, pass.begin, pass.end, pass.microbatch, pass.chunk, pass.pass === 'forward' ? 0 : pass.pass === 'backward' ? 1 : 2]);
          end = Math.max(end, pass.end);
        });
      });
      var names = ['forward', 'backward', 'weight'];
      var chunks = d.stages.some(function (s) { return s.list.some(function (p) { return p.chunk > 0; }); });
      var legend = [['forward', theme.sky], ['backward', theme.blue]];
      if (items.some(function (i) { return i[5] === 2; })) {
        legend.push(['weight gradient', theme.green]);
      }
      if (chunks) {
        legend = [['forward, even chunks', theme.sky], ['forward, odd chunks', theme.orange], ['backward, even chunks', theme.blue], ['backward, odd chunks', theme.red]].concat(legend.slice(2));
      }
      return {
        grid: {left: 8, right: 16, top: 34, bottom: 58, containLabel: true},
        legend: Report.legend(theme, {data: legend.map(function (l) { return l[0]; }), selectedMode: false}),
        dataZoom: [{type: 'inside', xAxisIndex: 0, filterMode: 'weakFilter', zoomOnMouseWheel: 'ctrl'},
                   {type: 'slider', xAxisIndex: 0, filterMode: 'weakFilter', bottom: 4, height: 18, labelFormatter: f.time, showDataShadow: false, borderColor: theme.line, textStyle: {color: theme.quiet}}],
        xAxis: Report.axis(theme, {type: 'value', min: 0, max: end, axisLabel: {formatter: f.time}, splitLine: {show: false}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, data: d.stages.map(function (s) { return 'stage ' + s.stage; }), splitLine: {show: false}}),
        series: [{
          type: 'custom', clip: true, encode: {x: [1, 2], y: 0}, data: items,
          renderItem: function (params, api) {
            var from = api.coord([api.value(1), api.value(0)]), to = api.coord([api.value(2), api.value(0)]);
            var half = api.size([0, 1])[1] * 0.42, width = Math.max(1, to[0] - from[0]);
            var pass = names[api.value(5)], colour = colour_of(pass, api.value(4), theme);
            var text = width > 9 + 6 * String(api.value(3)).length ? String(api.value(3)) : '';
            return {type: 'rect', shape: {x: from[0], y: from[1] - half, width: width, height: 2 * half},
                    style: {fill: colour, stroke: width > 3 ? theme.background : null, lineWidth: 0.7},
                    textContent: text ? {type: 'text', style: {text: text, fontSize: 10, fill: pass === 'backward' && !theme.dark ? '#fff' : '#000'}} : undefined,
                    textConfig: {position: 'inside'}};
          },
          tooltip: {formatter: function (p) {
            var v = p.value;
            return 'stage ' + d.stages[v[0]].stage + ', microbatch ' + v[3] + (v[4] >= 0 ? ', chunk ' + v[4] : '') + '\n' + names[v[5]] + ': ' + f.time(v[1]) + ' – ' + f.time(v[2]) + ' (' + f.time(v[2] - v[1]) + ')';
          }}
        }].concat(legend.map(function (l) { return {type: 'line', name: l[0], data: [], color: l[1], symbol: 'roundRect', lineStyle: {width: 0}}; }))
      };
    }
  });
})();
