#include "report/bar_chart.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/error.h"

namespace lockstep {
namespace {

constexpr double kBar = 16, kGap = 10, kTop = 44, kWidth = 420, kRight = 130, kFont = 13;
constexpr double kLetter = 7.4;  ///< width of one, about
constexpr std::array<Colour, 4> kColours = {
    {{0x33, 0x66, 0xaa}, {0xdd, 0x88, 0x33}, {0x55, 0x99, 0x55}, {0x99, 0x55, 0x99}}};
constexpr Colour kBlack{0, 0, 0};

}  // namespace

Picture bar_chart(const BarChart& chart) {
  LOCKSTEP_CHECK(chart.series.size() <= kColours.size(), "a colour a series");
  double most = 0;
  for (const std::vector<double>& series : chart.values) {
    for (const double value : series) {
      most = std::max(most, value);
    }
  }
  std::size_t letters = 4;
  for (const std::string& name : chart.categories) {
    letters = std::max(letters, name.size());
  }
  const double left = 16 + kLetter * static_cast<double>(letters);
  const double row = kBar * static_cast<double>(chart.series.size()) + kGap;
  Picture picture;
  picture.width = left + kWidth + kRight;
  picture.height = kTop + row * static_cast<double>(chart.categories.size()) + 16;
  const auto write = [&](double x, double y, std::string text, Picture::Anchor anchor) {
    picture.texts.push_back({.x = x,
                             .y = y,
                             .text = std::move(text),
                             .size = kFont,
                             .anchor = anchor,
                             .colour = kBlack});
  };
  write(8, 14, chart.title, Picture::Anchor::kStart);
  double legend = left;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    picture.rectangles.push_back({legend, 26, 10, 10, kColours[s], chart.series[s]});
    write(legend + 15, 31, chart.series[s], Picture::Anchor::kStart);
    legend += 34 + kLetter * static_cast<double>(chart.series[s].size());
  }
  picture.width = std::max(picture.width, legend);
  for (std::size_t c = 0; c < chart.categories.size(); ++c) {
    const double top = kTop + row * static_cast<double>(c);
    write(left - 8, top + (row - kGap) / 2, chart.categories[c], Picture::Anchor::kEnd);
    for (std::size_t s = 0; s < chart.series.size(); ++s) {
      const double value = chart.values[s][c];
      const double y = top + kBar * static_cast<double>(s);
      const double width = most > 0 ? kWidth * value / most : 0;
      const std::string text = fmt::format("{:.4g} {}", value, chart.unit);
      picture.rectangles.push_back(
          {left, y, width, kBar - 2, kColours[s],
           fmt::format("{}, {}: {}", chart.categories[c], chart.series[s], text)});
      write(left + width + 6, y + kBar / 2 - 1, text, Picture::Anchor::kStart);
    }
  }
  return picture;
}

void write_picture(const std::string& folder, const std::string& name, const Picture& picture) {
  write_file(fmt::format("{}/{}.svg", folder, name), to_svg(picture));
  write_file(fmt::format("{}/{}.png", folder, name), to_png(picture));
}

}  // namespace lockstep
