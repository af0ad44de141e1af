#include "app/network_flags.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

#include "app/compare/run_compare.h"
#include "app/flag_value.h"
#include "base/error.h"
#include "base/text.h"
#include "simulator/collectives/building.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/nccl_fabric.h"

namespace lockstep {

void define_network_flags(CLI::App& app, NetworkFlags& flags, const char* group) {
  app.add_option("--send-latency", flags.send_latency,
                 "software and NIC time of every transfer, in place of NCCL's latencies by\n"
                 "protocol and hop (simai: 6us)")
      ->group(group);
  app.add_option(
         "--preset", flags.preset,
         "flow engine: NAME of a kind of cluster, or a file of 'lockstep calibrate': links\n"
         "run at the part of their rates, and hops take the time, that it reaches")
      ->group(group);
  app.add_option("--mtu", flags.mtu, "payload of a full packet (default 4096B; simai 9000B)")
      ->group(group);
  app.add_option("--header", flags.header, "wire bytes a packet adds (default 62B; simai 52B)")
      ->group(group);
  CLI::Option* pxn =
      app.add_flag("--pxn", flags.pxn,
                   "cross-rail traffic takes NVLink to the destination's rail, as NCCL does it\n"
                   "(default; with --flavour simai only where given, and only\n"
                   "ring all-reduces and reduce-scatters)")
          ->group(group);
  app.add_flag("--no-pxn", flags.no_pxn, "cross-rail traffic crosses the spines")
      ->excludes(pxn)
      ->group(group);
  app.add_flag_function(
         "--spray,!--no-spray", [&flags](std::int64_t count) { flags.spray = count > 0; },
         "spread every transfer over all shortest paths, as adaptive routing does, or give a\n"
         "flow one path, by the hash of its 5-tuple (ECMP); default: sprayed, for steps on the\n"
         "flow engine but for SimAI's tables of layers")
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
      ->check(CLI::TypeValidator<bool>(""))
      ->group(group);
  app.add_flag("--rail-affinity", flags.rail_affinity,
               "GPUs with several NICs choose by channel, not by hash")
      ->group(group);
}

bool takes_pxn(const NetworkFlags& flags, bool simai_flavour) {
  return !simai_flavour && !flags.no_pxn;
}

FlowOptions flow_options(const NetworkFlags& flags, bool simai_flavour) {
  FlowOptions flow = simai_flavour ? simai_flow_options() : FlowOptions{};
  if (!flags.mtu.empty()) {
    flow.payload = flag_value("--mtu", flags.mtu, parse_bytes);
  }
  if (!flags.header.empty()) {
    flow.header = flag_value("--header", flags.header, parse_bytes);
  }
  flow.routes.pxn = takes_pxn(flags, simai_flavour);
  flow.routes.spray = flags.spray.value_or(false);
  flow.routes.rail_affinity = flags.rail_affinity;
  return flow;
}

void define_choice_flags(CLI::App& app, NetworkFlags& flags, const char* group) {
  app.add_option("--algorithm", flags.algorithm,
                 "NAME, or OP=NAME,… as allreduce=tree,allgather=ring; default: as NCCL chooses")
      ->group(group);
  app.add_option("--protocol", flags.protocol, "simple, ll or ll128; default: as NCCL chooses")
      ->group(group);
  app.add_option("--channels", flags.channels, "default: as NCCL chooses")
      ->check(CLI::Range(0, 1024))
      ->group(group);
  app.add_flag(
         "--nvls", flags.nvls,
         "all-reduces of whole servers of Hopper or Blackwell GPUs add in the NVSwitch (flavour\n"
         "simai: those of TP groups on H100s or H800s)")
      ->group(group);
  app.add_option("--nccl-version", flags.nccl_version,
                 "whose choice and latencies to take, 2.8.0 to 2.30.7 (the default)")
      ->group(group);
}

std::vector<std::string> flags_beside_formulas(const NetworkFlags& flags) {
  std::vector<std::string> typed;
  const auto look = [&](const char* name, bool given) {
    if (given) {
      typed.emplace_back(name);
    }
  };
  look("--algorithm", !flags.algorithm.empty() && flags.algorithm != "ring");
  look("--protocol", !flags.protocol.empty());
  look("--channels", flags.channels > 0);
  look("--nccl-version", !flags.nccl_version.empty());
  look("--spray", flags.spray.has_value());
  look("--rail-affinity", flags.rail_affinity);
  look("--mtu", !flags.mtu.empty());
  look("--header", !flags.header.empty());
  look("--conf", !flags.conf.empty());
  look("--congestion", !flags.congestion.empty());
  look("--fabric", !flags.fabric.empty());
  look("--congestion-set", !flags.congestion_settings.empty());
  look("--pxn", flags.pxn);
  look("--no-pxn", flags.no_pxn);
  look("--nvls", flags.nvls);
  look("--send-latency", !flags.send_latency.empty());
  look("--preset", !flags.preset.empty());
  return typed;
}

std::vector<std::string> unheeded_by_formulas(const std::vector<std::string>& flags) {
  constexpr std::array<std::string_view, 5> kOfSimai{"--conf", "--pxn", "--no-pxn", "--nvls",
                                                     "--send-latency"};
  std::vector<std::string> warnings;
  for (const std::string& flag : flags) {
    if (std::ranges::find(kOfSimai, flag) == kOfSimai.end()) {
      throw Error("the analytic engine has formulas of rings, no transfers that this could change")
          .field(flag)
          .hint("use --engine flow");
    }
    warnings.push_back(flag + " changes nothing in the analytic engine");
  }
  return warnings;
}

NcclWishes nccl_wishes(const NetworkFlags& flags) {
  NcclWishes wishes;
  if (!flags.nccl_version.empty()) {
    wishes.version = flag_value("--nccl-version", flags.nccl_version, parse_nccl_version);
  }
  if (!flags.protocol.empty()) {
    wishes.protocol = protocol_named(to_lower(flags.protocol));
    if (!wishes.protocol) {
      throw Error("unknown protocol '" + printable(flags.protocol) + "'")
          .field("--protocol")
          .expected("simple, ll or ll128");
    }
  }
  return wishes;
}

std::string algorithm_name(const NetworkFlags& flags, CommType op) {
  if (flags.algorithm.empty()) {
    return {};
  }
  std::string for_all, for_this;
  for (const std::string_view part : split(flags.algorithm, ',')) {
    const std::size_t equals = part.find('=');
    const std::string name(trim(equals == part.npos ? part : part.substr(equals + 1)));
    if (equals == part.npos) {
      const auto all = collective_algorithms();
      if (std::ranges::find(all, name, &CollectiveAlgorithm::name) == all.end()) {
        std::vector<std::string_view> names;
        std::ranges::transform(all, std::back_inserter(names), &CollectiveAlgorithm::name);
        throw Error("no algorithm '" + printable(name) + "'")
            .field("--algorithm")
            .expected(join(names, ", "));
      }
      for_all = name;
      continue;
    }
    const std::string_view what = trim(part.substr(0, equals));
    const auto of = comm_type_named(to_lower(what));
    if (!of || *of == CommType::kNone) {
      throw Error("unknown collective '" + printable(what) + "'")
          .field("--algorithm")
          .expected("NAME, or OP=NAME with allreduce, allgather, reducescatter, alltoall, …");
    }
    try {
      algorithm_named(name, *of);
    } catch (Error& error) {
      throw std::move(error).field("--algorithm");
    }
    for_this = *of == op ? name : for_this;
  }
  return for_this.empty() ? for_all : for_this;
}

double error_budget(const std::string& text) {
  if (text.empty()) {
    return 0;
  }
  const double share = flag_value("--error-budget", text, parse_share);
  if (!(share < 1)) {
    throw Error("'" + printable(text) + "' leaves nothing sure")
        .field("--error-budget")
        .expected("less than 100%, such as 0.1%");
  }
  return share;
}

bool nvls_by_flag(const NetworkFlags& flags, CommType op, const GroupShape& shape) {
  return flags.nvls && op == CommType::kAllReduce && shape.fabric.nvswitch &&
         shape.fabric.arch >= GpuArch::kHopper && fewest_a_server(shape) >= 8;
}

bool simai_knows_nvls(std::string_view gpu_type) {
  const std::string series = gpu_series(gpu_type);
  return series == "h100" || series == "h800";
}

const CollectiveAlgorithm* algorithm_if_able(const NetworkFlags& flags, CommType op) {
  const std::string name = algorithm_name(flags, op);
  for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
    if (algorithm->name == name && std::ranges::find(algorithm->ops, op) != algorithm->ops.end()) {
      return algorithm;
    }
  }
  return nullptr;
}

}  // namespace lockstep
