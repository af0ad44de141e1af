#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>
#define ZLIB_CONST
#include <libdeflate.h>

#include "base/error.h"
#include "report/picture/picture.h"
#include "report/picture/stroke_font.h"

namespace lockstep {
namespace {

/// Pixels in RGB, drawn with the share of each that is covered.
class Canvas {
 public:
  Canvas(std::size_t width, std::size_t height)
      : width_(width), height_(height), pixels_(width * height * 3, 255) {}

  void fill(const Picture::Rectangle& r) {
    const std::size_t top = clamp(r.y, height_), bottom = clamp(r.y + r.height, height_);
    const std::size_t left = clamp(r.x, width_), right = clamp(r.x + r.width, width_);
    if (top >= bottom || left >= right) {
      return;
    }
    std::uint8_t* const first = pixels_.data() + (top * width_ + left) * 3;
    for (std::size_t x = 0; x < right - left; ++x) {
      first[3 * x] = r.colour.red;
      first[3 * x + 1] = r.colour.green;
      first[3 * x + 2] = r.colour.blue;
    }
    for (std::size_t y = 1; y < bottom - top; ++y) {
      std::copy_n(first, 3 * (right - left), first + y * width_ * 3);
    }
  }

  /// A round-ended line.
  void line(double x0, double y0, double x1, double y1, double thickness, Colour colour) {
    const double reach = thickness / 2 + 1;
    const std::size_t left = clamp(std::floor(std::min(x0, x1) - reach), width_);
    const std::size_t right = clamp(std::ceil(std::max(x0, x1) + reach), width_);
    const std::size_t top = clamp(std::floor(std::min(y0, y1) - reach), height_);
    const std::size_t bottom = clamp(std::ceil(std::max(y0, y1) + reach), height_);
    const double dx = x1 - x0, dy = y1 - y0;
    const double length2 = std::max(dx * dx + dy * dy, 1e-12);
    for (std::size_t y = top; y < bottom; ++y) {
      for (std::size_t x = left; x < right; ++x) {
        const double px = static_cast<double>(x) + 0.5 - x0, py = static_cast<double>(y) + 0.5 - y0;
        const double t = std::clamp((px * dx + py * dy) / length2, 0.0, 1.0);
        const double ex = px - t * dx, ey = py - t * dy;
        const double distance = std::sqrt(ex * ex + ey * ey);
        blend(x, y, colour, std::clamp(thickness / 2 + 0.5 - distance, 0.0, 1.0));
      }
    }
  }

  std::size_t width() const { return width_; }
  std::size_t height() const { return height_; }
  const std::uint8_t* row(std::size_t y) const { return pixels_.data() + y * width_ * 3; }

 private:
  static std::size_t clamp(double value, std::size_t limit) {
    return static_cast<std::size_t>(std::clamp(std::round(value), 0.0, static_cast<double>(limit)));
  }

  void blend(std::size_t x, std::size_t y, Colour colour, double share) {
    if (share <= 0) {
      return;
    }
    std::uint8_t* pixel = pixels_.data() + (y * width_ + x) * 3;
    const std::array<std::uint8_t, 3> wanted = {colour.red, colour.green, colour.blue};
    for (std::size_t c = 0; c < 3; ++c) {
      pixel[c] = static_cast<std::uint8_t>(std::lround(pixel[c] + (wanted[c] - pixel[c]) * share));
    }
  }

  std::size_t width_, height_;
  std::vector<std::uint8_t> pixels_;
};

void draw(const Picture::Text& t, Canvas& canvas) {
  const double digit = 0.73 * t.size;
  double length = 0;
  for (const char c : t.text) {
    length += static_cast<double>(stroke_glyph(c).advance) * digit;
  }
  double along = t.anchor == Picture::Anchor::kStart    ? 0
                 : t.anchor == Picture::Anchor::kMiddle ? -length / 2
                                                        : -length;
  const double thickness = std::max(1.0, t.size / 11);
  for (const char c : t.text) {
    const Glyph glyph = stroke_glyph(c);
    for (const Stroke& s : glyph.strokes) {
      const auto place = [&](float gx, float gy) {
        const double x = along + static_cast<double>(gx) * digit;
        const double y = (0.5 - static_cast<double>(gy)) * digit;
        return t.upwards ? std::array{t.x + y, t.y - x} : std::array{t.x + x, t.y + y};
      };
      const auto a = place(s.x0, s.y0), b = place(s.x1, s.y1);
      canvas.line(a[0], a[1], b[0], b[1], thickness, t.colour);
    }
    along += static_cast<double>(glyph.advance) * digit;
  }
}

void append_big_endian(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += static_cast<char>(value >> shift & 0xFFU);
  }
}

/// Length, type, data and check sum of the two (PNG specification, section 5.3).
void append_chunk(std::string& out, const std::string& type, const std::string& data) {
  append_big_endian(out, static_cast<std::uint32_t>(data.size()));
  const std::string checked = type + data;
  out += checked;
  append_big_endian(out, libdeflate_crc32(0, checked.data(), checked.size()));
}

/// As a zlib stream.
std::string packed(const std::string& bytes) {
  constexpr int kLevel = 1;  // of 12: pictures of few colours are small anyway
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
      libdeflate_alloc_compressor(kLevel), libdeflate_free_compressor);
  LOCKSTEP_CHECK(compressor != nullptr, "memory for packing a picture");
  std::string out(libdeflate_zlib_compress_bound(compressor.get(), bytes.size()), '\0');
  const std::size_t size = libdeflate_zlib_compress(compressor.get(), bytes.data(), bytes.size(),
                                                    out.data(), out.size());
  LOCKSTEP_CHECK(size > 0, "the bound holds");
  out.resize(size);
  return out;
}

std::string encode(const Canvas& canvas) {
  std::string lines;
  for (std::size_t y = 0; y < canvas.height(); ++y) {
    lines += '\0';  // no filter
    lines.append(reinterpret_cast<const char*>(canvas.row(y)), canvas.width() * 3);
  }
  std::string header;
  append_big_endian(header, static_cast<std::uint32_t>(canvas.width()));
  append_big_endian(header, static_cast<std::uint32_t>(canvas.height()));
  header += std::string("\x08\x02\0\0\0", 5);  // 8 bits, RGB
  std::string out = "\x89PNG\r\n\x1a\n";
  append_chunk(out, "IHDR", header);
  append_chunk(out, "IDAT", packed(lines));
  append_chunk(out, "IEND", "");
  return out;
}

}  // namespace

std::string to_png(const Picture& picture) {
  constexpr double kMostPixels = 4e8;
  if (picture.width * picture.height > kMostPixels) {
    throw Error("the picture is too large for a PNG").hint("the .svg holds it");
  }
  Canvas canvas(static_cast<std::size_t>(std::ceil(picture.width)),
                static_cast<std::size_t>(std::ceil(picture.height)));
  for (const Picture::Rectangle& r : picture.rectangles) {
    canvas.fill(r);
  }
  for (const Picture::Text& t : picture.texts) {
    draw(t, canvas);
  }
  return encode(canvas);
}

}  // namespace lockstep
