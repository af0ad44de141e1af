// What weeks of training are made of.
(function () {
  'use strict';
  var f = Report.format;
  var kParts = [['useful', 'useful_s', 'green'], ['lost work', 'lost_s', 'red'], ['checkpoints', 'checkpoint_s', 'orange'], ['restarts', 'restart_s', 'pink'], ['waiting for spares', 'waiting_s', 'grey']];

  Report.figure({
    section: 'goodput', name: 'goodput', kind: 'goodput', title: 'Where the weeks go',
    needs: function (d) { return d.time && d.horizon_s > 0; },
    height: 130,
    option: function (d, theme) {
      return {
        grid: {left: 16, right: 24, top: 44, bottom: 24}, legend: Report.legend(theme),
        xAxis: Report.axis(theme, {type: 'value', max: d.horizon_s, interval: d.horizon_s > 172800 ? 86400 * Math.ceil(d.horizon_s / 86400 / 8) : undefined, axisLabel: {formatter: f.time}, splitLine: {show: false}}),
        yAxis: {type: 'category', data: ['time'], show: false},
        series: kParts.map(function (part) {
          return {name: part[0], type: 'bar', stack: 'all', barWidth: 34, itemStyle: {color: theme[part[2]]}, data: [d.time[part[1]]],
                  tooltip: {formatter: function () { return part[0] + '\n' + f.time(d.time[part[1]]) + ', ' + f.percent(d.time[part[1]] / d.horizon_s); }}};
        })
      };
    },
    table: function (d) {
      return {head: ['part', 'time', 'share'], rows: kParts.map(function (p) { return [p[0], f.time(d.time[p[1]]), f.percent(d.time[p[1]] / d.horizon_s)]; })};
    }
  });
})();
