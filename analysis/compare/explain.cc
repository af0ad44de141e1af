#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "analysis/compare/predict.h"
#include "base/error.h"
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
  if (row.row->wrong > 0) {
    return fmt::format("suspicious measurement: {:.0f} elements came out wrong", row.row->wrong);
  }
  if (here == curve.begin() && curve.size() > 2 &&
      row.measured_us > 1.3 * std::next(here)->second) {
    return "suspicious measurement: the first size, not warmed up";
  }
  return {};
}

}  // namespace

void explain_rows(std::vector<ComparedRow>& rows, const CompareWishes& wishes, double limit) {
  using Key = std::tuple<const CommSetting*, CommType, std::int32_t, bool>;
  const auto key = [](const ComparedRow& row) {
    return Key{row.setting, row.task.op, row.task.ranks, row.row->in_place};
  };
  std::map<Key, Curve> curves;
  for (const ComparedRow& row : rows) {
    double& time =
        curves[key(row)].try_emplace(row.task.bytes.count(), row.measured_us).first->second;
    time = std::min(time, row.measured_us);
  }
  for (ComparedRow& row : rows) {
    if (std::abs(row.error()) <= limit) {
      continue;
    }
    const NcclSystem system = table_setting(*row.setting, wishes).preset.system;
    NcclSystem ideal = system;
    ideal.rates.local_efficiency = ideal.rates.nvls_efficiency = ideal.rates.network_efficiency = 1;
    ideal.rates.duplex = 1;
    const NcclTime bound = nccl_time(row.task, ideal, row.predicted.choice);
    row.why = suspicion(row, curves[key(row)]);
    if (!row.why.empty()) {
      continue;
    }
    const std::string way = other_way(row, system);
    const char* link = row.predicted.network_bound ? "NICs" : "links in the server";
    if (!way.empty()) {
      row.why = "as if by another algorithm than guessed: " + way;
    } else if (row.measured_us < bound.wire_us) {
      row.why = fmt::format(
          "below the bandwidth bound: at nominal rate the {} need {:.4g} us; other hardware than "
          "the preset's?",
          link, bound.wire_us);
    } else if (row.predicted.latency_us > row.predicted.wire_us) {
      row.why = fmt::format("latency-bound: {:.0f} % of the prediction are hops and the start",
                            100 * row.predicted.latency_us / row.predicted.time_us);
    } else {
      row.why = fmt::format(
          "bandwidth-bound: the {} ran at {:.0f} % of their nominal rate, {:.0f} % are predicted",
          link, 100 * bound.wire_us / row.measured_us, 100 * bound.wire_us / row.predicted.time_us);
    }
  }
}

}  // namespace lockstep::compare
