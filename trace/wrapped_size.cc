#include "trace/wrapped_size.h"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr double kWrap = 4294967296.0;  // 2^32

}  // namespace

bool unwrap_size(CommRow& row, Warnings& warnings) {
  const auto bytes = static_cast<double>(row.bytes.count());
  if (bytes >= kWrap) {
    return true;
  }
  const double told = row.algbw_Bps * row.time_s;
  const double missing = std::round((told - bytes) / kWrap);
  const double right = bytes + missing * kWrap;
  const double digits = row.algbw_Bps > 0 ? 0.005 + 0.005e9 / row.algbw_Bps : 0;
  if (bytes >= -kWrap / 2 && missing >= 1 && right > 0 && right < 1e15 &&
      std::abs(right - told) <= std::min(digits * told, kWrap / 16)) {
    row.bytes = Bytes(static_cast<std::int64_t>(right));
    warnings.add(
        "sizes past 32 bits that the log has without their multiples of 4 GiB; the bandwidths "
        "beside them tell the right ones");
    return true;
  }
  if (bytes < 0) {
    warnings.add(
        "rows of negative sizes, such as 32 bits give from 2 GiB on, were passed over: nothing "
        "beside them tells the right ones");
    return false;
  }
  return true;
}

bool GrowingSizes::may_be(const CommRow& row, Warnings& warnings) {
  constexpr double kNear = 1 << 28, kMost = 0.75 * kWrap;
  auto& [last, wrapped] = last_[row.in_place ? 1 : 0];
  const auto before = static_cast<double>(last.bytes.count());
  const double unsaid =
      before >= kNear && static_cast<double>(row.bytes.count()) < kWrap
          ? before * (row.time_s / last.time_s) - static_cast<double>(row.bytes.count())
          : 0;
  wrapped = unsaid > kMost && (wrapped || row.bytes < last.bytes);
  if (wrapped) {
    warnings.add(
        "rows whose sizes fall while their times rise, as if counted in 32 bits, were passed "
        "over: nothing beside them tells the right ones");
    return false;
  }
  last = row;
  return true;
}

}  // namespace lockstep
