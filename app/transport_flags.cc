#include "app/transport_flags.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/flag_value.h"
#include "app/network_flags.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/warnings.h"
#include "simulator/network/packet_engine_simai_conf.h"

namespace lockstep {
namespace {

/// "NAME=VALUE" into a map.
void set_attributes(const char* name, const std::vector<std::string>& settings,
                    std::map<std::string, std::string>& attributes) {
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw Error(fmt::format("'{}' sets nothing", printable(setting)))
          .field(name)
          .expected("NAME=VALUE, such as Payload=4096")
          .hint("'lockstep-packet --attributes' lists names and defaults");
    }
    std::string value = setting.substr(equals + 1);
    if (const auto unit = value.find_first_not_of("0123456789.");
        unit != 0 && unit != std::string::npos && value.ends_with('B')) {
      value = std::to_string(flag_value(name, value, parse_bytes).count());  // 32MiB
    }
    attributes[setting.substr(0, equals)] = std::move(value);
  }
}

/// ERRORS: a SimAI.conf takes down a link that is not there.
void check_faults(const PacketOptions& packet, const Topology& topology) {
  for (const PacketOptions::LinkFault& fault : packet.faults) {
    const auto joins = [&](const Link& link) {
      return (link.a == fault.a && link.b == fault.b) || (link.a == fault.b && link.b == fault.a);
    };
    if (std::ranges::none_of(topology.links, joins)) {
      throw Error(fmt::format("no link joins the nodes {} and {}", fault.a.value, fault.b.value))
          .at(fault.file, fault.line)
          .field("LINK_DOWN")
          .expected("two nodes of the topology that a link joins");
    }
  }
}

/// The links that a SimAI.conf takes down, as the flow engine names them.
std::vector<LinkFault> link_faults(const PacketOptions& packet, const Topology& topology) {
  std::vector<LinkFault> faults;
  for (const PacketOptions::LinkFault& each : packet.faults) {
    LinkFault fault{{}, each.from, each.until, packet.rerouting};
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
      const Link& link = topology.links[i];
      if ((link.a == each.a && link.b == each.b) || (link.a == each.b && link.b == each.a)) {
        fault.links.emplace_back(i);
      }
    }
    faults.push_back(std::move(fault));
  }
  return faults;
}

/// What of losses the flow engine passes over.
void tell_losses(const Topology& topology, const PacketOptions& packet,
                 std::vector<std::string>& warnings) {
  if (std::ranges::any_of(topology.link_classes,
                          [](const LinkClass& kind) { return kind.error_rate > 0; })) {
    warnings.emplace_back(
        "links of the topology lose packets; the flow engine does not model that, --engine packet "
        "does");
  }
  const auto pfc = packet.fabric.find("Pfc");
  if (pfc != packet.fabric.end() && (pfc->second == "false" || pfc->second == "0")) {
    warnings.emplace_back(
        "without Pfc switches drop packets; the flow engine does not model that, --engine packet "
        "does");
  }
}

/// An attribute of packets as a size, if it is set.
void take_size(const std::map<std::string, std::string>& attributes, const char* name,
               Bytes& value) {
  const auto found = attributes.find(name);
  if (found != attributes.end()) {
    value = flag_value("--fabric", found->second, parse_bytes);
  }
}

}  // namespace

void define_transport_flags(CLI::App& app, TransportFlags& flags, const char* group) {
  app.add_option("--conf", flags.conf, "SimAI.conf: packets, windows, switches, congestion control")
      ->group(group);
  app.add_option(
         "--congestion", flags.congestion,
         "congestion control (packet engine by default: dcqcn): none, dctcp, hpcc, receiver,\n"
         "swift, timely")
      ->group(group);
  app.add_option("--fabric", flags.fabric,
                 "attribute of the fabric, NAME=VALUE ('lockstep-packet --attributes')")
      ->group(group);
  app.add_option("--congestion-set", flags.congestion_settings,
                 "the same of the congestion control")
      ->group(group);
}

void define_sample_flags(CLI::App& app, TransportFlags& flags, const char* group) {
  CLI::Option* samples =
      app.add_option(
             "--samples", flags.samples,
             "CSV file for what ports and connections do over time: bytes, utilisation, queues,\n"
             "windows, rates (docs/formats/samples.md)")
          ->group(group);
  app.add_option("--sample-interval", flags.sample_interval,
                 "time between samples (default 10us; doubles where the file would be too long)")
      ->needs(samples)
      ->group(group);
}

PacketOptions packet_options(const NetworkFlags& flags, bool simai_flavour,
                             const Topology& topology, std::vector<std::string>& warnings) {
  PacketOptions packet = simai_flavour ? simai_packet_options() : PacketOptions{};
  if (!flags.conf.empty()) {
    Warnings found;
    const FileText text(flags.conf, Bytes(1 << 20));
    apply_simai_conf(text.view(), flags.conf, packet, found);
    for (const Warnings::Entry& entry : found.entries()) {
      warnings.push_back(entry.text);
    }
    check_faults(packet, topology);
  }
  if (!flags.congestion.empty()) {
    choose_congestion(packet, flags.congestion);
  }
  if (!flags.mtu.empty()) {
    packet.fabric["Payload"] = std::to_string(flag_value("--mtu", flags.mtu, parse_bytes).count());
  }
  if (!flags.header.empty()) {
    packet.fabric["Header"] =
        std::to_string(flag_value("--header", flags.header, parse_bytes).count());
  }
  set_attributes("--fabric", flags.fabric, packet.fabric);
  const auto of_ways = [](const std::string& word) { return word.starts_with("WayChoice="); };
  if (!flags.spray.value_or(false) && std::ranges::any_of(flags.fabric, of_ways)) {
    warnings.emplace_back(
        "--fabric WayChoice changes nothing where each flow has one path, by hash: add --spray");
  }
  const auto of_interval = [](const std::string& word) { return word.starts_with("AckInterval="); };
  if (std::ranges::none_of(flags.fabric, of_interval)) {
    take_ack_bytes(packet);  // of packets of the size they have now
  }
  set_attributes("--congestion-set", flags.congestion_settings, packet.congestion_attributes);
  packet.samples_file = flags.samples;
  if (!flags.sample_interval.empty()) {
    packet.sample_interval = flag_value("--sample-interval", flags.sample_interval, parse_time);
    if (packet.sample_interval < Time::ns(1)) {
      throw Error(fmt::format("'{}' is too short", printable(flags.sample_interval)))
          .field("--sample-interval")
          .expected("at least 1ns");
    }
  }
  packet.routes.pxn = takes_pxn(flags, simai_flavour);
  packet.routes.spray = flags.spray.value_or(false);
  packet.routes.rail_affinity = flags.rail_affinity;
  return packet;
}

void tell_unmapped_rates(const PacketOptions& packet, const Topology& topology,
                         std::vector<std::string>& warnings) {
  const auto is = [&](const char* name, const char* value) {
    const auto found = packet.fabric.find(name);
    return found != packet.fabric.end() && found->second == value;
  };
  const bool marks = packet.congestion == "dcqcn" || packet.congestion == "dctcp";
  if (!marks || is("Ecn", "false") || !is("KmaxPerGbps", "0")) {
    return;
  }
  std::set<Bandwidth> rates;
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    const Bandwidth rate = topology.class_of(LinkId(i)).rate;
    if ((topology.nodes[link.a.index()].kind == NodeKind::kSwitch ||
         topology.nodes[link.b.index()].kind == NodeKind::kSwitch) &&
        std::ranges::find(packet.ecn, rate, &PacketOptions::EcnRow::rate) == packet.ecn.end()) {
      rates.insert(rate);
    }
  }
  for (const Bandwidth rate : rates) {
    warnings.push_back(
        fmt::format("switches mark all that waits at ports of {}, as SimAI's do: KMIN_MAP and "
                    "KMAX_MAP have no row for them",
                    to_text(rate)));
  }
}

void add_transport(const NetworkFlags& flags, bool simai_flavour, const Topology& topology,
                   std::uint64_t seed, FlowOptions& flow, std::vector<std::string>& warnings) {
  if (!flags.any()) {
    tell_losses(topology, {}, warnings);
    return;
  }
  PacketOptions packet = packet_options(flags, simai_flavour, topology, warnings);
  packet.seed = seed;
  tell_losses(topology, packet, warnings);
  take_size(packet.fabric, "Payload", flow.payload);
  take_size(packet.fabric, "Header", flow.header);
  flow.faults = link_faults(packet, topology);
  TransportTerms terms = transport_of(packet, topology, flow.payload);
  if (simai_flavour && flags.only_conf() && terms.congestion != TransportTerms::Congestion::kHpcc) {
    warnings.emplace_back(
        "of a SimAI.conf the flow engine heeds sizes of packets and links that go down; windows, "
        "marks and pauses where one of --congestion, --fabric and --congestion-set is given "
        "(docs/models.md, convoys on the flow engine)");
    return;
  }
  tell_unmapped_rates(packet, topology, warnings);
  flow.transport = std::move(terms);
}

}  // namespace lockstep
