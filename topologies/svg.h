#pragma once

#include <string>
#include <string_view>

namespace lockstep {

struct Point {
  double x = 0, y = 0;
};

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// Collects an SVG picture in three layers: frames at the back, lines, and boxes with texts in
/// front. Coordinates are pixels; texts are escaped.
class Svg {
 public:
  enum class Anchor { kStart, kMiddle, kEnd };

  void frame(const Box& box, std::string_view fill, std::string_view stroke);
  void line(Point a, Point b, std::string_view stroke, double width, double opacity);
  /// An arch from a to b over both.
  void arch(Point a, Point b, double height, std::string_view stroke, double opacity);
  void box(const Box& box, double radius, std::string_view fill, std::string_view stroke,
           std::string_view tooltip = {});
  void text(Point at, std::string_view text, double size, std::string_view fill,
            Anchor anchor = Anchor::kMiddle, bool bold = false);

  /// The whole document.
  std::string finish(double width, double height, std::string_view title) const;

 private:
  std::string frames_, lines_, boxes_;
};

/// Text made fit for XML: &, <, > and quotes escaped, control characters and broken UTF-8 replaced.
std::string xml_escaped(std::string_view text);

}  // namespace lockstep
