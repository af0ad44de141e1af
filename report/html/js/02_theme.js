// Colours that colour-blind people can tell apart (Okabe and Ito's eight and three darker ones), on light and on dark.
(function () {
  'use strict';
  var kLight = {
    dark: false, background: '#ffffff', panel: '#f6f7f9', text: '#1c2128', quiet: '#57606a', line: '#d0d7de',
    blue: '#0072b2', sky: '#56b4e9', green: '#009e73', yellow: '#ffce06', orange: '#e69f00', red: '#d55e00',
    pink: '#cc79a7', grey: '#5e6771', violet: '#9933ee', brown: '#662211', plum: '#440055', strong: '#000000',
    heat: ['#fff7ec', '#fee8c8', '#fdbb84', '#fc8d59', '#e34a33', '#b30000', '#7f0000']
  };
  var kDark = {
    dark: true, background: '#15181d', panel: '#1d2127', text: '#e6e9ed', quiet: '#9aa4b0', line: '#363d47',
    blue: '#3d9be0', sky: '#8fd0f5', green: '#2bbf93', yellow: '#f6f038', orange: '#f0b030', red: '#f0783c',
    pink: '#dd9cc2', grey: '#7d8792', violet: '#6622ff', brown: '#882211', plum: '#660088', strong: '#ffffff',
    heat: ['#2a1f1c', '#4a2a22', '#7a3527', '#ab4a30', '#d9683f', '#f2a36b', '#fde2bf']
  };

  Report.theme = function (dark) { return dark ? kDark : kLight; };

  // Kinds of communicators and of work, in the order of legends.
  Report.group_order = ['tp', 'cp', 'ep', 'pp', 'dp', 'dp_ep', 'world'];
  Report.group_name = {
    tp: 'tensor parallel', dp: 'data parallel', ep: 'expert parallel', dp_ep: 'data parallel, experts',
    pp: 'pipeline', cp: 'context parallel', world: 'all ranks'
  };
  Report.group_colour = function (theme, group) {
    return {tp: theme.orange, cp: theme.yellow, ep: theme.pink, pp: theme.red, dp: theme.green, dp_ep: theme.violet,
            world: theme.brown}[group] || theme.grey;
  };

  // Black or white, whichever is read better on a colour (WCAG 2.1's contrast: equal at a luminance of 0.179).
  var inks = {};
  Report.ink = function (colour) {
    if (inks[colour]) {
      return inks[colour];
    }
    var luminance = [0.2126, 0.7152, 0.0722].reduce(function (sum, weight, i) {
      var c = parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16) / 255;
      return sum + weight * (c <= 0.04045 ? c / 12.92 : Math.pow((c + 0.055) / 1.055, 2.4));
    }, 0);
    inks[colour] = luminance > 0.179 ? '#000' : '#fff';
    return inks[colour];
  };

  // What every chart has in common.
  Report.base_option = function (theme) {
    return {
      animation: false,
      backgroundColor: 'transparent',
      textStyle: {color: theme.text, fontFamily: 'DejaVu Sans, Helvetica, Arial, sans-serif'},
      aria: {enabled: true},
      tooltip: {
        trigger: 'item', renderMode: 'richText', confine: true, backgroundColor: theme.panel, borderColor: theme.line,
        textStyle: {color: theme.text, fontSize: 12}
      }
    };
  };

  Report.axis = function (theme, more) {
    var axis = {
      axisLine: {show: true, lineStyle: {color: theme.line}},
      axisTick: {lineStyle: {color: theme.line}},
      axisLabel: {color: theme.quiet, hideOverlap: true},
      nameTextStyle: {color: theme.quiet},
      splitLine: {lineStyle: {color: theme.line, opacity: 0.55}},
      nameLocation: 'middle'
    };
    return Report.merge(axis, more || {});
  };

  // Round numbers of GiB, at most eight of them.
  Report.size_axis = function (theme, most, more, least) {
    var unit = 1073741824, step = unit;
    while (unit > 1 && most < 4 * unit) {
      unit /= 1024;
    }
    [1, 2, 5, 10, 20, 50, 100, 200, 500].some(function (n) {
      step = n * unit;
      return (most - (least || 0)) / step <= 8 && step >= most / 100;  // so that three digits tell them apart
    });
    return Report.axis(theme, Report.merge({type: 'value', min: Math.floor((least || 0) / step) * step, max: Math.ceil(most * 1.02 / step) * step, interval: step, axisLabel: {formatter: Report.format.size}}, more || {}));
  };

  Report.legend = function (theme, more) {
    return Report.merge({top: 0, left: 0, itemWidth: 14, itemHeight: 10, textStyle: {color: theme.text},
                         inactiveColor: theme.line, type: 'scroll', pageTextStyle: {color: theme.quiet}}, more || {});
  };

  Report.merge = function (target, source) {
    for (var key in source) {
      if (Object.prototype.hasOwnProperty.call(source, key)) {
        var value = source[key];
        var is_plain = value && typeof value === 'object' && !Array.isArray(value);
        if (is_plain && target[key] && typeof target[key] === 'object') {
          Report.merge(target[key], value);
        } else {
          target[key] = value;
        }
      }
    }
    return target;
  };
})();
