// Plans that nothing beats in both time and memory, among those that were looked at.
(function () {
  'use strict';
  var f = Report.format;

  function plans(d) {
    var list = (d.front || []).concat(d.plans || []);
    return list.map(function (p) {
      var time = p.time_s !== undefined ? p.time_s : p.step_s || p.bound_s;
      return {time: time, memory: p.memory_bytes, name: typeof p.plan === 'string' ? p.plan : describe(p), json: p};
    }).filter(function (p) { return p.time > 0 && p.memory > 0; });
  }
  function describe(p) {
    if (p.stages && p.stages.length) {
      return p.stages.length + (p.stages.length === 1 ? ' stage, ' : ' stages, ') + 'microbatch ' + p.micro_batch;
    }
    var text = ['tp', 'cp', 'ep', 'pp', 'dp', 'vpp', 'zero'].filter(function (k) { return p[k] > 1; }).map(function (k) { return k + ' ' + p[k]; }).join(', ');
    return text || 'plan';
  }
  function front(list) {
    return list.filter(function (p) {
      return !list.some(function (q) { return q.time <= p.time && q.memory <= p.memory && (q.time < p.time || q.memory < p.memory); });
    }).sort(function (a, b) { return a.time - b.time; });
  }

  function pareto(kind, name) {
    return {
      section: 'plan', name: name, kind: kind, title: 'Plans by time and memory; the line joins those that nothing beats in both',
      needs: function (d) { return plans(d).length > 0; },
      height: 400,
      option: function (d, theme) {
        var list = plans(d), best = front(list);
        var limit = d.memory_limit_bytes || list[0].json.memory_limit_bytes;
        var point = function (p) { return {value: [p.time, p.memory], plan: p}; };
        var tip = {formatter: function (p) { var q = p.data.plan; return f.label(q.name, 70) + '\n' + f.time(q.time) + ' a step\n' + f.size(q.memory) + ' on the fullest GPU'; }};
        return {
          grid: {left: 24, right: 24, top: 40, bottom: 44, containLabel: true}, legend: Report.legend(theme),
          xAxis: Report.axis(theme, {type: 'value', scale: true, name: 'time of a step', nameGap: 26, axisLabel: {formatter: f.time}}),
          yAxis: Report.size_axis(theme, list.reduce(function (most, p) { return Math.max(most, p.memory); }, 0), {name: 'memory of the fullest GPU', nameGap: 62},
                                  list.reduce(function (least, p) { return Math.min(least, p.memory); }, Infinity)),
          series: [
            {type: 'scatter', name: 'other plans', symbol: 'circle', symbolSize: 8, color: theme.grey, data: list.filter(function (p) { return best.indexOf(p) < 0; }).map(point), tooltip: tip},
            {type: 'line', name: 'Pareto front', step: 'end', symbol: 'diamond', symbolSize: 12, color: theme.blue, data: best.map(point), tooltip: tip,
             label: {show: best.length <= 8, position: 'top', color: theme.text, fontSize: 11, formatter: function (p) { return f.label(p.data.plan.name, 30); }},
             markLine: limit ? {silent: true, symbol: 'none', data: [{yAxis: limit}], lineStyle: {color: theme.red, type: 'dashed'}, label: {formatter: 'memory of a GPU', position: 'insideEndTop', color: theme.red}} : undefined}
          ]
        };
      },
      note: function (d) {
        return ['front', 'plans'].map(function (list) { return d[list] ? Report.thinned_note(d, list, list === 'front' ? 'plans of the front' : 'plans', d[list].length) : ''; }).join(' ').trim();
      },
      table: function (d) {
        var list = plans(d), best = front(list);
        return {head: ['plan', 'time', 'memory', 'on the front'], rows: list.slice().sort(function (a, b) { return a.time - b.time; }).slice(0, 200).map(function (p) { return [p.name, f.time(p.time), f.size(p.memory), best.indexOf(p) >= 0 ? 'yes' : '']; })};
      }
    };
  }
  Report.figure(pareto('plan', 'pareto'));
  Report.figure(pareto('job-plan', 'pareto-job'));
  Report.figure(pareto('mixed-plan', 'pareto-mixed'));

  Report.figure({
    section: 'plan', name: 'plan-stages', kind: 'plan', title: 'Stages of the best plan',
    needs: function (d) { return d.plans && d.plans.length > 0 && d.plans[0].stages && d.plans[0].stages.length > 0; },
    height: function (d) { return 70 + 26 * d.plans[0].stages.length; },
    option: function (d, theme) {
      var stages = d.plans[0].stages;
      var parts = [['forward', 'forward_s', theme.sky], ['backward', 'backward_s', theme.blue], ['recompute', 'recompute_s', theme.pink], ['receive', 'receive_s', theme.orange], ['send', 'send_s', theme.red]];
      return {
        grid: {left: 8, right: 24, top: 34, bottom: 24, containLabel: true}, legend: Report.legend(theme),
        xAxis: Report.axis(theme, {type: 'value', axisLabel: {formatter: f.time}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, splitLine: {show: false}, data: stages.map(function (s, i) { return 'stage ' + i + ', ' + s.gpus + ' GPUs'; })}),
        series: parts.map(function (part) { return {name: part[0], type: 'bar', stack: 'all', itemStyle: {color: part[2]}, data: stages.map(function (s) { return s[part[1]] || 0; })}; })
      };
    },
    note: function () { return 'Of one microbatch.'; }
  });

  // Plans of Metis's problem, which tells of what their cost is made.
  function metis_plans(d) { return (d.plans || []).filter(function (p) { return p.device_groups && p.execution_s !== undefined; }); }
  function metis_name(p, i) { return f.label((i + 1) + ': ' + p.node_sequence.join(', ') + '; groups ' + p.device_groups.join(', ') + '; ' + p.batches + (p.batches === 1 ? ' batch' : ' batches'), 48); }
  var kMetisParts = [['execution', 'execution_s', 'blue'], ['gradients', 'data_parallel_s', 'orange'], ['synchronisation', 'synchronisation_s', 'pink'],
                     ['between stages', 'pipeline_s', 'red'], ['update', 'update_s', 'green'], ['batches', 'batch_s', 'sky']];
  var kMostPlans = 20;

  Report.figure({
    section: 'plan', name: 'plan-costs', kind: 'plan', title: 'What the cost of the best plans is made of',
    needs: function (d) { return metis_plans(d).length > 0; },
    height: function (d) { return 90 + 24 * Math.min(kMostPlans, metis_plans(d).length); },
    option: function (d, theme) {
      var list = metis_plans(d).slice(0, kMostPlans);
      return {
        grid: {left: 8, right: 24, top: 34, bottom: 40, containLabel: true}, legend: Report.legend(theme),
        xAxis: Report.axis(theme, {type: 'value', name: 'time of a step', nameGap: 24, axisLabel: {formatter: f.time}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, splitLine: {show: false}, data: list.map(metis_name)}),
        series: kMetisParts.map(function (part) {
          return {name: part[0], type: 'bar', stack: 'all', itemStyle: {color: theme[part[2]]}, data: list.map(function (p) { return p[part[1]]; }),
                  tooltip: {formatter: function (p) { return metis_name(list[p.dataIndex], p.dataIndex) + '\n' + part[0] + ' ' + f.time(p.value) + '\nof ' + f.time(list[p.dataIndex].time_s); }}};
        })
      };
    },
    note: function (d) { return metis_plans(d).length > kMostPlans ? 'The first ' + kMostPlans + ' of ' + f.whole(metis_plans(d).length) + '.' : ''; },
    table: function (d) {
      return {head: ['rank', 'time', 'types of GPU', 'groups', 'dp, tp of each', 'batches', 'layers from'], rows: metis_plans(d).slice(0, 200).map(function (p, i) {
        return [i + 1, f.time(p.time_s), p.node_sequence.join(', '), p.device_groups.join(', '), p.strategies.map(function (s) { return s.join(' x '); }).join(', '), f.whole(p.batches), p.layer_partition.join(', ')];
      })};
    }
  });

  Report.figure({
    section: 'plan', name: 'plan-layers', kind: 'plan', title: 'Layers of each stage of the best plan',
    needs: function (d) { var p = metis_plans(d)[0]; return p && p.layer_partition.length === p.device_groups.length + 1; },
    height: function (d) { return 60 + 26 * metis_plans(d)[0].device_groups.length; },
    option: function (d, theme) {
      var best = metis_plans(d)[0];
      return {
        grid: {left: 8, right: 40, top: 6, bottom: 40, containLabel: true},
        xAxis: Report.axis(theme, {type: 'value', name: 'layers', nameGap: 24, minInterval: 1}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, splitLine: {show: false}, data: best.device_groups.map(function (gpus, i) {
          return 'stage ' + i + ', ' + gpus + ' GPUs' + (best.strategies[i] ? ', dp ' + best.strategies[i][0] + ' tp ' + best.strategies[i][1] : '');
        })}),
        series: [{type: 'bar', name: 'layers', itemStyle: {color: theme.blue}, data: best.device_groups.map(function (_, i) { return best.layer_partition[i + 1] - best.layer_partition[i]; }), label: {show: true, position: 'right', color: theme.quiet}}]
      };
    }
  });
})();
