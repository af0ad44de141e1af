#include "app/simulate/run_packet.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "app/flag_value.h"
#include "app/simulate/run_network.h"
#include "base/error.h"
#include "base/heap.h"
#include "simulator/collectives/nccl_constants.h"
#include "simulator/network/checked_network.h"
#include "simulator/network/packet_engine.h"

namespace lockstep {
namespace {

PacketOptions options_of(const SimulateOptions& options, const Topology& topology,
                         std::vector<std::string>& warnings) {
  PacketOptions packet = packet_options(options, options.flavour == "simai", topology, warnings);
  tell_unmapped_rates(packet, topology, warnings);
  packet.seed = options.seed;
  // How soon a transfer may start after what it waits for.
  const double hop_us = shortest_hop_us(nccl_constants(nccl_wishes(options).version, {}));
  packet.lookahead = !options.send_latency.empty()
                         ? flag_value("--send-latency", options.send_latency, parse_time)
                     : options.flavour == "simai" ? Time::us(6)
                                                  : Time::seconds(hop_us * 1e-6);
  if (!options.traffic_class.empty()) {
    if (!options.error_budget.empty()) {
      throw Error("collectives cannot be told again where one class may wait for all of another")
          .field("--error-budget")
          .hint("leave out --error-budget or --traffic-class");
    }
    const auto classes =
        flag_value("--traffic-class", options.traffic_class, TrafficClasses::parse);
    packet.fabric.try_emplace("Classes", std::to_string(classes.needed()));
  }
  packet.fct_file = options.fct_file;
  packet.pfc_file = options.pfc_file;
  return packet;
}

/// What the replay must know of the network to tell collectives again; nothing where it is not to,
/// or where packets may be lost, of which no two runs are alike.
std::optional<RecallOptions> recall_options(const SimulateOptions& options,
                                            const PacketOptions& packet) {
  RecallOptions recall;
  recall.error_budget = error_budget(options.error_budget);
  if (recall.error_budget <= 0 || !packet.faults.empty()) {
    return std::nullopt;
  }
  if (!packet.samples_file.empty()) {
    throw Error("samples would be of those collectives alone that are simulated")
        .field("--samples")
        .hint("leave out --error-budget");
  }
  const WireSizes sizes = wire_sizes(packet);
  recall.wait_for_last = options.flavour != "simai";
  recall.payload = sizes.payload;
  recall.header = sizes.header;
  recall.ack = sizes.ack;
  recall.ack_interval = sizes.ack_interval;
  recall.routes = packet.routes;
  recall.fresh_ports = packet.fresh_ports;
  return recall;
}

}  // namespace

StepResult run_packet(const Workload& workload, const Topology& topology,
                      const SimulateOptions& options, Timeline* timeline) {
  constexpr std::size_t kHeap = std::size_t{32} << 20;
  std::vector<std::string> warnings;
  PacketOptions packet = options_of(options, topology, warnings);
  grow_heap(kHeap);
  StepResult result = run_on_network(
      workload, topology, options, timeline,
      [&]() -> std::unique_ptr<NetworkEngine> {
        std::unique_ptr<NetworkEngine> engine = std::make_unique<PacketEngine>(topology, packet);
        packet.fct_file.clear();  // the records are those of the step, not of what it is compared
        packet.pfc_file.clear();  // with
        packet.samples_file.clear();
        if (options.paranoid) {
          return std::make_unique<CheckedNetwork>(std::move(engine), topology);
        }
        return engine;
      },
      {}, recall_options(options, packet));
  result.routes = packet.routes.spray ? "sprayed" : "hashed";
  result.warnings.insert(result.warnings.begin(), warnings.begin(), warnings.end());
  return result;
}

}  // namespace lockstep
