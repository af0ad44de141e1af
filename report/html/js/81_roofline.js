// Each operator of a layer under the GPU's roofs.
(function () {
  'use strict';
  var f = Report.format;

  Report.figure({
    section: 'roofline', name: 'roofline', kind: 'simulate', title: 'Operators under the GPU’s roofline',
    needs: function (d) { return d.roofline && d.roofline.operators.length > 0; },
    height: 440,
    option: function (d, theme) {
      var r = d.roofline, low = Infinity, high = 0, bottom = Infinity;
      var list = r.operators.filter(function (o) { return o.flops > 0 && o.bytes > 0 && o.time_s > 0; });
      list.forEach(function (o) {
        low = Math.min(low, o.flops / o.bytes);
        high = Math.max(high, o.flops / o.bytes);
        bottom = Math.min(bottom, o.flops / o.time_s);
      });
      var ridge = r.peak_flops / r.memory_Bps;
      var from = Math.pow(10, Math.floor(Math.log(Math.min(low, ridge)) / Math.LN10)), to = Math.pow(10, Math.ceil(Math.log(Math.max(high, ridge * 3)) / Math.LN10));
      var kinds = [['matrix product', 'gemm', theme.blue, 'circle'], ['grouped product', 'grouped-gemm', theme.green, 'diamond'], ['attention', 'attention', theme.orange, 'triangle'], ['memory', 'memory', theme.pink, 'rect']];
      var longest = list.reduce(function (most, o) { return Math.max(most, o.time_s); }, 0);
      return {
        grid: {left: 34, right: 30, top: 40, bottom: 48, containLabel: true}, legend: Report.legend(theme),
        xAxis: Report.axis(theme, {type: 'log', name: 'FLOP per byte of memory traffic', nameGap: 28, min: from, max: to, axisLabel: {formatter: f.number}}),
        yAxis: Report.axis(theme, {type: 'log', name: 'FLOP/s reached', nameGap: 52, min: Math.pow(10, Math.floor(Math.log(Math.min(bottom, from * r.memory_Bps)) / Math.LN10)), max: Math.pow(10, Math.ceil(Math.log(r.peak_flops * 1.01) / Math.LN10)), axisLabel: {formatter: f.plain}}),
        series: [{type: 'line', name: f.label(r.gpu, 20) + ', ' + r.precision + ': ' + f.flops(r.peak_flops) + ', ' + f.rate(r.memory_Bps), showSymbol: false, silent: true, color: theme.text, lineStyle: {width: 2},
                  data: [[from, from * r.memory_Bps], [ridge, r.peak_flops], [to, r.peak_flops]]}].concat(kinds.map(function (kind) {
          return {type: 'scatter', name: kind[0], color: kind[2], symbol: kind[3], itemStyle: {borderColor: theme.background, borderWidth: 0.7, opacity: 0.9},
                  data: list.filter(function (o) { return o.kind === kind[1]; }).map(function (o) { return {value: [o.flops / o.bytes, o.flops / o.time_s], symbolSize: 7 + 15 * Math.sqrt(o.time_s / longest), o: o}; }),
                  tooltip: {formatter: function (p) {
                    var o = p.data.o;
                    return f.label(o.name) + '\n' + f.time(o.time_s) + ', ' + f.flops(o.flops / o.time_s) + '\n' + f.percent(o.flops / o.time_s / Math.min(r.peak_flops, o.flops / o.bytes * r.memory_Bps)) + ' of the roof\n' + f.bytes(o.bytes) + ' of traffic';
                  }}};
        }))
      };
    },
    note: function () { return 'One microbatch on one rank; the larger the mark, the longer the operator.'; },
    table: function (d) {
      var r = d.roofline;
      return {head: ['operator', 'kind', 'time', 'FLOP/s', 'FLOP/B', 'of the roof'], rows: r.operators.filter(function (o) { return o.bytes > 0 && o.time_s > 0; }).map(function (o) {
        return [o.name, o.kind, f.time(o.time_s), f.plain(o.flops / o.time_s), f.number(o.flops / o.bytes), f.percent(Math.max(o.flops / r.peak_flops, o.bytes / r.memory_Bps) / o.time_s)];
      })};
    }
  });
})();
