#include "topologies/svg.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace lockstep {
namespace {

std::string rect(const Box& b, double radius, std::string_view fill, std::string_view stroke) {
  return fmt::format(
      R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="{:.1f}" fill="{}" stroke="{}")",
      b.x, b.y, b.width, b.height, radius, fill, stroke);
}

/// Bytes of the well-formed UTF-8 character at the start of `text` that XML allows; 0 if there is
/// none.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t size = byte(0) < 0x80   ? 1
                           : byte(0) < 0xC2 ? 0
                           : byte(0) < 0xE0 ? 2
                           : byte(0) < 0xF0 ? 3
                           : byte(0) < 0xF5 ? 4
                                            : 0;
  if (size == 0 || size > text.size() || (size == 1 && (byte(0) < 0x20 || byte(0) == 0x7F))) {
    return 0;
  }
  std::uint32_t code = size == 1 ? byte(0) : byte(0) & (0x7FU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) {
      return 0;
    }
    code = code << 6 | (byte(i) & 0x3FU);
  }
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code > 0x10FFFF || code == 0xFFFE || code == 0xFFFF ? 0 : size;
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = character(text);
    if (size == 0) {
      out += "\xEF\xBF\xBD";  // the replacement character
      text.remove_prefix(1);
      continue;
    }
    switch (text[0]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      default:
        out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return out;
}

void Svg::frame(const Box& box, std::string_view fill, std::string_view stroke) {
  frames_ += rect(box, 10, fill, stroke) + "/>\n";
}

void Svg::line(Point a, Point b, std::string_view stroke, double width, double opacity) {
  lines_ += fmt::format(
      R"(<path d="M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}" fill="none" stroke="{}" stroke-width="{:.1f}" opacity="{:.2f}"/>)"
      "\n",
      a.x, a.y, a.x, a.y + (b.y - a.y) * 0.4, b.x, b.y - (b.y - a.y) * 0.4, b.x, b.y, stroke, width,
      opacity);
}

void Svg::arch(Point a, Point b, double height, std::string_view stroke, double opacity) {
  lines_ += fmt::format(
      R"(<path d="M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}" fill="none" stroke="{}" opacity="{:.2f}"/>)"
      "\n",
      a.x, a.y, a.x, a.y - height, b.x, b.y - height, b.x, b.y, stroke, opacity);
}

void Svg::box(const Box& box, double radius, std::string_view fill, std::string_view stroke,
              std::string_view tooltip) {
  boxes_ += rect(box, radius, fill, stroke);
  boxes_ += tooltip.empty() ? "/>\n" : "><title>" + xml_escaped(tooltip) + "</title></rect>\n";
}

void Svg::text(Point at, std::string_view text, double size, std::string_view fill, Anchor anchor,
               bool bold) {
  const char* anchors[] = {"start", "middle", "end"};
  boxes_ += fmt::format(
      R"(<text x="{:.1f}" y="{:.1f}" font-size="{:.1f}" fill="{}" text-anchor="{}"{} paint-order="stroke" stroke="#ffffff" stroke-opacity="0.75" stroke-width="3" stroke-linejoin="round">{}</text>)"
      "\n",
      at.x, at.y, size, fill, anchors[static_cast<std::size_t>(anchor)],
      bold ? " font-weight=\"600\"" : "", xml_escaped(text));
}

std::string Svg::finish(double width, double height, std::string_view title) const {
  return fmt::format(
      R"(<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" font-family="Inter, Helvetica, Arial, sans-serif">
<title>{2}</title>
<rect width="100%" height="100%" fill="#ffffff"/>
<g id="frames">
{3}</g>
<g id="links">
{4}</g>
<g id="nodes">
{5}</g>
</svg>
)",
      width, height, xml_escaped(title), frames_, lines_, boxes_);
}

}  // namespace lockstep
