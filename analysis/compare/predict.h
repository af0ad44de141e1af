#pragma once

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
  NcclTask task;
  NcclTime predicted;
  double measured_us = 0;
  std::string why;  ///< of a large error, in words; empty: none needed

  double error() const { return predicted.time_us / measured_us - 1; }  ///< + : predicted too slow
};

/// What a user fixes where logs are silent or wrong.
struct CompareWishes {
  std::optional<Preset> preset;      ///< else by match_preset
  std::optional<NcclFabric> fabric;  ///< of a topology, in place of the preset's
  std::int32_t gpus_per_server = 0, ranks = 0;
  std::string nccl_version;
  CommType op = CommType::kNone;  ///< where a log does not tell
};

/// What the model needs to know about a table, and why it cannot be predicted if so.
struct TableSetting {
  Preset preset;
  std::int32_t ranks = 0, servers = 0;
  NcclWishes wishes;
  std::string refused;  ///< not empty: why there is no prediction
};

/// What is known of a table: the preset of the wishes or of the log's words, ranks and servers of
/// the log (else whole servers of the preset), the release, NCCL_ALGO and NCCL_PROTO.
TableSetting table_setting(const CommSetting& setting, const CompareWishes& wishes);

/// Predicts every row of a log that a model exists for; the others are counted in `left_out`, by
/// reason.
std::vector<ComparedRow> predict_rows(const PhysicalLog& log, const CompareWishes& wishes,
                                      Warnings& left_out);

/// Says in words, for the rows whose error is above `limit`, what is the matter: a suspicious
/// measurement, one below the bandwidth bound, another algorithm than guessed, latency.
void explain_rows(std::vector<ComparedRow>& rows, const CompareWishes& wishes, double limit);

}  // namespace lockstep::compare
