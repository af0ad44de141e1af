#include "app/real_rates.h"

#include <string>
#include <string_view>

#include "analysis/compare/preset.h"
#include "app/flag_value.h"
#include "base/error.h"
#include "base/units.h"

namespace lockstep {
namespace {

double us_of(Time time) { return time.seconds() * 1e6; }
Time of_us(double us) { return Time::seconds(us * 1e-6); }

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
  const auto bytes = static_cast<double>(request.bytes.count());
  HopLatency& hops = *request.hop_latency;
  hops.local = of_us(rates.local_hop(us_of(hops.local), simple));
  hops.network = of_us(rates.network_hop(us_of(hops.network), simple, bytes));
  hops.launch = of_us(rates.floor_us);
}

}  // namespace lockstep
