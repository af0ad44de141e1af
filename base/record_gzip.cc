#include "base/record_gzip.h"

#include <array>
#include <bit>
#include <cstring>
#include <libdeflate.h>
#include <utility>

namespace lockstep {
namespace {

constexpr std::size_t kWindow = 1 << 15, kShortest = 3, kLongest = 258;
constexpr std::size_t kTextPart = 1 << 15, kPackedPart = 1 << 18;

/// Bits as they go into the stream, lowest first.
struct Code {
  std::uint32_t bits = 0;
  std::uint8_t count = 0;
};

constexpr std::uint32_t reversed(std::uint32_t value, unsigned count) {
  std::uint32_t out = 0;
  for (unsigned i = 0; i < count; ++i) {
    out |= (value >> i & 1U) << (count - 1 - i);
  }
  return out;
}

/// The fixed code of a literal or length symbol.
constexpr Code symbol_code(unsigned symbol) {
  if (symbol < 144) {
    return {reversed(0x30 + symbol, 8), 8};
  }
  if (symbol < 256) {
    return {reversed(0x190 + symbol - 144, 9), 9};
  }
  if (symbol < 280) {
    return {reversed(symbol - 256, 7), 7};
  }
  return {reversed(0xC0 + symbol - 280, 8), 8};
}

constexpr std::array<Code, 256> make_literals() {
  std::array<Code, 256> out{};
  for (unsigned i = 0; i < 256; ++i) {
    out[i] = symbol_code(i);
  }
  return out;
}

/// Symbol and extra bits of every length (RFC 1951, section 3.2.5).
constexpr std::array<Code, kLongest + 1> make_lengths() {
  std::array<Code, kLongest + 1> out{};
  unsigned length = kShortest;
  for (unsigned symbol = 257; symbol < 285; ++symbol) {
    const unsigned extra = symbol < 265 ? 0 : (symbol - 261) / 4;
    const Code code = symbol_code(symbol);
    for (unsigned i = 0; i < 1U << extra && length < kLongest; ++i, ++length) {
      out[length] = {code.bits | i << code.count, static_cast<std::uint8_t>(code.count + extra)};
    }
  }
  out[kLongest] = symbol_code(285);
  return out;
}

/// Each byte with its bits the other way round.
constexpr std::uint64_t reversed_bytes(std::uint64_t v) {
  v = (v >> 4 & 0x0F0F0F0F0F0F0F0FU) | (v & 0x0F0F0F0F0F0F0F0FU) << 4;
  v = (v >> 2 & 0x3333333333333333U) | (v & 0x3333333333333333U) << 2;
  return (v >> 1 & 0x5555555555555555U) | (v & 0x5555555555555555U) << 1;
}

constexpr std::array<Code, 256> kLiterals = make_literals();
constexpr std::array<Code, kLongest + 1> kLengths = make_lengths();

/// The codes of the distance symbols.
constexpr std::array<std::uint8_t, 32> make_distances() {
  std::array<std::uint8_t, 32> out{};
  for (unsigned symbol = 0; symbol < 32; ++symbol) {
    out[symbol] = static_cast<std::uint8_t>(reversed(symbol, 5));
  }
  return out;
}
constexpr std::array<std::uint8_t, 32> kDistances = make_distances();

/// Symbol (5 bits) and extra bits of a distance.
Code distance_code(std::size_t distance) {
  const auto d = static_cast<std::uint32_t>(distance - 1);
  if (d < 4) {
    return {kDistances[d], 5};
  }
  const auto extra = static_cast<unsigned>(std::bit_width(d)) - 2;
  const std::uint32_t symbol = 2 * (extra + 1) + (d >> extra & 1U);
  return {kDistances[symbol] | (d & ((1U << extra) - 1)) << 5,
          static_cast<std::uint8_t>(5 + extra)};
}

std::uint64_t little_endian(std::uint64_t value) {
  return std::endian::native == std::endian::little ? value : __builtin_bswap64(value);
}

void store_little_endian(unsigned char* to, std::uint64_t value) {
  value = little_endian(value);
  std::memcpy(to, &value, 8);
}

std::uint64_t load_little_endian(const char* from) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, 8);
  return little_endian(value);
}

bool has_high_byte(std::uint64_t bytes) { return (bytes & 0x8080808080808080U) != 0; }

/// The codes of eight bytes below 128: the 8 bits of 0x30 + byte, first bit first.
std::uint64_t eight_literals(std::uint64_t bytes) {
  return reversed_bytes(bytes + 0x3030303030303030U);
}

}  // namespace

/// At most 56 bits at a time: fewer than 8 wait in the buffer.
inline void RecordGzip::bits(std::uint64_t value, unsigned count) {
  bit_buffer_ |= value << bit_count_;
  store_little_endian(packed_.data() + packed_size_, bit_buffer_);
  bit_count_ += count;
  packed_size_ += bit_count_ / 8;
  bit_buffer_ >>= bit_count_ & ~7U;
  bit_count_ &= 7U;
  if (packed_size_ >= kPackedPart) [[unlikely]] {
    flush_packed();
  }
}

inline void RecordGzip::keep(std::string_view text) {
  if (text.size() > kTextPart) {
    flush_text();
    check_sum_ = libdeflate_crc32(check_sum_, text.data(), text.size());
  } else {
    if (text_size_ + text.size() > kTextPart) {
      flush_text();
    }
    std::memcpy(text_.data() + text_size_, text.data(), text.size());
    text_size_ += text.size();
  }
  position_ += text.size();
}

RecordGzip::RecordGzip(std::string path)
    : file_(std::move(path)), text_(kTextPart), packed_(kPackedPart + 4096) {
  constexpr std::array<unsigned char, 10> kHeader = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
  std::memcpy(packed_.data(), kHeader.data(), kHeader.size());
  packed_size_ = kHeader.size();
  bits(0b011, 3);  // the last block, fixed codes
}

void RecordGzip::write(std::string_view text) {
  literals(text);
  keep(text);
}

inline bool RecordGzip::in_reach(const Part& part) const {
  const std::size_t length = part.text.size();
  return part.written_at != kNever && position_ - part.written_at <= kWindow &&
         length >= kShortest && length <= kLongest;
}

void RecordGzip::write(Part& part) {
  if (in_reach(part)) {
    reference(part.text.size(), static_cast<std::size_t>(position_ - part.written_at));
  } else {
    literals(part.text);
  }
  part.written_at = position_;
  keep(part.text);
}

void RecordGzip::write(Part& whole, Part& head, Part& tail) {
  if (in_reach(whole)) {
    write(whole);
    return;
  }
  whole.written_at = position_;
  write(head);
  write(tail);
}

void RecordGzip::commit() {
  flush_text();
  const Code end = symbol_code(256);
  bits(end.bits, end.count);
  bits(0, (8 - bit_count_) % 8);
  bits(check_sum_, 32);
  bits(static_cast<std::uint32_t>(position_), 32);
  flush_packed();
  file_.commit();
}

void RecordGzip::literals(std::string_view text) {
  std::size_t i = 0;
  // Members would be read anew after each byte that is written.
  std::uint64_t buffer = bit_buffer_;
  const unsigned count = bit_count_;
  unsigned char* to = packed_.data() + packed_size_;
  for (; i + 8 <= text.size(); i += 8) {
    const std::uint64_t bytes = load_little_endian(text.data() + i);
    if (has_high_byte(bytes)) {
      break;
    }
    const std::uint64_t eight = eight_literals(bytes);
    store_little_endian(to, buffer | eight << count);
    buffer = eight >> 1 >> (63 - count);  // nothing if count is 0
    to += 8;
    if (to >= packed_.data() + kPackedPart) [[unlikely]] {
      packed_size_ = static_cast<std::size_t>(to - packed_.data());
      flush_packed();
      to = packed_.data();
    }
  }
  bit_buffer_ = buffer;
  packed_size_ = static_cast<std::size_t>(to - packed_.data());
  // What is left of a longer text likewise, by way of its last eight bytes.
  if (const std::size_t left = text.size() - i; left > 0 && left < 8 && i > 0) {
    const std::uint64_t bytes =
        load_little_endian(text.data() + text.size() - 8) >> (64 - 8 * left);
    if (!has_high_byte(bytes)) {
      bits(eight_literals(bytes) & ((std::uint64_t{1} << 8 * left) - 1),
           static_cast<unsigned>(8 * left));
      return;
    }
  }
  for (; i < text.size(); ++i) {
    const Code code = kLiterals[static_cast<unsigned char>(text[i])];
    bits(code.bits, code.count);
  }
}

void RecordGzip::reference(std::size_t length, std::size_t distance) {
  const Code a = kLengths[length], b = distance_code(distance);
  bits(a.bits | std::uint64_t{b.bits} << a.count, a.count + 0U + b.count);
}

void RecordGzip::flush_text() {
  check_sum_ = libdeflate_crc32(check_sum_, text_.data(), text_size_);
  text_size_ = 0;
}

void RecordGzip::flush_packed() {
  file_.write({reinterpret_cast<const char*>(packed_.data()), packed_size_});
  packed_size_ = 0;
}

}  // namespace lockstep
