// The points of a sweep: one output over one flag, a colour for each value of another.
(function () {
  'use strict';
  var f = Report.format;
  var kOwn = {point: true, ending: true, exit_code: true, reason: true};
  var kFirst = ['total_s', 'step_s', 'best.step_s', 'slowdown', 'time_s', 'goodput.mean', 'busbw_Bps'];
  var kMostColours = 8;

  function column(d, name) {
    return d.columns.filter(function (c) { return c.name === name; })[0];
  }
  // The different values, numbers in their order, others as the grid has them.
  function places(cells) {
    var seen = {}, list = [];
    cells.forEach(function (cell) {
      var key = String(cell);
      if (!Object.prototype.hasOwnProperty.call(seen, key)) {
        seen[key] = true;
        list.push(cell);
      }
    });
    return list.every(function (v) { return typeof v === 'number'; }) ? list.sort(function (a, b) { return a - b; }) : list;
  }
  function axes(d) {
    return d.axes.filter(function (name) {
      var of = column(d, name);
      return of && places(of.cells).length > 1;
    });
  }
  function outputs(d) {
    return d.columns.filter(function (c) {
      return !kOwn[c.name] && d.axes.indexOf(c.name) < 0 && c.cells.some(function (v) { return typeof v === 'number'; }) &&
        places(c.cells.filter(function (v) { return v !== null; })).length > 1;
    }).map(function (c) { return c.name; });
  }
  // What is shown: as chosen, else the axis with most values, the first output that people ask for, and
  // the next axis with few values.
  function shown(d, state) {
    var flags = axes(d), values = outputs(d);
    var count = function (name) { return places(column(d, name).cells).length; };
    var x = state.x || flags.slice().sort(function (a, b) { return count(b) - count(a); })[0];
    var y = state.y || kFirst.filter(function (name) { return values.indexOf(name) >= 0; })[0] || values[0];
    var by = state.by !== undefined && state.by !== x ? state.by : flags.filter(function (name) { return name !== x && count(name) <= kMostColours; })[0] || '';
    return {x: x, y: y, by: by};
  }
  function format_of(name) {
    return /_s$/.test(name) ? f.time : /_bytes$/.test(name) ? f.size : /_Bps$/.test(name) ? f.rate : f.plain;
  }
  function median(list) {
    var sorted = list.slice().sort(function (a, b) { return a - b; });
    return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
  }
  function text_of(value) { return value === null ? 'not given' : value === true ? 'given' : f.label(value, 60); }

  Report.sweep_choices = function (d) { return {x: axes(d), y: outputs(d), by: [''].concat(axes(d))}; };
  Report.sweep_shown = shown;

  Report.figure({
    section: 'sweep', name: 'sweep', kind: 'sweep', title: 'The grid’s points', interactive: 'sweep', height: 380,
    needs: function (d) { return d.columns && axes(d).length > 0 && outputs(d).length > 0; },
    option: function (d, theme, state) {
      var now = shown(d, state), xs = column(d, now.x).cells, ys = column(d, now.y).cells;
      var order = places(xs), is_number = order.every(function (v) { return typeof v === 'number'; });
      var has_mark = function (group) { return ys.some(function (y, i) { return typeof y === 'number' && column(d, now.by).cells[i] === group; }); };
      var groups = now.by ? places(column(d, now.by).cells).filter(has_mark).slice(0, 3 * kMostColours) : [null];
      var palette = [theme.blue, theme.orange, theme.green, theme.red, theme.pink, theme.sky, theme.yellow, theme.grey];
      var symbols = ['circle', 'rect', 'triangle', 'diamond', 'pin', 'arrow', 'roundRect', 'emptyCircle'];
      var format = format_of(now.y);
      var place = function (value) { return is_number ? value : order.indexOf(value); };
      var series = [];
      groups.forEach(function (group, g) {
        var points = [], by_x = {};
        ys.forEach(function (y, i) {
          if (typeof y === 'number' && (!now.by || column(d, now.by).cells[i] === group)) {
            points.push([place(xs[i]), y, i]);
            (by_x[place(xs[i])] = by_x[place(xs[i])] || []).push(y);
          }
        });
        var name = now.by ? now.by + ' ' + text_of(group) : now.y;
        var colour = palette[g % palette.length];
        series.push({type: 'line', name: name, color: colour, symbol: 'none', silent: true, lineStyle: {width: 1.5},
                     data: Object.keys(by_x).map(Number).sort(function (a, b) { return a - b; }).map(function (x) { return [x, median(by_x[x])]; })});
        series.push({type: 'scatter', name: name, color: colour, symbol: symbols[g % symbols.length], symbolSize: points.length > 500 ? 4 : 8, data: points,
                     tooltip: {formatter: function (p) {
                       var row = p.value[2];
                       return d.axes.map(function (axis) { return axis + ' ' + text_of(column(d, axis).cells[row]); }).join('\n') + '\n' + now.y + ': ' + format(p.value[1]);
                     }}});
      });
      return {
        grid: {left: 40, right: 24, top: now.by ? 44 : 20, bottom: 36, containLabel: true},
        legend: now.by ? Report.legend(theme, {data: groups.map(function (group) { return now.by + ' ' + text_of(group); })}) : {show: false},
        xAxis: Report.axis(theme, is_number ? {type: 'value', scale: true, name: now.x, nameGap: 26, axisLabel: {formatter: f.plain}}
                                            : {type: 'category', name: now.x, nameGap: 26, data: order.map(function (v) { return f.label(text_of(v), 28); })}),
        yAxis: Report.axis(theme, {type: 'value', scale: true, name: now.y, nameGap: 64, axisLabel: {formatter: format}}),
        series: series
      };
    },
    note: function (d, state) {
      var y = shown(d, state).y, ends = column(d, 'ending').cells, rows = d.columns[0].cells.length, without = 0, failed = 0;
      column(d, y).cells.forEach(function (cell, i) {
        without += typeof cell === 'number' ? 0 : 1;
        failed += typeof cell === 'number' || ends[i] === 'done' ? 0 : 1;
      });
      return 'A mark a point; lines join the medians.' +
        (without ? ' Without ' + f.label(y) + ' and so without a mark: ' + f.whole(without) + (failed ? ', of which ' + f.whole(failed) + ' did not end well.' : '.') : '') +
        (rows < d.rows ? ' Shown: ' + f.whole(rows) + ' of ' + f.whole(d.rows) + ' rows, evenly spread.' : '');
    },
    table: function (d) {
      var names = d.axes.filter(function (name) { return column(d, name); }).concat(outputs(d).slice(0, 8));
      var ends = column(d, 'ending').cells, reasons = column(d, 'reason').cells;
      return {head: names.concat(['ending']), rows: ends.map(function (ending, i) {
        return names.map(function (name) {
          var cell = column(d, name).cells[i];
          return typeof cell === 'number' && d.axes.indexOf(name) < 0 ? format_of(name)(cell) : cell === null ? '' : String(cell);
        }).concat([reasons[i] ? ending + ': ' + reasons[i] : ending]);
      })};
    }
  });
})();
