#pragma once

#include <span>

namespace lockstep {

/// One straight stroke of a glyph, in units of the height of a digit: the base line is y = 0, the
/// top of a digit y = 1, x grows from the left edge.
struct Stroke {
  float x0, y0, x1, y1;
};

struct Glyph {
  float advance = 0.6F;  ///< to the next glyph
  std::span<const Stroke> strokes;
};

/// The glyph of a character; blank if the font lacks it.
Glyph stroke_glyph(char c);

}  // namespace lockstep
