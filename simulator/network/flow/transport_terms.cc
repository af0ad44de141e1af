#include "simulator/network/flow/transport_terms.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "topologies/routing.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMostAcks = 65535;  ///< packets that an ACK may confirm

/// Attributes of ns3::Fabric that change nothing a fluid could see. (Those of packet sizes and of
/// the moment of delivery have their own place in FlowOptions.)
constexpr std::array<std::string_view, 17> kWithoutEffect = {"Payload",
                                                             "Header",
                                                             "WaitForAck",
                                                             "Train",
                                                             "Rounding",
                                                             "TieOrder",
                                                             "AckHighPriority",
                                                             "FinishedLeaveWhenMet",
                                                             "FastForward",
                                                             "DeterministicMarks",
                                                             "NackInterval",
                                                             "Pacing",
                                                             "NvSwitchFlowControl",
                                                             "Recovery",
                                                             "RecoveryChunk",
                                                             "RetransmitTimeout",
                                                             "RetryLimit"};

/// Those of the congestion controls, by their names here.
struct ControlWithoutEffect {
  std::string_view name;
  std::array<std::string_view, 9> attributes;
};
constexpr std::array<ControlWithoutEffect, 4> kControlsWithoutEffect = {{
    {"hpcc", {"Stages", "AdditiveIncrease", "MinRate"}},
    {"dctcp", {"Gain", "AdditiveIncrease", "MinRate", "ScaleWindow"}},
    {"swift",
     {"TargetDelay", "ScaleRange", "AdditiveIncrease", "Beta", "MaxDecrease", "MinWindow"}},
    {"timely",
     {"Alpha", "Beta", "Low", "High", "MinRtt", "AdditiveIncrease", "HyperIncrease", "MinRate",
      "ScaleWindow"}},
}};

/// Attributes of one object, as texts; those that are read are ticked off.
class Attributes {
 public:
  explicit Attributes(std::map<std::string, std::string> left) : left_(std::move(left)) {}

  /// ERRORS: some are left that do have an effect.
  void finish(std::span<const std::string_view> without_effect) const {
    for (const auto& [name, text] : left_) {
      if (std::ranges::find(without_effect, name) == without_effect.end()) {
        throw Error(fmt::format("the flow engine does not model attribute '{}'", printable(name)))
            .hint("--engine packet does, if 'lockstep-packet --attributes' lists it");
      }
    }
  }

  void take(const char* name, double& value, double most = kUnbounded) {
    read(
        name, [&](const std::string& text) { value = to_double(text).value_or(-1); }, value, 0.0,
        most);
  }
  void take(const char* name, std::int64_t& value, std::int64_t least = 0,
            std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    read(
        name, [&](const std::string& text) { value = to_int(text).value_or(-1); }, value, least,
        most);
  }
  void take(const char* name, Bytes& value) {
    std::int64_t bytes = value.count();
    take(name, bytes);
    value = Bytes(bytes);
  }
  void take(const char* name, bool& value) {
    int code = value ? 1 : 0;
    read(
        name,
        [&](const std::string& text) {
          code = text == "true" || text == "1" ? 1 : text == "false" || text == "0" ? 0 : -1;
        },
        code, 0, 1);
    value = code == 1;
  }
  /// At least 1 ns, as the packet engine has it.
  void take(const char* name, Time& value) {
    read(
        name, [&](const std::string& text) { value = parse_time(text); }, value, Time::ns(1),
        Time::max());
  }
  /// In bits per second.
  void take_rate(const char* name, double& value) {
    read(
        name,
        [&](const std::string& text) {
          value = static_cast<double>(parse_bandwidth(text).bits_per_second());
        },
        value, 0.0, kUnbounded);
  }

 private:
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();

  template <class F, class T>
  void read(const char* name, F set, T& value, T least, T most) {
    const auto found = left_.find(name);
    if (found == left_.end()) {
      return;
    }
    try {
      set(found->second);
    } catch (Error& problem) {
      throw std::move(problem).field(name);
    }
    if (!(value >= least && value <= most)) {
      throw Error(fmt::format("'{}' cannot be", printable(found->second)))
          .field(name)
          .expected("what the packet engine takes, too")
          .hint("'lockstep-packet --attributes' lists names and defaults");
    }
    left_.erase(found);
  }

  std::map<std::string, std::string> left_;
};

/// As lockstep-packet finds it: the largest product of rate and round trip of any two GPUs (of a
/// large cluster some senders stand for the rest).
Bytes largest_product(const Topology& topology, const RouteOptions& options, Bytes payload) {
  constexpr std::size_t kSenders = 128;
  RouteOptions single = options;
  single.spray = false;
  single.hash_nvlinks = true;
  Router router(topology, single);
  Route route;
  const std::vector<NodeId> gpus = topology.gpus();
  const std::size_t step = std::max<std::size_t>(1, gpus.size() / kSenders);
  double largest = 0;
  for (std::size_t i = 0; i < gpus.size(); i += step) {
    for (const NodeId to : gpus) {
      if (to == gpus[i]) {
        continue;
      }
      router.route({gpus[i], to}, route);
      Time round_trip;
      double rate = 1e18;
      for (const Hop& hop : route.hops) {
        const LinkClass& link = topology.class_of(LinkId(hop.port.value / 2));
        round_trip += link.delay * 2 + transfer_time(payload, link.rate);
        rate = std::min(rate, static_cast<double>(link.rate.bits_per_second()));
      }
      largest = std::max(largest, round_trip.seconds() * rate / 8);
    }
  }
  return Bytes(std::max<std::int64_t>(1, static_cast<std::int64_t>(largest)));
}

}  // namespace

TransportTerms transport_of(const PacketOptions& packet, const Topology& topology, Bytes payload) {
  TransportTerms transport;
  Attributes fabric(packet.fabric);
  fabric.take("Window", transport.window);
  fabric.take("WindowFactor", transport.window_factor);
  fabric.take("AckInterval", transport.ack_interval, 1, kMostAcks);
  fabric.take("AckSize", transport.ack_size);
  fabric.take("AckFirst", transport.ack_first);
  fabric.take("Ecn", transport.ecn);
  fabric.take("KminPerGbps", transport.kmin_per_gbps);
  fabric.take("KmaxPerGbps", transport.kmax_per_gbps);
  fabric.take("Pmax", transport.pmax, 1);
  fabric.take("Pfc", transport.pfc);
  fabric.take("Buffer", transport.buffer);
  fabric.take("PortReserve", transport.port_reserve);
  fabric.take("HeadroomPackets", transport.headroom_packets);
  fabric.take("ResumeOffset", transport.resume_offset);
  fabric.take("PfcAlpha", transport.pfc_alpha);
  fabric.take("PfcAlphaByRate", transport.pfc_alpha_by_rate);
  fabric.take("DynamicThreshold", transport.pfc_dynamic);
  fabric.take("PfcThreshold", transport.pfc_threshold);
  double loss = 0;
  fabric.take("LossRate", loss);
  if (loss > 0) {
    throw Error("the flow engine does not model losses")
        .field("LossRate")
        .hint("leave it (ERROR_RATE_PER_LINK in a SimAI.conf) at 0, or use --engine packet");
  }
  fabric.finish(kWithoutEffect);
  transport.ecn_rows = packet.ecn;
  transport.seed = packet.seed;
  if (packet.global_window && transport.window == Bytes()) {
    transport.window = largest_product(topology, packet.routes, payload);
  }
  Attributes congestion(packet.congestion_attributes);
  if (packet.congestion == "dcqcn") {
    transport.congestion = TransportTerms::Congestion::kDcqcn;
    DcqcnParameters& dcqcn = transport.dcqcn;
    congestion.take("Gain", dcqcn.gain, 1);
    congestion.take("AlphaInterval", dcqcn.alpha_interval);
    congestion.take("DecreaseInterval", dcqcn.decrease_interval);
    congestion.take("IncreaseInterval", dcqcn.increase_interval);
    congestion.take("FastRecovery", dcqcn.fast_recovery);
    congestion.take_rate("AdditiveIncrease", dcqcn.additive);
    congestion.take_rate("HyperIncrease", dcqcn.hyper);
    congestion.take_rate("MinRate", dcqcn.least);
    congestion.take("ClampTargetRate", dcqcn.clamp_target);
    congestion.take("ScaleWindow", dcqcn.scale_window);
  } else if (packet.congestion == "hpcc") {
    transport.congestion = TransportTerms::Congestion::kHpcc;
    congestion.take("Target", transport.hpcc_target);
  } else {
    constexpr std::array<std::string_view, 5> kFair = {"none", "dctcp", "receiver", "swift",
                                                       "timely"};
    if (std::ranges::find(kFair, packet.congestion) == kFair.end()) {
      throw Error(fmt::format("the flow engine knows no congestion control '{}'",
                              printable(packet.congestion)))
          .expected("none, dcqcn, dctcp, hpcc, receiver, swift or timely");
    }
    transport.congestion = TransportTerms::Congestion::kFair;
  }
  const auto* const control =
      std::ranges::find(kControlsWithoutEffect, packet.congestion, &ControlWithoutEffect::name);
  congestion.finish(control == kControlsWithoutEffect.end()
                        ? std::span<const std::string_view>()
                        : std::span<const std::string_view>(control->attributes));
  return transport;
}

}  // namespace lockstep
