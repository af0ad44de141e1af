#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/preset.h"
#include "trace/physical_log.h"

namespace lockstep::compare {

/// A measured collective beside what the model says.
struct ComparedRow {
  const CommRow* row = nullptr;          ///< of the log
  const CommSetting* setting = nullptr;  ///< of the log
  std::int32_t group = -1;               ///< index into the log's groups
  std::string group_name;                ///< of the log, "tp_group"; empty: all ranks, or not told
  std::string pattern;                   ///< "gather", "scatter", "hypercube"; empty: task.op
  NcclTask task;
  NcclSystem system;       ///< its table's: the preset's with the NICs and links that the log tells
  double step_factor = 1;  ///< of the rate step_us, by the table's settings (see table_setting)
  NcclTime predicted;
  double measured_us = 0;
  std::string why;  ///< of a large error, in words; empty: none needed

  std::string_view op_name() const { return pattern.empty() ? name_of(task.op) : pattern; }
  double error() const { return predicted.time_us / measured_us - 1; }  ///< + : predicted too slow

  /// The table's rates, were its cluster's these. O(1).
  NcclRates rates_with(NcclRates rates) const {
    rates.step_us *= step_factor;
    return rates;
  }
};

/// What a user fixes where logs are silent or wrong.
struct CompareWishes {
  std::optional<Preset> preset;      ///< else by match_preset
  std::optional<NcclFabric> fabric;  ///< of a topology, in place of the preset's
  std::int32_t gpus_per_server = 0, ranks = 0;
  std::string nccl_version;
  CommType op = CommType::kNone;  ///< where a log does not tell
  std::string pattern;            ///< likewise, of pattern_in
};

/// What the model needs to know about a table, and why it cannot be predicted if so.
struct TableSetting {
  Preset preset;
  double step_factor = 1;  ///< that preset.system.rates.step_us was multiplied by
  std::int32_t ranks = 0, servers = 0;
  std::int32_t each = 1;  ///< ranks of a server, by which a rank's number tells its server
  NcclWishes wishes;
  std::string refused;             ///< not empty: why there is no prediction
  std::vector<std::string> notes;  ///< what of the log was left out, or taken for something else
};

/// The preset of the wishes or of the log's words, with the wishes' fabric: of the cluster,
/// whatever one of its tables is like. None: the log does not tell.
std::optional<Preset> cluster_preset(const CommSetting& setting, const CompareWishes& wishes);

/// What is known of a table: the preset of the wishes or of the log's words, ranks and servers of
/// the log (else whole servers of the preset), the release. A log that lists its ranks is right
/// against --gpus; NICs are those that NCCL saw, if fewer than the preset's.
TableSetting table_setting(const CommSetting& setting, const CompareWishes& wishes);

/// Predicts every row of a log that a model exists for, in the ways that NCCL_ALGO and NCCL_PROTO
/// leave, a group on the servers that its ranks are on; the others are counted in `left_out`, by
/// reason. `notes` gets what of the logs and flags was left out of the predictions. Gather and
/// scatter are predicted as an all-to-all, whose ranks' links carry what a root's do; hypercube as
/// its send/receives, one after the other.
std::vector<ComparedRow> predict_rows(const PhysicalLog& log, const CompareWishes& wishes,
                                      Warnings& left_out, Warnings* notes = nullptr);

/// The tables that rows are of, numbered by their ids, and in order of the rows where ids are
/// equal: logs of several folders may have one name. O(rows log tables).
std::map<const CommSetting*, std::size_t> table_numbers(
    const std::vector<const ComparedRow*>& rows);

/// Says in words, for the rows whose error is above `limit`, what is the matter: a suspicious
/// measurement, one below the bandwidth bound, another algorithm than guessed, latency.
void explain_rows(std::vector<ComparedRow>& rows, const CompareWishes& wishes, double limit);

}  // namespace lockstep::compare
