// The documents by kind, and what is worked out of them once.
(function () {
  'use strict';

  function kind_of(document) { return String(document.schema).replace(/\/.*$/, '').replace(/^lockstep-/, ''); }

  function empty() {
    return {documents: [], simulate: [], causes: [], compare: [], 'compare-steps': [], 'compare-training': [], score: [], collective: [],
            plan: [], 'job-plan': [], 'mixed-plan': [], 'plan-price': [], goodput: [], sweep: []};
  }

  // The columns of a timeline as rows: a row is what one line of the picture shows.
  function rows_of(detail) {
    var rows = detail.tracks.map(function (track) {
      return {klass: track['class'], name: track.name, events: []};
    });
    var columns = detail.events;
    var begin = 0, last = -1;
    for (var i = 0; i < columns.track.length; ++i) {
      var track = columns.track[i];
      if (!detail.ops[columns.op[i]] || !detail.classes[rows[track].klass] || !(columns.length[i] >= 0)) {
        throw new Error('the detail does not fit its schema');
      }
      begin = track === last ? begin + columns.begin[i] : columns.begin[i];
      last = track;
      rows[track].events.push({begin: begin * detail.tick_s, end: (begin + columns.length[i]) * detail.tick_s,
                               op: columns.op[i], microbatch: columns.microbatch[i], chunk: columns.chunk[i],
                               merged: columns.merged ? columns.merged[i] : 1});
    }
    return rows;
  }

  function pieces_of(detail) {
    var pieces = [], columns = detail.critical;
    if (columns && columns.op.some(function (op) { return !detail.ops[op]; })) {
      throw new Error('the critical path does not fit its schema');
    }
    if (!columns) {
      return pieces;
    }
    var begin = 0;
    for (var i = 0; i < columns.begin.length; ++i) {
      begin += columns.begin[i];
      pieces.push({klass: columns['class'][i], op: columns.op[i], begin: begin * detail.tick_s,
                   end: (begin + columns.length[i]) * detail.tick_s});
    }
    return pieces;
  }

  // Passes of a microbatch through a stage of a job: from the first of its operations to the last.
  function passes_of(detail, rows) {
    var kinds = {'forward-compute': 'forward', 'backward-compute': 'backward', 'weight-compute': 'weight'};
    var stages = {}, order = [];
    rows.forEach(function (row) {
      var klass = detail.classes[row.klass];
      var place = (klass.job || 0) + '/' + klass.stage;
      if (klass.stage === undefined || (stages[place] && stages[place].klass !== row.klass)) {
        return;
      }
      if (!stages[place]) {
        stages[place] = {job: klass.job, stage: klass.stage, klass: row.klass, passes: {}, list: []};
        order.push(stages[place]);
      }
      var stage = stages[place];
      row.events.forEach(function (event) {
        var pass = kinds[detail.ops[event.op].type];
        if (!pass || event.microbatch < 0) {
          return;
        }
        var key = pass + '/' + event.microbatch + '/' + event.chunk;
        var known = stage.passes[key];
        if (!known) {
          known = {pass: pass, microbatch: event.microbatch, chunk: event.chunk, begin: event.begin, end: event.end};
          stage.passes[key] = known;
          stage.list.push(known);
        }
        known.begin = Math.min(known.begin, event.begin);
        known.end = Math.max(known.end, event.end);
      });
    });
    order.forEach(function (stage) { stage.list.sort(function (a, b) { return a.begin - b.begin; }); });
    return order.sort(function (a, b) { return (a.job || 0) - (b.job || 0) || a.stage - b.stage; });
  }

  function understand(document) {
    if (!document.detail || document.rows) {
      return;
    }
    document.rows = rows_of(document.detail);
    document.pieces = pieces_of(document.detail);
    document.stages = passes_of(document.detail, document.rows).filter(function (stage) { return stage.list.length > 0; });
  }

  // The value of a function, or `other` where it fails on data that does not fit.
  Report.attempt = function (f, other) {
    try {
      return f();
    } catch (problem) {
      return other;
    }
  };

  Report.load = function (data) {
    var model = empty();
    data.documents.forEach(function (document) {
      var kind = kind_of(document);
      model.documents.push(document);
      // A document that was edited by hand may not fit its schema: what cannot be read is left out.
      if (kind === 'simulate' && Report.attempt(function () { understand(document); return true; }, false) === false) {
        delete document.detail;
        delete document.rows;
      }
      if (model[kind]) {
        model[kind].push(document);
      }
    });
    Report.model = model;
    return model;
  };

  Report.document_name = function (document, limit) {
    return Report.format.label(document.file || document.workload || 'result', limit);
  };

  // A figure a document of one kind that has what it needs: "timeline", "timeline-2", ….
  Report.figure = function (figure) { Report.figures.push(figure); };

  Report.figures_now = function () {
    var found = [];
    Report.figures.forEach(function (figure) {
      var documents = (figure.kind ? Report.model[figure.kind] : [Report.model]).filter(function (document) {
        return Report.attempt(function () {
          return figure.needs(document) && figure.option(document, Report.theme(false), {}) && Report.height_of(figure, document) > 0;
        }, false);
      });
      documents.forEach(function (document, i) {
        found.push({name: figure.name + (i > 0 ? '-' + (i + 1) : ''), figure: figure, document: document,
                    title: figure.title + (figure.kind && documents.length > 1 ? ' – ' + Report.document_name(document, 60) : '')});
      });
    });
    return found;
  };

  // Of a list that is too long for a page (report_document.cc) how many of its items are shown.
  Report.thinned_note = function (d, list, what, shown, slowest) {
    var count = d.thinned && d.thinned[list];
    return count ? 'Shown: ' + Report.format.whole(shown) + ' of ' + Report.format.whole(count) + ' ' + what + ', evenly spread' +
      (slowest ? ', with the 256 slowest among them.' : '.') : '';
  };

  Report.height_of = function (figure, document) {
    return typeof figure.height === 'function' ? figure.height(document) : figure.height || 360;
  };

  // On a narrow window names leave at least half of the width to the figure, and axes have few numbers.
  Report.fit = function (option, width) {
    if (width >= 560) {
      return option;
    }
    ['xAxis', 'yAxis'].forEach(function (key) {
      [].concat(option[key] || []).forEach(function (axis) {
        if (axis.type === 'value' && key === 'xAxis' && axis.interval === undefined) {
          axis.splitNumber = 2;
        }
        if (axis.type === 'category' && key === 'yAxis' && axis.axisLabel) {
          Report.merge(axis.axisLabel, {width: Math.round(width * 0.36), overflow: 'truncate'});
        }
      });
    });
    return option;
  };

  Report.option_of = function (entry, theme, state) {
    var option = Report.merge(Report.base_option(theme), entry.figure.option(entry.document, theme, state || {}));
    if (option.xAxis && option.xAxis.axisLabel && option.xAxis.type !== 'category') {
      option.xAxis.axisLabel.alignMinLabel = 'left';
      option.xAxis.axisLabel.alignMaxLabel = 'right';
    }
    return option;
  };

  // The numbers of a figure of bars by name, or of points, as a table.
  Report.numbers_of = function (option) {
    var kMost = 500;
    var value = function (item) { return item !== null && typeof item === 'object' && !Array.isArray(item) ? item.value : item; };
    var text = function (axis) {
      var formatter = axis.axisLabel && axis.axisLabel.formatter;
      return function (number) { return number === undefined || number === null ? '' : typeof formatter === 'function' ? formatter(number) : String(number); };
    };
    var x = option.xAxis, y = option.yAxis, series = option.series.filter(function (s) { return s.type !== 'custom'; });
    if (y.type === 'category' || x.type === 'category') {
      var names = y.type === 'category' ? y : x, numbers = text(names === y ? x : y);
      return {head: [names.name || ''].concat(series.map(function (s) { return s.name || ''; })), rows: names.data.map(function (name, i) {
        return [name].concat(series.map(function (s) { return numbers(value(s.data[i])); }));
      })};
    }
    var rows = [];
    series.forEach(function (s) {
      (s.data || []).forEach(function (item) {
        var point = value(item);
        if (rows.length < kMost) {
          rows.push([(s.name || '') + (s.type === 'line' && series.some(function (o) { return o.type === 'scatter' && o.name === s.name; }) ? ' (line)' : ''), text(x)(point[0]), text(y)(point[1])]);
        }
      });
    });
    return {head: ['', x.name || '', y.name || ''], rows: rows};
  };
})();
