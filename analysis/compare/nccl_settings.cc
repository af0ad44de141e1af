#include "analysis/compare/nccl_settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace lockstep::compare {
namespace {

using Name = std::pair<std::string_view, std::uint32_t>;

constexpr std::uint32_t bit(NcclAlgorithm algorithm) {
  return 1U << static_cast<unsigned>(algorithm);
}
constexpr std::uint32_t bit(Protocol protocol) { return 1U << static_cast<unsigned>(protocol); }

constexpr std::array<Name, 7> kAlgorithms = {{{"ring", bit(NcclAlgorithm::kRing)},
                                              {"tree", bit(NcclAlgorithm::kTree)},
                                              {"nvls", bit(NcclAlgorithm::kNvls)},
                                              {"nvlstree", bit(NcclAlgorithm::kNvlsTree)},
                                              {"pat", bit(NcclAlgorithm::kPat)},
                                              {"collnetdirect", bit(NcclAlgorithm::kCollnetDirect)},
                                              {"collnetchain", bit(NcclAlgorithm::kCollnetChain)}}};
constexpr std::array<Name, 3> kProtocols = {{{"ll", bit(Protocol::kLl)},
                                             {"ll128", bit(Protocol::kLl128)},
                                             {"simple", bit(Protocol::kSimple)}}};

std::string setting_of(const CommSetting& setting, const std::string& name) {
  const auto found = setting.env.find(name);
  return found == setting.env.end() ? "" : to_lower(found->second);
}

/// "ring,tree" or "^ring" as bits; nothing if no name is known. `unknown` gets those that are not.
std::optional<std::uint32_t> list_of(std::string_view text, std::span<const Name> names,
                                     std::vector<std::string>* unknown) {
  const bool excludes = text.starts_with('^');
  text.remove_prefix(excludes ? 1 : 0);
  std::uint32_t bits = 0;
  for (const std::string_view word : split(text, ',')) {
    const auto name = std::ranges::find(names, trim(word), &Name::first);
    if (name != names.end()) {
      bits |= name->second;
    } else if (!trim(word).empty() && unknown != nullptr) {
      unknown->emplace_back(trim(word));
    }
  }
  return bits == 0 ? std::nullopt : std::optional(excludes ? ~bits : bits);
}

/// What such a variable leaves for an operation.
std::uint32_t left_by(std::string_view text, std::span<const Name> names, CommType op,
                      std::vector<std::string>* unknown = nullptr) {
  std::uint32_t left = ~0U;
  for (const std::string_view part : split(text, ';')) {
    const std::size_t colon = part.find(':');
    const bool of_one = colon != std::string_view::npos;
    if (of_one && comm_type_in(part.substr(0, colon)) != op && unknown == nullptr) {
      continue;
    }
    const auto bits = list_of(trim(part.substr(of_one ? colon + 1 : 0)), names, unknown);
    left = bits.value_or(left);
  }
  return left;
}

}  // namespace

NcclWays nccl_ways(const CommSetting& setting, CommType op) {
  return {left_by(setting_of(setting, "NCCL_ALGO"), kAlgorithms, op),
          left_by(setting_of(setting, "NCCL_PROTO"), kProtocols, op)};
}

NcclTask within(const NcclTask& task, const NcclWays& ways, const NcclSystem& system) {
  const bool free = !task.wishes.algorithm && !task.wishes.protocol;
  if (ways.all() || !free || task.ranks < 2) {
    return task;
  }
  NcclFabric fabric = system.fabric;  // with the NICs that the ranks of a server use
  const double share =
      static_cast<double>(task.ranks) / task.servers / std::max(1, system.gpus_per_server);
  fabric.nics = std::max(
      1, static_cast<std::int32_t>(std::lround(std::min(1.0, share) * system.nics_per_server)));
  NcclTask found = task;
  double best = INFINITY;
  // A protocol that is named alone is a wish: NCCL then takes it where it would be off by itself.
  const bool one_protocol =
      std::ranges::find(kProtocols, ways.protocols, &Name::second) != kProtocols.end();
  for (const Protocol protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple}) {
    if ((ways.protocols & bit(protocol)) == 0) {
      continue;
    }
    NcclWishes wishes = task.wishes;
    if (one_protocol) {
      wishes.protocol = protocol;
    }
    for (const NcclCandidate& candidate : nccl_candidates(
             task.op, task.bytes, even_group(task.ranks, task.servers), fabric, wishes)) {
      if ((ways.algorithms & bit(candidate.algorithm)) != 0 && candidate.protocol == protocol &&
          candidate.time_us < best) {
        best = candidate.time_us;
        found.wishes.algorithm = candidate.algorithm;
        found.wishes.protocol = candidate.protocol;
      }
    }
  }
  return found;
}

std::vector<std::string> unmodelled_settings(const CommSetting& setting) {
  std::vector<std::string> notes;
  const bool far = setting.servers > 1;
  for (const auto& [name, names] :
       {std::pair<std::string, std::span<const Name>>{"NCCL_ALGO", kAlgorithms},
        std::pair<std::string, std::span<const Name>>{"NCCL_PROTO", kProtocols}}) {
    std::vector<std::string> unknown;
    left_by(setting_of(setting, name), names, CommType::kNone, &unknown);
    for (const std::string& word : unknown) {
      notes.push_back(
          fmt::format("{}: '{}' is none that is known here: left out", name, printable(word, 40)));
    }
  }
  constexpr std::array<std::string_view, 15> kLeftOut = {
      "NCCL_COLLNET_ENABLE", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NCHANNELS",
      "NCCL_MAX_CTAS",       "NCCL_MIN_CTAS",      "NCCL_NTHREADS",
      "NCCL_BUFFSIZE",       "NCCL_P2P_DISABLE",   "NCCL_P2P_LEVEL",
      "NCCL_SHM_DISABLE",    "NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_READ",
      "NCCL_TUNER_PLUGIN",   "NCCL_CROSS_NIC",     "NCCL_IB_QPS_PER_CONNECTION"};
  for (const std::string_view name : kLeftOut) {
    const std::string value = setting_of(setting, std::string(name));
    const bool off = value == "0" && (name.ends_with("_DISABLE") || name.ends_with("_ENABLE"));
    if (value.empty() || off) {
      continue;
    }
    notes.push_back(fmt::format("{}={} is not modelled", name, printable(value, 40)));
  }
  const std::uint32_t collnet =
      bit(NcclAlgorithm::kCollnetDirect) | bit(NcclAlgorithm::kCollnetChain);
  if ((left_by(setting_of(setting, "NCCL_ALGO"), kAlgorithms, CommType::kAllReduce) & ~collnet) ==
      0) {
    notes.emplace_back(
        "NCCL_ALGO leaves reductions in the network's switches alone, which are not "
        "modelled: predicted is NCCL's choice without them");
  }
  const bool no_ib = setting_of(setting, "NCCL_IB_DISABLE") == "1";
  const bool socket = to_lower(setting.transport) == "socket" ||
                      setting_of(setting, "NCCL_NET") == "socket" || no_ib;
  if (far && socket) {
    notes.push_back(
        fmt::format("NCCL went over TCP ({}): the prediction is of the NICs' own transport",
                    no_ib ? "NCCL_IB_DISABLE=1" : "network 'Socket'"));
  }
  return notes;
}

}  // namespace lockstep::compare
