#include "topologies/svg.h"

#include <iterator>

#include <fmt/format.h>

#include "report/picture/picture.h"

namespace lockstep {
namespace {

std::string hex(Colour c) { return fmt::format("#{:02x}{:02x}{:02x}", c.red, c.green, c.blue); }

const char* anchor_name(Picture::Anchor anchor) {
  switch (anchor) {
    case Picture::Anchor::kStart:
      return "start";
    case Picture::Anchor::kMiddle:
      return "middle";
    case Picture::Anchor::kEnd:
      return "end";
  }
  return "start";
}

}  // namespace

std::string to_svg(const Picture& picture) {
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      picture.width, picture.height);
  const auto sink = std::back_inserter(out);
  for (const Picture::Rectangle& r : picture.rectangles) {
    fmt::format_to(sink,
                   "<rect x=\"{:.6g}\" y=\"{:.6g}\" width=\"{:.6g}\" height=\"{:.6g}\" fill=\"{}\"",
                   r.x, r.y, r.width, r.height, hex(r.colour));
    if (r.title.empty()) {
      out += "/>\n";
    } else {
      fmt::format_to(sink, "><title>{}</title></rect>\n", xml_escaped(r.title));
    }
  }
  for (const Picture::Text& t : picture.texts) {
    const double drop = 0.365 * t.size;  // from half a digit's height to the base line
    const std::string place =
        t.upwards
            ? fmt::format("transform=\"translate({:.6g} {:.6g}) rotate(-90)\"", t.x + drop, t.y)
            : fmt::format("x=\"{:.6g}\" y=\"{:.6g}\"", t.x, t.y + drop);
    fmt::format_to(sink, "<text {} font-size=\"{:.6g}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n",
                   place, t.size, anchor_name(t.anchor), hex(t.colour), xml_escaped(t.text));
  }
  return out + "</svg>\n";
}

}  // namespace lockstep
