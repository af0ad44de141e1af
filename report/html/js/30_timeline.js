// The timeline: a line a stream of each class of like ranks. What is too narrow to be seen is drawn
// together, so that a frame costs the picture's width, not the number of operations.
(function () {
  'use strict';
  var f = Report.format;
  var kRow = 18, kMostLines = 44, kLabelled = 56;

  // A line's picture in one colour is one polygon: rectangles joined along the bottom.
  function add_box(points, x0, x1, y0, y1) {
    points.push([x0, y1], [x0, y0], [x1, y0], [x1, y1]);
  }

  function first_after(events, time) {  // the first that ends after `time`
    var low = 0, high = events.length;
    while (low < high) {
      var middle = (low + high) >> 1;
      if (events[middle].end <= time) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  Report.event_at = function (row, time) {
    var i = first_after(row.events, time);
    return i < row.events.length && row.events[i].begin <= time ? row.events[i] : null;
  };

  var kStyles = ['forward', 'backward', 'weight', 'other', 'tp', 'cp', 'ep', 'pp', 'dp', 'dp_ep', 'world', 'match', 'dim'];
  function style_of(op) {
    if (op.comm) {
      return op.group || 'world';
    }
    return {'forward-compute': 'forward', 'backward-compute': 'backward', 'weight-compute': 'weight'}[op.type] || 'other';
  }
  function colours(theme) {
    var of = {forward: theme.sky, backward: theme.blue, weight: theme.plum, other: theme.grey, match: theme.strong, dim: theme.line};
    Report.group_order.forEach(function (group) { of[group] = Report.group_colour(theme, group); });
    return of;
  }
  Report.style_name = {forward: 'forward', backward: 'backward', weight: 'weight gradient', other: 'other compute', tp: 'TP', cp: 'CP',
                       ep: 'EP', pp: 'PP', dp: 'DP', dp_ep: 'DP of experts', world: 'all ranks'};

  function row_label(d, row, narrow) {
    var klass = d.detail.classes[row.klass];
    if (narrow) {
      return (klass.stage !== undefined ? 's' + klass.stage : 'rank ' + klass.rank) + ' ' + row.name;
    }
    return Report.class_label(klass) + '  ' + row.name;
  }

  // What each operation is drawn as, given what is searched for.
  function styles(d, search) {
    var wanted = search ? search.toLowerCase() : '';
    return d.detail.ops.map(function (op) {
      if (wanted) {
        return (op.name + ' ' + op.type + ' ' + (op.comm || '')).toLowerCase().indexOf(wanted) >= 0 ? 'match' : 'dim';
      }
      return style_of(op);
    });
  }

  // Boxes of one line between two times: [style, x0, x1, event or null].
  function boxes(row, style, from, to, x_of) {
    var found = [], bin = null;
    function flush() {
      if (bin) {
        var best = null;
        for (var s in bin.share) {
          if (best === null || (s === 'match' ? 1e30 : bin.share[s]) > (best === 'match' ? 1e30 : bin.share[best])) {
            best = s;
          }
        }
        found.push([best, bin.x0, Math.max(bin.x1, bin.x0 + 1), null]);
        bin = null;
      }
    }
    for (var i = first_after(row.events, from); i < row.events.length && row.events[i].begin < to; ++i) {
      var event = row.events[i];
      var x0 = x_of(event.begin), x1 = x_of(event.end);
      if (x1 - x0 >= 3) {
        flush();
        found.push([style[event.op], x0, x1, event]);
        continue;
      }
      if (bin && x0 - bin.x0 > 2) {
        flush();
      }
      if (!bin) {
        bin = {x0: x0, x1: x1, share: {}};
      }
      bin.x1 = Math.max(bin.x1, x1);
      var name = style[event.op];
      bin.share[name] = (bin.share[name] || 0) + x1 - x0;
    }
    flush();
    return found;
  }

  // Whether an operation of the row is wide enough for its name.
  function can_have_labels(row, pixels) {
    if (row.longest === undefined) {
      row.longest = row.events.reduce(function (most, event) { return Math.max(most, event.end - event.begin); }, 0);
    }
    return row.longest * pixels > kLabelled;
  }

  function draw_rows(d, theme, state) {
    var palette = colours(theme);
    var style = styles(d, state.search);
    var sheet = Report.sheet(d.detail_end);
    return function (params, api) {
      var area = params.coordSys;
      var half = Math.min(8, Math.max(2, api.size([0, 1])[1] / 2 - 1.5));
      var origin = api.coord([0, 0])[0], unit = api.coord([d.detail_end, 0])[0] - origin;
      var first = api.coord([0, 0])[1], pitch = api.coord([0, 1])[1] - first;
      var x_of = function (time) { return origin + unit * time / d.detail_end; };
      var from = d.detail_end * (area.x - origin) / unit, to = d.detail_end * (area.x + area.width - origin) / unit;
      var shown = d.rows.map(function (row, i) { return {row: row, middle: first + pitch * i}; }).filter(function (line) {
        return line.middle + half > area.y && line.middle - half < area.y + area.height;
      });
      var picture = sheet([first, pitch, half].join(), area, origin, unit, function (context, place, begin, end) {
        var right = context.canvas.width + 2;
        if (state.place_labels) {
          state.place_labels(shown.map(function (line) { return [row_label(d, line.row, state.narrow), line.middle]; }));
        }
        context.fillStyle = theme.line;
        shown.forEach(function (line) {
          context.fillRect(0, Math.round(line.middle + pitch / 2 - area.y), context.canvas.width, 0.5);
        });
        shown.forEach(function (line) {
          var top = Math.round(line.middle - half - area.y), height = Math.round(2 * half);
          boxes(line.row, style, begin, end, place).forEach(function (box) {
            var x0 = Math.max(box[1], -2), x1 = Math.min(box[2], right);
            context.fillStyle = palette[box[0]] || theme.grey;
            context.fillRect(x0, top, x1 - x0 >= 4 ? x1 - x0 - 0.6 : x1 - x0, height);
          });
        });
      });
      var children = picture ? [picture] : [], labels = [];
      shown.forEach(function (line) {
        var polygons = {};
        (picture && !can_have_labels(line.row, unit / d.detail_end) ? [] : boxes(line.row, style, from, to, x_of)).forEach(function (box) {
          var x0 = Math.max(box[1], area.x - 2), x1 = Math.min(box[2], area.x + area.width + 2);
          if (x1 <= x0) {
            return;
          }
          if (x1 - x0 >= 4) {
            x1 -= 0.6;
          }
          if (!picture) {
            (polygons[box[0]] = polygons[box[0]] || []);
            add_box(polygons[box[0]], x0, x1, line.middle - half, line.middle + half);
          }
          if (box[3] && x1 - x0 > kLabelled && half >= 6) {
            labels.push({type: 'text', silent: true, style: {
              text: d.detail.ops[box[3].op].name, x: x0 + 4, y: line.middle, verticalAlign: 'middle', fontSize: 11,
              fill: box[0] === 'match' ? theme.background : box[0] === 'dim' ? theme.quiet : Report.ink(palette[box[0]] || theme.grey),
              width: x1 - x0 - 8, overflow: 'truncate'}});
          }
        });
        kStyles.forEach(function (name) {
          if (polygons[name]) {
            children.push({type: 'polygon', silent: true, shape: {points: polygons[name]}, style: {fill: palette[name] || theme.grey}});
          }
        });
      });
      return {type: 'group', children: children.concat(labels)};
    };
  }

  // The critical path: a line along the bottom of the first row of each class that it runs through.
  function row_of_piece(d) {
    var first = {};
    d.rows.forEach(function (row, i) {
      if (first[row.klass] === undefined) {
        first[row.klass] = i;
      }
    });
    return function (piece) { return first[piece.klass]; };
  }

  function draw_path(d, theme) {
    var place = row_of_piece(d);
    var path = d.pieces.map(function (piece) { return {row: place(piece), begin: piece.begin, end: piece.end}; })
      .filter(function (piece) { return piece.row !== undefined; });
    return function (params, api) {
      var area = params.coordSys, points = [], last = null;
      var half = Math.min(8, Math.max(2, api.size([0, 1])[1] / 2 - 1.5)) + 1;
      var y0 = api.coord([0, 0])[1], dy = api.coord([0, 1])[1] - y0;
      var x0 = api.coord([0, 0])[0], dx = (api.coord([d.detail_end, 0])[0] - x0) / d.detail_end;
      var lines = [];
      path.forEach(function (piece) {
        var a = x0 + dx * piece.begin, b = x0 + dx * piece.end, y = y0 + dy * piece.row + half;
        if (b < area.x - 1 || a > area.x + area.width + 1) {
          return;
        }
        a = Math.max(a, area.x - 1);
        b = Math.min(b, area.x + area.width + 1);
        if (last && last[1] === y && a - last[0] < 1.5) {
          points[points.length - 1][0] = Math.max(b, last[0]);
        } else if (last && a - last[0] < 24) {
          points.push([a, last[1]], [a, y], [b, y]);
        } else {
          if (points.length) {
            lines.push(points);
          }
          points = [[a, y], [b, y]];
        }
        last = [points[points.length - 1][0], y];
      });
      if (points.length) {
        lines.push(points);
      }
      return {type: 'group', children: lines.map(function (line) {
        return {type: 'polyline', silent: true, shape: {points: line}, style: {fill: 'none', stroke: theme.strong, lineWidth: 2}};
      })};
    };
  }

  function lines_shown(d) { return Math.min(kMostLines, d.rows.length); }

  Report.figure({
    section: 'timeline', name: 'timeline', kind: 'simulate', title: 'Who did what when, a group of lines a class of like ranks',
    interactive: 'timeline', pans: true, many: true,
    needs: function (d) { return d.rows && d.rows.length > 0; },
    table: function (d) {  // the longest
      var kMost = 200, all = [];
      d.rows.forEach(function (row) { row.events.forEach(function (e) { all.push([row, e]); }); });
      all.sort(function (a, b) { return (b[1].end - b[1].begin) - (a[1].end - a[1].begin); });
      return {head: ['line', 'operation', 'from', 'to', 'takes'], rows: all.slice(0, kMost).map(function (pair) {
        var e = pair[1];
        return [row_label(d, pair[0], false), d.detail.ops[e.op].name, f.time(e.begin), f.time(e.end), f.time(e.end - e.begin)];
      })};
    },
    height: function (d) { return 96 + kRow * lines_shown(d); },
    option: function (d, theme, state) {
      d.detail_end = d.detail_end || d.rows.reduce(function (end, row) {
        return row.events.length ? Math.max(end, row.events[row.events.length - 1].end) : end;
      }, 0) || 1;
      var used = {};
      d.rows.forEach(function (row) { row.events.forEach(function (e) { used[style_of(d.detail.ops[e.op])] = true; }); });
      var palette = colours(theme);
      var names = kStyles.filter(function (s) { return used[s]; });
      var zooms = [
        {type: 'inside', xAxisIndex: 0, filterMode: 'none', zoomOnMouseWheel: 'ctrl', moveOnMouseMove: true, preventDefaultMouseMove: true, minValueSpan: d.detail_end * 1e-6},
        {type: 'slider', xAxisIndex: 0, filterMode: 'none', bottom: 4, height: 18, borderColor: theme.line, textStyle: {color: theme.quiet},
         labelFormatter: f.time, showDataShadow: false, brushSelect: true, fillerColor: theme.dark ? 'rgba(61,155,224,0.25)' : 'rgba(0,114,178,0.15)'}
      ];
      if (d.rows.length > kMostLines) {
        zooms.push({type: 'slider', yAxisIndex: 0, filterMode: 'filter', right: 4, width: 14, startValue: 0, endValue: kMostLines - 1, zoomLock: false,
                    showDetail: false, brushSelect: false, borderColor: theme.line, showDataShadow: false});
      }
      return {
        grid: {left: 8, right: d.rows.length > kMostLines ? 30 : 12, top: 44, bottom: 32, containLabel: true},
        legend: Report.legend(theme, {data: names.map(function (n) { return Report.style_name[n]; }).concat(d.pieces.length ? ['critical path'] : []), selectedMode: false}),
        tooltip: {show: false},
        dataZoom: zooms,
        xAxis: Report.axis(theme, {type: 'value', min: 0, max: d.detail_end, position: 'top', axisLabel: {formatter: f.time, color: theme.quiet, hideOverlap: true}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, data: d.rows.map(function (row) { return row_label(d, row, state.narrow); }),
                                   axisLabel: {color: theme.quiet, fontSize: 11, interval: 0, hideOverlap: true, width: 190, overflow: 'truncate'}, axisTick: {show: false}, splitLine: {show: true}}),
        series: [{type: 'custom', id: 'rows', clip: true, silent: true, renderItem: draw_rows(d, theme, state), encode: {x: -1, y: -1}, data: [[0]]}]
          .concat(names.map(function (n) {  // only for the legend
            return {type: 'line', name: Report.style_name[n], data: [], color: palette[n], symbol: 'roundRect', itemStyle: {color: palette[n]}, lineStyle: {width: 0}};
          }))
          .concat(d.pieces.length ? [
            {type: 'custom', id: 'path', name: 'critical path', color: theme.strong, clip: true, silent: true, renderItem: draw_path(d, theme), encode: {x: -1, y: -1}, data: [[0]], z: 5}] : [])
      };
    },
    note: function (d) {
      var text = 'Drag to pan, Ctrl and the wheel or + and − to zoom, arrows to move, 0 for all; / to search, n for the next hit. Hover or tap for an operation’s numbers.';
      var detail = d.detail;
      if (detail.classes_total > detail.classes.length) {
        text += ' Drawn: ' + detail.classes.length + ' of ' + f.whole(detail.classes_total) + ' classes of like ranks.';
      }
      if (detail.merged_events) {
        text += ' Neighbouring operations of a microbatch’s pass are drawn as one bar where there were too many.';
      }
      return text;
    }
  });
})();
