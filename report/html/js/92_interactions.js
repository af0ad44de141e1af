// What hands do with figures: evidence on a click, zoom by keys, search, numbers under the pointer.
(function () {
  'use strict';
  if (typeof document === 'undefined') {
    return;
  }
  var f = Report.format, make = Report.make;

  function range(chart) {
    var zoom = chart.getOption().dataZoom[0];
    return [zoom.start, zoom.end];
  }
  function go(chart, start, end) {
    var width = Math.min(100, Math.max(1e-4, end - start));
    start = Math.max(0, Math.min(100 - width, start));
    chart.dispatchAction({type: 'dataZoom', dataZoomIndex: 0, start: start, end: start + width});
  }
  function zoom(chart, factor, about) {
    var now = range(chart), at = about === undefined ? 0.5 : about, width = (now[1] - now[0]) * factor;
    var fixed = now[0] + (now[1] - now[0]) * at;
    go(chart, fixed - width * at, fixed + width * (1 - at));
  }
  function move(chart, share) {
    var now = range(chart), by = (now[1] - now[0]) * share;
    go(chart, now[0] + by, now[1] + by);
  }
  Report.go = go;
  Report.range = range;

  function keys(item, more) {
    item.element.addEventListener('keydown', function (event) {
      var chart = item.chart;
      var act = {
        '+': function () { zoom(chart, 0.5); }, '=': function () { zoom(chart, 0.5); }, '-': function () { zoom(chart, 2); },
        ArrowLeft: function () { move(chart, -0.2); }, ArrowRight: function () { move(chart, 0.2); }, '0': function () { go(chart, 0, 100); },
        Home: function () { move(chart, -1e6); }, End: function () { move(chart, 1e6); }
      }[event.key] || (more && more[event.key]);
      if (act && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        act();
      }
    });
  }

  function buttons(item) {
    [['Zoom in', '+', 0.5], ['Zoom out', '−', 2]].forEach(function (b) {
      item.tools.appendChild(make('button', {title: b[0], 'aria-label': b[0], text: b[1], on: {click: function () { zoom(item.chart, b[2]); }}}));
    });
    item.tools.appendChild(make('button', {text: 'All', title: 'The whole step', on: {click: function () { go(item.chart, 0, 100); }}}));
  }

  function describe(d, row, event) {
    var op = d.detail.ops[event.op], klass = d.detail.classes[row.klass];
    var text = (event.merged > 1 ? event.merged + ' operations: ' : '') + f.label(op.name, 80) + '\n' + Report.class_label(klass) + ', ' + row.name +
      '\n' + f.time(event.begin) + ' – ' + f.time(event.end) + ' (' + f.time(event.end - event.begin) + ')';
    if (event.microbatch >= 0) {
      text += '\nmicrobatch ' + event.microbatch + (event.chunk >= 0 ? ', chunk ' + event.chunk : '');
    }
    if (op.comm) {
      text += '\n' + op.comm + ', ' + (Report.group_name[op.group] || op.group) + (op.bytes ? ', ' + f.bytes(op.bytes) : '');
    }
    return text;
  }

  function operation_text(d, index, time) {
    var row = d.rows[index], event = row ? Report.event_at(row, time) : null;
    return event && describe(d, row, event);
  }

  // Shows `text_at(document, row, time)` under the pointer.
  function tip_of(item, text_at) {
    var tip = make('div', {'class': 'tip', role: 'status'});
    item.element.appendChild(tip);
    tip.style.display = 'none';
    var hide = function () { tip.style.display = 'none'; };
    var show = function (event) {
      var at = [event.offsetX, event.offsetY];
      var point = item.chart.containPixel({gridIndex: 0}, at) ? item.chart.convertFromPixel({gridIndex: 0}, at) : null;
      var text = point && text_at(item.entry.document, Math.round(point[1]), point[0]);
      if (!text) {
        return hide();
      }
      tip.textContent = text;
      tip.style.display = 'block';
      tip.style.left = Math.max(0, Math.min(event.offsetX + 14, item.element.clientWidth - tip.offsetWidth - 4)) + 'px';
      tip.style.top = (event.offsetY + 18 + tip.offsetHeight > item.element.clientHeight ? event.offsetY - tip.offsetHeight - 8 : event.offsetY + 18) + 'px';
    };
    item.chart.getZr().on('mousemove', show);
    item.chart.getZr().on('click', show);
    item.chart.getZr().on('globalout', hide);
  }

  // The hits of a search in order of time: [row, event].
  function hits(d, text) {
    var wanted = text.toLowerCase(), matches = d.detail.ops.map(function (op) { return (op.name + ' ' + op.type + ' ' + (op.comm || '')).toLowerCase().indexOf(wanted) >= 0; });
    var found = [];
    d.rows.forEach(function (row) {
      row.events.forEach(function (event) { if (matches[event.op]) { found.push(event); } });
    });
    return found.sort(function (a, b) { return a.begin - b.begin; });
  }

  function search_of(item) {
    var list = [], at = -1, of = null;  // the hits, in this document
    var count = make('span', {'class': 'count', 'aria-live': 'polite'});
    var box = make('input', {type: 'search', placeholder: 'Search operations', 'aria-label': 'Search operations'});
    function show(step) {
      var d = item.entry.document;
      if (of !== d) {
        look();
      }
      if (!list.length) {
        return;
      }
      at = (at + step + list.length) % list.length;
      var now = range(item.chart), width = Math.min(now[1] - now[0], 100 * Math.max(20 * (list[at].end - list[at].begin), d.detail_end / 200) / d.detail_end);
      var middle = 50 * (list[at].begin + list[at].end) / d.detail_end;
      go(item.chart, middle - width / 2, middle + width / 2);
      count.textContent = (at + 1) + ' of ' + f.whole(list.length);
    }
    function look() {
      of = item.entry.document;
      item.state.search = box.value.trim();
      list = item.state.search ? hits(of, item.state.search) : [];
      at = -1;
      count.textContent = item.state.search ? f.whole(list.length) + ' found' : '';
      Report.redraw(item);
    }
    box.addEventListener('input', look);
    box.addEventListener('keydown', function (event) {
      if (event.key === 'Enter') {
        show(event.shiftKey ? -1 : 1);
        event.preventDefault();
      }
    });
    item.tools.appendChild(box);
    item.tools.appendChild(count);
    return {focus: function () { box.focus(); }, next: function () { show(1); }, before: function () { show(-1); }};
  }

  // The evidence of one worker beside the heat map.
  Report.show_worker = function (d, worker, move_there) {
    var item = Report.charts.filter(function (each) { return each.entry.figure.interactive === 'heatmap' && each.entry.document === d; })[0];
    if (!item) {
      return;
    }
    while (item.aside.firstChild) {
      item.aside.removeChild(item.aside.firstChild);
    }
    var place = d.workers.slice().sort(function (a, b) { return b.slowdown - a.slowdown; }).indexOf(worker) + 1;
    var steps = Report.worker_steps(d, worker);
    var evidence = Report.evidence(d, worker);
    var panel = make('div', {'class': 'worker', id: 'worker', tabindex: '-1', 'data-rank': worker.rank}, [
      make('h4', {text: 'Rank ' + worker.rank + ': stage ' + worker.stage + ', data-parallel rank ' + worker.dp_rank}),
      make('p', {text: 'Alone it makes the job ' + f.times(worker.slowdown) + ' as long as the ideal: number ' + place + ' of ' + (d.thinned && d.thinned.workers ? 'the shown ' : '') + f.whole(d.workers.length) + '. It is the slowest worker in ' + steps.length + ' of ' + d.steps.length + (d.thinned && d.thinned.steps ? ' shown' : '') + ' steps' +
        (steps.length && steps.length < d.steps.length ? ', first in step ' + steps[0].step + '.' : '.')}),
      evidence.rows.length ? Report.table_of(evidence) : null
    ]);
    item.aside.appendChild(panel);
    if (move_there) {
      item.element.scrollIntoView({block: 'start'});
      panel.focus({preventScroll: true});
    }
  };

  Report.interactions = {
    zoom: function (item) {
      buttons(item);
      keys(item);
    },
    pipeline: function (item) {
      buttons(item);
      keys(item);
      tip_of(item, Report.pass_text);
    },
    timeline: function (item) {
      buttons(item);
      var search = search_of(item);
      keys(item, {'/': search.focus, n: search.next, N: search.before});
      tip_of(item, operation_text);
    },
    sweep: function (item) {
      var d = item.entry.document, choices = Report.sweep_choices(d), selects = {};
      // What is not chosen follows from what is: a flag is over the axis or has the colours.
      function show_choices() {
        var now = Report.sweep_shown(d, item.state);
        Object.keys(selects).forEach(function (key) { selects[key].value = now[key]; });
      }
      [['y', 'Output'], ['x', 'Over'], ['by', 'Colours']].forEach(function (choice) {
        var key = choice[0];
        var select = make('select', {'aria-label': choice[1], 'data-choice': key}, choices[key].map(function (name) {
          return make('option', {value: name, text: name ? f.label(name, 48) : 'one colour'});
        }));
        select.addEventListener('change', function () {
          item.state[key] = select.value;
          show_choices();
          Report.fill_note(item);
          Report.redraw(item);
        });
        selects[key] = select;
        item.tools.appendChild(make('label', {text: choice[1] + ' '}, [select]));
      });
      show_choices();
    },
    heatmap: function (item) {
      var d = item.entry.document;
      item.chart.on('click', function (event) {
        if (event.data && event.data.rank !== undefined) {
          Report.show_worker(d, d.workers.filter(function (w) { return w.rank === event.data.rank; })[0], false);
        }
      });
      var order = d.workers.slice().sort(function (a, b) { return b.slowdown - a.slowdown; }), at = -1;
      function step(by) {
        at = (at + by + order.length) % order.length;
        Report.show_worker(d, order[at], false);
        item.chart.dispatchAction({type: 'showTip', seriesIndex: 0, dataIndex: d.workers.indexOf(order[at])});
      }
      item.tools.appendChild(make('button', {text: 'Next slowest', title: 'Key n', on: {click: function () { step(1); }}}));
      item.element.addEventListener('keydown', function (event) {
        if (event.key === 'n' || event.key === 'Enter' || event.key === 'ArrowRight') {
          step(1);
          event.preventDefault();
        } else if (event.key === 'N' || event.key === 'ArrowLeft') {
          step(-1);
          event.preventDefault();
        }
      });
    }
  };
})();
