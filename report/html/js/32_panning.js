// Figures that one pans. A chart lays all of itself out anew in every frame, so that what does not move
// stands beside it: colours as a list above, the slider as a chart of its own below, the rows' names as elements.
(function () {
  'use strict';
  if (typeof document === 'undefined') {
    return;
  }
  var kCatchUp = 150;  // ms between two drawings of the slider

  function text_width(texts, font) {
    var context = document.createElement('canvas').getContext('2d');
    context.font = font;
    return texts.reduce(function (most, text) { return Math.max(most, context.measureText(text).width); }, 0);
  }

  function fill_legend(item, option) {
    var colours = {};
    option.series.forEach(function (series) { colours[series.name] = series.color; });
    item.legend.textContent = '';
    option.legend.data.forEach(function (name) {
      var mark = Report.make('span', {'class': 'mark'});
      mark.style.background = colours[name];
      item.legend.appendChild(Report.make('li', {}, [mark, name]));
    });
    option.legend.show = false;
  }

  // [name, middle] of each row.
  function place_labels(item, lines, width) {
    item.names.textContent = '';
    lines.forEach(function (line) {
      var name = Report.make('div', {text: line[0]});
      name.style.top = line[1] + 'px';
      item.names.appendChild(name);
    });
    item.names.style.width = width + 'px';
  }

  Report.for_panning = function (item, option) {
    fill_legend(item, option);
    var label = option.yAxis.axisLabel, grid = option.grid, x = option.xAxis;
    var width = text_width(option.yAxis.data, (label.fontSize || 12) + 'px ' + option.textStyle.fontFamily);
    label.show = false;
    option.yAxis.splitLine = {show: false};
    item.state.place_labels = function (lines) { place_labels(item, lines, grid.left - 10); };
    grid.containLabel = false;
    grid.left = Math.ceil(Math.min(width, item.narrow && label.width || 260)) + 18;
    grid.top = x.position === 'top' ? 26 : 8;
    grid.bottom = x.position === 'top' ? 4 : 26;
    var is_bar = function (zoom) { return zoom.type === 'slider' && zoom.yAxisIndex === undefined; };
    var bar = option.dataZoom.filter(is_bar)[0];
    option.dataZoom = option.dataZoom.filter(function (zoom) { return !is_bar(zoom); });
    item.bar_option = {
      animation: false, textStyle: option.textStyle, grid: {left: grid.left, right: grid.right, top: 0, height: 1},
      xAxis: {type: 'value', min: x.min, max: x.max, show: false}, yAxis: {type: 'value', show: false}, series: [{type: 'line', data: []}],
      dataZoom: [Report.merge(bar, {top: 4, height: 18, bottom: undefined})]
    };
  };

  // The slider moves the figure at once; it follows the figure when that has stood for a moment, or now and then.
  Report.follow = function (item) {
    var waiting = false, told = '';
    item.bar = echarts.init(item.bar_element, null, {renderer: 'canvas'});
    item.bar.setOption(item.bar_option);
    item.bar.on('datazoom', function () {
      var range = Report.range(item.bar);
      if (range.join() !== told) {
        told = range.join();
        Report.go(item.chart, range[0], range[1]);
      }
    });
    item.chart.on('datazoom', function () {
      if (waiting) {
        return;
      }
      waiting = true;
      setTimeout(function () {
        waiting = false;
        var range = Report.range(item.chart);
        if (range.join() !== told) {
          told = range.join();
          item.bar.dispatchAction({type: 'dataZoom', start: range[0], end: range[1]});
        }
      }, kCatchUp);
    });
  };
})();
