#include "generator/compute/memory_efficiency.h"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

constexpr double kMeasuredMultiprocessors = 132;

constexpr MemoryEfficiency fit(double launch_us, double share, double terabytes_per_second) {
  return {Time::ns(static_cast<std::int64_t>(launch_us * 1000)), share,
          terabytes_per_second * 1e12};
}

struct BothWays {
  MemoryEfficiency forward, backward;
};
constexpr BothWays both(const MemoryEfficiency& each) { return {each, each}; }

// In the order of MemoryWork.
constexpr std::array<BothWays, kMemoryWorkNames.size()> kTable{{
    both(fit(4.5, 0.945, 4.4)),                   // stream
    both(fit(11, 0.97, 4.6)),                     // one way
    both(fit(4, 0.89, 4.0)),                      // update
    {fit(6.5, 0.83, 2.9), fit(22, 0.9, 2.4)},     // LayerNorm
    {fit(6, 0.91, 3.7), fit(11.5, 0.55, 2.0)},    // RMSNorm
    {fit(3.5, 0.75, 2.35), fit(5, 0.82, 2.85)},   // activation
    {fit(3.5, 0.51, 2.2), fit(6, 0.87, 4.2)},     // loss
    {fit(4, 0.89, 3.7), fit(20, 0.5, 0.88)},      // embedding
    both(fit(6.5, 0.69, 3.35)),                   // column sum
    {fit(3.5, 0.68, 2.8), fit(6.5, 0.88, 4.0)},   // permute
    {fit(5, 0.875, 3.9), fit(3.5, 0.645, 2.65)},  // unpermute
    {fit(19, 0.9, 0.3), fit(6.5, 0.9, 1.2)},      // router
}};

}  // namespace

const MemoryEfficiency& memory_efficiency(MemoryWork work, bool backward) {
  const BothWays& ways = kTable.at(static_cast<std::size_t>(work));
  return backward ? ways.backward : ways.forward;
}

Time memory_time(double bytes, MemoryWork work, bool backward, const GpuSpec& gpu) {
  if (bytes == 0) {
    return {};
  }
  const MemoryEfficiency& kernel = memory_efficiency(work, backward);
  const double memory = kernel.share * gpu.memory_bandwidth.bytes_per_second();
  const double sms = kernel.rate_Bps * gpu.multiprocessors / kMeasuredMultiprocessors;
  return kernel.launch + Time::seconds(bytes / std::min(memory, sms));
}

}  // namespace lockstep
