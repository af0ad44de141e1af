#include "generator/compute/memory_efficiency.h"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

constexpr double kMeasuredMultiprocessors = 132;

constexpr MemoryEfficiency of_memory(double launch_us, double share, double share_hbm3e) {
  return {Time::ns(static_cast<std::int64_t>(launch_us * 1000)), share, share_hbm3e, 0};
}
constexpr MemoryEfficiency of_sms(double launch_us, double share, double terabytes_per_second) {
  return {Time::ns(static_cast<std::int64_t>(launch_us * 1000)), share, share,
          terabytes_per_second * 1e12};
}

struct BothWays {
  MemoryEfficiency forward, backward;
};
constexpr BothWays both(const MemoryEfficiency& each) { return {each, each}; }

// In the order of MemoryWork.
constexpr std::array<BothWays, kMemoryWorkNames.size()> kTable{{
    both(of_memory(4.5, 0.945, 0.915)),                      // stream
    both(of_memory(11, 0.957, 0.957)),                       // one way
    both(of_memory(4, 0.89, 0.833)),                         // update
    {of_sms(6.5, 0.83, 2.9), of_sms(22, 0.9, 2.4)},          // LayerNorm
    {of_sms(6, 0.91, 3.7), of_sms(11.5, 0.55, 2.0)},         // RMSNorm
    {of_sms(3.5, 0.75, 2.35), of_sms(5, 0.82, 2.85)},        // activation
    {of_sms(3.5, 0.51, 2.2), of_memory(6, 0.873, 0.873)},    // loss
    {of_sms(4, 0.89, 3.7), of_sms(20, 0.5, 0.88)},           // embedding
    both(of_memory(6.5, 0.69, 0.69)),                        // column sum
    {of_sms(3.5, 0.68, 2.8), of_memory(6.5, 0.88, 0.825)},   // permute
    {of_memory(5, 0.875, 0.815), of_sms(3.5, 0.645, 2.65)},  // unpermute
    {of_sms(19, 0.9, 0.3), of_sms(6.5, 0.9, 1.2)},           // router
}};

/// The table of GPUs does not tell kinds of memory.
bool has_hbm3e(const GpuSpec& gpu) {
  return gpu.family == GpuFamily::kBlackwell || gpu.name == "H200";
}

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
  const double share = has_hbm3e(gpu) ? kernel.share_hbm3e : kernel.share;
  double rate = share * gpu.memory_bandwidth.bytes_per_second();
  if (kernel.rate_Bps > 0) {
    const double sms = gpu.multiprocessors / kMeasuredMultiprocessors;
    rate = std::min(rate, kernel.rate_Bps * sms * gpu.vector_share);
  }
  return kernel.launch + Time::seconds(bytes / rate);
}

}  // namespace lockstep
