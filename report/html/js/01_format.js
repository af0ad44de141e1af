// Numbers for people: three significant digits, units of a thousand, an en space between the two.
var Report = {figures: [], sections: []};

(function () {
  'use strict';
  var kThin = '\u202f';

  function digits(value) {
    if (!isFinite(value)) {
      return '–';
    }
    var size = Math.abs(value);
    if (size === 0) {
      return '0';
    }
    if (size >= 999.5) {
      return grouped(Math.round(value));
    }
    var text = value.toPrecision(3);
    return text.indexOf('e') >= 0 ? text : text.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '');
  }

  function grouped(whole) {
    return String(whole).replace(/\B(?=(\d{3})+(?!\d))/g, kThin);
  }

  function scaled(value, steps) {
    var size = Math.abs(value);
    for (var i = 0; i < steps.length; ++i) {
      if (size >= steps[i][0] * 0.9995 || i === steps.length - 1) {
        return digits(value / steps[i][0]) + kThin + steps[i][1];
      }
    }
    return '';
  }

  function known(value) {
    return typeof value === 'number' && isFinite(value);
  }

  var kTimes = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns'], [1e-12, 'ps']];
  var kBytes = [[1e15, 'PB'], [1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']];
  var kSizes = [[1099511627776, 'TiB'], [1073741824, 'GiB'], [1048576, 'MiB'], [1024, 'KiB'], [1, 'B']];
  var kPlain = [[1e18, 'E'], [1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, '']];

  Report.format = {
    number: digits,
    whole: function (value) { return known(value) ? grouped(Math.round(value)) : '–'; },
    time: function (seconds) {
      return !known(seconds) ? '–' : seconds === 0 ? '0' + kThin + 's' : scaled(seconds, kTimes);
    },
    bytes: function (bytes) { return known(bytes) ? scaled(bytes, kBytes) : '–'; },
    size: function (bytes) { return known(bytes) ? scaled(bytes, kSizes) : '–'; },
    rate: function (Bps) { return known(Bps) ? scaled(Bps, kBytes) + '/s' : '–'; },
    flops: function (flops) { return known(flops) ? scaled(flops, kPlain) + 'FLOP/s' : '–'; },
    plain: function (value) { return known(value) ? scaled(value, kPlain).replace(/\u202f$/, '') : '–'; },
    percent: function (share) {
      return !known(share) ? '–' : share > 0 && share < 5e-5 ? '<0.01' + kThin + '%' : digits(100 * share) + kThin + '%';
    },
    signed: function (share) {
      return known(share) ? (share > 0 ? '+' : share < 0 ? '−' : '') + digits(100 * Math.abs(share)) + kThin + '%' : '–';
    },
    times: function (factor) { return known(factor) ? factor.toFixed(3) + '×' : '–'; },
    // A user's text in a picture: one line, without characters that XML forbids, cut at `limit`.
    label: function (text, limit) {
      var plain = String(text).replace(/[\u0000-\u001f\u007f-\u009f\ufffe\uffff]+/g, ' ');
      var most = limit || 48;
      return plain.length > most ? plain.substring(0, most - 1) + '…' : plain;
    }
  };
})();
