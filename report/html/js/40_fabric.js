// The fabric as tiers of folded nodes, its links as hot as they are used.
(function () {
  'use strict';
  var f = Report.format;

  function heat(theme, share) {
    var at = Math.max(0, Math.min(1, share)) * (theme.heat.length - 1);
    return theme.heat[Math.round(at)];
  }
  function plural(kind, count) {
    var known = {gpu: ['GPU', 'GPUs'], nic: ['NIC', 'NICs'], nvswitch: ['NVSwitch', 'NVSwitches'], leaf: ['leaf', 'leaves']}[kind] || [kind, kind + 's'];
    return known[count === 1 ? 0 : 1];
  }
  function group_name(tier, group) {
    return tier.kind + ' ' + (group.first === group.last ? group.first : group.first + '…' + group.last);
  }

  Report.figure({
    section: 'fabric', name: 'fabric', kind: 'simulate', title: 'The fabric, and how busy its links are',
    needs: function (d) { return d.fabric && d.fabric.edges.length > 0; },
    height: function (d) { return 80 + 110 * d.fabric.tiers.length; },
    option: function (d, theme) {
      var tiers = d.fabric.tiers, nodes = [], hottest = 0;
      d.fabric.edges.forEach(function (e) { hottest = Math.max(hottest, e.max); });
      tiers.forEach(function (tier, t) {
        tier.groups.forEach(function (group, g) {
          nodes.push({
            name: t + '/' + g, x: 900 * (g + 0.5) / tier.groups.length, y: 110 * (tiers.length - 1 - t), symbol: 'rect',
            symbolSize: [Math.max(30, Math.min(100, 820 / tier.groups.length)), 20], title: group_name(tier, group),
            itemStyle: {color: theme.panel, borderColor: theme.quiet},
            label: {show: true, color: theme.text, fontSize: 10, overflow: 'truncate', width: Math.max(28, Math.min(96, 816 / tier.groups.length)),
                    formatter: tier.groups.length > 8 ? (group.first === group.last ? String(group.first) : group.first + '…') : group_name(tier, group)}
          });
        });
      });
      var most = 0;
      d.fabric.edges.forEach(function (e) { most = Math.max(most, e.links); });
      return {
        tooltip: {formatter: function (p) { return p.data.title || ''; }},
        visualMap: {show: true, type: 'continuous', min: 0, max: Math.max(hottest, 1e-9), seriesIndex: 1, orient: 'horizontal', right: 0, top: 0, itemWidth: 10, itemHeight: 110,
                    text: [f.percent(hottest) + ' busy', '0'], textStyle: {color: theme.quiet}, inRange: {color: theme.heat}, calculable: false},
        xAxis: {show: false, min: 0, max: 1}, yAxis: {show: false, min: 0, max: 1},
        graphic: tiers.map(function (tier, t) {
          return {type: 'text', left: 4, top: 44 + (tiers.length - 1 - t) * ((80 + 110 * tiers.length - 92) / Math.max(1, tiers.length - 1)) - (tiers.length > 1 ? 0 : -10), silent: true,
                  style: {text: f.whole(tier.nodes) + ' ' + plural(tier.kind, tier.nodes), fill: theme.quiet, fontSize: 12}};
        }),
        series: [{
          type: 'graph', layout: 'none', left: 120, right: 44, top: 52, bottom: 40, roam: false, data: nodes, edgeSymbol: ['none', 'none'], z: 2,
          emphasis: {focus: 'adjacency'},
          links: d.fabric.edges.map(function (e) {
            var from = tiers[e.from[0]], to = tiers[e.to[0]];
            return {source: e.from.join('/'), target: e.to.join('/'), value: e.max,
                    title: group_name(from, from.groups[e.from[1]]) + ' – ' + group_name(to, to.groups[e.to[1]]) + '\n' + f.whole(e.links) + ' directions of links\nutilisation: mean ' + f.percent(e.mean) + ', most ' + f.percent(e.max) + '\ncarried: ' + f.bytes(e.carried_bytes),
                    lineStyle: {color: heat(theme, e.max / Math.max(hottest, 1e-9)), width: 1 + 4 * Math.sqrt(e.links / most), opacity: 0.9, curveness: e.from[0] === e.to[0] ? 0.3 : 0}};
          })
        }, {type: 'scatter', data: [], silent: true}]
      };
    },
    note: function () { return 'Neighbouring nodes of a tier are folded into one box, their links into one line: as thick as there are links, as hot as the hottest of them.'; },
    table: function (d) {
      return {head: ['links', 'directions', 'mean use', 'median', 'most', 'carried'], rows: d.fabric.kinds.map(function (k) {
        return [k.name, f.whole(k.links), f.percent(k.mean), f.percent(k.utilisation[5]), f.percent(k.max), f.bytes(k.carried_bytes)];
      })};
    }
  });

  function link_name(link) { return link.from ? f.label(link.from, 30) + ' → ' + f.label(link.to, 30) : 'port ' + link.port; }

  Report.figure({
    section: 'fabric', name: 'links', kind: 'simulate', title: 'The busiest links',
    needs: function (d) { return d.fabric && d.fabric.busiest.length > 0; },
    height: function (d) { return 40 + 22 * d.fabric.busiest.length; },
    option: function (d, theme) {
      var list = d.fabric.busiest;
      return {
        grid: {left: 8, right: 70, top: 6, bottom: 24, containLabel: true},
        xAxis: Report.axis(theme, {type: 'value', min: 0, axisLabel: {formatter: f.percent}}),
        yAxis: Report.axis(theme, {type: 'category', inverse: true, splitLine: {show: false}, data: list.map(link_name)}),
        series: [{type: 'bar', itemStyle: {color: theme.red}, data: list.map(function (l) { return l.utilisation; }),
                  label: {show: true, position: 'right', color: theme.quiet, formatter: function (p) { return f.percent(p.value); }},
                  tooltip: {formatter: function (p) {
                    var l = list[p.dataIndex];
                    return link_name(l) + '\nbusy ' + f.time(l.busy_s) + ', ' + f.percent(l.utilisation) + ' of the step\ncarried ' + f.bytes(l.carried_bytes) + (l.rate_Bps ? ' at ' + f.rate(l.rate_Bps) : '');
                  }}}]
      };
    },
    table: function (d) {
      return {head: ['link', 'busy', 'use', 'carried', 'rate'], rows: d.fabric.busiest.map(function (l) {
        return [link_name(l), f.time(l.busy_s), f.percent(l.utilisation), f.bytes(l.carried_bytes), l.rate_Bps ? f.rate(l.rate_Bps) : '–'];
      })};
    }
  });
})();
