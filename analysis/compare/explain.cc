#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "analysis/compare/predict.h"
#include "base/error.h"
#include "base/text.h"
#include "simulator/collectives/nccl_tuner.h"

namespace lockstep::compare {
namespace {

/// The way of doing it whose time is nearest to the measured one, if that is within a tenth.
std::string other_way(const ComparedRow& row, const NcclSystem& system) {
  double nearest = 0.1;
  std::string found;
  for (const NcclAlgorithm algorithm : {NcclAlgorithm::kRing, NcclAlgorithm::kTree,
                                        NcclAlgorithm::kNvls, NcclAlgorithm::kNvlsTree}) {
    for (const Protocol protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple}) {
      NcclTask task = row.task;
      task.wishes.algorithm = algorithm;
      task.wishes.protocol = protocol;
      const bool same =
          algorithm == row.predicted.choice.algorithm && protocol == row.predicted.choice.protocol;
      if (same || row.predicted.choice.algorithm == NcclAlgorithm::kPointToPoint ||
          nccl_candidates(task.op, task.bytes, even_group(task.ranks, task.servers), system.fabric,
                          task.wishes)
              .empty()) {
        continue;
      }
      const double error = std::abs(nccl_time(task, system).time_us / row.measured_us - 1);
      if (error < nearest) {
        nearest = error;
        found =
            fmt::format("{} with {}", our_name(algorithm, task.op, task.ranks), name_of(protocol));
      }
    }
  }
  return found;
}

using Curve = std::map<std::int64_t, double>;  // measured us by bytes

/// Why a measurement itself looks wrong; empty if it does not.
std::string suspicion(const ComparedRow& row, const Curve& curve) {
  const auto here = curve.find(row.task.bytes.count());
  for (auto later = std::next(here); later != curve.end(); ++later) {
    if (row.measured_us > 1.5 * later->second) {
      return fmt::format("suspicious measurement: {} bytes took less, {:.4g} us", later->first,
                         later->second);
    }
  }
  if (here == curve.begin() && curve.size() > 2 &&
      row.measured_us > 1.3 * std::next(here)->second) {
    return "suspicious measurement: the first size, not warmed up";
  }
  return {};
}

/// What the links of a server, or a GPU's in it, take at least for the bytes that they must carry
/// at their nominal rates, whatever algorithm does it.
struct Bound {
  double us = 0;
  bool network = false;
};

Bound bound_of(const ComparedRow& row, const NcclSystem& system) {
  const double bytes = static_cast<double>(row.task.bytes.count()), n = row.task.ranks;
  const double servers = row.task.servers, k = n / servers;
  const auto gigabytes = [](Bandwidth rate) { return rate.bytes_per_second() / 1e9; };
  constexpr double kPcie[] = {16, 32, 64, 64};  // of 16 lanes, by architecture
  const NcclFabric& fabric = system.fabric;
  const double link = fabric.nvlink > Bandwidth() ? gigabytes(fabric.nvlink)
                                                  : kPcie[static_cast<std::size_t>(fabric.arch)];
  const double share = std::min(1.0, k / std::max(1, system.gpus_per_server));
  const double nics = std::max(1.0, std::round(share * system.nics_per_server));
  double near = 0, far = 0;  // bytes of a GPU in its server, of a server's NICs
  switch (row.task.op) {
    case CommType::kAllReduce:
      near = k > 1 ? (fabric.nvswitch ? bytes : 2 * bytes * (k - 1) / k) : 0;
      far = servers < 3 ? bytes * (servers - 1) : 2 * bytes * (servers - 1) / servers;
      break;
    case CommType::kAllGather:
    case CommType::kReduceScatter:
      near = bytes * (k - 1) / k;
      far = bytes * (servers - 1) / servers;
      break;
    case CommType::kAllToAll: {
      const double senders = row.pattern.empty() ? k : 1;
      near = bytes * (k - 1) / n;
      far = senders * bytes * (n - k) / n;
      break;
    }
    default:
      near = k > 1 ? bytes : 0;
      far = servers > 1 ? bytes : 0;
  }
  const double near_us = near / link / 1e3, far_us = far / (nics * gigabytes(fabric.nic)) / 1e3;
  return {std::max(near_us, far_us), far_us > near_us};
}

/// Why a row is so far off.
std::string reason(const ComparedRow& row, const Curve& curve, const TableSetting& table) {
  const NcclSystem& system = table.preset.system;
  std::string why = suspicion(row, curve);
  if (!why.empty()) {
    return why;
  }
  if (row.row->waits && row.error() < 0) {
    return "the time of one rank: it may include waiting for the others";
  }
  const bool socket = to_lower(row.setting->transport) == "socket";
  if (socket && row.task.servers > 1 && row.error() < 0) {
    return "NCCL went over TCP (network 'Socket'), not the NICs' own transport";
  }
  const Bound bound = bound_of(row, system);
  const char* link = bound.network ? "NICs" : "links in the server";
  if (row.measured_us < bound.us) {
    return fmt::format(
        "below the bandwidth bound: at nominal rate the {} need {:.4g} us; other hardware than the "
        "preset's?",
        link, bound.us);
  }
  if (const std::string way = row.pattern.empty() ? other_way(row, system) : ""; !way.empty()) {
    return "as if by another algorithm than guessed: " + way;
  }
  // An engine does not split its time: what the bytes do not need is the hops'.
  const NcclTime& time = row.predicted;
  const bool split = time.latency_us > 0 || time.wire_us > 0;
  const double hops = split ? time.latency_us : time.time_us - bound.us;
  if (hops > (split ? time.wire_us : bound.us)) {
    return fmt::format("latency-bound: {:.0f} % of the prediction are hops and the start",
                       100 * hops / time.time_us);
  }
  return fmt::format(
      "bandwidth-bound: the {} ran at {:.0f} % of their nominal rate, {:.0f} % are predicted", link,
      100 * bound.us / row.measured_us, 100 * bound.us / row.predicted.time_us);
}

}  // namespace

void explain_rows(std::vector<ComparedRow>& rows, const CompareWishes& wishes, double limit) {
  using Key = std::tuple<const CommSetting*, std::string_view, std::int32_t, std::int32_t, bool>;
  const auto key = [](const ComparedRow& row) {
    return Key{row.setting, row.op_name(), row.task.ranks, row.group, row.row->in_place};
  };
  std::map<Key, Curve> curves;
  for (const ComparedRow& row : rows) {
    double& time =
        curves[key(row)].try_emplace(row.task.bytes.count(), row.measured_us).first->second;
    time = std::min(time, row.measured_us);
  }
  for (ComparedRow& row : rows) {
    const TableSetting table =
        std::abs(row.error()) > limit ? table_setting(*row.setting, wishes) : TableSetting();
    row.why = std::abs(row.error()) > limit ? reason(row, curves[key(row)], table) : "";
    if (row.row->wrong > 0) {
      row.why = fmt::format("suspicious measurement: {:.0f} elements came out wrong{}{}",
                            row.row->wrong, row.why.empty() ? "" : "; ", row.why);
    }
  }
}

}  // namespace lockstep::compare
