#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Colour&) const = default;
};

/// A small drawing of rectangles and short texts that can be written as SVG and as PNG. Units are
/// pixels; y grows downwards.
struct Picture {
  struct Rectangle {
    double x = 0, y = 0, width = 0, height = 0;
    Colour colour;
    std::string title;  ///< shown by an SVG viewer on hovering
  };
  enum class Anchor { kStart, kMiddle, kEnd };
  struct Text {
    double x = 0, y = 0;  ///< of the anchor, at half the height of a digit
    std::string text;
    double size = 14;  ///< of the font; a digit is 0.73 of it high
    Anchor anchor = Anchor::kMiddle;
    bool upwards = false;  ///< turned by 90 degrees, to be read from the right
    Colour colour;
  };

  double width = 0, height = 0;
  std::vector<Rectangle> rectangles;  ///< in drawing order, below all texts
  std::vector<Text> texts;
};

std::string to_svg(const Picture& picture);

/// RGB of 8 bits, white ground. Texts are drawn with a built-in stroke font that has digits, Latin
/// letters and a little punctuation; what it lacks is left blank.
std::string to_png(const Picture& picture);

}  // namespace lockstep
