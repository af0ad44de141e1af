// The fabric as tiers of folded nodes, its links as hot as they are used.
(function () {
  'use strict';
  var f = Report.format;

  // Without the palest: lines are thin.
  function heats(theme) { return theme.heat.slice(2); }
  function heat(theme, share) {
    var colours = heats(theme), at = Math.max(0, Math.min(1, share)) * (colours.length - 1);
    return colours[Math.round(at)];
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
    by_width: true,
    option: function (d, theme, state) {
      var tiers = d.fabric.tiers, nodes = [], hottest = 0;
      // As large as it is drawn: boxes keep their size where a graph is stretched.
      var narrow = (state.width || 960) < 560, left = narrow ? 98 : 120, right = narrow ? 24 : 44;
      var width = (state.width || 960) - left - right, height = 110 * tiers.length - 12;
      var widest = tiers.reduce(function (most, tier) { return Math.max(most, tier.groups.length); }, 1);
      d.fabric.edges.forEach(function (e) { hottest = Math.max(hottest, e.max); });
      tiers.forEach(function (tier, t) {
        tier.groups.forEach(function (group, g) {
          nodes.push({
            name: t + '/' + g, x: width * (g + 0.5) / tier.groups.length * widest / Math.max(1, widest - 1), y: height * (tiers.length - 1 - t) / Math.max(1, tiers.length - 1), symbol: 'rect',
            symbolSize: [Math.min(100, 0.92 * width / tier.groups.length), 20], title: group_name(tier, group),
            itemStyle: {color: theme.panel, borderColor: theme.quiet},
            label: {show: true, color: theme.text, fontSize: tier.groups.length > 12 ? 9 : 10, overflow: 'truncate', width: Math.min(96, 0.9 * width / tier.groups.length),
                    formatter: width / tier.groups.length < 24 ? '' : tier.groups.length > 8 || narrow ? (group.first === group.last ? String(group.first) : group.first + '…' + group.last) : group_name(tier, group)}
          });
        });
      });
      var most = 0;
      d.fabric.edges.forEach(function (e) { most = Math.max(most, e.links); });
      return {
        tooltip: {formatter: function (p) { return p.data.title || ''; }},
        visualMap: {show: true, type: 'continuous', min: 0, max: Math.max(hottest, 1e-9), seriesIndex: 1, orient: 'horizontal', right: 0, top: 0, itemWidth: 10, itemHeight: 110,
                    text: [f.percent(hottest) + ' busy', '0'], textStyle: {color: theme.quiet}, inRange: {color: heats(theme)}, calculable: false},
        xAxis: {show: false, min: 0, max: 1}, yAxis: {show: false, min: 0, max: 1},
        graphic: tiers.map(function (tier, t) {
          return {type: 'text', left: 4, top: 44 + (tiers.length - 1 - t) * ((80 + 110 * tiers.length - 92) / Math.max(1, tiers.length - 1)) - (tiers.length > 1 ? 0 : -10), silent: true,
                  style: {text: f.whole(tier.nodes) + ' ' + plural(tier.kind, tier.nodes), fill: theme.quiet, fontSize: 12}};
        }),
        series: [{
          type: 'graph', layout: 'none', left: left, right: right, top: 52, bottom: 40, roam: false, data: nodes, edgeSymbol: ['none', 'none'], z: 2,
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
