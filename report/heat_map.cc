#include "report/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr double kCell = 26, kGap = 1;  // pixels
constexpr double kLeft = 53, kRight = 21, kTop = 33;
constexpr double kLow = 1.0, kHigh = 1.5;
constexpr double kFont = 14;
constexpr Colour kBlack{0, 0, 0}, kDark{38, 38, 38}, kWhite{255, 255, 255};

/// Relative luminance (WCAG 2).
double luminance(Colour c) {
  const auto linear = [](std::uint8_t v) {
    const double x = v / 255.0;
    return x <= 0.03928 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(c.red) + 0.7152 * linear(c.green) + 0.0722 * linear(c.blue);
}

/// Every how-manieth label is written, so that none overlaps the next.
std::size_t label_stride(std::size_t count) {
  const double widest = 9.0 * std::ceil(std::log10(static_cast<double>(count) + 1)) + 4;
  return static_cast<std::size_t>(std::max(1.0, std::ceil(widest / kCell)));
}

std::string column_text(const HeatColumns& of, std::size_t column) {
  const auto at = static_cast<std::int32_t>(column);
  std::string text = fmt::format("DP rank {}", at / (of.cp * of.tp));
  if (of.cp > 1) {
    text += fmt::format(", CP rank {}", at / of.tp % of.cp);
  }
  if (of.tp > 1) {
    text += fmt::format(", TP rank {}", at % of.tp);
  }
  return text;
}

void add_colour_bar(Picture& picture, double width, double height) {
  constexpr int kSteps = 256;
  const double pixels = std::min<double>(kSteps, width);
  for (double i = 0; i < pixels; ++i) {
    const double x0 = std::round(width * i / pixels), x1 = std::round(width * (i + 1) / pixels);
    picture.rectangles.push_back({kLeft + x0, kTop, x1 - x0, height,
                                  heat_colour(kLow + (kHigh - kLow) * (i + 0.5) / pixels), ""});
  }
  const int ticks = width > 250 ? 5 : 1;
  for (int i = 0; i <= ticks; ++i) {
    const double x = kLeft + std::round((width - 1) * i / ticks);
    picture.rectangles.push_back({x, kTop - 4, 1, 4, kBlack, ""});
    picture.texts.push_back({.x = x,
                             .y = kTop - 16,
                             .text = fmt::format("{:.1f}", kLow + (kHigh - kLow) * i / ticks),
                             .size = kFont,
                             .colour = kBlack});
  }
}

}  // namespace

Colour heat_colour(double slowdown) {
  constexpr std::array<Colour, 9> kReds = {{{0xff, 0xf5, 0xf0},
                                            {0xfe, 0xe0, 0xd2},
                                            {0xfc, 0xbb, 0xa1},
                                            {0xfc, 0x92, 0x72},
                                            {0xfb, 0x6a, 0x4a},
                                            {0xef, 0x3b, 0x2c},
                                            {0xcb, 0x18, 0x1d},
                                            {0xa5, 0x0f, 0x15},
                                            {0x67, 0x00, 0x0d}}};
  const double share = std::clamp((slowdown - kLow) / (kHigh - kLow), 0.0, 1.0);
  const double level = std::min(255.0, std::floor(share * 256)) / 255;
  const double at = level * 8;
  const auto below = static_cast<std::size_t>(std::min(7.0, std::floor(at)));
  const double part = at - static_cast<double>(below);
  const auto mix = [&](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(a + (b - a) * part));
  };
  const Colour a = kReds[below], b = kReds[below + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

Picture heat_map(const std::vector<double>& slowdown, const HeatColumns& of) {
  const auto peers = static_cast<std::size_t>(of.cp * of.tp);
  const std::size_t columns = static_cast<std::size_t>(of.dp) * peers;
  const std::size_t rows = slowdown.size() / columns;
  const double width = kCell * static_cast<double>(columns);
  const double bar = std::max(2.0, std::round(width / 25));
  const double top = kTop + bar + 9;
  const double bottom = top + kCell * static_cast<double>(rows);
  Picture picture;
  picture.width = kLeft + width + kRight;
  picture.height = bottom + 52;
  add_colour_bar(picture, width, bar);
  for (std::size_t i = 0; i < slowdown.size(); ++i) {
    const double x = kLeft + kCell * static_cast<double>(i % columns);
    const double y = top + kCell * static_cast<double>(i / columns);
    const Colour colour = heat_colour(slowdown[i]);
    picture.rectangles.push_back({x, y, kCell - kGap, kCell - kGap, colour,
                                  fmt::format("PP rank {}, {}: {}", i / columns,
                                              column_text(of, i % columns), slowdown[i])});
    picture.texts.push_back({.x = x + kCell / 2,
                             .y = y + kCell / 2,
                             .text = fmt::format("{:.2g}", slowdown[i]),
                             .size = kFont,
                             .colour = luminance(colour) > 0.408 ? kDark : kWhite});
  }
  const auto dp = static_cast<std::size_t>(of.dp);
  const double cells = static_cast<double>(peers);
  const std::size_t stride = (label_stride(dp) + peers - 1) / peers;
  for (std::size_t d = 0; d < dp; d += stride) {
    const double x = kLeft + kCell * (static_cast<double>(d) + 0.5) * cells;
    picture.rectangles.push_back({x, bottom, 1, 4, kBlack, ""});
    picture.texts.push_back(
        {.x = x, .y = bottom + 16, .text = std::to_string(d), .size = kFont, .colour = kBlack});
  }
  for (std::size_t d = 1; peers > 1 && d < dp; ++d) {
    const double x = kLeft + kCell * static_cast<double>(d) * cells - kGap;
    picture.rectangles.push_back({x, top, kGap, bottom - top, kBlack, ""});
  }
  for (std::size_t p = 0; p < rows; p += label_stride(rows)) {
    const double y = top + kCell * (static_cast<double>(p) + 0.5);
    picture.rectangles.push_back({kLeft - 5, y, 4, 1, kBlack, ""});
    picture.texts.push_back({.x = kLeft - 17,
                             .y = y,
                             .text = std::to_string(p),
                             .size = kFont,
                             .upwards = true,
                             .colour = kBlack});
  }
  picture.texts.push_back(
      {.x = kLeft + width / 2,
       .y = bottom + 36,
       .text = peers > 1 ? fmt::format("DP rank, {} workers each", peers) : std::string("DP rank"),
       .size = kFont,
       .colour = kBlack});
  picture.texts.push_back({.x = 14,
                           .y = (top + bottom) / 2,
                           .text = "PP rank",
                           .size = kFont,
                           .upwards = true,
                           .colour = kBlack});
  // Rows of one or two stages are shorter than the label.
  picture.height = std::max(picture.height, (top + bottom) / 2 + 34);
  return picture;
}

}  // namespace lockstep
