#include "simulator/network/packet_engine_options.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

WireSizes wire_sizes(const PacketOptions& options) {
  const auto number = [&](const char* name, std::int64_t otherwise, std::int64_t least) {
    const auto found = options.fabric.find(name);
    if (found == options.fabric.end()) {
      return otherwise;
    }
    const std::optional<double> value = to_double(found->second);
    if (!value || *value < static_cast<double>(least) || *value > 1 << 24) {
      throw Error(fmt::format("'{}' cannot be", printable(found->second)))
          .field(name)
          .expected(fmt::format("a number from {} to {}", least, 1 << 24));
    }
    return static_cast<std::int64_t>(*value);
  };
  return {Bytes(number("Payload", 4096, 1)), Bytes(number("Header", 62, 0)),
          Bytes(number("AckSize", 60, 0)), number("AckInterval", 4, 1)};
}

void take_ack_bytes(PacketOptions& options) {
  if (options.ack_bytes) {
    const std::int64_t payload = wire_sizes(options).payload.count();
    const std::int64_t packets = (options.ack_bytes->count() + payload - 1) / payload;
    options.fabric["AckInterval"] = std::to_string(std::clamp<std::int64_t>(packets, 1, 65535));
  }
}

void choose_congestion(PacketOptions& options, const std::string& name) {
  options.congestion = name;
  options.congestion_attributes.clear();
  const auto found = options.attributes_of.find(name);
  if (found != options.attributes_of.end()) {
    options.congestion_attributes = found->second;
  }
  if (options.simai_headers) {
    // Data: PPP 14, IPv4 20, UDP 8, sequence number and priority group 10, and telemetry. An ACK:
    // PPP 14, IPv4 20, its own 16 and the telemetry echoed, at least an Ethernet frame's 60.
    const int telemetry = name == "hpcc" ? 42 : name == "timely" ? 8 : 0;
    options.fabric["Header"] = std::to_string(52 + telemetry);
    options.fabric["AckSize"] = std::to_string(std::max(60, 50 + telemetry));
  }
}

std::vector<PacketOptions::EcnRow> simai_ecn_rows() {
  std::vector<PacketOptions::EcnRow> rows;
  const auto row = [&](int gbps, std::int64_t kmin_kb, std::int64_t kmax_kb, double pmax) {
    rows.push_back({Bandwidth::gbps(gbps), Bytes(kmin_kb * 1000), Bytes(kmax_kb * 1000), pmax});
  };
  row(25, 100, 400, 0.2);
  row(50, 200, 800, 0.2);
  row(100, 400, 1600, 0.2);
  row(200, 300, 1200, 0.8);
  row(400, 800, 3200, 0.2);
  row(1600, 600, 2400, 0.2);
  return rows;
}

PacketOptions simai_packet_options() {
  PacketOptions options;
  options.routes.hash_nvlinks = true;
  options.fabric = {
      {"Payload", "9000"},
      {"AckInterval", "1"},
      {"WaitForAck", "true"},
      {"Rounding", "DownToNanosecond"},
      {"AckHighPriority", "false"},
      {"AckFirst", "false"},
      {"FinishedLeaveWhenMet", "true"},
      {"NvSwitchFlowControl", "false"},
      {"Buffer", "33554432"},
      {"PortReserve", "4096"},
      {"HeadroomPackets", "0"},
      {"PfcAlpha", "0.125"},
      {"PfcAlphaByRate", "true"},
      {"ResumeOffset", "3072"},
      {"KminPerGbps", "0"},  // rates without a row of their own mark whatever waits
      {"KmaxPerGbps", "0"},
      {"Train", "1"},
  };
  options.ecn = simai_ecn_rows();
  options.attributes_of["dcqcn"] = {
      {"AlphaInterval", "1us"}, {"DecreaseInterval", "4us"},    {"IncreaseInterval", "900us"},
      {"FastRecovery", "1"},    {"AdditiveIncrease", "50Mbps"}, {"HyperIncrease", "100Mbps"},
      {"MinRate", "100Mbps"},   {"Gain", "0.00390625"},         {"ClampTargetRate", "false"},
      {"ScaleWindow", "true"},
  };
  options.attributes_of["hpcc"] = {
      {"Target", "0.95"}, {"Stages", "0"}, {"AdditiveIncrease", "50Mbps"}, {"MinRate", "100Mbps"}};
  options.attributes_of["timely"] = {{"AdditiveIncrease", "50Mbps"},
                                     {"HyperIncrease", "100Mbps"},
                                     {"MinRate", "100Mbps"},
                                     {"ScaleWindow", "true"}};
  options.attributes_of["dctcp"] = {{"AdditiveIncrease", "1Gbps"},
                                    {"MinRate", "100Mbps"},
                                    {"Gain", "0.00390625"},
                                    {"ScaleWindow", "true"}};
  options.simai_headers = true;
  choose_congestion(options, "dcqcn");
  options.fresh_ports = true;
  options.global_window = true;
  return options;
}

}  // namespace lockstep
