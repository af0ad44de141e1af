#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace lockstep {

[[noreturn]] void throw_overflow(const char* type);

namespace detail {
constexpr std::int64_t checked_add(std::int64_t a, std::int64_t b, const char* type) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw_overflow(type);
  }
  return sum;
}
constexpr std::int64_t checked_sub(std::int64_t a, std::int64_t b, const char* type) {
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(a, b, &difference)) {
    throw_overflow(type);
  }
  return difference;
}
constexpr std::int64_t checked_mul(std::int64_t a, std::int64_t b, const char* type) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw_overflow(type);
  }
  return product;
}
}  // namespace detail

/// A duration or a date on a simulation's clock, in whole picoseconds. int64 spans 106 days; an
/// operation that leaves that range throws Error instead of wrapping.
class Time {
 public:
  constexpr Time() = default;
  static constexpr Time ps(std::int64_t v) { return Time(v); }
  static constexpr Time ns(std::int64_t v) { return Time(detail::checked_mul(v, 1'000, "time")); }
  static constexpr Time us(std::int64_t v) {
    return Time(detail::checked_mul(v, 1'000'000, "time"));
  }
  /// Nearest picosecond. ERRORS: out of range or not finite.
  static Time seconds(double v);
  static constexpr Time max() { return Time(std::numeric_limits<std::int64_t>::max()); }

  constexpr std::int64_t count_ps() const { return ps_; }
  /// Whole nanoseconds, rounded towards zero.
  constexpr std::int64_t count_ns() const { return ps_ / 1'000; }
  constexpr double seconds() const { return static_cast<double>(ps_) * 1e-12; }
  constexpr double us() const { return static_cast<double>(ps_) * 1e-6; }

  friend constexpr Time operator+(Time a, Time b) {
    return Time(detail::checked_add(a.ps_, b.ps_, "time"));
  }
  friend constexpr Time operator-(Time a, Time b) {
    return Time(detail::checked_sub(a.ps_, b.ps_, "time"));
  }
  friend constexpr Time operator*(Time a, std::int64_t k) {
    return Time(detail::checked_mul(a.ps_, k, "time"));
  }
  friend constexpr Time operator*(std::int64_t k, Time a) { return a * k; }
  friend constexpr Time operator/(Time a, std::int64_t k) { return Time(a.ps_ / k); }
  friend constexpr double operator/(Time a, Time b) {
    return static_cast<double>(a.ps_) / static_cast<double>(b.ps_);
  }
  constexpr Time& operator+=(Time b) { return *this = *this + b; }
  constexpr Time& operator-=(Time b) { return *this = *this - b; }
  friend constexpr auto operator<=>(Time, Time) = default;

 private:
  constexpr explicit Time(std::int64_t v) : ps_(v) {}
  std::int64_t ps_ = 0;
};

/// An amount of data. Overflow throws Error.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t v) : bytes_(v) {}
  constexpr std::int64_t count() const { return bytes_; }

  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    return Bytes(detail::checked_add(a.bytes_, b.bytes_, "size"));
  }
  friend constexpr Bytes operator-(Bytes a, Bytes b) {
    return Bytes(detail::checked_sub(a.bytes_, b.bytes_, "size"));
  }
  friend constexpr Bytes operator*(Bytes a, std::int64_t k) {
    return Bytes(detail::checked_mul(a.bytes_, k, "size"));
  }
  friend constexpr Bytes operator*(std::int64_t k, Bytes a) { return a * k; }
  friend constexpr Bytes operator/(Bytes a, std::int64_t k) { return Bytes(a.bytes_ / k); }
  friend constexpr double operator/(Bytes a, Bytes b) {
    return static_cast<double>(a.bytes_) / static_cast<double>(b.bytes_);
  }
  constexpr Bytes& operator+=(Bytes b) { return *this = *this + b; }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;

 private:
  std::int64_t bytes_ = 0;
};

/// A rate of data in whole bits per second (the field's link speeds are whole in that unit).
class Bandwidth {
 public:
  constexpr Bandwidth() = default;
  static constexpr Bandwidth bits_per_second(std::int64_t v) { return Bandwidth(v); }
  static constexpr Bandwidth gbps(std::int64_t v) {
    return Bandwidth(detail::checked_mul(v, 1'000'000'000, "bandwidth"));
  }
  /// Nearest bit per second. ERRORS: out of range or not finite.
  static Bandwidth bytes_per_second(double v);

  constexpr std::int64_t bits_per_second() const { return bps_; }
  constexpr double bytes_per_second() const { return static_cast<double>(bps_) / 8.0; }
  friend constexpr auto operator<=>(Bandwidth, Bandwidth) = default;

 private:
  constexpr explicit Bandwidth(std::int64_t v) : bps_(v) {}
  std::int64_t bps_ = 0;
};

/// Time to put `size` on a wire of `rate`, rounded up to the picosecond. ERRORS: rate <= 0.
Time transfer_time(Bytes size, Bandwidth rate);

/// Read quantities as people write them; the whole text must be one number and one unit.
///   time       fs ps ns us ms s min h            "1.5us"; a bare 0 is allowed
///   size       B kB MB GB TB (powers of 1000), KiB MiB GiB TiB (of 1024), none = bytes
///   bandwidth  [k M G T Ki Mi Gi Ti] then bps, b/s, bit/s (bits) or Bps, B/s (bytes)
/// ERRORS: Error that names the text and the units; negative, non-finite and out-of-range values
/// too. Locate it (file, line, field) at the caller.
Time parse_time(std::string_view text);
Bytes parse_bytes(std::string_view text);
Bandwidth parse_bandwidth(std::string_view text);

/// For people: four significant digits and a fitting unit ("1.234 ms", "64 MiB", "400 Gbps").
std::string to_text(Time time);
std::string to_text(Bytes size);
std::string to_text(Bandwidth rate);

}  // namespace lockstep
