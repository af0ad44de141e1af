// Two runs side by side: the first two simulated steps, and what compare --against found.
(function () {
  'use strict';
  var f = Report.format;

  function pair(model) { return model.simulate.slice(0, 2); }
  function names(model) { return pair(model).map(function (d, i) { return (i === 0 ? 'A: ' : 'B: ') + Report.document_name(d, 50); }); }

  Report.figure({
    section: 'runs', name: 'runs', title: 'Two runs, where their time goes',
    needs: function (model) { return model.simulate.length > 1; },
    height: 190,
    option: function (model, theme) {
      var docs = pair(model), parts = {}, order = [];
      docs.forEach(function (d, i) {
        Report.time_parts(d, theme).forEach(function (part) {
          if (!parts[part.name]) {
            parts[part.name] = {name: part.name, colour: part.colour, values: [0, 0]};
            order.push(part.name);
          }
          parts[part.name].values[i] = part.value;
        });
      });
      return {
        grid: {left: 8, right: 24, top: 44, bottom: 24, containLabel: true}, legend: Report.legend(theme),
        xAxis: Report.axis(theme, {type: 'value', axisLabel: {formatter: f.time}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, splitLine: {show: false}, data: names(model)}),
        series: order.map(function (name) {
          return {name: name, type: 'bar', stack: 'all', barWidth: 30, itemStyle: {color: parts[name].colour, borderColor: theme.background, borderWidth: 1}, data: parts[name].values,
                  tooltip: {formatter: function (p) { return name + '\n' + f.time(p.value) + '\ndifference ' + f.time(parts[name].values[1] - parts[name].values[0]); }}};
        })
      };
    },
    table: function (model) {
      var docs = pair(model), keys = [['step', 'total_s'], ['compute', 'compute_s'], ['exposed', 'exposed_s'], ['bubble', 'bubble_s'], ['skew', 'skew_s']];
      return {head: ['part', 'A', 'B', 'B − A', 'B / A'], rows: keys.map(function (k) {
        var a = docs[0][k[1]], b = docs[1][k[1]];
        return [k[0], f.time(a), f.time(b), f.time(b - a), a > 0 ? f.times(b / a) : '–'];
      })};
    }
  });

  function sums(d) {
    var by_name = {};
    function add(name, time) { by_name[name] = (by_name[name] || 0) + time; }
    if (d.detail && d.detail.operators) {
      d.detail.operators.forEach(function (o) { add(o.name, o.time_s); });
    } else {
      (d.layers || []).forEach(function (l) {
        [['forward', l.forward], ['input gradient', l.input_grad], ['weight gradient', l.weight_grad]].forEach(function (p) {
          add(l.name + ' ' + p[0], (p[1].compute_s || 0) + (p[1].exposed_s || 0));
        });
      });
    }
    return by_name;
  }
  function differences(a, b) {
    var list = [], seen = {};
    Object.keys(a).concat(Object.keys(b)).forEach(function (name) {
      if (!seen[name]) {
        seen[name] = true;
        list.push({name: name, a: a[name] || 0, b: b[name] || 0});
      }
    });
    return list.sort(function (x, y) { return Math.abs(y.b - y.a) - Math.abs(x.b - x.a); });
  }

  function difference_figure(list_of) {
    return {
      height: function (d) { return 50 + 22 * Math.min(24, list_of(d).length); },
      option: function (d, theme) {
        var list = list_of(d).slice(0, 24);
        return {
          grid: {left: 8, right: 24, top: 6, bottom: 40, containLabel: true},
          xAxis: Report.axis(theme, {type: 'value', name: 'B − A', nameGap: 24, axisLabel: {formatter: f.time}}),
          yAxis: Report.axis(theme, {type: 'category', inverse: true, splitLine: {show: false}, data: list.map(function (o) { return f.label(o.name, 44); })}),
          series: [{type: 'bar', data: list.map(function (o) { return {value: o.b - o.a, itemStyle: {color: o.b > o.a ? theme.red : theme.green}}; }),
                    tooltip: {formatter: function (p) { var o = list[p.dataIndex]; return f.label(o.name) + '\nA ' + f.time(o.a) + ', B ' + f.time(o.b) + '\ndifference ' + f.time(o.b - o.a); }}}]
        };
      },
      table: function (d) {
        return {head: ['operation', 'A', 'B', 'B − A'], rows: list_of(d).slice(0, 300).map(function (o) { return [o.name, f.time(o.a), f.time(o.b), f.time(o.b - o.a)]; })};
      }
    };
  }

  function simulated(model) {
    model.differences = model.differences || differences(sums(model.simulate[0]), sums(model.simulate[1]));
    return model.differences;
  }
  Report.figure(Report.merge({
    section: 'runs', name: 'difference', title: 'The difference by operation: longer in B to the right',
    needs: function (model) { return model.simulate.length > 1 && simulated(model).some(function (o) { return o.a !== o.b; }); }
  }, difference_figure(simulated)));

  function aligned(d) {
    return d.ops.map(function (o) { return {name: o.name, a: o.first_s, b: o.second_s}; }).sort(function (x, y) { return Math.abs(y.b - y.a) - Math.abs(x.b - x.a); });
  }
  Report.figure(Report.merge({
    section: 'runs', name: 'steps-difference', kind: 'compare-steps', title: 'Two runs of a step: the difference by operation',
    needs: function (d) { return d.ops && d.ops.length > 0; }
  }, difference_figure(aligned)));

  Report.figure({
    section: 'runs', name: 'steps-parts', kind: 'compare-steps', title: 'Two runs of a step: compute, wait and transfer of a rank',
    needs: function (d) { return d.first && d.second; },
    height: 150,
    option: function (d, theme) {
      var parts = [['compute', 'compute_s', theme.blue], ['wait', 'wait_s', theme.grey], ['transfer', 'transfer_s', theme.orange], ['copy', 'copy_s', theme.pink]];
      return {
        grid: {left: 8, right: 24, top: 34, bottom: 24, containLabel: true}, legend: Report.legend(theme),
        xAxis: Report.axis(theme, {type: 'value', axisLabel: {formatter: f.time}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, splitLine: {show: false}, data: ['A', 'B']}),
        series: parts.map(function (p) { return {name: p[0], type: 'bar', stack: 'all', barWidth: 26, itemStyle: {color: p[2]}, data: [d.first[p[1]], d.second[p[1]]]}; })
      };
    }
  });
})();
