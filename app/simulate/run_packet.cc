#include "app/simulate/run_packet.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "app/flag_value.h"
#include "app/simulate/run_network.h"
#include "base/file.h"
#include "simulator/network/packet_engine.h"
#include "simulator/network/packet_engine_simai_conf.h"

namespace lockstep {
namespace {

/// "NAME=VALUE" into a map.
void set_attributes(const char* name, const std::vector<std::string>& settings,
                    std::map<std::string, std::string>& attributes) {
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw Error(fmt::format("'{}' sets nothing", setting))
          .field(name)
          .expected("NAME=VALUE, such as Payload=4096")
          .hint("'lockstep-packet --attributes' lists names and defaults");
    }
    attributes[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
}

PacketOptions packet_options(const SimulateOptions& options, std::vector<std::string>& warnings) {
  PacketOptions packet = options.flavour == "simai" ? simai_packet_options() : PacketOptions{};
  if (!options.conf.empty()) {
    Warnings found;
    const FileText text(options.conf, 1 << 20);
    apply_simai_conf(text.view(), options.conf, packet, found);
    for (const Warnings::Entry& entry : found.entries()) {
      warnings.push_back(entry.text);
    }
  }
  if (!options.mtu.empty()) {
    packet.fabric["Payload"] =
        std::to_string(flag_value("--mtu", options.mtu, parse_bytes).count());
  }
  if (!options.header.empty()) {
    packet.fabric["Header"] =
        std::to_string(flag_value("--header", options.header, parse_bytes).count());
  }
  if (!options.congestion.empty()) {
    packet.congestion = options.congestion;
    packet.congestion_attributes.clear();
  }
  set_attributes("--fabric", options.fabric, packet.fabric);
  set_attributes("--congestion-set", options.congestion_settings, packet.congestion_attributes);
  packet.routes.pxn = options.pxn;
  packet.routes.spray = options.spray;
  packet.routes.rail_affinity = options.rail_affinity;
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
  PacketOptions packet = packet_options(options, warnings);
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
