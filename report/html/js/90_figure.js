// Without a page: the functions that the program calls to draw one figure as SVG.
/* global echarts, Report_load:true, Report_figures:true, Report_svg:true */
var Report_load, Report_figures, Report_svg;

(function () {
  'use strict';
  var kWidth = 960;
  var kTitle = 34;

  Report_load = function (text) {
    Report.load(JSON.parse(text));
    return '';
  };

  Report_figures = function () {
    return JSON.stringify(Report.figures_now().map(function (entry) { return {name: entry.name, title: entry.title}; }));
  };

  // Without a canvas ECharts guesses how wide a text is: DejaVu Sans, in units of its size.
  if (typeof document === 'undefined') {
    echarts.setPlatformAPI({measureText: function (text, font) {
      var size = parseFloat((/([\d.]+)px/.exec(font || '') || [0, 12])[1]), width = 0;
      for (var i = 0; i < text.length; ++i) {
        var c = text.charAt(i);
        width += /[ijltfI.,:;'|!() \u202f]/.test(c) ? 0.36 : /[mwMW@%]/.test(c) ? 0.92 : /[A-Z0-9×–]/.test(c) ? 0.65 : 0.6;
      }
      return {width: width * size};
    }});
  }

  // What only a hand can use.
  function for_paper(option, theme, title) {
    option.backgroundColor = theme.background;
    option.aria = {enabled: false};
    if (option.dataZoom && option.grid.bottom > 24) {
      option.grid.bottom -= 26;
    }
    option.dataZoom = (option.dataZoom || []).filter(function (zoom) { return zoom.yAxisIndex !== undefined; }).map(function (zoom) {
      zoom.show = false;
      return zoom;
    });
    option.title = {text: Report.format.label(title, 110), left: 10, top: 8, textStyle: {fontSize: 14, fontWeight: 600, color: theme.text}};
    function lower(part) {
      if (part && typeof part.top === 'number') {
        part.top += kTitle;
      }
    }
    [].concat(option.grid || [], option.legend || [], option.visualMap || [], option.graphic || []).forEach(lower);
    [].concat(option.series || []).forEach(lower);
    [].concat(option.legend || []).forEach(function (legend) { legend.type = 'plain'; legend.left = 12; });
    return option;
  }

  Report_svg = function (name) {
    var entry = Report.figures_now().filter(function (each) { return each.name === name; })[0];
    var theme = Report.theme(false);
    var chart = echarts.init(null, null, {renderer: 'svg', ssr: true, width: kWidth, height: Report.height_of(entry.figure, entry.document) + kTitle});
    chart.setOption(for_paper(Report.option_of(entry, theme), theme, entry.title));
    var svg = chart.renderToSVGString();
    chart.dispose();
    // Users' names may hold characters that XML has no way to write.
    return svg.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, ' ') + '\n';
  };
})();
