#include "app/real_rates.h"

#include <string>
#include <string_view>

#include "analysis/compare/preset.h"
#include "app/flag_value.h"
#include "base/error.h"
#include "base/units.h"

namespace lockstep {
namespace {

constexpr Bytes kEager(4096);  // messages from there on take a rendezvous

Time times(Time time, double factor) { return Time::seconds(time.seconds() * factor); }

}  // namespace

std::optional<NcclRates> real_rates(const NetworkFlags& flags, bool simai_flavour) {
  if (flags.preset.empty()) {
    return std::nullopt;
  }
  if (simai_flavour) {
    throw Error("flavour simai has SimAI's rates and latencies").field("--preset");
  }
  const auto named = [](std::string_view name) { return compare::preset_named(std::string(name)); };
  return flag_value("--preset", flags.preset, named).system.rates;
}

void refuse_real_rates(const NetworkFlags& flags) {
  if (!flags.preset.empty()) {
    throw Error("the packet engine takes links as they are")
        .field("--preset")
        .hint("use --engine flow");
  }
}

void take_real_rates(const NcclRates& rates, FlowOptions& flow) {
  flow.local_share = rates.local_efficiency;
  flow.network_share = rates.network_efficiency;
}

void take_real_latencies(const NcclRates& rates, CollectiveRequest& request) {
  if (!request.hop_latency) {
    return;
  }
  const bool simple = request.protocol == Protocol::kSimple;
  HopLatency& hops = *request.hop_latency;
  hops.local = times(hops.local, rates.local_latency * (simple ? rates.local_simple : 1));
  hops.network = times(hops.network, rates.network_latency * (simple ? rates.simple_penalty : 1));
  if (request.bytes >= kEager) {
    hops.network += Time::seconds(rates.rendezvous_us * 1e-6);
  }
  hops.launch = Time::seconds(rates.floor_us * 1e-6);
}

}  // namespace lockstep
