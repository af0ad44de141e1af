#include "generator/compute/memory_efficiency.h"

#include <algorithm>
#include <array>

#include "generator/compute/gemm_efficiency.h"

namespace lockstep {
namespace {

constexpr double kMeasuredMultiprocessors = 132;

constexpr MemoryEfficiency bound_by_memory(double share, double launch_us = 5) {
  return {Time::ns(static_cast<std::int64_t>(launch_us * 1000)), share, 0};
}
constexpr MemoryEfficiency bound_by_sms(double launch_us, double terabytes_per_second) {
  return {Time::ns(static_cast<std::int64_t>(launch_us * 1000)), kMemoryEfficiency,
          terabytes_per_second * 1e12};
}

struct BothWays {
  MemoryEfficiency forward, backward;
};
constexpr BothWays both(const MemoryEfficiency& each) { return {each, each}; }

// In the order of MemoryWork.
constexpr std::array<BothWays, kMemoryWorkNames.size()> kTable{{
    both(bound_by_memory(kMemoryEfficiency)),                          // stream
    both(bound_by_memory(0.955)),                                      // one way
    both(bound_by_memory(0.83)),                                       // update
    {bound_by_sms(6.5, 2.9), bound_by_sms(20, 2.4)},                   // LayerNorm
    {bound_by_sms(6, 3.7), bound_by_sms(12, 2.0)},                     // RMSNorm
    {bound_by_sms(4, 2.35), bound_by_sms(4.5, 2.85)},                  // activation
    {bound_by_sms(6.5, 2.25), bound_by_memory(kMemoryEfficiency)},     // loss
    {bound_by_sms(5, 3.7), bound_by_sms(13, 0.9)},                     // embedding
    both(bound_by_sms(7, 3.35)),                                       // column sum
    {bound_by_sms(5, 2.65), bound_by_memory(kMemoryEfficiency, 8.5)},  // permute
    {bound_by_memory(kMemoryEfficiency, 6.5), bound_by_sms(5, 2.55)},  // unpermute
    {bound_by_sms(14, 0.3), bound_by_sms(6.5, 1.2)},                   // router
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
  const MemoryEfficiency& fit = memory_efficiency(work, backward);
  const double memory = fit.share * gpu.memory_bandwidth.bytes_per_second();
  const double sms = fit.rate_Bps * gpu.multiprocessors / kMeasuredMultiprocessors;
  return fit.launch + Time::seconds(bytes / (sms > 0 ? std::min(memory, sms) : memory));
}

}  // namespace lockstep
