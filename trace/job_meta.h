#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

/// What the meta-NAME.yaml beside a trace says of the job that was traced.
///
/// INVARIANT: world_size = dp_size * pp_size * tp_size * dsp_size; all sizes >= 1.
struct JobMeta {
  std::string trial_name;
  std::int64_t run_id = 0;  ///< >= 0
  std::int64_t dp_size = 1;
  std::int64_t pp_size = 1;
  std::int64_t tp_size = 1;
  std::int64_t dsp_size = 1;  ///< degree of sequence (context) parallelism
  std::int64_t vpp_size = 1;  ///< model chunks a stage
  std::int64_t world_size = 1;
  /// Parameters are gathered within the passes (ZeRO-3, FSDP) among so many dp_ranks in a row, so
  /// that no pass gets through without those of the others; 1: among the peers of one; 0: they are
  /// not. Ours; written where they are.
  std::int64_t gathers_in_passes = 0;
  /// 1: gradients are reduced behind the operation gc, which holds what is left of computing them
  /// when the last pass has ended (ZB-H1, DualPipe). Ours; written where it is so.
  std::int64_t gradients_behind_gc = 0;
  /// 1: each dp_rank and cp_rank clips for itself, though the sums before do not end for all at
  /// once (DualPipe without sharding, whose last sum is of a stage's two copies). Ours; written
  /// where it is so.
  std::int64_t clips_in_replicas = 0;

  bool operator==(const JobMeta&) const = default;
};

/// Reads the YAML text; `file` is for messages. Fields that are absent have their defaults.
/// A field of another name is passed over, unless it looks like a slip of the finger.
/// ERRORS: no mapping, a mistyped field, a wrong type, a broken invariant, an empty trial_name or
/// one that cannot stand in a file name.
JobMeta read_job_meta(std::string_view text, const std::string& file);

std::string to_yaml_text(const JobMeta& meta);

}  // namespace lockstep
