// Rows of boxes on a time axis, kept as one picture of three windows' width: while one pans, a frame
// moves what is drawn already. Without a document (figures as files) rows are drawn as shapes.
(function () {
  'use strict';

  // `paint(context, x_of, from, to)` draws the boxes between two times, over the area's height; x_of and heights are
  // in CSS pixels of the picture. `key` tells whether they still look alike. Returns null where shapes are needed.
  Report.sheet = function (end) {
    var known = null;
    return function (key, area, origin, unit, paint) {
      if (typeof document === 'undefined') {
        return null;
      }
      var ratio = window.devicePixelRatio || 1;
      var left = area.x - origin, right = left + area.width, middle = (left + right) / 2;
      // Charts round the ends of their windows, which makes equal windows unequal by less than a pixel.
      var wider = known ? known.unit / unit : 1;
      var fits = known && known.key === key && known.ratio === ratio && known.height === area.height &&
        Math.abs(wider - 1) * area.width <= 1 && known.from <= Math.max(0, left * wider) && known.to >= Math.min(unit, right) * wider;
      if (!fits) {
        wider = 1;
        var canvas = known ? known.canvas : document.createElement('canvas');
        known = {key: key, ratio: ratio, height: area.height, unit: unit, canvas: canvas,
                 from: Math.floor(Math.max(0, left - area.width)), to: Math.ceil(Math.min(unit, right + area.width))};
        canvas.width = Math.max(1, Math.ceil((known.to - known.from) * ratio));
        canvas.height = Math.max(1, Math.round(area.height * ratio));
        var context = canvas.getContext('2d');
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        paint(context, function (time) { return unit * time / end - known.from; }, end * known.from / unit, end * known.to / unit);
      }
      return {type: 'image', silent: true, style: {
        image: known.canvas, x: Math.round((origin + middle - middle * wider + known.from) * ratio) / ratio, y: Math.round(area.y * ratio) / ratio,
        width: known.canvas.width / ratio, height: known.canvas.height / ratio}};
    };
  };
})();
