#include "app/simulate/run_packet.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "app/flag_value.h"
#include "app/simulate/run_network.h"
#include "simulator/network/packet_engine.h"

namespace lockstep {
namespace {

PacketOptions options_of(const SimulateOptions& options, std::vector<std::string>& warnings) {
  PacketOptions packet = packet_options(options, options.flavour == "simai", warnings);
  packet.seed = options.seed;
  // How soon a transfer may start after what it waits for: NCCL's shortest hop is 0.6 us.
  packet.lookahead = !options.send_latency.empty()
                         ? flag_value("--send-latency", options.send_latency, parse_time)
                     : options.flavour == "simai" ? Time::us(6)
                                                  : Time::ns(600);
  packet.fct_file = options.fct_file;
  packet.pfc_file = options.pfc_file;
  return packet;
}

}  // namespace

StepResult run_packet(const Workload& workload, const Topology& topology,
                      const SimulateOptions& options, Timeline* timeline) {
  std::vector<std::string> warnings;
  PacketOptions packet = options_of(options, warnings);
  StepResult result = run_on_network(workload, topology, options, timeline, [&] {
    auto engine = std::make_unique<PacketEngine>(topology, packet);
    packet.fct_file.clear();  // the records are those of the step, not of what it is compared with
    packet.pfc_file.clear();
    return engine;
  });
  result.warnings.insert(result.warnings.begin(), warnings.begin(), warnings.end());
  return result;
}

}  // namespace lockstep
